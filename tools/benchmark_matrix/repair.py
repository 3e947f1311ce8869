"""From an error that rows caused to other rows: which field is meant, and what it should hold instead."""

import ast
import re
import textwrap
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from tools.benchmark_matrix.fields import LIST_LENGTH, Field

DEPTH = 6  # of fields that are changed
_SHAPES = ("list", "number", "digits", "dict", "values", "text", "float", "bool", "none")


def repair(root: Field, error: BaseException, rows: list[dict[str, Any]], tried: set[Any]) -> bool:
    """Changes the fields; False if there is nothing left to try."""
    first = cause(error)
    for change in _changes(root, first, rows):
        if change not in tried and len(change[0]) <= DEPTH:
            tried.add(change)
            if apply(root, change):
                return True
    return False


Change = tuple[Any, ...]  # (path, what, argument)


def apply(root: Field, change: Change) -> bool:
    path, what, argument = change
    field = at(root, path)
    if field is None:
        return False
    before = repr(root.shape())
    if what == "child":
        field.forced = ""
        field.is_text = field.is_list = False
        field.child(argument)
    elif what == "values":
        field.forced = "values"
        field.values = list(argument)
    elif what == "length":
        field.length = argument
    elif what == "range":
        field.forced, field.range = "number", argument
    elif what == "inside":
        field.inside.append(argument)
    elif what == "rename":
        field.children = {
            argument[1] if name == argument[0] else name: part
            for name, part in field.children.items()
        }
    elif what == "kind":
        field.forced = argument
        if argument == "dict" and not field.children:
            field.child("first"), field.child("second")
    return repr(root.shape()) != before


def at(root: Field, path: tuple[Any, ...]) -> Field | None:
    field: Field | None = root
    for step in path:
        if field is None:
            return None
        if field.encoded is not None:
            field = field.encoded
        field = field.item if isinstance(step, int) else field.children.get(step)
    return field


def cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _changes(root: Field, error: BaseException, rows: list[dict[str, Any]]) -> Iterator[Change]:
    text = str(error)
    undefined = re.fullmatch(r"'?([^']+)'? is undefined", text)
    if undefined:
        yield (), "child", undefined[1]
    lacks = re.match(r"'dict object' has no attribute '(\w+)'", text)
    if lacks:
        for path, field in fields(root):
            if field.kind == "dict":
                yield path, "child", lacks[1]
    if "has no documents" in text:
        yield (), "length", 40
    if re.match(r"'int object' has no attribute '\w+'", text):
        for path, field in fields(root):
            if field.kind == "number":
                yield path, "kind", "digits"
    frames = list(_frames(error.__traceback__))
    for frame, node in reversed(frames):
        yield from _of_expression(root, error, frame, node, rows)
    missing = re.search(r"(?:column|Column|keys?|KeyError:?) '?([\w-]+)'?", text)
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        yield (), "child", error.args[0]
    elif missing:
        yield (), "child", missing[1]
    quoted = re.search(r": '(.*)'$", text)
    if quoted and isinstance(error, ValueError):
        for path in origins(root, rows, quoted[1]):
            yield path, "kind", "number"
            yield path, "kind", "digits"


def guesses(root: Field, error: BaseException) -> Iterator[Change]:
    """Other kinds of value for the fields that the failing functions name."""
    frames = list(_frames(cause(error).__traceback__))
    mentioned = {
        name for frame, _ in frames for name in (*frame.f_code.co_consts, *frame.f_code.co_names)
    }
    for path, field in fields(root):
        if len(path) <= DEPTH and (field.name in mentioned or not frames):
            for kind in _SHAPES if frames else ("none", "bool", *_SHAPES):
                if kind != field.kind and (kind != "values" or field.values):
                    yield path, "kind", kind


