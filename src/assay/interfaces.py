"""What plug-ins and the engine share. A plug-in author needs this page and nothing else.

Positional arguments of a plug-in come from the engine, keyword-only arguments are its parameters:

    dataset   (path, *, ...) -> iterable of rows (dicts)
    prompt    (source, *, ...) -> Prompt
    model     (name, *, ...) -> Model
    scorer    (item, response, *, ...) -> Score | list[Score] | bool | number | dict
              (item, first, second, *, ...) -> Score      a match: score is the payoff of the first
              (item, *responses, ...) -> Score | list[Score]      all responses that belong together
              (response, ground_truth, inference_result=None, **params)      EEN's form
    metric    (group, *, ...) -> Values | number | dict      callable on a list of rows as well
              (evaluation_results, facets, **params) -> dict      EEN's form

Any scorer or task function may be async and may take a `context`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from assay.records import (
    EvaluationOutcome,
    Item,
    JsonMapping,
    JsonObject,
    Log as Log,
    ResponseOutcome,
    Store as Store,
)

Message = JsonObject
Scale = tuple[
    float | None, float | None
]  # the lowest and the highest value there can be; None: no end

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]
    Codes = npt.NDArray[np.int32]
    Hashes = npt.NDArray[np.uint64]
    Integers = npt.NDArray[np.integer]
    Mask = npt.NDArray[np.bool_]
else:  # commands that only look at files should not wait for numpy
    FloatArray = IntArray = Codes = Hashes = Integers = Mask = Any


class Request(msgspec.Struct, gc=False):
    """One call to a model. `seed` is derived from the row's address; a model may use it, no server is sent it."""

    messages: list[Message]
    params: JsonObject = {}
    sample_index: int = 0
    seed: int = 0
    timeout: float = 300.0


class Likelihood(Request, gc=False):
    """How probable texts are after the messages: their text, or `chat` in the model's template; long ones `rolling`."""

    continuations: list[str] = []
    rolling: bool = False
    chat: bool = False


class Completion(msgspec.Struct, kw_only=True, gc=False):
    """What a model answered. Token counts are None where the server did not tell. `masked`: it repeated a key.
    `stream`: the times of an answer that came in pieces, see docs/streaming.md."""

    text: str = ""
    finish_reason: str | None = None
    response_id: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    served_model: str | None = None
    served_fingerprint: str | None = None
    reasoning: str | None = None
    tool_calls: list[Any] | None = None
    refused: bool = False
    cost: float | None = None
    logprobs: list[Any] | None = None
    masked: bool = False
    stream: dict[str, float] | msgspec.UnsetType = msgspec.UNSET


class LogProbability(msgspec.Struct, gc=False):
    """Of a continuation's tokens: the values, and whether each was the most probable one (null: unknown)."""

    tokens: list[float]
    greedy: bool | None = None


class Likelihoods(Completion, kw_only=True, gc=False):
    """The answer to a `Likelihood`, with a value for each continuation; `way` is how the model was asked."""

    values: list[LogProbability] = []
    way: str = ""


class Model(Protocol):
    """Answers requests. `identity` is all that could change an answer and nothing else: it goes into row keys.

    Optional are `keeps_time`, true where no call can take longer than its request allows; `exclusive`, true where the
    model needs the machine for itself, which then has an async `open()` as well; `by_reference`, true where messages
    name files by their digest and do not hold their bytes; `schemas`, true where an answer follows the JSON schema of a
    `response_format`, which judges then send; `check()`, which raises a UserError where it is known before the first
    request that none can succeed; and an async `likelihood(request)`.

    What must be known before a model is made, a built-in or registered type declares, `@model(free=True)`: `free`, it
    costs nothing; `local`, its user runs it; `parallel`, it answers as many requests at a time as its parameter of this
    name says, or one; `reach`, what it does in a stranger's config: "runs" what is here, "calls" a server, or "".
    """

    name: str
    identity: JsonMapping

    async def complete(self, request: Request) -> Completion:
        """Raise TransientError, PermanentError or LaneError; every other exception counts as permanent."""
        ...

    async def close(self) -> None: ...


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6

    def is_free(self) -> bool:
        return self.input == 0 == self.output


