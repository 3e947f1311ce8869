"""RAGiCamp's evaluator on Assay's engine: an agent answers a dataset's questions, metrics score the answers.

The three files go to the folder of `output_path`; its own name does not matter. The rows that they are made from are in
`.assay/<dataset>/<agent>` beside them: the same call resumes where an earlier one stopped, asks and pays for nothing
twice, and `assay compare` can tell agents apart.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assay.analysis.look.export import Export, Tables
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.evaluate import Evaluator as ScoringStep
from assay.engine.experiment.dataset import ingest
from assay.engine.experiment.imports.rows import means_config
from assay.engine.experiment.resolve import find_source
from assay.engine.run.run import Runner
from assay.errors import UserError
from assay.formats.ragicamp.agent_task import AgentTask, name_of
from assay.formats.ragicamp.dataset import Examples, examples_of
from assay.formats.ragicamp.merging import check_questions, places_of, shared
from assay.formats.ragicamp.metric_scorers import Metrics
from assay.formats.ragicamp.writer import ragicamp as write_files
from assay.interfaces import Limits
from assay.records import Manifest
from assay.store.files import safe_name
from assay.store.repositories import DatasetRepository
from assay.store.stores import FlatStore
from assay.threads import run_blocking

ROWS = ".assay"
Flat = dict[str, Any]


@dataclass(eq=False)
class Evaluator:
    """Evaluates one agent on one dataset.

    `max_concurrency` is how many calls the agent gets at a time, by default 16 if it is async, else one. `judge_model`
    is for metrics that ask a model. Errors stay in the files and are not asked again unless `retry_errors`; without
    `resume` everything is. `batch_size` is refused.
    """

    agent: Any
    dataset: Any
    metrics: Sequence[Any]
    output_path: str | Path | None = None
    _: KW_ONLY
    batch_size: int | None = None
    max_concurrency: int | None = None
    judge_model: Any = None
    resume: bool = True
    retry_errors: bool = False
    plain_names: bool = False
    notes: list[str] = field(default_factory=list[str], init=False)

    def evaluate(
        self,
        num_examples: int | None = None,
        save_predictions: bool = True,
        output_path: str | Path | None = None,
    ) -> Flat:
        """The mean of each metric, with `num_examples`, `num_errors`, `agent_name` and `dataset_name`. The files are
        written if there is a path, here or in the evaluator."""
        return run_blocking(
            lambda: self.evaluate_async(num_examples, save_predictions, output_path)
        )

    async def evaluate_async(
        self,
        num_examples: int | None = None,
        save_predictions: bool = True,
        output_path: str | Path | None = None,
    ) -> Flat:
        """`evaluate` for callers that are async: several agents can be evaluated side by side."""
        if num_examples is not None and num_examples < 1:
            raise UserError(f"num_examples must be at least 1, got {num_examples}")
        if self.batch_size is not None:
            fix = "leave it out; max_concurrency=N asks N questions at a time"
            raise UserError("agents are not asked in batches", where="batch_size", fix=fix)
        path = output_path or self.output_path
        target = Path(path).parent if path and save_predictions else None
        metrics = Metrics(self.metrics, self.judge_model)
        try:
            with _place(target) as place:
                job = _Job(self, place, examples_of(self.dataset), metrics)
                return await job.run(num_examples, target)
        finally:
            await metrics.close()

    def compare_agents(
        self, agents: Sequence[Any], num_examples: int | None = None, **options: Any
    ) -> dict[str, Flat]:
        """The results of each agent, one after the other, by name; options as in `evaluate`."""
        names = [name_of(agent) for agent in agents]
        if len(set(names)) < len(names):
            fix = "give each its own `name`"
            raise UserError(
                f"two agents are called {max(names, key=names.count)!r}", where="agents", fix=fix
            )
        return {
            name_of(agent): replace(self, agent=agent).evaluate(num_examples, **options)
            for agent in agents
        }


def compare_agents(
    agents: Sequence[Any],
    dataset: Any,
    metrics: Sequence[Any],
    output_path: str | Path | None = None,
    *,
    num_examples: int | None = None,
    **settings: Any,
) -> dict[str, Flat]:
    """Evaluate several agents on one dataset: {agent: results}; settings as in Evaluator."""
    return Evaluator(None, dataset, metrics, output_path, **settings).compare_agents(
        agents, num_examples
    )


@contextmanager
def _place(target: Path | None) -> Generator[Path]:
    """Where the rows are: beside the files, or nowhere for long."""
    if target is not None:
        yield target / ROWS
        return
    with TemporaryDirectory(prefix="assay-") as folder:
        yield Path(folder)


class _Job:
    """One evaluation: the engine's three steps, then the files."""

    def __init__(
        self, settings: Evaluator, place: Path, examples: Examples, metrics: Metrics
    ) -> None:
        self.settings = settings
        self.examples = examples
        self.metrics = metrics
        self.task = AgentTask(settings.agent, max_concurrency=settings.max_concurrency)
        self.agent_name = self.task.name
        self.store = FlatStore(place / safe_name(examples.name) / safe_name(self.agent_name))
        self.id = next(iter(self.store.ids("dataset")), self.store.id)
        self.datasets = DatasetRepository(self.store)

    async def run(self, num_examples: int | None, target: Path | None) -> Flat:
        with self.store.lock("run", self.id):
            ingest(
                self.store, self.id, self.examples.rows, limit=num_examples, name=self.examples.name
            )
            if target is not None:
                await asyncio.to_thread(self._check_target, target)
            run = await self._answer()
            found = await self._score()
            if target is not None:
                await asyncio.to_thread(self._write, target)
        counts = {name: count for name, count in run.counts.items() if name != "transient"}
        return {
            **found,
            "num_examples": sum(counts.values()),
            "num_errors": counts.get("errored", 0),
            "agent_name": self.agent_name,
            "dataset_name": self.examples.name,
        }

    async def _answer(self) -> Manifest:
        runner = Runner(
            self.store,
            limits={self.task.name: Limits(max_concurrency=self.task.concurrency)},
            datasets=self.datasets,
            fresh=not self.settings.resume,
        )
        return await runner.run_async(
            self.id,
            [self.task],
            id=self.id,
            name=self.agent_name,
            retry_errors=self.settings.retry_errors,
        )

    async def _score(self) -> dict[str, float | None]:
        """Return the mean of each metric."""
        if not self.metrics.scorers:
            return {}
        step = ScoringStep(self.store, models=self.metrics.models, datasets=self.datasets)
        await step.evaluate_async(
            [self.id],
            self.metrics.scorers,
            id=self.id,
            name=self.agent_name,
            retry_errors=self.settings.retry_errors,
        )
        means_config(self.store.folder, self.agent_name)
        means = [bind_metric(type="mean", facets=["model_name"])]
        rows = Aggregator(self.store).aggregate([self.id], means, id=self.id, name=self.agent_name)
        return {row["label"]: row["value"] for row in rows}

    def _check_target(self, folder: Path) -> None:
        """Refuse what the files cannot be written over, before the agent is asked."""
        name, plain_names = self.examples.name, self.settings.plain_names
        with shared(folder):
            places_of(folder, self.agent_name, name, plain_names=plain_names, force=False)
            check_questions(folder, name, self.store.log("dataset", self.id))

    def _write(self, folder: Path) -> None:
        export = Export(Tables(find_source(self.store.folder)), "responses", folder)
        self.settings.notes += write_files(
            export, dataset=self.examples.name, plain_names=self.settings.plain_names
        )
