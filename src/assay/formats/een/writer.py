"""EEN's files: `responses.jsonl` and `evaluation_results.jsonl` with EEN's fields and no others."""

from typing import Any, cast, get_type_hints

import msgspec

from assay.analysis.look.export import TABLES, Export
from assay.engine.experiment.imports.own_folder import blocks_of
from assay.sdk import ROWS_FILE, Evaluation, JsonObject, Response, UserError, writer
from assay.store.ledger import check_replaceable, write_named


def _een(kind: type[msgspec.Struct], last: str) -> Any:
    """The row with EEN's fields, which come first: the decoder leaves out all others."""
    types: JsonObject = get_type_hints(kind)
    names = kind.__struct_fields__[: kind.__struct_fields__.index(last) + 1]
    fields = [
        (name, types[name], getattr(kind(item_id=""), name)) for name in names if name != "item_id"
    ]
    return msgspec.defstruct(
        f"Een{kind.__name__}", [("item_id", str), *fields], kw_only=True, gc=False
    )


_FILES = {"responses": ROWS_FILE["run"], "evaluations": ROWS_FILE["evaluation"]}
_KINDS = {
    "responses": _een(cast("Any", Response), "completion_tokens"),
    "evaluations": _een(cast("Any", Evaluation), "metadata"),
}


@writer(whole="een", holds={name: kind.__struct_fields__ for name, kind in _KINDS.items()})
def een(export: Export) -> None:
    """A folder with the two files of rows that EEN writes; it holds no items."""
    if export.path is None:
        raise UserError("EEN's files are a folder", fix="name one with -o")
    tables = {name: kind for name, kind in _KINDS.items() if name in export.tables}
    for name in tables:
        check_replaceable(export.path / _FILES[name], force=export.force)
    if "responses" not in tables:
        export.tables.log("responses")
    for name, kind in tables.items():
        blocks = blocks_of(export.tables.source, TABLES[name], kind)
        lines = map(msgspec.json.Encoder().encode_lines, blocks)
        write_named(export.path / _FILES[name], lines, force=export.force)
