"""The rows that flow through the engine, as they stand on disk, and the store that keeps them.

Field names and their order are EEN's; what follows the comment `ours` was added.
Readers accept rows that lack fields (foreign files); writers always write all of them. Rows are trees of JSON values:
they hold no cycles, so the garbage collector need not look at them (`gc=False`).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET

from assay.errors import UserError

K = TypeVar("K")
V = TypeVar("V")
JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]  # an object that is only read
ResponseOutcome = Literal["ok", "refused", "errored", "skipped"]
EvaluationOutcome = Literal["scored", "unparsed", "refused", "errored", "skipped"]
OUTCOMES: tuple[EvaluationOutcome, ...] = get_args(EvaluationOutcome)
Kind = Literal["dataset", "run", "evaluation", "aggregation"]
FILES_VERSION = 2  # of the files that this Assay writes; it reads those of older ones too


_EXACT = 1 << 53  # whole numbers up to here are exact as floats


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only entry of one."""
    return value if isinstance(value, list) else [value]


def as_object(value: Any) -> JsonObject:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> bool:
    """Return whether a value is a number; `true` and `false` are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def list_of(value: Any) -> list[Any]:
    """Return a list; for anything else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def rows_of(value: Any) -> list[JsonObject]:
    """Return the objects in a list."""
    return [cast("JsonObject", entry) for entry in list_of(value) if isinstance(entry, dict)]


def number_of(value: Any) -> float | None:
    """Return a finite number."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def count_of(value: Any) -> int | None:
    """Return a whole number of tokens or the like."""
    number = number_of(value)
    return None if number is None or not 0 <= number < _EXACT else int(number)


def first_text(fields: JsonMapping, names: Iterable[str]) -> str:
    """Return the first of these fields that is a text."""
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


ROWS_FILE: dict[Kind, str] = {
    "dataset": "items.jsonl",
    "run": "responses.jsonl",
    "evaluation": "evaluation_results.jsonl",
    "aggregation": "metrics.jsonl",
}


class Item(msgspec.Struct, kw_only=True, gc=False):
    """A dataset row. `extra` holds the row's further fields, which stay usable in templates and as facets."""

    id: str
    data: Any = None
    ground_truth: Any = None
    metadata: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class Response(msgspec.Struct, kw_only=True, gc=False):
    """What a task answered to one item, once: a row of `responses.jsonl`."""

    item_id: str
    sample_id: str = ""
    sample_index: int = 0
    total_samples: int = 1
    model_name: str = ""
    prompt: str = ""
    response: str = ""
    inference_time: float = 0.0
    timestamp: float = 0.0
    metadata: dict[str, Any] = {}
    error: str | None = None
    tokens_per_second: float | None = None
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    # ours
    key: str = ""
    task: str = ""
    outcome: ResponseOutcome = "ok"
    error_kind: Literal["transient", "permanent"] | None = None
    output: Any = None
    messages: list[dict[str, Any]] | None = None
    reasoning: str | None = None
    tool_calls: list[Any] | None = None
    cost: float | None = None
    served_model: str | None = None
    served_fingerprint: str | None = None
    logprobs: list[Any] | None = None


class Evaluation(msgspec.Struct, kw_only=True, gc=False):
    """One label that a scorer gave: a row of `evaluation_results.jsonl`.

    `part` is [i, n]: label i of the n labels of one scorer call, which share one `key` and one commit.
    """

    item_id: str
    sample_id: str = ""
    sample_index: int = 0
    label: str = ""
    model_name: str = ""
    passed: bool | None = None
    score: float | None = None
    detailed_results: dict[str, Any] = {}
    evaluation_time: float = 0.0
    timestamp: float = 0.0
    metadata: dict[str, Any] = {}
    # ours
    key: str = ""
    part: tuple[int, int] = (0, 1)
    responses: list[str] = []
    scorer: str = ""
    outcome: EvaluationOutcome = "scored"
    error: str | None = None
    error_kind: Literal["transient", "permanent"] | None = None
    value: Any = None
    players: tuple[str, str] | None = None
    seat: int | None = None


MetricRow = dict[str, Any]
"""A row of `metrics.jsonl`: a dict, because facet names are data. Mandatory keys: metric_name, metric_type,
facets, each facet, label, value, and the counts that the engine adds."""


class Segment(msgspec.Struct):
    """A file of rows as it was when its artefact was last closed; equal stats mean equal bytes."""

    name: str
    size: int
    mtime_ns: int


class Damage(msgspec.Struct):
    """Bytes of a file of rows that are not those that were sealed; `position` is where they begin in the log."""

    name: str
    start: int
    stop: int
    position: int


class Manifest(msgspec.Struct, kw_only=True):
    """What one artefact is, what it was made from, and whether it is finished.

    `plan` describes the work, `digest` identifies it: equal digests mean equal work. `inputs` is the lineage. `present`
    is how many of the `planned` cells or calls have rows; `segments` and `checksums` seal them, see `store/seal.py`.
    `files_version` is that of the Assay that wrote it last; version 0.1 wrote none.
    """

    kind: Kind
    id: str
    name: str = ""
    created: float = 0.0
    started: float = 0.0
    ended: float | None = None
    complete: bool = False
    digest: str = ""
    planned: int | None = None
    present: int | None = None
    counts: dict[str, int] = {}
    inputs: list[dict[str, Any]] = []
    plan: dict[str, Any] = {}
    labels: list[str] = []
    metadata: dict[str, Any] = {}
    segments: list[Segment] = []
    checksums: dict[str, str] = {}
    files_version: int = 1


def row_count(manifest: Manifest) -> int:
    """Return how many rows are counted; `transient` ones are errors, too."""
    return sum(manifest.counts.values()) - manifest.counts.get("transient", 0)


