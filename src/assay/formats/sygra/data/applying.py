"""`transformations` of a source: each class is found and made before anything is read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record, Records, Streamed
from assay.formats.sygra.data.values import cleaned

Load = Callable[[str, str], Any]
Stage = Callable[[Records], Records]


def stages(steps: Any, load: Load, where: str) -> list[Stage]:
    """A function from records to records for each entry; a class that cannot be used is named with its place."""
    if not isinstance(steps or [], list):
        raise UserError("transformations must be a list", where=where, fix="write `- transform: package.module.Class`")
    return [_stage(step, load, f"{where}.transformations[{number}]") for number, step in enumerate(steps or [])]


def _stage(step: Any, load: Load, where: str) -> Stage:
    if not isinstance(step, Mapping) or not isinstance(step.get("transform"), str):
        raise UserError(f"a transformation names no class: {step!r}", where=where, fix="add `transform: package.Class`")
    dotted: str = step["transform"]
    params = step.get("params")
    if not isinstance(params, Mapping | None):
        raise UserError(f"params must be a mapping, got {params!r}", where=where)
    made = load(dotted, where)
    try:
        instance = made() if isinstance(made, type) else made
    except Exception as error:
        raise UserError(f"{dotted!r} cannot be made: {type(error).__name__}: {error}", where=where) from error
    transform = getattr(instance, "transform", None)
    if not callable(transform):
        fix = "give its class a method `transform(data, params)`"
        raise UserError(f"{dotted!r} is no transform", where=where, fix=fix)
    given = dict(params or {})
    if isinstance(instance, Streamed) and type(instance).transform is Streamed.transform:
        return lambda records: _streamed(instance, records, given, where)
    return lambda records: _listed(transform, dotted, records, given, where)


def _streamed(instance: Streamed, records: Records, params: dict[str, Any], where: str) -> Records:
    try:
        yield from instance.stream(records, params)
    except UserError as error:
        error.where = error.where or where
        raise


def _listed(transform: Callable[..., Any], name: str, records: Records, params: dict[str, Any], where: str) -> Records:
    """User code, which sees all records at once."""
    everything = list(records)
    try:
        result = transform(everything, params)
        rows: Iterator[Any] = iter(_rows(result, name, where))
        del everything, result
        for row in rows:
            yield _record(row, name, where)
    except UserError:
        raise
    except Exception as error:
        what = f"the transformation {name!r} failed: {type(error).__name__}: {error}"
        raise UserError(what, where=where, fix="run it by hand to see its traceback") from error


def _rows(result: Any, name: str, where: str) -> Iterable[Any]:
    if isinstance(result, Iterable) and not isinstance(result, Mapping | str):
        return result
    what = f"the transformation {name!r} returned {type(result).__name__}, not a list of records"
    raise UserError(what, where=where, fix="return the list from `transform`")


def _record(row: Any, name: str, where: str) -> Record:
    if not isinstance(row, Mapping):
        what = f"the transformation {name!r} returned a list with {type(row).__name__}, not records"
        raise UserError(what, where=where, fix="return a list of dictionaries")
    return cleaned(dict(row))
