"""Documents that a system retrieved, and those that it should have: where rows keep them, and in which shapes.

Retrieved documents are looked for in the response (its `output`, then its `metadata`), then in the item. Each is a
text, or an object with a text or an id. Their order is their rank, unless each has a `rank` of its own.
Whether they hold what a text says is told by words alone.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Meta

from assay.sdk import Item, JsonMapping, JsonObject, Response, as_list, nearest
from assay.text.json_out import at_path

USUAL_FIELDS = (
    "retrieved_docs", "retrieved_documents", "retrieved_contexts", "retrieved", "contexts", "context", "documents",
    "docs", "passages",
)  # fmt: skip
RELEVANT_FIELDS = (
    "relevant_docs", "relevant_documents", "relevant_ids", "relevant", "gold_docs", "gold_ids", "supporting_docs",
    "qrels",
)  # fmt: skip
_TEXTS = ("content", "text", "page_content", "passage", "contents", "body", "document")
_IDS = ("doc_id", "document_id", "docid", "id", "_id", "key")
_GRADES = ("grade", "relevance", "score", "label")
Words = Literal["plain", "split"]

_FUNCTION_WORDS = "the a an is was are were be been in on at to for of and or but this that these those it its they their"
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?]+(?:\s+|$)")


class Document(NamedTuple):
    """A text without an id is its own id."""

    id: str
    text: str


def retrieved(item: Item, response: Response, field: str | None = None) -> list[Document]:
    """The documents in order of rank. LookupError if there is no such field: an empty list is one, and means that
    nothing was found."""
    found = _documents_value(item, response, field)
    if isinstance(found, str):
        return [Document(found, found)]
    if not isinstance(found, list):
        raise LookupError(f"retrieved documents must be a list, found {type(found).__name__}")
    entries = cast("list[Any]", found)
    if all(
        isinstance(entry, Mapping) and isinstance(entry.get("rank"), (int, float))
        for entry in entries
    ):
        entries = sorted(entries, key=lambda entry: entry["rank"])
    return [_document(entry) for entry in entries]


def texts(documents: Sequence[Document]) -> list[str]:
    return [document.text for document in documents if document.text.strip()]


def relevant(item: Item, field: str | None = None) -> dict[str, float]:
    """The ids of the documents that should be found, with their grades; LookupError if there is none above 0."""
    truth: Any = item.ground_truth
    if isinstance(truth, dict):
        fields = cast("JsonObject", truth)
        if field is not None and field not in fields:
            raise LookupError(f"the ground truth has no field {field!r}; {nearest(field, fields)}")
        name = (
            field
            if field is not None
            else next((name for name in RELEVANT_FIELDS if name in fields), None)
        )
        if name is None:
            raise LookupError(
                f"the ground truth has none of {', '.join(RELEVANT_FIELDS)}; name its field"
            )
        truth = fields[name]
    if isinstance(truth, dict):
        graded = {str(id): float(grade) for id, grade in cast("JsonObject", truth).items()}
    else:
        graded = dict(_id_and_grade(entry) for entry in as_list(truth) if entry is not None)
    graded = {id: grade for id, grade in graded.items() if grade > 0}
    if not graded:
        raise LookupError("the item has no relevant document")
    return graded


def _documents_value(item: Item, response: Response, field: str | None) -> Any:
    if field is not None:
        owner, _, path = field.partition(".")
        row = {"item": item, "response": response}.get(owner) if path else None
        for place in _places(item, response) if row is None else [msgspec.to_builtins(row)]:
            try:
                return at_path(place, field if row is None else path)
            except KeyError:
                continue
        raise LookupError(f"neither the response nor the item has retrieved documents in {field!r}")
    for place in _places(item, response):
        for name in USUAL_FIELDS:
            if isinstance(place, dict) and name in place:
                return cast("JsonObject", place)[name]
    raise LookupError(
        f"no retrieved documents: none of {', '.join(USUAL_FIELDS)} is in the response or in the item; name the field"
    )


def _places(item: Item, response: Response) -> Iterator[Any]:
    yield from (response.output, response.metadata, item.data, item.extra, item.metadata)


def _document(entry: Any) -> Document:
    if isinstance(entry, str):
        return Document(entry, entry)
    if isinstance(entry, Mapping):
        fields = cast("JsonMapping", entry)
        text = next((fields[name] for name in _TEXTS if isinstance(fields.get(name), str)), "")
        id = next((fields[name] for name in _IDS if fields.get(name) is not None), text)
        if id != "":
            return Document(str(id), text)
    elif isinstance(entry, int) and not isinstance(entry, bool):
        return Document(str(entry), "")
    raise LookupError(
        f"a retrieved document must be a text or have a text or an id, found {str(entry)[:80]!r}"
    )


def _id_and_grade(entry: Any) -> tuple[str, float]:
    if isinstance(entry, Mapping):
        fields = cast("JsonMapping", entry)
        grade = next(
            (fields[name] for name in _GRADES if isinstance(fields.get(name), (int, float))), 1.0
        )
        return _document(fields).id, float(grade)
    return str(entry), 1.0


# ---- whether passages hold what a text says


def flat(text: str) -> str:
    """Lower case, and one space for every run of other signs than letters and digits."""
    return " ".join(_WORD.findall(text.lower()))


def holds(passage: str, text: str, whole_words: bool = True) -> bool:
    """Return whether one flat text is in another."""
    return f" {text} " in f" {passage} " if whole_words else text in passage


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def shared_words(text: str, words: set[str]) -> float:
    """The share of the different words of a flat text that are among these."""
    wanted = set(text.split())
    return len(wanted & words) / len(wanted) if wanted else 0.0


def support_of(
    text: str, passages: Sequence[str], words: Words, left_out: Iterable[str]
) -> float | None:
    """The share of the different content words of a text that a passage has; None if it has no content word.

    `plain` words are runs of letters and digits; `split` takes what stands between spaces, punctuation included.
    """
    content = _words(text, words) - frozenset(left_out)
    if not content:
        return None
    known = frozenset[str]().union(*(_words(passage, words) for passage in passages))
    return len(content & known) / len(content)


def _words(text: str, words: Words) -> frozenset[str]:
    return frozenset(text.lower().split() if words == "split" else _WORD.findall(text.lower()))


Gain = Literal["linear", "exponential"]
Cutoff = Annotated[int, Meta(ge=1)]


def grades(ranked: Sequence[str], graded: Mapping[str, float], k: int | None = None) -> list[float]:
    """The grade at each of the first k places; 0 for what is not relevant or stood there before."""
    seen: set[str] = set()
    ranks: list[float] = []
    for id in ranked[:k]:
        ranks.append(0.0 if id in seen else graded.get(id, 0.0))
        seen.add(id)
    return ranks


def reciprocal_rank(ranks: Sequence[float]) -> float:
    """1 / the place of the first relevant document; 0 if there is none."""
    return next((1 / place for place, grade in enumerate(ranks, 1) if grade > 0), 0.0)


def average_precision(ranks: Sequence[float]) -> float:
    """The mean, over the places with a relevant document, of the share of relevant ones up to there."""
    hits, total = 0, 0.0
    for place, grade in enumerate(ranks, 1):
        if grade > 0:
            hits += 1
            total += hits / place
    return total / hits if hits else 0.0


def ndcg(
    ranks: Sequence[float], graded: Mapping[str, float], k: int, gain: Gain = "linear"
) -> float:
    """Discounted cumulative gain as a share of that of the best possible ranking."""
    best = _discounted_gain(sorted(graded.values(), reverse=True)[:k], gain)
    return _discounted_gain(ranks[:k], gain) / best


def _discounted_gain(ranks: Sequence[float], gain: Gain) -> float:
    gains = ranks if gain == "linear" else [2**grade - 1 for grade in ranks]
    return sum(value / math.log2(place + 1) for place, value in enumerate(gains, 1))
