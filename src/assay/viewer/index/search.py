"""Text in answers, prompts, questions and ids. Bytes are looked at first; only lines that may
match are decoded."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.notes import answer_of
from assay.scorers._regex_child import matching
from assay.sdk import IntArray, JsonMapping, JsonObject, Kind, UserError
from assay.store.items import decode_item
from assay.store.log import FileLog
from assay.store.table.decode import line_starts, row_decoder
from assay.text.messages import messages_text
from assay.text.template import question, variables
from assay.viewer.index.index import Index

_MOST_KEPT = 8
_SECONDS = 5.0  # for a block of rows
_LONGEST = 100_000  # characters of a text that a pattern is tried on
_SAFE = re.compile(
    r"[a-z0-9 .,:;!?()\[\]{}*+=_%#@$|~^-]+"
)  # what every writer of JSON leaves as it is
_CASE = 0x20  # the bit that differs between ASCII letters of both cases
_DISGUISED = ("\u212a".encode(), "\u0130".encode())  # what has ASCII letters in lower case


class _Text(msgspec.Struct, gc=False):
    """What is searched of a response."""

    item_id: str
    prompt: str | None = ""
    response: str | None = ""
    error: str | None = None
    output: Any = None
    messages: list[JsonObject] | None = None


def _as_texts(row: JsonObject) -> JsonObject:
    return {"item_id": str(row.get("item_id")), "prompt": _asked(row), "response": answer_of(row)}


def _asked(row: JsonMapping) -> str:
    messages = row.get("messages")
    asked = row.get("prompt") or (messages_text(messages) if isinstance(messages, list) else "")
    return str(asked)


_decode = row_decoder(_Text, _as_texts)


def found_by(index: Index, text: str, *, regex: bool = False) -> IntArray:
    """Return the rows with this text, in either case, or with a match of a regular expression.
    The newest few are kept."""
    latest: dict[Any, IntArray] = index.searches
    rows = latest.pop((text, regex), None)
    if rows is None:
        rows = _search(
            index, _pattern(text) if regex else _plain(text), "" if regex else _rarest(text)
        )
    latest[text, regex] = rows
    for oldest in list(latest)[:-_MOST_KEPT]:
        latest.pop(oldest, None)
    return rows


Matches = Callable[[Sequence[str]], Sequence[bool]]


def _plain(text: str) -> Matches:
    wanted = text.lower()
    return lambda texts: [wanted in text.lower() for text in texts]


def _pattern(text: str) -> Matches:
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(
            f"this is not a regular expression: {error}", fix="correct it, or search for plain text"
        ) from None

    def matches(texts: Sequence[str]) -> Sequence[bool]:
        try:
            return matching(pattern, [text[:_LONGEST] for text in texts], _SECONDS)
        except TimeoutError:
            fix = "avoid repetitions within repetitions, or search for plain text"
            raise UserError(
                "this regular expression takes too long on these rows", fix=fix
            ) from None

    return matches


def _rarest(text: str) -> str:
    """The longest part of a text that stands in JSON as it is, in lower case; maybe none."""
    parts = _SAFE.findall(text.lower())
    # Letters beyond ASCII that have no case are what they are in UTF-8.
    parts += re.findall(
        r"[^\x00-\x7f]+", "".join(c if c.lower() == c.upper() else "\0" for c in text)
    )
    return max(parts, key=lambda part: len(part.encode()), default="")


def _search(index: Index, matches: Matches, part: str) -> IntArray:
    searched: dict[Kind, Callable[[bytes], list[str]]] = {
        "run": _response_texts,
        "dataset": _item_texts,
    }
    lines: list[tuple[Kind, int, int]] = [
        (kind, number, position)
        for kind, texts_of in searched.items()
        for number, log in enumerate(index.files[kind])
        for position in _places(log, matches, part, texts_of)
    ]
    return index.rows_of_lines(lines, _own_ids(index, matches) if index.judged else [])


def _own_ids(index: Index, matches: Matches) -> list[str]:
    ids = list(index.item_ids())
    return [id for id, hit in zip(ids, matches(ids), strict=True) if hit]


def _places(
    log: FileLog, matches: Matches, part: str, texts_of: Callable[[bytes], list[str]]
) -> Iterator[int]:
    """Positions of the lines of which a text matches."""
    for position, block in log.placed_blocks():
        texts: list[str] = []
        owners: list[int] = []
        for start in _candidates(block, part.encode()):
            end = block.find(b"\n", start)
            own = texts_of(block[start : end if end >= 0 else None])
            texts += own
            owners += [start] * len(own)
        hits = matches(texts) if texts else ()
        yield from (
            position + start
            for start in dict.fromkeys(
                start for start, hit in zip(owners, hits, strict=True) if hit
            )
        )


def _candidates(block: bytes, part: bytes) -> list[int]:
    """Where lines begin that may have the text: those with the part of it that cannot be written
    otherwise."""
    if not part:
        return line_starts(block).tolist()
    letters = np.frombuffer(block, np.uint8)
    folded = (
        letters | _CASE
    ).tobytes()  # more than letters become alike, and nothing that was alike differs
    places = _all(folded, bytes(letter | _CASE for letter in part), block)
    escapes = np.flatnonzero(letters[:-1] == ord("\\"))
    places += escapes[letters[escapes + 1] == ord("u")].tolist()
    if not block.isascii():
        places += [place for needle in _DISGUISED for place in _all(block, needle, block)]
    return sorted({block.rfind(b"\n", 0, place) + 1 for place in places})


def _all(text: bytes, needle: bytes, block: bytes) -> list[int]:
    """A place of the needle in each line that has it."""
    places: list[int] = []
    at = text.find(needle)
    while at >= 0:
        places.append(at)
        end = block.find(b"\n", at)
        at = text.find(needle, end) if end >= 0 else -1
    return places


def _response_texts(line: bytes) -> list[str]:
    try:
        row = msgspec.structs.asdict(_decode(line))
    except (ValueError, RecursionError):  # a line that is none has no text
        return []
    return [row["item_id"], _asked(row), answer_of(row)]


def _item_texts(line: bytes) -> list[str]:
    try:
        return [question(variables(decode_item(line)))]
    except Exception:  # what is not an item has no question
        return []
