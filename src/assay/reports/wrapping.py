"""Texts in columns of a terminal: how wide they are, and where they are broken."""

import re
import unicodedata
from collections.abc import Iterable

_PIECES = re.compile(r".+?(?:[/_:-]+|\.(?!\d)|$)", re.DOTALL)  # where a name may be broken
_SPACE = r"[^\S\xa0]"  # a no-break space is none
_WIDE = re.compile(r"[^\x00-\u02ff\u2010-\u2027\u2190-\u21ff\u2212\u2500-\u257f]")


def cells(text: str) -> int:
    """The columns that a text takes: two for East Asian and emoji, none for marks upon other characters."""
    if not _WIDE.search(text):
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken between words; a longer word is broken between its parts,
    a longer part anywhere."""
    width = max(1, width)
    if cells(text) <= width:
        return [text.replace("\xa0", " ")]
    lines = [""]
    for word in re.findall(rf"{_SPACE}*(?:\S|\xa0)+|{_SPACE}+$", text):
        if cells(lines[-1] + word) <= width:
            lines[-1] += word
            continue
        word = word.lstrip() if lines[-1].strip() else word
        lines += [] if not lines[-1] else [""]
        for piece in _PIECES.findall(word):
            lines += [""] if lines[-1] and cells(lines[-1] + piece) > width else []
            for character in piece:
                lines += [""] if lines[-1] and cells(lines[-1] + character) > width else []
                lines[-1] += character
    return [line.replace("\xa0", " ").rstrip() for line in lines]


def longest_part(texts: Iterable[str], *, within: bool) -> int:
    """The columns of the longest word, or of the longest part of one."""
    words = {word for text in texts for word in re.split(_SPACE, text)}
    return max(
        (cells(part) for word in words for part in (_PIECES.findall(word) if within else [word])),
        default=0,
    )
