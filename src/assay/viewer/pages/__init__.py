"""Pages of data, one file each: `Query` is what can be asked, `page` answers. `web/src/pages.ts` has their shapes.

A server sends them, a report carries them; no page depends on who asks.
"""

from importlib import import_module
from typing import Any

import msgspec

from assay.sdk import JsonObject, UserError, nearest
from assay.viewer.experiments import Experiments

NAMES = (
    "experiments",
    "leaderboard",
    "standing",
    "chart",
    "samples",
    "matrix",
    "sample",
    "compare",
    "flips",
    "ranking",
    "judges",
    "review",
)


def page(experiments: Experiments, name: str, query: dict[str, list[str]]) -> Any:
    """The page of this name; a query that makes no sense is a UserError."""
    if name not in NAMES:
        raise UserError(f"there is no page {name!r}", fix=nearest(name, NAMES))
    module = import_module(f"assay.viewer.pages.{name}")
    return module.page(experiments, _query(module.Query, query, name))


def _query(kind: type[msgspec.Struct], query: dict[str, list[str]], name: str) -> Any:
    """Texts as the types of the fields: the last value of a field that holds only one."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    values: JsonObject = {}
    for key, texts in query.items():
        if key not in fields:
            raise UserError(f"{name} cannot be asked for {key!r}", fix=nearest(key, fields))
        listed = getattr(fields[key].type, "__origin__", None) is list
        values[key] = texts if listed else texts[-1]
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the address asks for what is not there: {error}", fix="correct the address"
        ) from None
