"""The statistics of a summary: computed by the engine's metrics over the scores that the predictions show."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.bind import bind_metric
from assay.formats.ragicamp.rows import Row
from assay.interfaces import Store
from assay.records import Evaluation, EvaluationOutcome
from assay.store.stores import FlatStore

STATISTICS = ("mean", "min", "max", "std", "median")
_PARAMS: dict[str, dict[str, Any]] = {"std": {"ddof": 0}}  # RAGiCamp's is that of the population
_FACET = "model_name"
_ID = "scores"


class Scores:
    """Collects scores by agent in a folder of its own, and has the engine make statistics of them."""

    def __init__(self, folder: Path) -> None:
        self._store: Store = FlatStore(folder)
        self._log = self._store.log("evaluation", _ID)
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []

    def add(self, agent: str, item_id: str, metrics: Iterable[tuple[str, str, float | None]]) -> None:
        """(metric, scorer, score) of one prediction; a score of None counts as an error."""
        for name, scorer, score in metrics:
            outcome: EvaluationOutcome = "errored" if score is None else "scored"
            row = Evaluation(item_id=item_id, label=name, model_name=agent, score=score, scorer=scorer, outcome=outcome)
            self._lines.append(self._encode(row) + b"\n")
        if len(self._lines) > 1000:
            self._flush()

    def _flush(self) -> None:
        self._log.append(b"".join(self._lines))
        self._lines.clear()

    def statistics(self) -> dict[str, dict[str, Row]]:
        """By agent and metric: mean, min, max, population std, median, count, errors and the mean's interval."""
        self._flush()
        if not self._log.segments():
            return {}
        metrics = [bind_metric(type=name, params=_PARAMS.get(name), facets=[_FACET]) for name in STATISTICS]
        found: dict[str, dict[str, Row]] = {}
        for row in Aggregator(self._store).aggregate([_ID], metrics, id=_ID):
            entry = found.setdefault(str(row[_FACET]), {}).setdefault(row["label"], {})
            entry |= dict(_statistic(row))
        return {agent: {name: _ordered(entry) for name, entry in sorted(of.items())} for agent, of in found.items()}


def _ordered(entry: Row) -> Row:
    """RAGiCamp's four first."""
    return {**{name: entry[name] for name in STATISTICS}, **entry}


def _statistic(row: Row) -> Iterator[tuple[str, Any]]:
    yield row["metric_name"], row["value"]
    if row["metric_name"] == "mean":
        yield "count", row["used_sample_count"]
        yield "errors", row["errored_count"]
        for name in ("ci_low", "ci_high", "ci_level", "ci_method"):
            yield name, row.get(name)
