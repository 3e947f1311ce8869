"""RAGiCamp's evaluator on Assay's engine: an agent answers a dataset's questions, metrics score the answers.

The three files go to the folder of `output_path`; its own name does not matter. The rows that they are made from are in
`.assay/<dataset>/<agent>` beside them: the same call resumes where an earlier one stopped, asks and pays for nothing
twice, and `assay compare` can tell agents apart.

RAGiCamp's agents as a task of the engine: whatever has a `name` and answers questions.

`answer(question)` may be async; one that is not runs in a thread, so that others continue meanwhile. What an agent raises
is its answer's error, never the end.

What an evaluator is given as its metrics, as scorers of the engine: names, and `{name, params}`.
"""

import asyncio
import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from assay import registry
from assay.analysis.look.export import Export, Tables
from assay.config import load
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.bind import BoundScorer, bind_scorer
from assay.engine.evaluate.evaluate import Evaluator as ScoringStep, check_scorers
from assay.engine.experiment.dataset import ingest
from assay.engine.experiment.imports.rows import means_config
from assay.engine.experiment.models import bind_models
from assay.engine.experiment.resolve import find_source
from assay.engine.run.run import Runner
from assay.formats.ragicamp.dataset import NamedExamples, examples_of, name_of
from assay.formats.ragicamp.merging import check_questions, exclusive_access, places_of
from assay.formats.ragicamp.rows import OURS
from assay.formats.ragicamp.scorer import NAMES
from assay.formats.ragicamp.state import state_of
from assay.formats.ragicamp.writer import ragicamp as write_files
from assay.sdk import (
    Answer,
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Limits,
    Manifest,
    Model,
    PermanentError,
    UserError,
    Work,
    canonical,
    digest,
    safe_name,
)
from assay.store.repositories import DatasetRepository
from assay.store.stores import FlatStore
from assay.text.template import question, variables
from assay.threads import run_blocking

_JUDGE = "judge_model"


class Metrics:
    """The scorers of an evaluation, and the models that judge."""

    def __init__(self, given: Sequence[Any], judge_model: Any = None) -> None:
        self.models: dict[str, Model] = {}
        self._own: dict[str, Model] = {}  # those that were made here: others may still be in use
        self.scorers: list[BoundScorer] = []
        self._judge = None if judge_model is None else self._model(judge_model)
        entries = cast("list[Any]", [given]) if isinstance(given, (str, Mapping)) else list(given)
        for number, entry in enumerate(entries):
            self.scorers.append(self._bind(entry, f"metrics[{number}]"))
        if self.scorers:
            check_scorers(["run"], self.scorers)  # now, not after the agent has answered

    def _bind(self, entry: Any, where: str) -> BoundScorer:
        if isinstance(entry, str):
            return self._bind_name(entry, {}, where)
        fix = "write {name: f1, params: {use_stemming: true}}; the name may be file.py:function"
        if not isinstance(entry, Mapping):
            what = f"an object of the type {type(entry).__name__} is not a metric"
            raise UserError(what, where=where, fix=fix)
        fields = cast("JsonMapping", entry)
        unknown = sorted(set(fields) - {"name", "params"})
        if "name" not in fields or unknown:
            what = f"a metric has no {unknown[0]!r}" if unknown else "a metric has no name"
            raise UserError(what, where=where, fix=fix)
        return self._bind_name(str(fields["name"]), dict(fields.get("params") or {}), where)

    def _bind_name(self, name: str, params: JsonObject, where: str) -> BoundScorer:
        """RAGiCamp's own names mean RAGiCamp's metrics; all others are ours, or functions of files."""
        function = registry.scorer.get(
            f"ragicamp.{name}" if name in NAMES else name, base=Path.cwd(), where=where
        )
        judge = self._model(params.pop(_JUDGE)) if _JUDGE in params else self._judge
        helpers = [] if judge is None else [judge]
        return bind_scorer(
            function,
            name=name.rpartition(":")[2],
            params=params,
            models=self.models,
            helpers=helpers,
            base=Path.cwd(),
            where=where,
        )

    def _model(self, given: Any) -> str:
        """The name of a model that judges: an object, or what a config would say of it."""
        if not isinstance(given, (str, Mapping)):
            self.models[given.name] = given
            return given.name
        config = load({"name": "judge", "models": [given], "tasks": []}, need="gate")
        found = bind_models(config)
        self._own |= found
        self.models |= found
        return next(iter(found))

    async def close(self) -> None:
        for model in self._own.values():
            await model.close()


ASYNC_CONCURRENCY = 16
_TEXTS = ("answer", "text", "prediction", "response")