class Limits(msgspec.Struct, frozen=True):
    """What a lane allows itself, and what it pays: a price that is None is unknown."""

    max_concurrency: int = 64
    timeout: float = 300.0
    max_retries: int = 3
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None


class Prompt(Protocol):
    """Turns an item into messages. `name` is what rows show, `text` the whole source, part of the plan."""

    name: str
    text: str

    def render(self, item: Item) -> list[Message]: ...

    def check(self, item: Item) -> str | None:
        """Why this item cannot be rendered, or None; as cheap as possible."""
        ...


class Work(msgspec.Struct, gc=False):
    """A task's view of one item, made once and shared by its samples. Equal fingerprints mean equal work.
    `prompt` is what the row shows even if the task fails, with `messages` where one text cannot show them."""

    fingerprint: bytes
    payload: Any = None
    prompt: str = ""
    messages: list[Message] | None = None


class Answer(msgspec.Struct, kw_only=True, gc=False):
    """What a task produced. `output` is a JSON value where the result is not text; `metadata`, JSON too, goes into the
    row's, where the task's facets win."""

    text: str = ""
    output: Any = None
    outcome: ResponseOutcome = "ok"
    prompt: str = ""
    messages: list[Message] | None = None
    completion: Completion | None = None
    metadata: JsonObject = {}


class Context(Protocol):
    """The only door from a task or a scorer to models, random numbers and traces."""

    item_id: str
    sample_index: int
    seed: int

    async def complete(
        self,
        messages: list[Message],
        *,
        model: "Model | str | None" = None,
        step: str = "",
        **params: Any,
    ) -> Completion:
        """Call a model under its lane's limits; logged in `calls.jsonl`, so the same call is never paid twice."""
        ...

    def complete_sync(
        self,
        messages: list[Message],
        *,
        model: "Model | str | None" = None,
        step: str = "",
        **params: Any,
    ) -> Completion:
        """The same from a function that runs in a thread."""
        ...

    def recall(
        self,
        messages: list[Message],
        *,
        model: "Model | str | None" = None,
        step: str = "",
        **params: Any,
    ) -> Completion | None:
        """Return what such a call was answered in an earlier run, if it was made; nobody is
        asked."""
        ...

    def model(self, named: "Model | str | None" = None) -> Model:
        """The model that a call by this name reaches."""
        ...

    async def send(self, model: Model, request: Request) -> Completion:
        """Call a model under its lane's limits without a log entry: the caller's row is the record."""
        ...

    async def thread(self, call: Callable[[], Any]) -> Any:
        """Run a function that is not async in one of the engine's threads."""
        ...

    def span(self, name: str, **data: Any) -> AbstractContextManager[JsonObject]:
        """A step of the trace; put what should be seen later into the dict that it gives."""
        ...


class Task(Protocol):
    """Turns one item into one response. `facets` go into the row; `lane` names the model whose limits apply; a request
    called `probe`, if there is one, is sent before any item."""

    name: str
    model_name: str
    facets: JsonMapping
    lane: str
    identity: JsonMapping

    def prepare(self, item: Item) -> Work: ...

    async def run(self, work: Work, context: Context) -> Answer: ...


class Score(msgspec.Struct, kw_only=True, gc=False):
    """One label. A missing score comes from `passed` (1 or 0); without `passed` the label is only a score. One that
    begins with a dot is the scorer's name and what follows it. `players`: a match among responses that are scored
    together, where the score is the payoff of the first."""

    passed: bool | None = None
    score: float | None = None
    label: str = ""
    details: JsonObject = {}
    outcome: EvaluationOutcome = "scored"
    error: str | None = None
    value: Any = None
    players: tuple[str, str] | None = None


