"""What the original keeps beside its model clients; the clients themselves are Assay's models."""

from assay.formats.intelligence_layer.connectors.argilla.argilla_client import ArgillaClient as ArgillaClient
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import ArgillaEvaluation as ArgillaEvaluation
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import RatingQuestion as RatingQuestion
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import Record as Record
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import RecordData as RecordData
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import TextField as TextField
from assay.formats.intelligence_layer.connectors.argilla.argilla_wrapper_client import (
    ArgillaWrapperClient as ArgillaWrapperClient,
)
from assay.formats.intelligence_layer.connectors.argilla.file_client import FileArgillaClient as FileArgillaClient
from assay.formats.intelligence_layer.connectors.base.json_serializable import (
    JsonSerializable as JsonSerializable,
)
from assay.formats.intelligence_layer.connectors.base.json_serializable import (
    SerializableDict as SerializableDict,
)
from assay.formats.intelligence_layer.connectors.studio.studio import StudioClient as StudioClient
