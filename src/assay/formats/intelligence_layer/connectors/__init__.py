"""What the original keeps beside its model clients; the clients themselves are Assay's models."""

from assay.formats.intelligence_layer.connectors.base.json_serializable import (
    JsonSerializable as JsonSerializable,
)
from assay.formats.intelligence_layer.connectors.base.json_serializable import (
    SerializableDict as SerializableDict,
)
