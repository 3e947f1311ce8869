"""One config, one folder, three steps: what `run`, `evaluate` and `aggregate` do, for the CLI and
for Python.

The verbs differ in where the responses come from: tasks make them here, existing ones are in
`evaluate.py`, existing labels in `aggregate.py`.
"""

import os
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import msgspec

from assay.config import Config, environment, limit_changes, parse_model, where
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.bind import BoundMetric
from assay.engine.calls.budget import Budget, spent_before
from assay.engine.calls.executor import Shared
from assay.engine.calls.failures import FAILURES, Failures, failures_of
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment import bind, preflight
from assay.engine.experiment.dataset import ingest, open_dataset, stamp_of
from assay.engine.experiment.models import (
    Problems,
    bind_limits,
    bind_models,
    bind_usable,
    check_budget,
    default_limits,
)
from assay.engine.experiment.status import log_to, status_file
from assay.engine.experiment.trust import write_config
from assay.engine.run.evidence import DamagedError
from assay.engine.run.plan import Selection
from assay.engine.run.run import Runner
from assay.records import ROWS_FILE, JsonObject, Kind, Manifest, MetricRow, row_count
from assay.sdk import ConfigError, Model, RunFailed, Store, StoreError, Task, UserError
from assay.shown import Shown
from assay.store.items import decode_item
from assay.store.lock import LOCK
from assay.store.repositories import DatasetRepository
from assay.store.sealed import seal_files
from assay.store.shared.generations import make_ordinary
from assay.store.shared.mirror import named, push, remembered
from assay.store.stores import EXPERIMENT_FILES, MANIFEST, FlatStore, View
from assay.usercode import marks_of

Mode = Literal["full", "inference", "evaluation"]
_MOST_ERRORS = 0.1  # where neither config nor command line says


class Options(msgspec.Struct, kw_only=True):
    """What the command line adds to a config. `models`, `limit` and `num_samples` narrow what
    runs, never what is kept; a model that the config does not know is added to the plan."""

    mode: Mode | None = None
    output_dir: str | None = None
    models: Sequence[str] = ()
    limit: int | None = None
    num_samples: int | None = None
    max_concurrency: int | None = None
    retry_errors: bool = False
    max_error_rate: float | None = None
    workers: int = 1


class Result(Shown, kw_only=True):
    """What a run left behind; `folder` is empty if nothing was stored. `failures` says why rows
    are errors, `failed` names the tasks and scorers of which every row is one, `too_many_errors`
    says that more than a tenth of the rows are: the command line exits with 1 then."""

    folder: str
    run: Manifest | None = None
    evaluation: Manifest | None = None
    metrics: list[MetricRow] = []
    notes: list[str] = []
    failures: list[Failures] = []
    failed: list[str] = []
    too_many_errors: str = ""


class BoundConfig(msgspec.Struct):
    """A config's parts, made ready."""

    models: dict[str, Model]
    scorers: list[BoundScorer]
    metrics: list[BoundMetric]
    tasks: list[Task] = []
    samples: int = 1


ByWorkers = Callable[["Experiment", Stop | None], Awaitable[Result]]


