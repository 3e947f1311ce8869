"""One config, one folder, three steps: what `assay run` does, for the command line and Python alike."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec

from assay.config import Config, environment, parse_model, resolved, to_yaml
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import BoundMetric
from assay.engine.calls.budget import Budget, spent_before
from assay.engine.calls.executor import Shared
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment import bind
from assay.engine.experiment.bind import bind_outputs, bind_usable
from assay.engine.experiment.dataset import ingest, stamp_of
from assay.engine.experiment.status import StatusFile, log_to
from assay.engine.run.plan import Selection
from assay.engine.run.run import Runner
from assay.errors import ConfigError, RunFailed, UserError
from assay.interfaces import Model, Task
from assay.records import Manifest, MetricRow
from assay.store.files import write_file
from assay.store.repositories import DatasetRepository
from assay.store.stores import FlatStore

Mode = Literal["full", "inference", "evaluation"]


class Options(msgspec.Struct, kw_only=True):
    """What the command line adds to a config. `models`, `limit` and `num_samples` narrow what runs, never what is
    kept; a model that the config does not know is added to the plan."""

    mode: Mode | None = None
    output_dir: str | None = None
    models: Sequence[str] = ()
    limit: int | None = None
    num_samples: int | None = None
    max_concurrency: int | None = None
    retry_errors: bool = False
    max_error_rate: float | None = None


class Result(msgspec.Struct, kw_only=True):
    """What a run left behind."""

    folder: str
    run: Manifest | None = None
    evaluation: Manifest | None = None
    metrics: list[MetricRow] = []
    notes: list[str] = []


class Experiment:
    """A config bound to a folder."""

    def __init__(
        self, config: Config, options: Options | None = None, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self.options = options or Options()
        self.config, self.selected_models = _with_options(config, self.options)
        self.environ = environ
        self.folder = Path(self.config.output_dir)
        self.store = FlatStore(self.folder)
        self.id = next(iter(self.store.ids("dataset")), self.store.id)  # a folder keeps its id when it is renamed
        self.progress = Progress()

    # -- what all uses share

    def bind_tasks(self) -> tuple[dict[str, Model], list[Task], int]:
        """Models, tasks, and how many samples the plan has."""
        samples = max(self.config.num_samples, self.options.num_samples or 1)
        models = bind.bind_models(self.config, self.environ)
        return models, bind.bind_tasks(self.config, models, samples), samples

    def selection(self, tasks: Sequence[Task]) -> Selection:
        chosen = None
        if self.selected_models:
            chosen = frozenset(task.name for task in tasks if task.model_name in self.selected_models)
        return Selection(tasks=chosen, items=self.options.limit, samples=self.options.num_samples)

    def ingest(self, store: FlatStore | None = None) -> Manifest:
        """Read, check and store the config's dataset, in the experiment's folder or in another store."""
        source = self.config.dataset
        if source is None:
            raise UserError("the config names no dataset", where=self.config.source, fix="add `dataset: items.jsonl`")
        base = Path(self.config.base)
        stamp = stamp_of(source, base)
        rows = lambda: bind.open_dataset(source, base)  # noqa: E731
        prompts = bind.bind_prompts(self.config) if self.config.models else []
        return ingest(store or self.store, self.id, rows, prompts=prompts, stamp=stamp, limit=self.config.limit)

    # -- the uses

    async def run(self, stop: Stop | None = None) -> Result:
        """Inference, scoring and metrics, as far as the mode says."""
        os.environ.update(environment(self.config, self.environ))  # user code sees `.env` and `env_vars`, too
        mode = self.options.mode or self.config.mode
        result = Result(folder=str(self.folder), notes=self.progress.notes)
        bind.check_budget(self.config)
        bind_outputs(self.config)
        models, tasks, samples = self.bind_tasks()
        scorers, metrics = bind.bind_scorers(self.config, models), bind.bind_metrics(self.config)
        async with AsyncExitStack() as stack:
            for model in models.values():
                stack.push_async_callback(model.close)
            stack.enter_context(self.store.lock("run", self.id))
            stack.enter_context(log_to(self.config.logging))
            write_file(self.folder / "config.yaml", to_yaml(resolved(self.config)).encode())
            if self.config.dataset is not None or not self.store.ids("dataset"):
                self.ingest()
            await stack.enter_async_context(StatusFile(self.folder, self.progress, mode))
            around = self._around(models, stop)
            if mode != "evaluation":
                result.run = await self._infer(around, tasks, samples)
                self._check_error_rate(result.run)
            if mode != "inference" and scorers:
                result.evaluation = await self._score(around, scorers)
                if metrics:
                    result.metrics = await self._measure(metrics)
        return result

    def _around(self, models: dict[str, Model], stop: Stop | None) -> Shared:
        """What Runner and Evaluator take alike."""
        return {
            "models": models,
            "limits": bind.bind_limits(self.config),
            "default_limits": bind.default_limits(self.config),
            "seed": self.config.seed,
            "progress": self.progress,
            "stop": stop,
            "budget": self._budget(),
            "datasets": DatasetRepository(self.store),
        }

    def _budget(self) -> Budget | None:
        limits = self.config.budget
        if limits == type(limits)():
            return None
        return Budget(limits.usd, limits.tokens, limits.seconds, spent_before(self.store, self.id))

    async def _infer(self, around: Shared, tasks: Sequence[Task], samples: int) -> Manifest:
        runner = Runner(self.store, **around, task_timeout=self.config.timeout, fresh=not self.config.resume)
        return await runner.run_async(
            self.id,
            tasks,
            samples,
            id=self.id,
            name=self.config.name,
            selection=self.selection(tasks),
            retry_errors=self.options.retry_errors,
        )

    async def _score(self, around: Shared, scorers: Sequence[BoundScorer]) -> Manifest:
        evaluator = Evaluator(self.store, **around)
        again = self.options.retry_errors
        return await evaluator.evaluate_async(
            [self.id], scorers, id=self.id, name=self.config.name, dataset=self.id, retry_errors=again
        )

    async def _measure(self, metrics: Sequence[BoundMetric]) -> list[MetricRow]:
        self.progress.begin("aggregate")
        return await Aggregator(self.store).aggregate_async([self.id], metrics, id=self.id, name=self.config.name)

    def validate(self) -> list[str]:
        """Everything that can be known before spending: all problems at once, or the warnings."""
        problems = bind.Problems(self.config)
        for check in (self.bind_tasks, self._bind_scoring, lambda: bind.check_budget(self.config), self._bind_outputs):
            with problems.at():
                check()
        with problems.at(), self.trial_store() as store:
            self.ingest(store)
        problems.raise_any()
        return self._warnings()

    def _bind_outputs(self) -> None:
        bind_outputs(self.config)

    def _warnings(self) -> list[str]:
        warnings: list[str] = []
        if not self.config.evaluation_methods:
            warnings.append("no evaluation_methods: responses are collected but not scored")
        elif not self.config.metrics:
            warnings.append("no metrics: labels are written but nothing is computed from them")
        for metric in self.config.metrics:
            needed = int(metric.params.get("k", 1)) * int(metric.params.get("num_trials", 1))
            if metric.type == "pass_at_k" and self.config.num_samples < needed:
                warnings.append(
                    f"{metric.name}: num_samples is {self.config.num_samples}, below num_trials × k = {needed}"
                )
        return warnings

    @contextmanager
    def trial_store(self) -> Generator[FlatStore]:
        """A store that is gone afterwards: for looking at a dataset without touching the experiment's folder."""
        with TemporaryDirectory(prefix="assay-") as folder:
            yield FlatStore(Path(folder) / self.id)

    def _bind_scoring(self) -> None:
        problems = bind.Problems(self.config)
        with problems.at():
            bind.bind_scorers(self.config, bind_usable(self.config, self.environ))
        with problems.at():
            bind.bind_metrics(self.config)
        problems.raise_any()

    def _check_error_rate(self, run: Manifest) -> None:
        allowed = self.options.max_error_rate if self.options.max_error_rate is not None else self.config.max_error_rate
        total = sum(count for name, count in run.counts.items() if name != "transient")
        errored = run.counts.get("errored", 0)
        if allowed is not None and total and errored / total > allowed:
            raise RunFailed(
                f"{errored} of {total} responses are errors, more than the allowed share of {allowed:g}",
                where=str(self.folder / "responses.jsonl"),
                fix="look at their `error` fields; --retry-errors runs them again",
            )


def _with_options(config: Config, options: Options) -> tuple[Config, set[str]]:
    """The config with the command line's word, and the names of the models that run now (empty: all)."""
    changes: dict[str, Any] = {}
    if options.output_dir:
        changes["output_dir"] = str(Path(options.output_dir).absolute())
    if options.max_concurrency:
        changes["max_concurrency"] = options.max_concurrency
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
