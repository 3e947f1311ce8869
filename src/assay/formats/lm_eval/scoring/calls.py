"""Calling a task's own functions: what they raise becomes an error that names file and line."""

import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from assay.errors import AssayError, UserError
from assay.formats.lm_eval.facade.packages import install_line
from assay.formats.lm_eval.tasks.definition import Definition

T = TypeVar("T")
_made: dict[tuple[int, Callable[..., Any]], tuple[Definition, Any]] = {}
_MOST_KEPT = 4096


class HookError(UserError):
    """What a function of a task raised, or the harness's own rule, for one document."""


def called(function: Callable[..., T], what: str, where: str, /, *args: Any, **params: Any) -> T:
    """The function's value; `where` is the task's file, for errors that no line of a hook's module raised."""
    try:
        return function(*args, **params)
    except AssayError:
        raise
    except Exception as error:
        steps = traceback.walk_tb(error.__traceback__)
        own = [
            (frame.f_code.co_filename, line)
            for frame, line in steps
            if "__state__" in frame.f_globals
        ]
        place = f"{own[-1][0]}:{own[-1][1]}" if own else where
        fix = (
            install_line(error.name)
            if isinstance(error, ModuleNotFoundError) and error.name
            else ""
        )
        raise HookError(f"{what}: {type(error).__name__}: {error}", where=place, fix=fix) from error


def registered(definition: Definition, kind: str, name: str) -> Any:
    """What a module of the task's hooks registered as a `filter`, `metric` or `aggregation`; None if none did."""
    from assay.formats.lm_eval.facade import names
    from assay.formats.lm_eval.tasks.task_keys import hooks_in

    for hook in hooks_in(msgspec.structs.asdict(definition)):
        _ = hook.value
    return names.registered(kind, name)


def once(definition: Definition, make: Callable[[Definition], T]) -> T:
    """What `make` makes of a definition, made once: definitions are not changed after they are read."""
    key = (id(definition), make)
    kept = _made.get(key)
    if kept is None or kept[0] is not definition:
        if len(_made) >= _MOST_KEPT:
            _made.clear()
        kept = _made[key] = (definition, make(definition))
    return kept[1]
