"""Markdown's marks, of which models make much: emphasis, code, headings and quotes."""

import re

_MARKS = re.compile(r"[*_`~>#]")
_MARKDOWN = re.compile(r"(?<! )[*_`~]+|[*_`~]+(?! )|^[ \t]*(?:>|#{1,6}(?= ))[ \t]*", re.M)  # "4 * 12" has none


def without_markdown(text: str) -> str:
    """The text without marks; its lines stay as they are."""
    return _MARKDOWN.sub("", text) if _MARKS.search(text) else text
