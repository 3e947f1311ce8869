"""Where the responses of an experiment come from: its tasks make them, they exist, or even their labels exist.

`Tasks` is what `assay run` does; existing responses are in `evaluate.py`, existing evaluations in `aggregate.py`.
"""

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

import msgspec

from assay.engine.aggregate.bind import BoundMetric
from assay.engine.calls.executor import Shared
from assay.engine.calls.failures import FAILURES, Failures
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.experiment import bind, preflight
from assay.engine.experiment.models import check_budget
from assay.engine.experiment.status import StatusFile
from assay.engine.experiment.trust import write_config
from assay.engine.run.run import Runner
from assay.errors import RunFailed, UserError
from assay.interfaces import Model, Task
from assay.records import ROWS_FILE, Kind, Manifest
from assay.store.lock import LOCK
from assay.store.stores import EXPERIMENT_FILES, MANIFEST

if TYPE_CHECKING:
    from assay.engine.experiment.experiment import Experiment, Result

Mode = Literal["full", "inference", "evaluation"]
_MOST_ERRORS = 0.1  # where neither config nor command line says


class Bound(msgspec.Struct):
    """A config's parts, made ready."""

    models: dict[str, Model]
    scorers: list[BoundScorer]
    metrics: list[BoundMetric]
    tasks: list[Task] = []
    samples: int = 1


class Measured(TypedDict, total=False):
    """The artefacts that metrics are computed from; `runs` and `datasets` where the manifests do not say."""

    evaluations: list[str]
    runs: list[str]
    datasets: list[str]


class Responses(ABC):
    """Where the responses of an experiment come from. `kinds` are those whose artefacts may have given the folder its
    id already, `kind` is the first artefact that the experiment writes."""

    kinds: ClassVar[tuple[Kind, ...]]
    kind: ClassVar[Kind]
    stored = True
    budget: int | None = None

    @abstractmethod
    def bind(self, experiment: "Experiment") -> Bound:
        """Everything that can be wrong with the config is raised here, before anything is spent."""

    @abstractmethod
    async def make(
        self, experiment: "Experiment", bound: Bound, shared: Shared, stack: AsyncExitStack
    ) -> Manifest | None:
        """Make the responses, or show the store those that exist; the run's manifest if it was made here."""

    def makes_rows(self, experiment: "Experiment") -> bool:
        """Whether tasks run, or all responses exist."""
        return False

    def runs(self, experiment: "Experiment") -> list[str]:
        """The ids of the runs to score."""
        return [experiment.id]

    def metadata(self, experiment: "Experiment") -> dict[str, Any]:
        """What the evaluation's manifest should remember."""
        return {}

    def scored(self, experiment: "Experiment", evaluation: Manifest) -> None:  # noqa: B027
        """Called when every response has its labels."""

    def close(self) -> None:  # noqa: B027
        """Called at the end, whatever happened."""

    def examine(self) -> None:  # noqa: B027
        """Called if evaluations that were trusted turned out to be damaged, before they are measured again."""

    def measured(self, experiment: "Experiment") -> Measured:
        return {"evaluations": [experiment.id]}


