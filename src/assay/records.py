"""The rows that flow through the engine, as they stand on disk.

Field names and their order are EEN's; what follows the comment `ours` was added.
Readers accept rows that lack fields (foreign files); writers always write all of them. Rows are trees of JSON values:
they hold no cycles, so the garbage collector need not look at them (`gc=False`).
"""

from typing import Any, Literal

import msgspec

ResponseOutcome = Literal["ok", "refused", "errored", "skipped"]
EvaluationOutcome = Literal["scored", "unparsed", "refused", "errored", "skipped"]
Kind = Literal["dataset", "run", "evaluation", "aggregation"]

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


class Manifest(msgspec.Struct, kw_only=True):
    """What one artefact is, what it was made from, and whether it is finished.

    `plan` describes the work, `digest` identifies it: equal digests mean equal work. `inputs` is the lineage.
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
    counts: dict[str, int] = {}
    inputs: list[dict[str, Any]] = []
    plan: dict[str, Any] = {}
    labels: list[str] = []
    metadata: dict[str, Any] = {}
    segments: list[Segment] = []