class Experiment:
    """A config bound to a folder, whose tasks make the responses. `kinds` are those whose
    artefacts may have given the folder its id already, `kind` is the first artefact that it
    writes. `budget` is of matches."""

    kinds: ClassVar[tuple[Kind, ...]] = ("dataset",)
    kind: ClassVar[Kind] = "run"
    stored = True
    budget: int | None = None

    def __init__(
        self,
        config: Config,
        options: Options | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.options = options or Options()
        self.config, self.selected_models = _with_options(config, self.options)
        self.environ = environ
        self.mode: Mode = self.options.mode or self.config.mode
        self.makes_rows = self.kind == "run" and self.mode != "evaluation"
        self.folder = remembered(self.config.output_dir)
        self.store = View(self.folder)
        ids = (id for kind in self.kinds for id in self.store.ids(kind))
        self.id = next(ids, self.store.id)  # a folder keeps its id when it is renamed
        self.progress = Progress()
        self.by_workers: ByWorkers | None = None  # makes the rows in place of this process

    def manifest(self, kind: Kind) -> Manifest | None:
        return self.store.manifest(kind, self.id)

    # -- parts

    def bind_tasks(self) -> tuple[dict[str, Model], list[Task], int]:
        """Models, tasks, and how many samples the plan has."""
        samples = max(self.config.num_samples, self.options.num_samples or 1)
        models = bind_models(self.config, self.environ)
        return models, bind.bind_tasks(self.config, models, samples), samples

    def selection(self, tasks: Sequence[Task]) -> Selection:
        chosen = None
        # theirs is one for each task
        limit = None if self.config.benchmarks else self.options.limit
        if self.selected_models:
            chosen = frozenset(
                task.name for task in tasks if task.model_name in self.selected_models
            )
        return Selection(tasks=chosen, items=limit, samples=self.options.num_samples)

    def ingest(self, store: FlatStore | None = None) -> Manifest:
        """Read, check and store the config's dataset, in the experiment's folder or in another
        store."""
        source = self.config.dataset
        if source is None:
            raise UserError(
                "the config names no dataset",
                where=self.config.source,
                fix="add `dataset: items.jsonl`",
            )
        base = Path(self.config.base)
        rows = lambda: open_dataset(source, base)  # noqa: E731
        asks = self.kind == "run" and any(not model.helper for model in self.config.models)
        prompts = bind.bind_checks(self.config) if asks else []
        stamp = stamp_of(source, base)
        return ingest(
            store or self.store,
            self.id,
            rows,
            prompts=prompts,
            stamp=stamp,
            limit=self.config.limit,
        )

    @contextmanager
    def trial_store(self) -> Generator[FlatStore]:
        """A store that is gone afterwards: for looking at a dataset without touching the
        experiment's folder."""
        with TemporaryDirectory(prefix="assay-") as folder:
            yield FlatStore(Path(folder) / self.id)

    # -- the flow

    async def run(self, stop: Stop | None = None) -> Result:
        """Responses, labels and metrics, as far as the config and its mode say."""
        # user code may read `.env` and `env_vars`, and so may what places workers
        os.environ.update(environment(self.config, self.environ))
        if self.by_workers is not None:
            return await self.by_workers(self, stop)
        result = Result(folder=named(self.folder) if self.stored else "", notes=self.progress.notes)
        async with AsyncExitStack() as stack:
            bound = self.open(stack)
            stack.enter_context(self.store.lock(self.kind, self.id))
            if self.kind != "aggregation":
                make_ordinary(self.folder)
            stack.push(self._push)
            shared = self.for_executors(bound.models, stop)
            result.run = await self.make(bound, shared, stack)
            self._check_error_rate(result)
            if bound.scorers:
                result.evaluation = await self.score(bound.scorers, shared)
                self.after_scoring(result.evaluation)
            if bound.metrics:
                result.metrics = await self.measure(bound.metrics)
            self.note_failures(result)
        return result

    def open(self, stack: AsyncExitStack) -> BoundConfig:
        """Make the parts of the config ready; what is open is closed with the stack."""
        os.environ.update(environment(self.config, self.environ))
        stack.callback(self.close)
        bound = self.bind()
        for model in bound.models.values():
            stack.push_async_callback(model.close)
        stack.enter_context(log_to(self.config.logging))
        return bound

    def _push(self, *raised: Any) -> None:
        """The folder is sealed, and a copy goes back to its bucket; after a failure as well:
        rows were paid for."""
        try:
            if self.stored:
                seal_files(self.folder)
            push(self.folder)
        except StoreError:
            if not any(raised):
                raise

    def note_failures(self, result: Result) -> None:
        evaluations = [result.evaluation]
        if result.evaluation is None and result.metrics:
            ids = self.ids_to_measure().get("evaluations", [])
            evaluations = [self.store.manifest("evaluation", id) for id in ids]
        result.failures = [
            entry for manifest in evaluations for entry in failures_of(result.run, manifest)
        ]
        result.failed = [failures.of for failures in result.failures if failures.is_total]
        self.progress.errors = [line for failures in result.failures for line in failures.lines()]
        self._check_error_rate(result)

    def for_executors(
        self, models: dict[str, Model], stop: Stop | None, own: Shared | None = None
    ) -> Shared:
        """For Runner and Evaluator; `own` is a worker's part of it."""
        limits = self.config.budget
        own = own or {}
        budget = None
        if limits != type(limits)() and "budget" not in own:
            budget = Budget(
                limits.usd, limits.tokens, limits.seconds, spent_before(self.store, self.id)
            )
        return {
            "models": models,
            "limits": bind_limits(self.config),
            "default_limits": default_limits(self.config),
            "seed": self.config.seed,
            "progress": self.progress,
            "stop": stop,
            "budget": budget,
            "datasets": DatasetRepository(self.store),
            **own,
        }

    async def infer(
        self, bound: BoundConfig, shared: Shared, selection: Selection, store: Store | None = None
    ) -> Manifest:
        """The run, when every selected cell has its row. A shard has a `store` of its own: there
        nothing that failed is tried again, and a model's server is left to the next one."""
        whole, config = store is None, self.config
        runner = Runner(
            store or self.store,
            **shared,
            task_timeout=config.timeout,
            fresh=whole and not config.resume,
            keep_server=not whole,
        )
        return await runner.run_async(
            self.id,
            bound.tasks,
            bound.samples,
            id=self.id,
            name=config.name,
            selection=selection,
            retry_errors=self.options.retry_errors if whole else None,
        )

    async def score(
        self, scorers: Sequence[BoundScorer], shared: Shared, store: Store | None = None
    ) -> Manifest:
        """The evaluation, when every response has its labels; `store` as in `infer`."""
        whole = store is None
        return await Evaluator(store or self.store, **shared).evaluate_async(
            self.runs(),
            scorers,
            id=self.id,
            name=self.config.name,
            dataset=self.id,
            retry_errors=self.options.retry_errors if whole else None,
            budget=self.budget,
            metadata=self.metadata() if whole else None,
        )

    async def measure(self, metrics: Sequence[BoundMetric]) -> list[MetricRow]:
        self.progress.begin("aggregate")
        aggregator = Aggregator(self.store, workers=self.options.workers, note=self.progress.note)

        def measure() -> Awaitable[list[MetricRow]]:
            return aggregator.aggregate_async(
                metrics=metrics, id=self.id, name=self.config.name, **self.ids_to_measure()
            )

        try:
            return await measure()
        except DamagedError:
            self.examine()
            return await measure()

    # -- where responses come from

    def bind(self) -> BoundConfig:
        """Everything that can be wrong with the config is raised here, before anything is spent."""
        self._refuse_files_of_others()
        check_budget(self.config)
        bind.bind_outputs(self.config)
        models, tasks, samples = self.bind_tasks()
        scorers, metrics = bind.bind_scorers(self.config, models), bind.bind_metrics(self.config)
        if self.mode == "inference":
            scorers = []
        return BoundConfig(models, scorers, metrics if scorers else [], tasks, samples)

    async def make(
        self, bound: BoundConfig, shared: Shared, stack: AsyncExitStack
    ) -> Manifest | None:
        """Make the responses, or show the store those that exist; the run's manifest if it was
        made here."""
        if note := write_config(self.folder, self.config):
            self.progress.note(note)
        if self.config.dataset is not None or not self.store.ids("dataset"):
            self.ingest()
        self.preflight(bound)
        for warning in preflight.warnings(bound.metrics, bound.samples):
            self.progress.note(warning)
        await stack.enter_async_context(status_file(self.folder, self.progress, self.mode))
        if not self.makes_rows:
            return None
        selection = self.selection(bound.tasks)
        run = await self.infer(bound, shared, selection)
        items = (run.planned or 0) // len(bound.tasks) // bound.samples
        selected = selection.cells(bound.tasks, items, bound.samples)
        rows = row_count(run)
        if rows > selected and bound.metrics:
            self.progress.note(
                f"the metrics are over all {rows:,} responses of the folder, {selected:,} of which were asked for now"
            )
        return run

    def runs(self) -> list[str]:
        """The ids of the runs to score."""
        return [self.id]

    def metadata(self) -> JsonObject:
        """Return what the evaluation's manifest should remember."""
        return {}

    def after_scoring(self, evaluation: Manifest) -> None:
        """Called when every response has its labels."""

    def close(self) -> None:
        """Called at the end, whatever happened."""

    def examine(self) -> None:
        """Called if evaluations that were trusted turned out to be damaged, before they are
        measured again."""

    def ids_to_measure(self) -> dict[str, list[str]]:
        """The artefacts that metrics are computed from: `evaluations`, and `runs` and `datasets`
        where the manifests do not say."""
        return {"evaluations": [self.id]}

    def _refuse_files_of_others(self) -> None:
        """Refuse a folder that is not an experiment's yet and has files of its names: they would
        be replaced."""
        folder = self.folder
        if (folder / LOCK).exists() or (folder / MANIFEST).exists():
            return
        # existing responses of any tool can be scored
        scored = "" if self.makes_rows else ROWS_FILE["run"]
        files = (folder / name for name in EXPERIMENT_FILES if name != scored)
        theirs = next((file for file in files if file.exists() and file.stat().st_size), None)
        if theirs is not None:
            raise UserError(
                "this file is not Assay's, and a run would replace it",
                where=str(theirs),
                fix="name a folder of its own with -o or `output_dir`",
            )

    def _check_error_rate(self, result: Result) -> None:
        """Stop if more responses are errors than config or command line allow; the result tells
        if more labels of answered responses are, or, where they say nothing, more than a tenth
        of the responses."""
        allowed = self.config.max_error_rate
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
                    where=str(self.folder / ROWS_FILE[rows.kind]),
                    fix="look at their `error` fields; --retry-errors runs them again",
                )
            if allowed is not None or (what == "responses" and self.kind == "run"):
                result.too_many_errors = problem

    # -- before spending

    def validate(self) -> list[str]:
        """Everything that can be known before spending: all problems at once, or the warnings."""
        problems = Problems(self.config)
        parts = (bind.bind_metrics, check_budget, bind.bind_outputs)
        for check in (
            self.bind_tasks,
            self._bind_scorers,
            *(partial(of, self.config) for of in parts),
        ):
            with problems.at():
                check()
        with self.trial_store() as store:
            with problems.at():
                self.ingest(store)
            problems.raise_any()
            bound = self.bind()
            self.preflight(bound, store)
        return [*self._warnings(), *preflight.warnings(bound.metrics, bound.samples)]

    def preflight(self, bound: BoundConfig, store: FlatStore | None = None) -> None:
        """Refuse what the stored items cannot give; see `preflight.py`."""
        own = store or self.store
        for output in bind.bind_outputs(self.config):
            if check := marks_of(output.write).get("check"):
                check(output, own, self.id)
        log = own.log("dataset", self.id)
        items = (decode_item(line) for _, line in log.scan() if line.strip())
        stored = self.store.log("evaluation", self.id)
        try:
            preflight.check(bound.tasks, bound.scorers, bound.metrics, items, stored)
        except ConfigError as error:
            for problem in error.problems:
                if problem.where in (preflight.DATASET, preflight.METHODS):
                    problem.where = where(self.config, problem.where)
            raise ConfigError(error.problems, source=self.config.source) from None

    def _bind_scorers(self) -> list[BoundScorer]:
        return bind.bind_scorers(self.config, bind_usable(self.config, self.environ))

    def _warnings(self) -> list[str]:
        warnings: list[str] = []
        if not self.config.evaluation_methods:
            warnings.append("no evaluation_methods: responses are collected but not scored")
        elif not self.config.metrics:
            warnings.append("no metrics: labels are written but nothing is computed from them")
        return warnings


