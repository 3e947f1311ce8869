"""How a server bears load: the same requests with more and more of them in flight, an experiment for each number.

Everything is computed from rows, so an interrupted test resumes like any run, and a finished one only reads. A level's
time is that during which at least one of its requests was under way: the time between two starts does not count.
"""

import time
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.config import Config
from assay.engine.calls.budget import Spent, spent_before
from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.calls.stop import Stop
from assay.engine.experiment.experiment import Experiment
from assay.engine.experiment.runs import View
from assay.errors import UserError
from assay.interfaces import FloatArray
from assay.shown import Shown
from assay.stats.intervals import quantile_interval
from assay.store.repair import read_rows
from assay.store.stores import FlatStore

FOLDER = "load"
FEWEST = 100  # requests of a level, where nobody says how many
TIMES_LEVEL = (
    10  # at least so many times the calls in flight: the first and the last have less company
)
_SHARES = {"median": 0.5, "p95": 0.95, "p99": 0.99}
_TRIED_AGAIN = "some were refused or broke off, and waited before they were tried again"
_REACHED = 0.8  # of the level that was asked for


class Quantiles(msgspec.Struct, kw_only=True):
    """Of the seconds that requests took, with the intervals of the three."""

    median: float
    p95: float
    p99: float
    intervals: dict[str, tuple[float | None, float | None]]


class LoadLevel(msgspec.Struct, kw_only=True):
    """What a model did with this many calls in flight: `in_flight` is how many there were on average. Rates count
    answers and their tokens. What no row tells is None."""

    model: str
    level: int
    folder: str
    requests: int
    errors: int
    retries: int
    seconds: float
    in_flight: float | None = None
    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    latency: Quantiles | None = None
    ttft: Quantiles | None = None
    time_between_tokens: Quantiles | None = None


class Load(Shown, kw_only=True):
    """All levels of all models; `failed` names those without any answer."""

    folder: str
    levels: list[LoadLevel]
    notes: list[str] = []
    failed: list[str] = []


class LoadTest:
    """An experiment and the numbers of calls in flight, not yet run. Models run one after another."""

    def __init__(self, experiment: Experiment, levels: Sequence[int]) -> None:
        options, config = experiment.options, experiment.config
        if not levels or min(levels) < 1:
            raise UserError("a load has at least 1 call in flight", fix="--load 1,2,4,8")
        if (
            options.mode is not None
            or options.max_concurrency is not None
            or experiment.by_workers is not None
        ):
            what = "a load test asks models from one process, with as many calls in flight as its levels say"
            raise UserError(
                what,
                fix="leave out --mode, -j, --workers, --shard and --on, and use a local folder",
            )
        chosen = experiment.selected_models or {
            entry.name for entry in config.models if not entry.helper
        }
        if not chosen:
            raise UserError(
                "a load test needs a model", where=config.source, fix="name one with -m"
            )
        self.levels = sorted(set(levels))
        self.progress = Progress()
        self.folder = experiment.folder / FOLDER
        self._experiment = experiment
        self._models = [entry.name for entry in config.models if entry.name in chosen]
        requests = max(FEWEST, TIMES_LEVEL * self.levels[-1])
        enough = ceil(
            requests / max(1, len(config.prompts)) / (options.num_samples or config.num_samples)
        )
        self._limit = enough if options.limit is None else options.limit
        self._began = 0.0

    async def run(self, stop: Stop | None = None) -> Load:
        """Every level of every model, as far as its rows do not exist; then what all of them say."""
        load = Load(folder=str(self.folder), levels=[])
        self._began = time.monotonic()
        for model in self._models:
            for level in self.levels:
                experiment = self._at(model, level)
                result = await experiment.run(stop)
                self.progress.notes += [
                    line for failures in result.failures for line in failures.lines()
                ]
                load.levels.append(
                    measured(experiment.store, model, level, experiment.config.ci_level)
                )
        load.notes = list(dict.fromkeys([*self.progress.notes, *_notes(load.levels)]))
        load.failed = [
            f"{tested.model} at {tested.level}"
            for tested in load.levels
            if tested.errors == tested.requests > 0
        ]
        return load

    def _at(self, model: str, level: int) -> Experiment:
        place = self.folder / str(level)
        own: dict[str, Any] = {
            "mode": "inference",
            "models": [model],
            "output_dir": str(place),
            "limit": self._limit,
        }
        options = msgspec.structs.replace(self._experiment.options, **own, steady=level)
        experiment = Experiment(self._left(place), options, environ=self._experiment.environ)
        experiment.progress = _LevelProgress(self.progress, model, level)
        return experiment

    def _left(self, place: Path) -> Config:
        """The config with what the other levels leave of its budget."""
        config, budget = self._experiment.config, self._experiment.config.budget
        if budget == type(budget)():
            return config
        spent = Spent()
        for other in {self.folder / str(level) for level in self.levels} - {place}:
            store = View(other)
            for id in store.ids("run"):
                paid = spent_before(store, id)
                spent.usd, spent.tokens = spent.usd + paid.usd, spent.tokens + paid.tokens
        usd = None if budget.usd is None else max(0.0, budget.usd - spent.usd)
        tokens = None if budget.tokens is None else max(0, budget.tokens - spent.tokens)
        seconds = (
            None
            if budget.seconds is None
            else max(0.0, budget.seconds - (time.monotonic() - self._began))
        )
        left = type(budget)(usd=usd, tokens=tokens, seconds=seconds)
        return msgspec.structs.replace(config, budget=left)


