"""Which part of a response a scorer looks at, and what models write around it: reasoning, boxes, Markdown."""

import re
from typing import Any

from assay.records import Response
from assay.text.json_out import NoJson, at_path, find_json

_TAG = re.compile(r"<(/?)(think|thinking|thought|reasoning|seed:think)>", re.I)
_BRACE = re.compile(r"(\\(?:boxed|fbox)\s{0,9})?\{|\}")
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|rm|bf)\s*\{([^{}]*)\}")
_MARKS = re.compile(r"[*_`~>#]")
_MARKDOWN = re.compile(
    r"(?<! )[*_`~]+|[*_`~]+(?! )|^[ \t]*(?:>|#{1,6}(?= ))[ \t]*", re.M
)  # "4 * 12" has none


class Unparsed(ValueError):
    """The answer does not hold what is looked for."""


def answer_of(response: Response, field: str | None = None, strip_reasoning: bool = True) -> str:
    """The answer's text, or one field (a dotted path) of the JSON that it holds; Unparsed if it has no such field."""
    text = without_reasoning(response.response) if strip_reasoning else response.response
    if field is None:
        return text
    found = json_of(response, field)
    if isinstance(found, bool):
        return "true" if found else "false"
    return found if isinstance(found, str) else str(found)


def json_of(response: Response, field: str | None = None) -> Any:
    """The JSON that the answer holds, or one field (a dotted path) of it; Unparsed if there is none."""
    try:
        value = (
            response.output
            if response.output is not None
            else find_json(without_reasoning(response.response))
        )
        return value if field is None else at_path(value, field)
    except NoJson as error:
        raise Unparsed(str(error)) from None
    except KeyError:
        raise Unparsed(f"the answer has no field {field!r}") from None


def without_reasoning(text: str) -> str:
    """Return what follows the last closing tag; empty if the reasoning never ends. Text without
    tags comes back as it is.

    A closing tag alone is usual (the chat template has written the opener); an opening tag alone means that the model
    ran out of tokens before it answered.
    """
    if "<" not in text:
        return text
    tags = list(_TAG.finditer(text))
    if not tags:
        return text
    closing = [tag for tag in tags if tag[1]]
    if not closing:
        return text[: tags[0].start()].rstrip()
    end = closing[-1].end()
    reopened = next((tag for tag in tags if tag.start() >= end), None)
    return text[end:].lstrip() if reopened is None else text[end : reopened.start()].strip()


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


def without_markdown(text: str) -> str:
    """The text without marks; its lines stay as they are."""
    return _MARKDOWN.sub("", text) if _MARKS.search(text) else text


def spellings(*words: str) -> str:
    """The words in the three usual spellings, as alternatives."""
    found = dict.fromkeys(
        way for word in words for way in (word, word[:1].upper() + word[1:], word.upper())
    )
    return "|".join(map(re.escape, found))