def _errors_among(rows: Manifest) -> tuple[int, int]:
    """Return how many rows are errors of their own step, and of how many."""
    failures = msgspec.convert(rows.metadata.get(FAILURES, []), list[Failures])
    unanswered = sum(entry.unanswered for entry in failures)
    return rows.counts["errored"] - unanswered, row_count(rows) - unanswered


def _with_options(config: Config, options: Options) -> tuple[Config, set[str]]:
    """The config with the command line's word, and the names of the models that run now (empty:
    all)."""
    changes: JsonObject = {}
    if options.output_dir:
        changes["output_dir"] = named(options.output_dir)
    if options.max_concurrency:
        changes["max_concurrency"] = options.max_concurrency
    if options.max_error_rate is not None:
        changes["max_error_rate"] = options.max_error_rate
    if config.benchmarks and options.limit:
        changes |= limit_changes(config, options.limit)
    known = list(config.models)
    chosen: set[str] = set()
    problems: list[UserError] = []
    for text in options.models:
        try:
            model = parse_model(text, known)
        except UserError as error:
            problems.append(error)
            continue
        chosen.add(model.name)
        if model.name not in {entry.name for entry in known}:
            known.append(model)
    if problems:
        raise ConfigError(problems, source="the command line")
    changes["models"] = known
    return msgspec.structs.replace(config, **changes), chosen