class Tasks(Responses):
    """The config's models, prompts and functions make the responses."""

    kinds = ("dataset",)
    kind = "run"

    def bind(self, experiment: "Experiment") -> Bound:
        config = experiment.config
        mode = _mode(experiment)
        _refuse_files_of_others(experiment, mode)
        check_budget(config)
        bind.bind_outputs(config)
        models, tasks, samples = experiment.bind_tasks()
        bound = Bound(
            models, bind.bind_scorers(config, models), bind.bind_metrics(config), tasks, samples
        )
        if mode == "inference":
            bound.scorers = []
        if not bound.scorers:
            bound.metrics = []
        return bound

    async def make(
        self, experiment: "Experiment", bound: Bound, shared: Shared, stack: AsyncExitStack
    ) -> Manifest | None:
        config = experiment.config
        mode = _mode(experiment)
        if note := write_config(experiment.folder, config):
            experiment.progress.note(note)
        if config.dataset is not None or not experiment.store.ids("dataset"):
            experiment.ingest()
        experiment.preflight(bound)
        for warning in preflight.warnings(bound.metrics, bound.samples):
            experiment.progress.note(warning)
        await stack.enter_async_context(StatusFile(experiment.folder, experiment.progress, mode))
        if mode == "evaluation":
            return None
        return await self.infer(experiment, bound, shared)

    def makes_rows(self, experiment: "Experiment") -> bool:
        return _mode(experiment) != "evaluation"

    async def infer(self, experiment: "Experiment", bound: Bound, shared: Shared) -> Manifest:
        """The run, when every selected cell has its row."""
        config = experiment.config
        runner = Runner(
            experiment.store, **shared, task_timeout=config.timeout, fresh=not config.resume
        )
        selection = experiment.selection(bound.tasks)
        run = await runner.run_async(
            experiment.id,
            bound.tasks,
            bound.samples,
            id=experiment.id,
            name=config.name,
            selection=selection,
            retry_errors=experiment.options.retry_errors,
        )
        selected = selection.cells(
            bound.tasks, (run.planned or 0) // len(bound.tasks) // bound.samples, bound.samples
        )
        rows = sum(count for outcome, count in run.counts.items() if outcome != "transient")
        if rows > selected and bound.metrics:
            experiment.progress.note(
                f"the metrics are over all {rows:,} responses of the folder, {selected:,} of which were asked for now"
            )
        return run


def _refuse_files_of_others(experiment: "Experiment", mode: Mode) -> None:
    """Refuse a folder that is not an experiment's yet and has files of its names: they would be replaced."""
    folder = experiment.folder
    if (folder / LOCK).exists() or (folder / MANIFEST).exists():
        return
    # existing responses of any tool can be scored
    scored = ROWS_FILE["run"] if mode == "evaluation" else ""
    files = (folder / name for name in EXPERIMENT_FILES if name != scored)
    theirs = next((file for file in files if file.exists() and file.stat().st_size), None)
    if theirs is not None:
        raise UserError(
            "this file is not Assay's, and a run would replace it",
            where=str(theirs),
            fix="name a folder of its own with -o or `output_dir`",
        )


def check_error_rate(experiment: "Experiment", result: "Result") -> None:
    """Stop if more responses are errors than config or command line allow; the result tells if more labels of
    answered responses are, or, where they say nothing, more than a tenth of the responses."""
    allowed = experiment.config.max_error_rate
    most = _MOST_ERRORS if allowed is None else allowed
    for what, rows in (("responses", result.run), ("labels", result.evaluation)):
        if rows is None or not rows.counts.get("errored"):
            continue
        errored, total = _errors_among(rows)
        if errored / max(total, 1) <= most:
            continue
        share = f"more than the allowed share of {most:g} (`max_error_rate`)"
        problem = f"{errored:,} of {total:,} {what} are errors, {share}"
        if allowed is not None and what == "responses":
            raise RunFailed(
                problem,
                where=str(experiment.folder / ROWS_FILE[rows.kind]),
                fix="look at their `error` fields; --retry-errors runs them again",
            )
        if allowed is not None or (what == "responses" and experiment.responses.kind == "run"):
            result.too_many_errors = problem


def _errors_among(rows: Manifest) -> tuple[int, int]:
    """Return how many rows are errors of their own step, and of how many."""
    failures = msgspec.convert(rows.metadata.get(FAILURES, []), list[Failures])
    unanswered = sum(entry.unanswered for entry in failures)
    counts = {name: count for name, count in rows.counts.items() if name != "transient"}
    return counts["errored"] - unanswered, sum(counts.values()) - unanswered


def _mode(experiment: "Experiment") -> Mode:
    return experiment.options.mode or experiment.config.mode
