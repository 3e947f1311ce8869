"""Mappings as YAML and JSON have them: one that is only read, and one of our own."""

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]
Row = dict[str, Any]
