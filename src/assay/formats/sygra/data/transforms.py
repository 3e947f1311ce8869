"""All data transforms that task folders find under `sygra.processors.data_transform`."""

from assay.formats.sygra.data.fields import AddNewFieldTransform, AddRetryFieldsTransform, RenameFieldsTransform
from assay.formats.sygra.data.media import CreateAudioUrlTransform, CreateImageUrlTransform
from assay.formats.sygra.data.transform import DataTransform
from assay.formats.sygra.data.windows import CombineRecords, SkipRecords

__all__ = [
    "AddNewFieldTransform",
    "AddRetryFieldsTransform",
    "CombineRecords",
    "CreateAudioUrlTransform",
    "CreateImageUrlTransform",
    "DataTransform",
    "RenameFieldsTransform",
    "SkipRecords",
]
