"""JSON files of any size, one entry at a time: a list, an object of entries by key, or values one after the other.

Only one window of text is in memory, as wide as the largest entry. NaN and Infinity, which others write, are taken.
"""

import codecs
import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from assay import reading
from assay.errors import UserError
from assay.records import decode_json

Shape = Literal["list", "object", "lines"]

_WINDOW = 1 << 18
_SPACE = re.compile(r"[ \t\n\r]*")
# up to the first value
_BEGIN = re.compile(r'\{\s*(?:"(?:[^"\\]|\\.)*"\s*:\s*([^\s])|[^"\s])', re.DOTALL)
_decode = json.JSONDecoder().raw_decode
# an error this close to the window's end may only mean that the rest is still to be read
_LONGEST_TOKEN = 32


class BrokenJson(ValueError):
    """The file is not JSON from `line` on; `at_end`: it was cut off there."""

    def __init__(self, what: str, line: int, at_end: bool) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.at_end = at_end


def json_entries(file: IO[bytes]) -> tuple[Shape, Iterator[tuple[str, Any]]]:
    """Return what the file is, and (key, value) of each entry; the key is empty for lists and
    lines. A file that begins with an object is an object of entries if its first value is an
    object, too, else lines."""
    window = _Window(file)
    shape = _shape(window)
    return shape, _entries(window, shape)


def json_parts(
    file: IO[bytes], inside: Collection[str] = ()
) -> Iterator[tuple[str, int | None, Any]]:
    """(key, None, value) of each field of the file's one object; a list is given as empty, and then its entries follow
    with their numbers, one at a time. Of the objects `inside`, named by their keys with dots, the fields are given."""
    window = _Window(file)
    yield from _parts(window, inside, "")
    if window.peek():
        raise window.broken("there is more after the end of the JSON")


def file_entries(path: Path, broken: Callable[[str], object]) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) of each entry of a file: of a list, of an object, whose keys become `id`, or of lines. What
    is not JSON is told to `broken`: a bad line is left out, any other file ends there."""
    try:
        with reading.opened(path) as file:
            shape, entries = json_entries(file)
            if shape == "lines" and _one_a_line(path):
                yield from _lines(path, broken)
                return
            for number, (key, value) in enumerate(entries):
                named = {"id": key, **value} if key and isinstance(value, dict) else value
                yield f"{path} [{key or number}]", storable(named)
    except BrokenJson as error:
        broken(f"{path} is not whole JSON, what follows is not read: {error}")
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=str(path)) from None


def _one_a_line(path: Path) -> bool:
    """Return whether a line is a value: values may also go over several lines each."""
    with reading.opened(path) as file:
        for line in islice(file, 3):
            with suppress(ValueError):
                return isinstance(decode_json(line), dict)
    return False


def _lines(path: Path, broken: Callable[[str], object]) -> Iterator[tuple[str, Any]]:
    with reading.opened(path, 1 << 20) as file:
        for number, line in enumerate(file, 1):
            try:
                if not line.isspace():
                    yield f"{path}:{number}", decode_json(line)
            except ValueError as error:
                broken(f"{path}:{number} is not JSON and is left out: {error}")


def storable(value: Any) -> Any:
    """A value as rows can hold it: halves of characters become question marks, integers beyond 64 bits floats. What
    nests too deeply is a ValueError."""
    try:
        msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return decode_json(json.dumps(value).encode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _parts(
    window: "_Window", inside: Collection[str], above: str
) -> Iterator[tuple[str, int | None, Any]]:
    for key in _keys(window):
        name, begin = f"{above}{key}", window.peek()
        if begin == "{" and name in inside:
            yield from _parts(window, inside, f"{name}.")
        elif begin != "[":
            yield name, None, window.value()
        else:
            yield name, None, []
            for number, (_, entry) in enumerate(_entries_here(window, "list")):
                yield name, number, entry


def _entries(window: "_Window", shape: Shape) -> Iterator[tuple[str, Any]]:
    if shape == "lines":
        while window.peek():
            yield "", window.value()
        return
    yield from _entries_here(window, shape)
    if window.peek():
        raise window.broken("there is more after the end of the JSON")


def _entries_here(window: "_Window", shape: Shape) -> Iterator[tuple[str, Any]]:
    """The entries of a list or an object that begins here."""
    if shape == "object":
        for key in _keys(window):
            yield key, window.value()
        return
    for _ in _each_entry(window, "[]"):
        yield "", window.value()


def _keys(window: "_Window") -> Iterator[str]:
    """The keys of an object; a caller that asks for the next one has taken the value."""
    for _ in _each_entry(window, "{}"):
        if window.peek() != '"':
            raise window.broken("expected a key")
        key = window.value()
        window.take(":")
        yield key


def _each_entry(window: "_Window", brackets: str) -> Iterator[None]:
    window.take(brackets[0])
    if window.peek() != brackets[1]:
        while True:
            yield
            if window.peek() != ",":
                break
            window.take(",")
    window.take(brackets[1])


def _shape(window: "_Window") -> Shape:
    first = window.peek()
    if first == "[":
        return "list"
    if first != "{":
        return "lines"
    while (begin := _BEGIN.match(window.text, window.at)) is None and window.more():
        pass
    return "object" if begin is not None and begin[1] == "{" else "lines"


class _Window:
    def __init__(self, file: IO[bytes]) -> None:
        self.text = ""
        self.at = 0
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._lines = 1  # of what was dropped
        self._ended = False

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            assert found is not None
            self.at = found.end()
            if self.at < len(self.text):
                return self.text[self.at]
            if self._ended:
                return ""
            self.more()

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.broken(f"expected {wanted!r}")
        self.at += 1

    def value(self) -> Any:
        self.peek()
        size = _WINDOW
        while True:
            try:
                value, end = _decode(self.text, self.at)
                # else it may be a number that continues
                if end < len(self.text) - _LONGEST_TOKEN or self._ended:
                    self.at = end
                    return value
            except json.JSONDecodeError as error:
                cut = (
                    error.msg.startswith("Unterminated string")
                    or error.pos > len(self.text) - _LONGEST_TOKEN
                )
                if self._ended or not cut:
                    self.at = min(error.pos, len(self.text))
                    raise self.broken(
                        error.msg, open_end=error.msg.startswith("Unterminated string")
                    ) from None
            except RecursionError:
                raise self.broken("too many brackets within brackets") from None
            except ValueError:
                raise self.broken("a number has too many digits") from None
            self.more(size)
            size *= 2

    def broken(self, what: str, *, open_end: bool = False) -> BrokenJson:
        line = self._lines + self.text.count("\n", 0, self.at)
        return BrokenJson(
            what, line, self._ended and (open_end or not self.text[self.at :].strip())
        )

    def more(self, size: int = 0) -> bool:
        """Read on; false at the end."""
        data = self._file.read(size or _WINDOW)
        self._ended = len(data) == 0
        self._lines += self.text.count("\n", 0, self.at)
        try:
            added = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            raise self.broken(f"not UTF-8: {error.reason}") from None
        self.text = self.text[self.at :] + added
        self.at = 0
        return not self._ended