class Group(msgspec.Struct, kw_only=True):
    """The rows of one facet combination and label, after the failure policy, as columns of equal length.
    `item` holds item numbers that depend on the item ids alone, and rows are sorted by (item, sample): equal rows give
    an equal group, whatever their order on disk. `columns` has what the metric declared, `rows` only if it asked.
    `calibration` is what `assay judge calibrate` found about the judge of this label, where it did. `lower_is_better`:
    the label's scorer declares that a lower score is the better one. `only_scores`: rows have no verdict, and `passed`
    is false where the score is not 1. `left_out` has the item of each row that the
    policy leaves out, `left_out_columns` what the metric declared of them. `cluster` has the number of each row's
    cluster where items that share something (`cluster_by`) are drawn together; `scale` is that of the scores."""

    item: "Codes"
    sample: "Codes"
    passed: "Mask"
    score: "FloatArray"
    columns: dict[str, list[Any]] = {}
    rows: list[JsonObject] = []
    label: str = ""
    facets: JsonObject = {}
    level: float = 0.95
    calibration: JsonObject | None = None
    lower_is_better: bool = False
    only_scores: bool = False
    left_out: "Codes | None" = None
    left_out_columns: dict[str, list[Any]] = {}
    cluster: "IntArray | None" = None
    scale: "Scale | None" = None

    @property
    def unit(self) -> "Integers":
        """Return what is drawn at random, for each row: its cluster, or its item."""
        return self.item if self.cluster is None else self.cluster

    def per_item(self) -> "tuple[IntArray, IntArray]":
        """Samples and passes of each item: (n, c)."""
        import numpy as np

        if not len(self.item):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        starts = np.flatnonzero(np.append(True, self.item[1:] != self.item[:-1]))
        return np.diff(starts, append=len(self.item)), np.add.reduceat(
            self.passed, starts, dtype=np.int64
        )


class Resampled(msgspec.Struct, frozen=True):
    """How a value that is not a mean over items changes with the items: `statistic` gives the value
    for each row of a matrix of weights (resamples x kinds of items), where `counts` items are of
    each kind. `unseen` are the kinds of items that stand for what did not happen and might have:
    one right and one wrong answer of each class. `scale` is the least and the greatest value that
    there can be, None where there is none. `kind` has the kind of each item, in the order of their
    numbers; without it, items are in the order of the kinds."""

    counts: "IntArray"
    statistic: "Callable[[npt.NDArray[Any]], FloatArray]"
    unseen: "IntArray | tuple[()]" = ()
    scale: tuple[float | None, float | None] = (None, None)
    kind: "IntArray | None" = None


class Values(msgspec.Struct, kw_only=True):
    """What a metric found. The engine makes the interval: from `per_item` where the value is their mean, else from
    `resampled`. `weights` are those of `stats.intervals.item_weights`, where items weigh differently in the mean;
    `items` are those of the rows that count, where not all do; of a value with `facets`, all that it is about. `rows`
    are the places of those rows in the group: the others, failed ones among them, are not in the value. A
    metric that knows more than its group brings `interval`: low, high (None: open) and method. With `transform` the
    value is that of the mean of `per_item`, and so are the ends of its interval; `scale` has the ends of `per_item`
    where they are not those of the value. `reason` says why the value is null.
    A metric with several values for a group tells them apart by `facets` of its own."""

    value: float | None = None
    fields: JsonObject = {}
    per_item: "FloatArray | None" = None
    weights: "FloatArray | None" = None
    items: "Integers | None" = None
    rows: "list[int] | Integers | None" = None
    resampled: Resampled | None = None
    interval: tuple[float | None, float | None, str] | None = None
    transform: "Callable[[float], float] | None" = None
    scale: Scale | None = None
    reason: str | None = None
    facets: JsonObject = {}