def _of_expression(
    root: Field,
    error: BaseException,
    frame: FrameType,
    node: ast.expr | None,
    rows: list[dict[str, Any]],
) -> Iterator[Change]:
    text = str(error)
    if isinstance(node, ast.Subscript):
        base, key = _value(node.value, frame), _value(node.slice, frame)
        if isinstance(error, KeyError) and isinstance(base, dict):
            for path in origins(root, rows, base, keys=True):
                yield path, "child", key
            names = [name for name in base if isinstance(name, str)]
            for path, field in fields(root) if names else ():
                if key in field.children:
                    yield path, "rename", (key, names[0])
            for path in origins(root, rows, key):
                yield (
                    path,
                    "values",
                    tuple(name for name in base if isinstance(name, (str, int, float))),
                )
        elif isinstance(error, TypeError):
            if isinstance(key, str):
                for path in origins(root, rows, base):
                    yield path, "child", key
                for path in origins(root, rows, key):
                    yield (
                        path,
                        "range",
                        len(base) if isinstance(base, (list, tuple)) and base else LIST_LENGTH,
                    )
            for path in origins(root, rows, base):
                yield path, "kind", "list"
                yield path, "kind", "text"
        elif isinstance(error, IndexError):
            for path in origins(root, rows, key):
                yield path, "range", max(1, len(base))
            for path in origins(root, rows, base):
                yield path, "length", 12
            call = node.value
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and "split" in call.func.attr
            ):
                separator = _value(call.args[0], frame) if call.args else " "
                for path in origins(root, rows, _value(call.func.value, frame)):
                    yield path, "inside", separator
    elif isinstance(node, ast.Call):
        given = [_value(part, frame) for part in node.args]
        if isinstance(node.func, ast.Attribute):
            base = _value(node.func.value, frame)
            if node.func.attr == "index" and isinstance(base, (list, tuple)) and given:
                for path in origins(root, rows, given[0]):
                    yield (
                        path,
                        "values",
                        tuple(part for part in base if isinstance(part, (str, int))),
                    )
        for value in given:
            for path in origins(root, rows, value):
                for kind in ("number", "digits", "encoded", "list", "text"):
                    yield path, "kind", kind
    elif isinstance(node, ast.Attribute):
        base = _value(node.value, frame)
        kind = "dict" if node.attr in ("items", "keys", "values", "get") else "text"
        for path in origins(root, rows, base):
            yield path, "kind", kind
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            for path in origins(root, rows, _value(side, frame)):
                for kind in ("text", "number"):
                    yield path, "kind", kind
    del text


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, ast.expr | None]]:
    """Frames of the tasks' own code, with the expression that failed."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/lm_eval/tasks/" in code.co_filename:
            positions = list(code.co_positions())[trace.tb_lasti // 2]
            yield trace.tb_frame, _expression(code.co_filename, positions)
        trace = trace.tb_next


def _expression(file: str, positions: tuple[int | None, ...]) -> ast.expr | None:
    first, last, start, end = positions
    if None in positions:
        return None
    with open(file, encoding="utf-8") as source:
        lines = source.read().splitlines()[first - 1 : last]  # type: ignore[operator]
    if len(lines) == 1:
        text = lines[0].encode()[start:end].decode()
    else:
        text = "\n".join(
            [lines[0].encode()[start:].decode(), *lines[1:-1], lines[-1].encode()[:end].decode()]
        )
    try:
        return ast.parse(f"({textwrap.dedent(text)})", mode="eval").body
    except SyntaxError:
        return None


def _value(node: ast.expr, frame: FrameType) -> Any:
    try:
        return eval(
            compile(ast.Expression(node), "<value>", "eval"), frame.f_globals, frame.f_locals
        )
    except Exception:
        return None


def fields(field: Field, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Field]]:
    for name, part in list(field.children.items()):
        yield (*path, name), part
        yield from fields(part, (*path, name))
    if field.item is not None:
        yield (*path, 0), field.item
        yield from fields(field.item, (*path, 0))
    if field.encoded is not None:
        yield from fields(field.encoded, path)


def origins(
    root: Field, rows: list[dict[str, Any]], value: Any, *, keys: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Where a value is from. keys: a dictionary with these or more keys"""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return
    if keys:
        for path, field in [((), root), *fields(root)]:
            if field.kind == "dict" and set(field.children) <= set(value):
                yield path
        return
    if type(value).__module__.startswith("datasets"):
        value = list(value)
    exact: list[tuple[Any, ...]] = []
    loose: list[tuple[Any, ...]] = []
    for path, field in fields(root):
        made = [field.value(row, path) for row in range(len(rows))]
        if any(type(one) is type(value) and one == value for one in made):
            exact.append(path)
        elif isinstance(value, str) and any(
            isinstance(one, str) and _like(one, value) for one in made
        ):
            loose.append(path)
    yield from exact or loose


def _like(made: str, value: str) -> bool:
    plain = value.strip().lower()
    return len(plain) > 2 and (plain in made.lower() or made.lower() in plain)
