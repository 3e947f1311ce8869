"""A folder that Hugging Face's `datasets.load_from_disk` opens: one Arrow file and what describes it."""

from collections.abc import Iterator
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from assay.analysis.look.export import Export
from assay.reports.sheet import json_text
from assay.sdk import JsonObject, UserError, canonical, digest, install_command, writer
from assay.store.ledger import check_replaceable, write_named

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
    state = _state(export, types)
    with TemporaryFile(prefix="assay-") as file:
        _write_rows(export.cells(), features, file)
        file.seek(0)
        blocks = iter(lambda: file.read(_BLOCK), b"")
        write_named(export.path / _ROWS, blocks, force=export.force)
    for name, content in ((_INFO, info), (_STATE, state)):
        text = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
        write_named(export.path / name, text, force=export.force)


def _state(export: Export, types: dict[str, str]) -> JsonObject:
    """Return what `load_from_disk` asks of a dataset: its one file, and no format of its own."""
    source = str(export.tables.source.path).encode()
    return {
        "_data_files": [{"filename": _ROWS}],
        "_fingerprint": digest("hf", canonical(types), source).hex()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def _write_rows(
    rows: Iterator[list[Any]], features: dict[str, dict[str, str]], file: IO[bytes]
) -> None:
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            "this needs pyarrow, which is not installed", fix=install_command("hf")
        ) from None
    pa: Any = pyarrow
    fields = [(name, pa.type_for_alias(each["dtype"])) for name, each in features.items()]
    described = msgspec.json.encode({"info": {"features": features}}).decode()
    schema = pa.schema(fields).with_metadata({"huggingface": described})
    with pa.ipc.new_stream(pa.PythonFile(file, "w"), schema) as stream:
        while batch := list(islice(rows, _BATCH)):
            columns = [
                pa.array(map(_text, column) if field.type == pa.string() else column, field.type)
                for column, field in zip(zip(*batch, strict=True), schema, strict=True)
            ]
            stream.write_batch(pa.record_batch(columns, schema=schema))


def _text(value: Any) -> str | None:
    return None if value is None else json_text(value)
