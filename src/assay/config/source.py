"""Reading a config: plain values, and the line that each of them stands on.

YAML is read by the rules of version 1.2: `no`, `on`, `12:30` and dates are text, `1e-3` is a number. A key
that is given twice is an error, never a silent override.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from assay import reading
from assay.errors import ConfigError, UserError
from assay.records import JsonMapping, JsonObject
from assay.registry import formats

Key = tuple[str | int, ...]
TOO_MANY_VALUES = 100_000
DEEPEST = 100
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Document:
    """A config on its way: its values, where each of them came from, and the problems found so far."""

    def __init__(self, data: JsonObject, *, file: Path | None = None, shown: str = "") -> None:
        self.data = data
        self.file = file
        self.shown = shown
        self.base = Path(os.path.abspath(file.parent)) if file else Path.cwd()
        self.lines: dict[Key, int] = {}
        self.problems: list[UserError] = []
        self.objects: list[Any] = []
        self._written = {key for key, _ in values_in(data)}
        self._moved: dict[Key, Key] = {}
        self._set_by: dict[Key, str] = {}

    def report(self, what: str, key: Key, fix: str = "") -> None:
        self.problems.append(UserError(what, where=self.place(key), fix=fix))

    def stop_if_wrong(self) -> None:
        if self.problems:
            raise ConfigError(self.problems, source=self.shown)

    def note_origin(self, to: Key, origin: Key) -> None:
        """Remember that normalising put at `to` what the user wrote at `origin`."""
        if to != origin:
            self._moved[to] = self._origin(origin)

    def note_setter(self, key: Key, by: str) -> None:
        self._set_by[key] = by

    def setter(self, key: Key) -> str:
        """The flag or variable that set the value at `key`, or nothing if the config itself did."""
        for path in (key, self._origin(key)):
            for n in range(len(path), 0, -1):
                if path[:n] in self._set_by:
                    return self._set_by[path[:n]]
        return ""

    def place(self, key: Key) -> str:
        """`file.yaml:12 models[0].endpoint`, for the place where the user wrote it."""
        by = self.setter(key)
        if by:
            return by
        key = self._as_written(self._origin(key))
        line = next(
            (self.lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self.lines), 0
        )
        file = f"{self.shown}:{line}" if line else self.shown
        return f"{file} {dotted_key(key)}".strip()

    def _as_written(self, key: Key) -> Key:
        """Without the names that only the long form has; a key that is missing altogether keeps its name."""
        return next((key[:n] for n in range(len(key), 0, -1) if key[:n] in self._written), key)

    def _origin(self, key: Key) -> Key:
        for n in range(len(key), 0, -1):
            if key[:n] in self._moved:
                return self._moved[key[:n]] + key[n:]
        return key


# ---- the one walk over the values of a config


def values_in(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every value inside of `value`, with its key; leaves are those that are neither mapping nor list."""
    parts = value.items() if isinstance(value, Mapping) else ()
    if isinstance(value, list):
        parts = enumerate(value)
    for name, part in parts:
        yield (*key, name), part
        yield from values_in(part, (*key, name))


