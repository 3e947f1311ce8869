"""A folder that Hugging Face's `datasets.load_from_disk` opens: one Arrow file and what describes it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec

from assay.analysis.look.export import Export
from assay.errors import UserError, install_command
from assay.registry import writer
from assay.store.keys import canonical, digest
from assay.store.written import check_replaceable, write_named

_ROWS, _STATE, _INFO = "data-00000-of-00001.arrow", "state.json", "dataset_info.json"
_TYPES = {"VARCHAR": "string", "BIGINT": "int64", "DOUBLE": "float64", "BOOLEAN": "bool"}
_BATCH, _BLOCK = 1000, 1 << 20


@writer
def hf(export: Export) -> None:
    """A Hugging Face dataset on disk; nested values are JSON text. It needs a folder."""
    if export.path is None:
        raise UserError("a dataset is a folder", fix="name one with -o")
    for name in (_ROWS, _STATE, _INFO):
        check_replaceable(export.path / name, force=export.force)
    types = {name: _TYPES.get(kind, "string") for name, kind in export.columns().items()}
    features = {name: {"dtype": kind, "_type": "Value"} for name, kind in types.items()}
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    state: dict[str, Any] = {
        "_data_files": [{"filename": _ROWS}],
        "_fingerprint": digest(
            "hf", canonical(types), str(export.tables.source.path).encode()
        ).hex()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    _write_rows(export, types, export.path / _ROWS)
    for name, content in ((_INFO, info), (_STATE, state)):
        text = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
        write_named(export.path / name, text, force=export.force)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            "this needs pyarrow, which is not installed", fix=install_command("hf")
        ) from None
    return pyarrow


def _write_rows(export: Export, types: dict[str, str], path: Path) -> None:
    pa = _pyarrow()
    schema = pa.schema([(name, getattr(pa, _ARROW[kind])()) for name, kind in types.items()])
    described = msgspec.json.encode(
        {"info": {"features": {n: {"dtype": k, "_type": "Value"} for n, k in types.items()}}}
    )
    schema = schema.with_metadata({"huggingface": described.decode()})
    texts = [kind == "string" for kind in types.values()]
    with TemporaryFile(prefix="assay-") as file:
        rows = export.cells()
        with pa.ipc.new_stream(pa.PythonFile(file, "w"), schema) as stream:
            while batch := list(islice(rows, _BATCH)):
                columns = [
                    pa.array([_cell(cell, text) for cell in column], field.type)
                    for column, field, text in zip(
                        zip(*batch, strict=True), schema, texts, strict=True
                    )
                ]
                stream.write_batch(pa.record_batch(columns, schema=schema))
        file.seek(0)
        write_named(path, _blocks(file), force=export.force)


_ARROW = {"string": "string", "int64": "int64", "float64": "float64", "bool": "bool_"}


def _cell(value: Any, text: bool) -> Any:
    if not text or value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block