class _LevelProgress(Progress):
    """The progress of a level, whose lane is shown beside those of the others."""

    def __init__(self, shown: Progress, model: str, level: int) -> None:
        super().__init__(notes=shown.notes)
        self._shown, self._model, self._level = shown, model, level

    def lane(self, name: str) -> LaneProgress:
        lane = self.lanes.setdefault((self.step, name), LaneProgress(f"{name} at {self._level}"))
        if name == self._model:
            self._shown.step = self.step
            self._shown.lanes[self.step, lane.name] = lane
        return lane


class _Metadata(msgspec.Struct):
    stream: dict[str, float] = {}


class _Row(msgspec.Struct):
    item_id: str = ""
    model_name: str = ""
    outcome: str = "ok"
    inference_time: float = 0.0
    timestamp: float = 0.0
    completion_tokens: int | None = None
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def measured(store: FlatStore, model: str, level: int, confidence: float = 0.95) -> LoadLevel:
    """What the rows of one model in one level's folder say, and how often its calls were tried again."""
    (id,) = store.ids("run")
    run = store.manifest("run", id)
    retried: Any = (run.metadata.get("retries") if run is not None else None) or {}
    rows = [row for _, row in read_rows(store.log("run", id), _Row) if row.model_name == model]
    answers = [row for row in rows if row.outcome in ("ok", "refused")]
    ends = np.array([row.timestamp for row in rows], np.float64)
    taken = np.array([row.inference_time for row in rows], np.float64)
    seconds = covered(ends - taken, ends)
    tested = LoadLevel(
        model=model,
        level=level,
        folder=str(store.folder),
        requests=len(rows),
        errors=len(rows) - len(answers),
        retries=retried.get(model, 0),
        seconds=seconds,
    )
    if answers and seconds > 0:
        tokens = [row.completion_tokens for row in answers if row.completion_tokens is not None]
        tested.in_flight = float(taken.sum()) / seconds
        tested.requests_per_second = len(answers) / seconds
        tested.tokens_per_second = sum(tokens) / seconds if len(tokens) == len(answers) else None
        tested.latency = _quantiles(answers, [row.inference_time for row in answers], confidence)
        for name in ("ttft", "time_between_tokens"):
            timed = [row for row in answers if name in row.metadata.stream]
            setattr(
                tested,
                name,
                _quantiles(timed, [row.metadata.stream[name] for row in timed], confidence),
            )
    return tested


def covered(starts: FloatArray, ends: FloatArray) -> float:
    """How long at least one of these spans of time was under way."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    before = np.maximum.accumulate(ends)
    begins = np.maximum(starts[1:], before[:-1])
    return float((ends[:1] - starts[:1]).sum() + np.maximum(ends[1:] - begins, 0).sum())


def _quantiles(
    rows: Sequence[_Row], values: Sequence[float], confidence: float
) -> Quantiles | None:
    if not values:
        return None
    numbers = np.array(values, np.float64)
    _, item = np.unique([row.item_id for row in rows], return_inverse=True)
    intervals = {
        name: quantile_interval(item, numbers, share, confidence)[:2]
        for name, share in _SHARES.items()
    }
    median, p95, p99 = (float(np.quantile(numbers, share)) for share in _SHARES.values())
    return Quantiles(median=median, p95=p95, p99=p99, intervals=intervals)


def _notes(levels: Sequence[LoadLevel]) -> list[str]:
    """What a reader of the numbers should know."""
    streamed = {
        tested.model for tested in levels if tested.ttft is not None or tested.latency is None
    }
    silent = [
        f"{model} streamed no answer: there is no time to first token without `stream: true` and a server that streams"
        for model in dict.fromkeys(tested.model for tested in levels)
        if model not in streamed
    ]
    few = [
        f"{tested.model} at {tested.level}: on average only {tested.in_flight:.1f} calls were in flight: "
        + (
            _TRIED_AGAIN
            if tested.retries
            else "raise --limit or --num-samples, or see what slows this machine down"
        )
        for tested in levels
        if tested.in_flight is not None and tested.in_flight < _REACHED * tested.level
    ]
    return [*silent, *few]
