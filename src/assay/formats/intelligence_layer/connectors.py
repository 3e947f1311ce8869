"""What the original keeps beside its model clients; the clients themselves are Assay's models."""

import typing

from assay.formats.intelligence_layer.argilla_clients import ArgillaClient as ArgillaClient
from assay.formats.intelligence_layer.argilla_clients import ArgillaEvaluation as ArgillaEvaluation
from assay.formats.intelligence_layer.argilla_clients import ArgillaWrapperClient as ArgillaWrapperClient
from assay.formats.intelligence_layer.argilla_clients import FileArgillaClient as FileArgillaClient
from assay.formats.intelligence_layer.argilla_clients import RatingQuestion as RatingQuestion
from assay.formats.intelligence_layer.argilla_clients import Record as Record
from assay.formats.intelligence_layer.argilla_clients import RecordData as RecordData
from assay.formats.intelligence_layer.argilla_clients import TextField as TextField
from assay.formats.intelligence_layer.types import JsonSerializable as JsonSerializable
from assay.formats.intelligence_layer.types import SerializableDict as SerializableDict

__path__: list[str] = []  # its modules are those of the table in `__init__`

if not typing.TYPE_CHECKING:
    from assay.formats.intelligence_layer import not_offered as __getattr__  # noqa: F401
