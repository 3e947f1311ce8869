"""What the original keeps beside its model clients, `intelligence_layer.connectors`: the types of
JSON values."""

from typing import TYPE_CHECKING

from assay.formats.intelligence_layer.names import names_of

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.types import (
        JsonSerializable as JsonSerializable,
        SerializableDict as SerializableDict,
    )

__path__: list[str] = []  # its modules are those of the table in `__init__`
__getattr__, __dir__ = names_of(__name__, {"types": "JsonSerializable SerializableDict"})
