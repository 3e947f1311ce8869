"""The types of a task's input and output, from the annotations of its `do_run`."""

import inspect
from typing import Any, Literal, TypeVar

from assay.formats.intelligence_layer.core.task import Task
from assay.formats.intelligence_layer.generics import arguments_of

_MISSING = object()


def type_of(task: Task[Any, Any], part: Literal["input", "output"], owner: object) -> Any:
    """A TypeError where there is no type, which says how to give one. `owner` is the object that was asked."""
    function: Any = inspect.unwrap(task.do_run)
    found = inspect.get_annotations(function).get("return" if part == "output" else part, _MISSING)
    if isinstance(found, str):
        found = _evaluated(found, function)
    if isinstance(found, TypeVar):
        found = arguments_of(type(task), Task).get(part.capitalize(), _MISSING)
    if found is _MISSING:
        raise TypeError(
            f"{type(task).__name__}.do_run has no type for its {part}: annotate "
            f"{'its result' if part == 'output' else 'the parameter `input`'}, "
            f"or override {part}_type() in {type(owner).__name__}"
        )
    return found


def _evaluated(annotation: str, function: Any) -> Any:
    """An annotation that is text, as all are after `from __future__ import annotations`."""
    try:
        return eval(annotation, getattr(function, "__globals__", {}))
    except NameError:  # a class that some function has for itself
        return _MISSING
