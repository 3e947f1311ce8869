"""The types of values that JSON can hold, under the original's name."""

from assay.formats.intelligence_layer.types import JsonSerializable as JsonSerializable
from assay.formats.intelligence_layer.types import SerializableDict as SerializableDict
