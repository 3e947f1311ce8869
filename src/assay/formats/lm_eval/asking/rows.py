"""Rows of a dataset: read quickly, and as values that JSON can carry."""

import datetime
import io
import math
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from assay.sdk import JsonObject, canonical

_BATCH = 1000  # rows that are decoded together
_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


def rows(dataset: Any) -> Iterator[JsonObject]:
    """Rows as dicts. A Dataset is decoded in batches, many times faster than row by row."""
    if not hasattr(dataset, "column_names"):
        yield from dataset
        return
    for start in range(0, len(dataset), _BATCH):
        columns = dataset[start : start + _BATCH]
        names = list(columns)
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(names, values, strict=True))


def jsonable(value: Any) -> Any:
    """The value as the harness's log of samples has it, bytes and images as hashes; dicts and lists are copied."""
    kind = type(value)
    if kind in _AS_THEY_ARE or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {
            key if type(key) is str else _key(key): jsonable(entry) for key, entry in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return _other(value)


def _key(key: Any) -> str:
    """As `json` writes keys that are not texts."""
    return (
        {True: "true", False: "false", None: "null"}[key]
        if key is None or isinstance(key, bool)
        else str(key)
    )


def _other(value: Any) -> Any:
    if isinstance(value, (str, int)):
        return str.__str__(value) if isinstance(value, str) else int(value)
    if isinstance(value, (bytes, bytearray)):
        return sha256(str(value).encode()).hexdigest()
    if isinstance(value, (datetime.date, datetime.time)):
        return str(value)
    if type(value).__module__.startswith("PIL."):
        image = io.BytesIO()
        value.save(image, format="PNG")
        return sha256(image.getvalue()).hexdigest()
    if type(value).__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        plain = value.tolist()
        return jsonable(plain) if type(plain) is not type(value) else str(value)
    return str(value)


COLUMNS = ("question", "problem", "query", "input", "prompt", "text", "sentence", "ctx", "goal")


def question_of(doc: JsonObject) -> str:
    """The text of the first such column; a document without any is all that it has."""
    for name in COLUMNS:
        value = doc.get(name)
        if isinstance(value, str) and value:
            return value
    return canonical(doc).decode()