class _Version(msgspec.Struct):
    files_version: int = 1


def manifest_sections(content: bytes, where: object) -> dict[str, msgspec.Raw]:
    """Return the sections of a manifest's text. What a newer Assay wrote is a UserError, whatever else it says."""
    sections = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    for kind in sections.keys() & ROWS_FILE:
        version = msgspec.json.decode(sections[kind], type=_Version).files_version
        if version > FILES_VERSION:
            raise UserError(
                f"a newer Assay wrote these files: version {version}, not {FILES_VERSION}",
                where=str(where),
                fix="use that Assay",
            )
    return sections


class _Plan(msgspec.Struct):
    scorers: list[dict[str, Any]] | None = None
    tasks: list[dict[str, Any]] | None = None


class _ManifestMetadata(msgspec.Struct):
    rows: dict[Kind, str | list[str]] | None = None
    faults: list[str] = []
    calibrations: dict[str, dict[str, Any]] = {}
    own_answers: dict[str, list[str]] = {}
    usage: dict[str, dict[str, Any]] = {}
    calls: dict[str, dict[str, dict[str, Any]]] = {}


class _ManifestInput(msgspec.Struct):
    kind: Kind | None = None
    id: str = ""
    partial: str = ""


class ManifestShape(msgspec.Struct):
    """The types of what is read of a manifest's inner parts, whose writer may be anybody."""

    inputs: list[_ManifestInput]
    plan: _Plan
    metadata: _ManifestMetadata


class Log(Protocol):
    """An append-only sequence of JSON lines. Positions are opaque and stay valid until `replace`."""

    def append(self, lines: bytes) -> None:
        """Commit whole lines (each ends with a line feed) together: once this returns, a killed process loses none."""
        ...

    def scan(self) -> Iterator[tuple[int, bytes]]:
        """Yield (position, line without its line feed) for every line, in order."""
        ...

    def blocks(self) -> Iterator[bytes]:
        """The same lines, many at once: each block holds whole lines with their line feeds. For reading all of them."""
        ...

    def read(self, position: int) -> bytes:
        """The line at a position that `scan` gave."""
        ...

    def replace(self, lines: Iterable[bytes]) -> None:
        """Atomically put these lines (each with its line feed) in place of all."""
        ...

    def segments(self) -> list[Segment]:
        """The files behind the log as they are now; equal segments mean equal lines. Empty if it does not exist."""
        ...

    def checksums(self) -> dict[str, str]:
        """Of each file behind the log, by name, as a manifest keeps them; empty for a log that needs none."""
        ...

    def damage(self, manifest: Manifest) -> list[Damage]:
        """Return what is not as it was when this manifest sealed the log."""
        ...

    def sync(self) -> None:
        """Make everything appended so far survive a power cut."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """Where artefacts live: one artefact is a kind and an id. Implement this to keep Assay's rows elsewhere.

    `log` without a name is the artefact's rows; the other names are calls, traces, superseded and rejected.
    """

    def ids(self, kind: Kind) -> list[str]: ...

    def manifest(self, kind: Kind, id: str) -> Manifest | None: ...

    def put_manifest(self, manifest: Manifest) -> None: ...

    def log(self, kind: Kind, id: str, name: str = "") -> Log: ...

    def delete(self, kind: Kind, id: str) -> None:
        """Forget an artefact; an unknown one is not an error."""
        ...

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        """One writer at a time; LockedError names the holder."""
        ...


_HALVES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def decode_json(text: bytes) -> Any:
    """Return the value of a JSON text: decoded strictly, or else as others write JSON, see `_tolerant_json`. What is
    not JSON, or nests too deeply, is a ValueError."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _tolerant_json(text)


def _tolerant_json(text: bytes) -> Any:
    """Return a value with NaN and Infinity, integers beyond 64 bits as floats, halves of characters as question
    marks."""
    import json

    try:
        value = json.loads(text, parse_int=_integer)
        if not _HALVES.search(text):
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _integer(digits: str) -> int | float:
    number = int(digits) if len(digits) < 21 else float(digits)
    return number if -(2**63) <= number < 2**64 else float(number)


def values_by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, both in the order in which they came."""
    values: dict[K, list[V]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def find(row: Any, facet: str) -> Any:
    """The value at `facet`, or UNSET."""
    if not isinstance(row, dict):
        return UNSET
    fields = cast("dict[str, Any]", row)
    if facet in fields:
        return fields[facet]
    head = facet.rpartition(".")[0]
    while head:
        if head in fields:
            found = find(fields[head], facet[len(head) + 1 :])
            if found is not UNSET:
                return found
        head = head.rpartition(".")[0]
    return UNSET


def find_in_row(row: Mapping[str, Any], facet: str) -> Any:
    """In an evaluation or a response: the row, then inside its `metadata`."""
    found = find(row, facet)
    if found is UNSET and not facet.startswith("metadata."):
        found = find(row.get("metadata"), facet)
    return found


def verdict_of(row: Mapping[str, Any]) -> tuple[EvaluationOutcome, bool | None, float]:
    """Outcome, passed and score (NaN: none) of a row of any origin."""
    details, outcome = row.get("detailed_results"), row.get("outcome")
    if outcome not in OUTCOMES:
        failed = row.get("error") or (
            isinstance(details, dict) and cast("dict[str, Any]", details).get("error")
        )
        unjudged = row.get("passed") is None and row.get("score") is None
        outcome = "errored" if failed or unjudged else "scored"
    passed, score = row.get("passed"), row.get("score")
    if score is not None and not (isinstance(score, (int, float)) and math.isfinite(score)):
        return "errored" if outcome == "scored" else outcome, None, math.nan
    return (
        outcome,
        None if passed is None else bool(passed),
        math.nan if score is None else float(score),
    )
