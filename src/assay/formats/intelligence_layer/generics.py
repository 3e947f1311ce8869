"""Which types a class gives to the type variables of a generic ancestor, through all classes in between."""

from typing import Any, TypeVar, get_args, get_origin


def arguments_of(kind: type, ancestor: type) -> dict[str, Any]:
    """The types by the names of the ancestor's type variables; those that no class in between settles are left out."""
    names = [variable.__name__ for variable in ancestor.__parameters__]  # type: ignore[attr-defined]
    found = zip(names, _arguments(kind, ancestor), strict=True)
    return {name: argument for name, argument in found if not isinstance(argument, TypeVar)}


def settled(owner: object, types: dict[str, Any], name: str, method: str) -> Any:
    """The type of this name; a TypeError says how to give it where the classes do not."""
    if name not in types:
        raise TypeError(
            f"the type {name} cannot be found in the type arguments of the logic: "
            f"name it there, or override {method}() in {type(owner).__name__}"
        )
    return types[name]


def _arguments(kind: type, ancestor: type) -> tuple[Any, ...]:
    if kind is ancestor:
        return ancestor.__parameters__  # type: ignore[attr-defined]
    for base in kind.__dict__.get("__orig_bases__", kind.__bases__):
        parent: Any = get_origin(base) or base
        if isinstance(parent, type) and issubclass(parent, ancestor):
            variables: tuple[Any, ...] = getattr(parent, "__parameters__", ())
            given = dict(zip(variables, get_args(base) or variables, strict=True))
            return tuple(_filled(argument, given) for argument in _arguments(parent, ancestor))
    raise TypeError(f"{kind.__name__} does not inherit from {ancestor.__name__}")


def _filled(argument: Any, given: dict[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return given.get(argument, argument)
    open_ones = getattr(argument, "__parameters__", ())  # such as list[T]
    return argument[tuple(given.get(each, each) for each in open_ones)] if open_ones else argument
