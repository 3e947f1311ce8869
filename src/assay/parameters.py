"""The parameters of a plug-in: its signature is the schema.

Several plug-ins can share a group of parameters, which a class describes in the `Parameters:` of its docstring. With
`@scorer(params=Panel)` these words document all parameters that the function's own docstring leaves out; the fields of
a Struct take the place of `**more` in its signature, unless the function names them itself.
"""

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from assay.errors import UserError
from assay.records import JsonMapping, JsonObject

_ENTRY = re.compile(r"(\w+): (.+)")


def nearest(name: str, valid: Iterable[str]) -> str:
    """`Did you mean …?` and the valid names, as one line for an error's fix."""
    names = sorted(set(valid))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(names)}" if names else ""


def check_name(name: str, known: Collection[str], problem: str, where: str = "") -> None:
    """Raise an error with the names that there are, if this is none of them."""
    if name not in known:
        raise UserError(f"{problem} {name!r}", where=where, fix=nearest(name, known))


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a config may set: the keyword-only ones."""
    called = inspect.signature(function).parameters
    return {name: p for name, p in called.items() if p.kind is p.KEYWORD_ONLY}


def by_keyword(function: Callable[..., Any], *taken: str) -> Callable[..., Any]:
    """Return what stands for a function whose parameters may be set by any keyword (EEN's forms),
    but for those `taken` by the engine."""

    def view(**params: Any) -> None: ...

    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    called = inspect.signature(function).parameters.values()
    named = [
        p.replace(kind=p.KEYWORD_ONLY) for p in called if p.name not in taken and p.kind in kinds
    ]
    rest = [p for p in called if p.kind is p.VAR_KEYWORD]
    view.__signature__ = inspect.Signature([*named, *rest])  # type: ignore[attr-defined]
    view.__name__ = getattr(function, "__name__", type(function).__name__)
    return view


def check_params(
    function: Callable[..., Any],
    params: JsonMapping,
    *,
    where: str = "",
    reserved: Iterable[str] = (),
    given: int | None = None,
) -> JsonObject:
    """`params` as they will be passed: unknown and missing names are refused, types are converted by annotation.

    User code need not make its parameters keyword-only: with `given`, what follows the engine's own first `given`
    arguments may be set as well.
    """
    called = inspect.signature(function).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in called.values())
    settable = parameters(function)
    if given is not None:
        free = [p for p in called.values() if p.kind is p.POSITIONAL_OR_KEYWORD][given:]
        settable = {**{p.name: p for p in free}, **settable}
    settable = {name: p for name, p in settable.items() if name not in set(reserved)}
    name = getattr(function, "__name__", str(function))
    checked: JsonObject = {}
    hints = _hints(function)
    for key, value in params.items():
        if key in settable:
            checked[key] = _convert(value, hints.get(key, Any), f"{name}.{key}", where)
        elif open_ended:
            checked[key] = value
        else:
            check_name(key, settable, f"{name} has no parameter", where)
    missing = [key for key, p in settable.items() if p.default is p.empty and key not in checked]
    if missing:
        raise UserError(
            f"{name} needs the parameter {missing[0]!r}", where=where, fix=f"add `{missing[0]}:`"
        )
    return checked


def _hints(function: Callable[..., Any]) -> JsonObject:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:  # a user's annotation that does not evaluate need not stop the function
        return {}


def _convert(value: Any, annotation: Any, name: str, where: str) -> Any:
    import msgspec

    if annotation in (Any, inspect.Parameter.empty):
        return value
    try:
        return msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        # text might be a misplaced secret
        shown = f" ({value!r})" if isinstance(value, (bool, int, float)) else ""
        raise UserError(f"{name}: {error}{shown}", where=where) from None
    except TypeError:  # an annotation that msgspec does not know: the function itself must judge
        return value


def described(text: str | None) -> tuple[str, dict[str, str]]:
    """A docstring's text, and what its last paragraph, `Parameters:`, says about each: lines `name: what it does`,
    which lines that are indented further continue."""
    body, _, listed = f"\n{inspect.cleandoc(text or '')}".partition("\nParameters:\n")
    meanings: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry:
            name, meanings[entry[1]] = entry[1], entry[2]
        elif name and line.strip():
            meanings[name] += f" {line.strip()}"
    return body.strip(), meanings


def add_group(function: Callable[..., Any], group: type) -> None:
    """Give a function the signature and the docstring that it has together with its group."""
    signature = inspect.signature(function)
    listed = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if len(listed) < len(signature.parameters):
        listed += [p for p in _fields(group) if p.name not in signature.parameters]
        function.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
        function.__annotations__ = {
            p.name: p.annotation for p in listed if p.annotation is not p.empty
        }
    text, meanings = described(function.__doc__)
    shared: dict[str, str] = {}
    for kind in reversed(group.__mro__):
        shared |= described(kind.__dict__.get("__doc__"))[1]
    lines = [
        f"{p.name}: {meaning}"
        for p in listed
        if (meaning := meanings.get(p.name) or shared.get(p.name))
    ]
    function.__doc__ = "\n".join([text, "", "Parameters:", *lines] if lines else [text])


def _fields(group: type) -> list[inspect.Parameter]:
    import msgspec

    fields = msgspec.structs.fields(group)
    defaults = [inspect.Parameter.empty if field.required else field.default for field in fields]
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type
        )
        for field, default in zip(fields, defaults, strict=True)
    ]
