"""Where the values of a large JSON object begin and end, without decoding them: a caller that knows their shape decodes
each faster than `json_stream` can. Memory holds one value, of chosen lists one entry or a window full of them."""

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from typing import IO

import msgspec
from msgspec import Raw

_WINDOW = 1 << 19  # it fits into a cache of the processor
_MOST_AT_ONCE = 1 << 24  # bytes that are read to find the end of an entry by its indentation
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_SCALAR_END = re.compile(rb"[,}\]\s]")
_NEXT = re.compile(rb"[^ \t\n\r]")
_entries_of = msgspec.json.Decoder(list[Raw]).decode


class BrokenExtent(ValueError):
    """The text is not JSON; `at_end`: it was cut off."""

    def __init__(self, what: str, at_end: bool = False) -> None:
        super().__init__(what)
        self.at_end = at_end


def extents(
    file: IO[bytes], split: Collection[str] = (), skip: Collection[str] | None = ()
) -> Iterator[tuple[str, int | None, bytes]]:
    """(key, None, value) of each field of the file's one object. A list under a key in `split` is given as empty, and
    then its entries follow with their numbers; of one in `skip`, or of any for None, they do not."""
    window = _ByteWindow(file)
    window.take(b"{")
    if window.peek() == b"}":
        return
    while True:
        if window.peek() != b'"':
            raise window.broken("expected a key")
        key = window.value()[1:-1].decode("utf-8", "replace")
        window.take(b":")
        wanted = key in split
        if window.peek() == b"[" and (wanted or skip is None or key in skip):
            yield key, None, b""
            number = 0
            for several in window.batches():
                if wanted:
                    yield from ((key, at, bytes(entry)) for at, entry in enumerate(several, number))
                    number += len(several)
        else:
            yield key, None, window.value()
        if window.peek() != b",":
            break
        window.take(b",")
    window.take(b"}")


class _ByteWindow:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._data = file.read(len(BOM_UTF8))
        self._at = len(BOM_UTF8) if self._data == BOM_UTF8 else 0
        self._offset = 0  # of the window in the file
        self._ended = False
        self._odd = 0  # up to this place in the file, entries are not as their indentation says

    def peek(self) -> bytes:
        """The next byte that is not a space; empty at the end."""
        while (found := _NEXT.search(self._data, self._at)) is None:
            self._at = len(self._data)
            if not self._more():
                return b""
        self._at = found.start()
        return found.group()

    def take(self, wanted: bytes) -> None:
        if self.peek() != wanted:
            raise self.broken(f"expected {wanted.decode()!r}")
        self._at += 1

    def batches(self) -> Iterator[Sequence[Raw | bytes]]:
        """The entries of the list that begins here, one or many at once."""
        self.take(b"[")
        if self.peek() != b"]":
            while True:
                yield self._entries_by_indent() or (self.value(),)
                if self.peek() != b",":
                    break
                self.take(b",")
        self.take(b"]")

    def _entries_by_indent(self) -> list[Raw]:
        """The entries that stand whole in the window, if a line that begins as this entry's does ends the last of them.
        It is only a guess where that is, but no other place would make them a list."""
        if self.peek() != b"{" or self._offset + self._at < self._odd:
            return []
        before = self._data[self._data.rfind(b"\n", 0, self._at) : self._at]
        if not before.startswith(b"\n") or not before.isspace():
            return []
        while (last := self._data.rfind(before + b"}", self._at)) < 0:
            if len(self._data) - self._at > _MOST_AT_ONCE or not self._more():
                return []
        end = last + len(before) + 1
        try:
            found = _entries_of(b"".join((b"[", memoryview(self._data)[self._at : end], b"]")))
        except (ValueError, RecursionError):
            self._odd = self._offset + end
            return []
        self._at = end
        return found

    def value(self) -> bytes:
        """The bytes of the value that begins here."""
        first = self.peek()
        if first in b"{[" and first:
            return self._in_brackets()
        if first == b'"':
            return self._text()
        while (end := _SCALAR_END.search(self._data, self._at)) is None and self._more():
            pass
        stop = end.start() if end is not None else len(self._data)
        if stop == self._at:
            raise self.broken("expected a value")
        return self._cut(stop)

    def _text(self) -> bytes:
        while (token := _TOKEN.match(self._data, self._at)) is None:
            if not self._more():
                raise self.broken("a text has no end")
        return self._cut(token.end())

    def _in_brackets(self) -> bytes:
        depth, scanned = 0, 0  # relative to where the value begins, which moves as the window grows
        while True:
            start = self._at
            end = start + scanned
            for token in _TOKEN.finditer(self._data, start + scanned):
                between = self._data.find(b'"', end, token.start())
                if between >= 0:  # the text that begins here is not whole yet
                    break
                end = token.end()
                bracket = self._data[token.start()]
                if bracket in b"{[":
                    depth += 1
                elif bracket in b"}]":
                    depth -= 1
                    if not depth:
                        return self._cut(end)
            scanned = end - start
            if not self._more():
                raise self.broken("a value has no end")

    def _cut(self, stop: int) -> bytes:
        value = self._data[self._at : stop]
        self._at = stop
        return value

    def broken(self, what: str) -> BrokenExtent:
        where = self._offset + self._at
        cut = self._ended and (self._at >= len(self._data) or what.endswith("no end"))
        return BrokenExtent(f"byte {where:,}: {what}", cut)

    def _more(self) -> bool:
        """Read on, at least as much again as the window has; false at the end."""
        kept = self._data[self._at :]
        more = self._file.read(max(_WINDOW, len(kept)))
        self._ended = not more
        self._offset += self._at
        self._data, self._at = kept + more, 0
        return not self._ended
