"""Python objects where a config has names: rows, functions and models, as a notebook has them.

An object becomes an entry that names it, `inline:<identity>.<name>`, and the registry finds it by that name as long
as the Config lives. A config that was written to a file still shows which object it was.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import assay.registry as registry
from assay.errors import UserError
from assay.records import JsonMapping, JsonObject
from assay.usercode import identity

# the arguments that a config calls otherwise
ARGUMENTS = {"scorers": "evaluation_methods", "samples": "num_samples"}


def has_objects(models: Any) -> bool:
    """Return whether there is more among the models than texts: an object, or a mapping that describes one."""
    entries = models if isinstance(models, list | tuple) else [models]
    return any(not isinstance(entry, str) for entry in cast("Sequence[Any]", entries))


def without_objects(data: JsonMapping, held: list[Any]) -> JsonObject:
    """The config with names in place of its objects; `held` receives what the names stand for."""
    plain = dict(data)
    for key, entry_of in _ENTRIES.items():
        value = plain.get(key)
        if value is None or isinstance(value, str):
            continue
        listed = isinstance(value, list | tuple) and key != "dataset"
        entries = cast("Sequence[Any]", value if listed else [value])
        made = [entry_of(entry, held) for entry in entries]
        plain[key] = made if listed else made[0]
    return plain


def _dataset(value: Any, held: list[Any]) -> Any:
    settings = _settings(value, "type")
    rows = settings.get("type")
    if callable(rows):
        settings |= {"type": "function", **_function(registry.dataset, rows, held)}
    elif isinstance(rows, list | tuple) and any(
        isinstance(row, Mapping) for row in cast("Sequence[Any]", rows)
    ):
        settings |= _rows(cast("Sequence[Any]", rows), held)
    else:
        return value
    return settings


def _rows(rows: Sequence[Any], held: list[Any]) -> JsonObject:
    kept = list(rows)
    content = json.dumps(kept, sort_keys=True, default=repr)

    def read_rows(name: str) -> Iterator[tuple[str, Any]]:
        for number, row in enumerate(kept):
            if not isinstance(row, Mapping):
                what = f"a dataset row is a mapping, found {type(row).__name__}"
                raise UserError(what, where=f"dataset[{number}]", fix="mend or remove this row")
            yield f"dataset[{number}]", dict(row)

    # the name has the content's hash, so that equal rows are the same dataset
    read_rows.__assay__ = {"stamp": lambda name: {"rows": name}}  # type: ignore[attr-defined]
    held.append(read_rows)
    return {
        "type": registry.dataset.inline(read_rows, "rows", _short(content)),
        "name": f"{len(kept)} rows",
    }


def _model(value: Any, held: list[Any]) -> Any:
    settings = _settings(value, "type")
    given = settings.get("type")
    if given is None or isinstance(given, str):
        return value
    if hasattr(given, "complete") and hasattr(given, "identity"):
        name = str(given.name)
        code = json.dumps(dict(given.identity), sort_keys=True, default=repr)
        factory: Callable[[str], Any] = lambda name: given  # noqa: E731
    elif callable(given):
        name, code = _name(given, "model"), identity(given)
        factory = lambda name: registry.model.get("python")(name, function=given)  # noqa: E731
    else:
        return value
    held.append(factory)
    return {"name": name, **settings, "type": registry.model.inline(factory, name, _short(code))}


def _method(kind: registry.Registry) -> Callable[[Any, list[Any]], Any]:
    def entry_of(value: Any, held: list[Any]) -> Any:
        settings = _settings(value, "type")
        function = settings.get("type")
        if not callable(function):
            return value
        built_in = str(getattr(function, "__assay__", {}).get("name", ""))
        # a built-in is known by its name
        if built_in and str(function.__module__).startswith("assay."):
            return {"name": built_in, **settings, "type": built_in}
        return {
            "name": _name(function, kind.kind),
            **settings,
            "type": "custom",
            **_function(kind, function, held),
        }

    return entry_of


def _task(value: Any, held: list[Any]) -> Any:
    settings = _settings(value, "function")
    function = settings.get("function")
    if not callable(function):
        return value
    held.append(function)
    name = _name(function, "task")
    named = registry.task.inline(function, name, _short(identity(function)))
    return {"name": name, **settings, "function": named}


def _function(kind: registry.Registry, function: Callable[..., Any], held: list[Any]) -> JsonObject:
    """`module` and `function_name`, by which the function is looked up like one of an imported module."""
    held.append(function)
    module, _, name = kind.inline(
        function, _name(function, kind.kind), _short(identity(function))
    ).rpartition(".")
    return {"module": module, "function_name": name}


def _settings(value: Any, key: str) -> JsonObject:
    """An entry that is a mapping already, or one that has the object under `key`."""
    return dict(cast("JsonMapping", value)) if isinstance(value, Mapping) else {key: value}


def _name(value: Any, kind: str) -> str:
    """Return the name of a function; one without a name of its own is called what it is."""
    marks: JsonObject = getattr(value, "__assay__", {})
    named = value.func if isinstance(value, partial) else value
    name = str(marks.get("name") or getattr(named, "__name__", type(value).__name__))
    return name if name.isidentifier() else kind


def _short(identity: str) -> str:
    return hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()


_ENTRIES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "dataset": _dataset,
    "models": _model,
    "tasks": _task,
    "evaluation_methods": _method(registry.scorer),
    "metrics": _method(registry.metric),
}