def map_values(value: Any, change: Callable[[Any, Key], Any], key: Key = ()) -> Any:
    """A copy of `value` with every leaf changed."""
    if isinstance(value, Mapping):
        return {
            str(name): map_values(entry, change, (*key, str(name))) for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [map_values(entry, change, (*key, n)) for n, entry in enumerate(value)]
    return change(value, key)


def core_type(hint: Any) -> Any:
    """A hint without its constraints and without `None`."""
    if get_origin(hint) is Annotated:
        return core_type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return core_type(next(part for part in get_args(hint) if part is not type(None)))
    return hint


def dotted_key(key: Key) -> str:
    """`models[0].endpoint`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return "".join(parts).removeprefix(".")


def brief(key: Key) -> str:
    """The last name of a key, with the number of a list's entry: what is wrong; its place says the rest."""
    names = [n for n, part in enumerate(key) if isinstance(part, str)]
    return dotted_key(key[names[-1] :]) if names else "the config"


def read(source: str | Path | JsonMapping) -> Document:
    """The values of a YAML or JSON file (by its suffix) or of a dict, which is copied. A file of a format is the config
    that the format makes of it; `file.yaml:part` is a part of such a file."""
    if isinstance(source, Mapping):
        return Document(copy_values(source))
    file, shown, part = Path(source), str(source), ""
    if ".yaml:" in shown and not file.exists():
        place, _, part = shown.rpartition(":")
        file = Path(place)
    document = read_file(file, shown)
    # what every config of ours has one of
    if not document.data.keys() & {"models", "dataset", "benchmarks"}:
        for name in formats("configs"):
            made = import_module(f"assay.formats.{name}.configs").config_in(
                document.data, file, part
            )
            if made is not None:
                return Document(made, file=file, shown=shown)
    return document


def read_file(file: Path, shown: str) -> Document:
    """The values of a YAML or JSON file, with their lines."""
    text = _text(file, shown)
    lines: dict[Key, int] = {}
    try:
        data = (_json if file.suffix.lower() == ".json" else _yaml)(text, lines)
        if why := why_too_much(data):
            raise _wrong(f"this is not a config: {why}", 1)
    except UserError as error:
        line, what = error.where, error.what
        raise ConfigError(
            [UserError(what, where=f"{shown}:{line}", fix=error.fix)], source=shown
        ) from None
    if not isinstance(data, dict):
        what = "the config is empty" if data is None else "a config is a mapping of keys to values"
        raise ConfigError(
            [UserError(what, where=shown, fix="begin with `models:` and `dataset:`")], source=shown
        )
    document = Document(data, file=file, shown=shown)
    document.lines = lines
    return document


def why_too_much(value: Any) -> str:
    """Why no config holds such a value: it nests too deeply, or has too many parts; "" where it may."""
    layer, depth, count = [value], 0, 0
    while layer:
        parts = (
            each.values() if isinstance(each, dict) else each
            for each in layer
            if isinstance(each, dict | list)
        )
        layer = [part for held in parts for part in held]
        depth, count = depth + 1, count + len(layer)
        if depth > DEEPEST:
            return "it is nested too deeply, or an anchor contains itself"
        if count > TOO_MANY_VALUES:
            return f"it has more than {TOO_MANY_VALUES} values: anchors may multiply them"
    return ""


def copy_values(value: Any) -> Any:
    """The mappings and lists of a value made anew, its paths as text."""
    return map_values(value, lambda leaf, key: os.fspath(leaf) if isinstance(leaf, Path) else leaf)


def scalar(text: str) -> Any:
    """A value as YAML reads it: a number, true, null, a flow list or mapping, else the text itself."""
    return _yaml(text, {})


def flag_value(text: str) -> Any:
    """The value of a flag or a variable: a number, true, false, null, `[…]` or `{…}`; everything else is text."""
    text = text.strip()
    try:
        value = scalar(text)
    except UserError:
        return text
    if why_too_much(value):
        return text
    if isinstance(value, str):
        return value if text[0] in "'\"" else text
    if isinstance(value, dict | list):
        return value if text[0] in "[{" else text
    return text if value is None and text not in ("", "~", "null") else value


def _text(file: Path, shown: str) -> str:
    try:
        return reading.content(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = UserError(
            "the config is not UTF-8 text", where=f"{shown}:{line}", fix="save it as UTF-8"
        )
    except OSError as error:
        problem = UserError(
            f"the config cannot be read: {error.strerror}", where=shown, fix=similar_files(file)
        )
    raise ConfigError([problem], source=shown)


def similar_files(file: Path) -> str:
    """A hint at the files that a missing one may have meant."""
    try:
        names = [entry.name for entry in os.scandir(file.parent) if entry.name != file.name]
    except OSError:
        return f"there is no folder {str(file.parent)!r}"
    close = difflib.get_close_matches(file.name, names, n=3, cutoff=0.6)
    return (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"looked in {str(file.parent) or '.'!r}"
    )


def _wrong(what: str, line: int, fix: str = "") -> UserError:
    return UserError(what, where=str(line), fix=fix)


def _json(text: str, lines: dict[Key, int]) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise _wrong(f"this is not JSON: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError):
        raise _wrong(
            "the config is nested too deeply, or has a number of thousands of digits", 1
        ) from None
    _json_lines(text, lines)
    return value


def _json_lines(text: str, lines: dict[Key, int]) -> None:
    """The lines of the keys and list entries of valid JSON."""
    stack: list[Key] = []
    line, end, expects_key = 1, 0, False
    key = tuple[str | int, ...]()
    for match in _JSON_TOKEN.finditer(text):
        token = match.group()
        line += text.count("\n", end, match.start())
        end = match.start()
        if expects_key and token[0] == '"':
            key = (*stack[-1], json.loads(token))
            if key in lines:
                raise _wrong(
                    f"{key[-1]!r} is given twice", line, f"the first one is on line {lines[key]}"
                )
            expects_key = False
        elif token in "]}":
            key, expects_key = stack.pop(), False
            continue
        elif token == ",":
            last = key[-1]
            key, expects_key = (
                ((*key[:-1], last + 1), False) if isinstance(last, int) else (key, True)
            )
            continue
        lines.setdefault(key, line)
        if token == "{":
            stack.append(key)
            expects_key = True
        elif token == "[":
            stack.append(key)
            key = (*key, 0)


def _yaml(text: str, lines: dict[Key, int]) -> Any:
    import yaml

    from assay.config.yaml12 import YamlLoader, build, check_nesting

    loader = YamlLoader(text)
    try:
        check_nesting(text)
        node = loader.get_single_node()
        return None if node is None else build(node, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        tabbed = any(re.match(r" *\t", broken) for broken in text.splitlines()[line - 1 : line])
        fix = "indent with spaces, not with tabs" if tabbed else ""
        raise _wrong(f"this is not YAML: {error.problem}", line, fix) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _wrong("this is not YAML: a control character", line, "remove it") from None
    except RecursionError:
        raise _wrong("the config is nested too deeply, or an anchor contains itself", 1) from None
    finally:
        loader.dispose()