class AgentTask:
    """`concurrency` is how many calls the agent gets at a time."""

    def __init__(self, agent: Any, *, max_concurrency: int | None = None) -> None:
        self._answer = getattr(agent, "answer", None)
        if not callable(self._answer):
            fix = "an agent has a `name` and `answer(question)`"
            raise UserError(f"{type(agent).__name__} answers no questions", where="agent", fix=fix)
        if max_concurrency is not None and max_concurrency < 1:
            what = f"max_concurrency must be at least 1, got {max_concurrency}"
            raise UserError(what, where="max_concurrency")
        self._is_async = inspect.iscoroutinefunction(self._answer)
        # An agent that is not async may not be safe to call from several threads: it has to be asked for.
        self.concurrency = max_concurrency or (ASYNC_CONCURRENCY if self._is_async else 1)
        self.name = self.model_name = name_of(agent)
        self.lane = ""
        self.facets: JsonMapping = {"model_id": self.name}
        self.identity: JsonMapping = {"agent": self.name, "state": state_of(agent)}
        self._code = digest("ragicamp-agent", canonical(self.identity))

    def prepare(self, item: Item) -> Work:
        asked = question(variables(item))
        return Work(digest("question", self._code, asked.encode()), asked, prompt=asked)

    async def run(self, work: Work, context: Context) -> Answer:
        if self._is_async:
            return answer_of(await cast("Any", self._answer)(work.payload))
        result = await context.thread(lambda: cast("Any", self._answer)(work.payload))
        return answer_of(await result if inspect.isawaitable(result) else result)


def answer_of(found: Any) -> Answer:
    """Text, an object or a dict with the text and perhaps `metadata`; anything else is an error."""
    if isinstance(found, str):
        return Answer(text=found)
    if isinstance(found, (int, float)):
        return Answer(text=str(found))
    fields = cast("JsonMapping", found) if isinstance(found, Mapping) else None
    parts = {
        name: (fields.get(name) if fields is not None else getattr(found, name, None))
        for name in _TEXTS
    }
    text = next((value for value in parts.values() if isinstance(value, (str, int, float))), None)
    if text is None:
        known = " or ".join(_TEXTS[:2])
        raise PermanentError(
            f"an answer is text, or has a text as `{known}`; found {type(found).__name__}"
        )
    given = fields.get("metadata") if fields is not None else getattr(found, "metadata", None)
    return Answer(text=str(text), metadata=_metadata(given))


def _metadata(given: Any) -> JsonObject:
    """Return what the agent says about its answer as JSON; names that our rows use for themselves begin with `agent_`."""
    if not given:
        return {}
    try:
        plain = msgspec.to_builtins(given, str_keys=True, enc_hook=_plain)
        fields = cast("JsonObject", plain) if isinstance(plain, dict) else {"metadata": plain}
        return msgspec.json.decode(
            msgspec.json.encode(
                {f"agent_{key}" if key in OURS else key: value for key, value in fields.items()}
            )
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PermanentError(f"the answer's metadata cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Objects of any class by their attributes, such as retrieved documents."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)


ROWS = ".assay"


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
    ) -> JsonObject:
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
    ) -> JsonObject:
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
    ) -> dict[str, JsonObject]:
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
) -> dict[str, JsonObject]:
    """Evaluate several agents on one dataset: {agent: results}; settings as in Evaluator."""
    return Evaluator(None, dataset, metrics, output_path, **settings).compare_agents(
        agents, num_examples
    )


@contextmanager
def _place(target: Path | None) -> Generator[Path]:
    """Yield the place of the rows: beside the files, or a temporary folder."""
    if target is not None:
        yield target / ROWS
        return
    with TemporaryDirectory(prefix="assay-") as folder:
        yield Path(folder)


class _Job:
    """One evaluation: the engine's three steps, then the files."""

    def __init__(
        self, settings: Evaluator, place: Path, examples: NamedExamples, metrics: Metrics
    ) -> None:
        self.settings = settings
        self.examples = examples
        self.metrics = metrics
        self.task = AgentTask(settings.agent, max_concurrency=settings.max_concurrency)
        self.agent_name = self.task.name
        self.store = FlatStore(place / safe_name(examples.name) / safe_name(self.agent_name))
        self.id = next(iter(self.store.ids("dataset")), self.store.id)
        self.datasets = DatasetRepository(self.store)

    async def run(self, num_examples: int | None, target: Path | None) -> JsonObject:
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
        with exclusive_access(folder):
            places_of(folder, self.agent_name, name, plain_names=plain_names, force=False)
            check_questions(folder, name, self.store.log("dataset", self.id))

    def _write(self, folder: Path) -> None:
        export = Export(Tables(find_source(self.store.folder)), "responses", folder)
        self.settings.notes += write_files(
            export, dataset=self.examples.name, plain_names=self.settings.plain_names
        )
