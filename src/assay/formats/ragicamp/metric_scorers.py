"""What an evaluator is given as its metrics, as scorers of the engine: names, and `{name, params}`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from assay import registry
from assay.config import load
from assay.engine.evaluate.bind import BoundScorer, bind_scorer
from assay.engine.evaluate.evaluate import check_scorers
from assay.engine.experiment.models import bind_models
from assay.errors import UserError
from assay.formats.ragicamp.scorer import NAMES
from assay.interfaces import Model

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
            return self._named(entry, {}, where)
        fix = "write {name: f1, params: {use_stemming: true}}; the name may be file.py:function"
        if not isinstance(entry, Mapping):
            what = f"an object of the type {type(entry).__name__} is not a metric"
            raise UserError(what, where=where, fix=fix)
        fields = cast("Mapping[str, Any]", entry)
        unknown = sorted(set(fields) - {"name", "params"})
        if "name" not in fields or unknown:
            what = f"a metric has no {unknown[0]!r}" if unknown else "a metric has no name"
            raise UserError(what, where=where, fix=fix)
        return self._named(str(fields["name"]), dict(fields.get("params") or {}), where)

    def _named(self, name: str, params: dict[str, Any], where: str) -> BoundScorer:
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
