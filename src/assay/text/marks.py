"""Marks around answers: boxes, Markdown, and words in their three spellings."""

import re

_BRACE = re.compile(r"(\\(?:boxed|fbox)\s{0,9})?\{|\}")
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|rm|bf)\s*\{([^{}]*)\}")


def last_box(text: str) -> str | None:
    """The content of the last box that is closed, without text commands; None if there is none."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return None
    opened: list[int] = []  # where the content of each open brace begins; 0 if it is not a box
    last, end = 0, 0
    for brace in _BRACE.finditer(text):
        if brace[0] != "}":
            opened.append(brace.end() if brace[1] else 0)
        elif opened and (start := opened.pop()) > last:
            last, end = start, brace.start()
    return _WRAP.sub(r"\1", text[last:end]).strip() if last else None


_MARKS = re.compile(r"[*_`~>#]")
_MARKDOWN = re.compile(r"(?<! )[*_`~]+|[*_`~]+(?! )|^[ \t]*(?:>|#{1,6}(?= ))[ \t]*", re.M)  # "4 * 12" has none


def without_markdown(text: str) -> str:
    """The text without marks; its lines stay as they are."""
    return _MARKDOWN.sub("", text) if _MARKS.search(text) else text


def spelled(*words: str) -> str:
    """The words in the three usual spellings, as alternatives."""
    found = dict.fromkeys(way for word in words for way in (word, word[:1].upper() + word[1:], word.upper()))
    return "|".join(map(re.escape, found))
