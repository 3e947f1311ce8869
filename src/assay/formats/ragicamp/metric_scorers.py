"""What an evaluator is given as its metrics, as scorers of the engine: names, `{name, params}`, and objects.

An object has a `name` and `compute_single(prediction, references)`, which gives a number or a dict of numbers for one
question, or `compute(predictions, references)`, which gives them for all. What `compute` gives for all of them is a
metric of the engine, and what the summary shows under `overall_metrics`: not every measure is a mean.
"""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, cast

from assay import registry
from assay.config import load
from assay.engine.aggregate.bind import BoundMetric, bind_metric
from assay.engine.evaluate.bind import BoundScorer, bind_scorer
from assay.engine.evaluate.evaluate import check_scorers
from assay.engine.experiment.models import bind_models
from assay.errors import UserError
from assay.formats.ragicamp.rows import OVERALL
from assay.formats.ragicamp.scorer import NAMES
from assay.formats.ragicamp.state import state_of
from assay.interfaces import Group, Model, Score, Values
from assay.records import Item, Response
from assay.store.keys import canonical, digest
from assay.text.expected import accepted
from assay.text.template import question, variables

_JUDGE = "judge_model"
_OF_ITEM = ("data", "ground_truth", "metadata")


class Metrics:
    """The scorers of an evaluation, the objects among its metrics, and the models that judge."""

    def __init__(self, given: Sequence[Any], judge_model: Any = None) -> None:
        self.models: dict[str, Model] = {}
        self._own: dict[str, Model] = {}  # those that were made here: others may still be in use
        self.objects: list[ObjectMetric] = []
        self.scorers: list[BoundScorer] = []
        self._judge = None if judge_model is None else self._model(judge_model)
        entries = cast("list[Any]", [given]) if isinstance(given, (str, Mapping)) else list(given)
        for number, entry in enumerate(entries):
            self.scorers.append(self._bind(entry, f"metrics[{number}]"))
        if self.scorers:
            check_scorers(["run"], self.scorers)  # now, not after the agent has answered

    def _bind(self, entry: Any, where: str) -> BoundScorer:
        if isinstance(entry, str):
            return self._named(entry, {}, where)
        if isinstance(entry, Mapping):
            fields = cast("Mapping[str, Any]", entry)
            unknown = sorted(set(fields) - {"name", "params"})
            if "name" not in fields or unknown:
                what = f"a metric has no {unknown[0]!r}" if unknown else "a metric has no name"
                raise UserError(
                    what, where=where, fix="write {name: f1, params: {use_stemming: true}}"
                )
            return self._named(str(fields["name"]), dict(fields.get("params") or {}), where)
        metric = ObjectMetric(entry, where)
        self.objects.append(metric)
        return metric.scorer()

    def _named(self, name: str, params: dict[str, Any], where: str) -> BoundScorer:
        """RAGiCamp's own names mean RAGiCamp's metrics; all others are ours."""
        function = registry.scorer.get(
            f"ragicamp.{name}" if name in NAMES else name, base=Path.cwd(), where=where
        )
        judge = self._model(params.pop(_JUDGE)) if _JUDGE in params else self._judge
        helpers = [] if judge is None else [judge]
        return bind_scorer(
            function,
            name=name,
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

    def computed(self, loop: asyncio.AbstractEventLoop) -> list[BoundMetric]:
        """The metrics of objects that have numbers for all answers together."""
        return [metric for one in self.objects if (metric := one.metric(loop)) is not None]

    async def close(self) -> None:
        for model in self._own.values():
            await model.close()


class ObjectMetric:
    """A user's metric. One whose reference is annotated as a text gets them one by one, and the best counts."""

    def __init__(self, metric: Any, where: str) -> None:
        self.name = str(getattr(metric, "name", None) or type(metric).__name__)
        self._metric = metric
        self._compute = getattr(metric, "compute", None)
        self._single = getattr(metric, "compute_single", None)
        if not callable(self._single) and not callable(self._compute):
            fix = "give a name, {name, params}, or an object with `name`, `compute` and `compute_single`"
            raise UserError(
                f"an object of the type {type(metric).__name__} is not a metric",
                where=where,
                fix=fix,
            )

    def scorer(self) -> BoundScorer:
        method = self._single if callable(self._single) else self._compute
        is_async = inspect.iscoroutinefunction(method)
        return BoundScorer(
            name=self.name,
            function=self._score_async if is_async else self._score,
            params={},
            identity=digest(
                "ragicamp-metric-object", canonical((self.name, state_of(self._metric)))
            ),
            form="item",
            mode="async" if is_async else "thread",
            reads="ground_truth",
            takes_context=False,
        )

    def _score(self, item: Item, response: Response) -> list[Score]:
        return self._best(
            [self._call(response.response, given) for given in self._references(item)]
        )

    async def _score_async(self, item: Item, response: Response) -> list[Score]:
        return self._best(
            [await self._call(response.response, given) for given in self._references(item)]
        )

    def _call(self, prediction: str, references: Any) -> Any:
        if callable(self._single):
            return self._single(prediction, references)
        return cast("Any", self._compute)([prediction], [references])

    def _references(self, item: Item) -> list[Any]:
        """What one call each is made with."""
        every = references_of(item)
        if callable(self._single):
            parameters = list(inspect.signature(self._single).parameters.values())
            if len(parameters) > 1 and parameters[1].annotation in (str, "str"):
                if not every:
                    raise LookupError("the item has no expected answer")
                return every
        return [every]

    def _best(self, results: list[Any]) -> list[Score]:
        by_label: dict[str, float] = {}
        for result in results:
            for label, value in numbers_in(result, self.name).items():
                by_label[label] = max(value, by_label.get(label, value))
        if not by_label:
            raise TypeError(f"{self.name} gave no number but {type(results[0]).__name__}")
        return [Score(label=label, score=value) for label, value in by_label.items()]

    def metric(self, loop: asyncio.AbstractEventLoop) -> BoundMetric | None:
        """`compute` as a metric of the engine: its numbers for all answers, in the order of the questions. None where
        there is no such method. An async one runs in the `loop`; the aggregation must run elsewhere."""
        compute = self._compute
        if not callable(compute):
            return None
        asks = "questions" in inspect.signature(compute).parameters

        def overall(group: Group) -> Values:
            texts, columns = group.columns["response.response"], group.columns
            rows = [
                at
                for at, text in enumerate(texts)
                if text is not None and self._is_first(columns, at)
            ]
            rows.sort(key=columns["item"].__getitem__)
            items = [
                Item(id="", **{name: columns[f"item.{name}"][at] for name in _OF_ITEM})
                for at in rows
            ]
            more = {"questions": [question(variables(item)) for item in items]} if asks else {}
            try:
                found = compute(
                    predictions=[texts[at] for at in rows],
                    references=[references_of(item) for item in items],
                    **more,
                )
                if inspect.iscoroutine(found):
                    found = asyncio.run_coroutine_threadsafe(found, loop).result()
            except (Exception, SystemExit) as error:  # a user's metric may raise anything
                raise UserError(str(error)) from error
            numbers = numbers_in(found, self.name)
            return Values(
                value=numbers.get(self.name), fields={OVERALL: numbers}, reason="see its numbers"
            )

        columns = [
            "item",
            "scorer",
            "part",
            "response.response",
            *(f"item.{name}" for name in _OF_ITEM),
        ]
        marks = {
            "columns": columns,
            "verdicts": False,
            "ordered": False,
            "name": "ragicamp.compute",
            "version": 1,
        }
        overall.__assay__ = marks  # type: ignore[attr-defined]
        return bind_metric(
            name=f"{self.name}.compute",
            type="ragicamp.compute",
            function=overall,
            facets=["model_name"],
            include=["*"],
            together=self.name,
        )

    def _is_first(self, columns: Mapping[str, list[Any]], at: int) -> bool:
        """Whether a row is the first of those that this metric gave one answer."""
        return columns["scorer"][at] == self.name and not (columns["part"][at] or [0])[0]


def references_of(item: Item) -> list[str]:
    """The accepted answers of an item; there may be none."""
    try:
        return accepted(item.ground_truth)
    except LookupError:
        return []


def numbers_in(result: Any, name: str) -> dict[str, float]:
    """The numbers that a metric gave, by label; lists and nulls among them are left out."""
    fields = cast("Mapping[Any, Any]", result) if isinstance(result, Mapping) else {name: result}
    return {str(key): float(value) for key, value in fields.items() if isinstance(value, Real)}
