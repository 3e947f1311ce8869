"""Two texts side by side: the lines that differ, cut to where they do. Time and length are bounded for any texts."""

import os
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

Mark = Literal["A", "B", " "]
MarkedLine = tuple[Mark, str]

_MOST_LINES = 200  # of each text that are compared
_MOST_SHOWN = 8
_LONGEST = 160
_AROUND = 40  # characters that are shown before the first difference of a long line


def text_diff(first: str, second: str, most: int = _MOST_SHOWN) -> list[MarkedLine]:
    """Lines that only A or only B has, at most so many, then one line of `…` if there are more. Empty if the texts are
    equal."""
    if first == second:
        return []
    lines = [text.splitlines() or [""] for text in (first, second)]
    shown: list[MarkedLine] = []
    for line in _changes(*(part[:_MOST_LINES] for part in lines)):
        if len(shown) == most:
            return [*shown, (" ", "…")]
        shown.append(line)
    if any(len(part) > _MOST_LINES for part in lines):
        shown.append((" ", f"… lines from {_MOST_LINES + 1} on are not compared"))
    return shown or [(" ", "only white space or line ends differ")]


def _changes(first: Sequence[str], second: Sequence[str]) -> Iterator[MarkedLine]:
    for tag, i, j, k, n in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = min(j - i, n - k)
        for at in range(pairs):
            left, right = _cut(first[i + at], second[k + at])
            yield "A", left
            yield "B", right
        for line in first[i + pairs : j]:
            yield "A", _from(line, 0)
        for line in second[k + pairs : n]:
            yield "B", _from(line, 0)


def _cut(first: str, second: str) -> tuple[str, str]:
    """Both from shortly before the word in which they begin to differ, no longer than is easy to read."""
    start = 0
    if max(len(first), len(second)) > _LONGEST:
        same = len(os.path.commonprefix([first, second]))  # noqa: RUF071  letters are meant
        start = max(0, same - _AROUND)
        start = 0 if start < _AROUND else first.rfind(" ", 0, start) + 1 or start
    return _from(first, start), _from(second, start)


def _from(line: str, start: int) -> str:
    text = ("…" if start else "") + line[start:]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
