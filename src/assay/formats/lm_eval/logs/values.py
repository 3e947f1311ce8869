"""The harness's numbers, computed again from the samples' values as they pass: means from sums, other aggregations by
our own code, as long as there are not too many values to keep."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.engine.experiment.imports.foreign import Headline
from assay.engine.experiment.imports.values import rows_of
from assay.formats.lm_eval.logs.files import Report
from assay.formats.lm_eval.scorer import label as label_of
from assay.formats.lm_eval.scoring.aggregations import AGGREGATIONS as FUNCTIONS
from assay.formats.lm_eval.scoring.groups import Numbers
from assay.formats.lm_eval.scoring.measures import AGGREGATIONS as NAMES

_MOST_KEPT = 50_000
_CLOSE = 1e-9
_OF_TASK = "it is aggregated by a function of the task, which a log does not have"
_AGAIN = "some of its tasks were run again later"


class Values:
    """The values of one task, by label."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        entries = rows_of(config.get("metric_list"))
        self._chosen = {str(entry.get("metric")): entry.get("aggregation") for entry in entries}
        self.sums: dict[str, list[Any]] = {}
        self._kept: dict[str, list[Any]] = {}

    def aggregation(self, metric: str) -> str:
        """Its name; for a function of the task, its text."""
        return str(self._chosen.get(metric) or NAMES.get(metric, "mean"))

    def add(self, label: str, metric: str, value: Any, number: float | None) -> None:
        entry = self.sums.get(label)
        if entry is None:
            entry = self.sums[label] = [0, 0.0, self.aggregation(metric) == "mean"]
        entry[0] += 1
        if entry[2] and number is not None:
            entry[1] += number
        elif entry[0] <= _MOST_KEPT:
            self._kept.setdefault(label, []).append(value)

    def mean(self, label: str) -> float | None:
        entry = self.sums.get(label)
        return entry[1] / entry[0] if entry and entry[2] and label not in self._kept else None

    def headline(
        self, metric: str, pipeline: str, value: float | None, stderr: float | None, name: str
    ) -> Headline:
        """A mean is computed from the rows; what is not, here."""
        label = label_of(metric, pipeline)
        aggregation = self.aggregation(metric)
        shown = aggregation if aggregation in FUNCTIONS else "its own"
        made = Headline(
            label=label, metric=shown, value=value, stderr=stderr, where={"benchmark": name}
        )
        count, _, is_mean = self.sums.get(label, (0, 0.0, True))
        if not count:
            made.reason = "no sample has such a value"
        elif is_mean and label not in self._kept:
            made.failed_as = 0.0
        elif count > _MOST_KEPT:
            made.reason = (
                f"there are more than {_MOST_KEPT:,} values, too many to aggregate them here"
            )
        else:
            made.ours, made.reason = self._aggregated(metric, label)
        return made

    def _aggregated(self, metric: str, label: str) -> tuple[float | None, str]:
        function = FUNCTIONS.get(self.aggregation(metric))
        if function is None:
            return None, _OF_TASK
        try:
            return float(function(self._kept[label])), ""
        except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
            return None, f"it cannot be computed from what the log has of its values ({error})"[
                :200
            ]


def group_headlines(
    report: Report, values: Mapping[str, Values], again: Sequence[str]
) -> list[Headline]:
    """The numbers of groups: the means of their tasks' numbers, by size or of all alike, whichever the harness took; a
    log does not say. `again`: tasks whose rows are of a later run."""
    made: list[Headline] = []
    for group in report.groups:
        tasks = [task for task in report.leaves(group) if task in values]
        for metric, pipeline, value, stderr in report.numbers(group):
            label = label_of(metric, pipeline)
            what = f"mean of {len(tasks)} tasks"
            headline = Headline(
                label=label, metric=what, value=value, stderr=stderr, where={"benchmark": group}
            )
            parts = [
                Numbers(size=report.size(task) or 0, values={(metric, pipeline): number})
                for task in tasks
                if (number := values[task].mean(label)) is not None
            ]
            if not parts or {*tasks} & {*again}:
                headline.reason = _AGAIN if parts else "none of its tasks has samples with a mean"
            else:
                headline.ours = _pooled(parts, (metric, pipeline), value)
            made.append(headline)
    return made


def _pooled(parts: Sequence[Numbers], key: tuple[str, str], theirs: float | None) -> float:
    numbers = [part.values[key] for part in parts]
    plain = sum(numbers) / len(numbers)
    size = sum(part.size for part in parts)
    weighted = sum(part.values[key] * part.size for part in parts) / size if size else plain
    return plain if theirs is not None and abs(plain - theirs) <= _CLOSE else weighted
