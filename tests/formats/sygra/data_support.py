"""What the tests of `data_config` share: files, the names that YAMLs use, and records without their ids."""

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.sygra.data import open_records, transforms

SHIPPED = "sygra.processors.data_transform."


def load(dotted: str, where: str) -> Any:
    """Stands in for the loader of task folders."""
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(
            transforms if dotted.startswith(SHIPPED) else importlib.import_module(module), name
        )
    except (ImportError, AttributeError) as error:
        raise UserError(f"{dotted!r} cannot be imported: {error}", where=where) from None


def step(name: str, **params: Any) -> dict[str, Any]:
    """An entry of `transformations`, with a shipped class or a class of a test."""
    return {"transform": name if "." in name else SHIPPED + name, "params": params or None}


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def disk(path: str, *transformations: Any, **more: Any) -> dict[str, Any]:
    return {"type": "disk", "file_path": path, "transformations": list(transformations), **more}


def read(
    base: Path, source: Any, *, id_column: str | None = None, **options: Any
) -> list[dict[str, Any]]:
    config = {"source": source, "id_column": id_column}
    return list(open_records(config, base=base, load=load, **options))


def bare(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without ids."""
    return [{name: value for name, value in record.items() if name != "id"} for record in records]


def problem(base: Path, source: Any, **options: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        read(base, source, **options)
    return caught.value
