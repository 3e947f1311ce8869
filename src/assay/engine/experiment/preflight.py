"""What a config asks for and its data cannot give, found before anything is spent: expected answers that no item has,
facets and labels that no row can have, more samples than there are."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET

from assay.engine.aggregate.bind import BoundMetric
from assay.engine.aggregate.facets import find_in_item
from assay.engine.evaluate.bind import BoundScorer
from assay.errors import ConfigError, UserError
from assay.interfaces import Task
from assay.records import Evaluation, Item, Response
from assay.registry import nearest
from assay.tasks.prompt import PromptTask
from assay.text.expected import NoExpectation, answer_fields

FEW, LOOKED_AT = 10, 1000  # items: most configs are right, and the first ones show it
DATASET = "dataset"  # the key of the config that such a problem is at
_OF_ROWS = {*Evaluation.__struct_fields__, *Response.__struct_fields__, "evaluation", "source"}
_OF_ANSWERS = {"finish_reason", "response_id"}


def check(
    tasks: Sequence[Task],
    scorers: Sequence[BoundScorer],
    metrics: Sequence[BoundMetric],
    items: Iterable[Item],
) -> None:
    """Raise a ConfigError with all problems."""
    remaining, looked_at = iter(items), list[Item]()
    for count in (FEW, LOOKED_AT - FEW):
        looked_at += islice(remaining, count)
        problems = [
            *(problem for scorer in scorers if (problem := _expectation(scorer, looked_at))),
            *(problem for metric in metrics for problem in _facets(metric, tasks, looked_at)),
            *(problem for metric in metrics for problem in _labels(metric, scorers)),
        ]
        if not problems:
            return
    raise ConfigError(problems)


def warnings(metrics: Sequence[BoundMetric], samples: int) -> list[str]:
    """Metrics that need more samples than the plan has."""
    shortages: list[str] = []
    for metric in metrics:
        k, trials = (metric.params.get(name, 1) for name in ("k", "num_trials"))
        if (
            isinstance(k, int)
            and isinstance(trials, int)
            and k * trials > samples
            and "_k" in metric.type
        ):
            needed = f"num_trials × k = {k * trials}" if trials > 1 else f"k = {k}"
            shortages.append(f"{metric.name}: num_samples is {samples}, below {needed}")
    return shortages


def _expectation(scorer: BoundScorer, items: Sequence[Item]) -> UserError | None:
    """What a built-in scorer says that compares one answer with an item's, if it says it of every item."""
    built_in = (
        scorer.form == "item"
        and scorer.mode == "inline"
        and not scorer.batch
        and not scorer.takes_context
    )
    if not built_in or not items:
        return None
    what = ""
    for item in items:
        try:
            scorer.function(item, Response(item_id=item.id), **scorer.params)
        except NoExpectation as error:
            what = what or str(error)
        except Exception:  # the rows will say it
            return None
        else:
            return None
    return UserError(
        f"{scorer.name} has nothing to compare with in any item: {what}",
        where=DATASET,
        fix=_column(items[0]),
    )


def _column(item: Item) -> str:
    """The way to name the field that is probably meant."""
    fields = _fields(item)
    likely = answer_fields(fields)
    if likely:
        name = likely[0]
        return f"did you mean {name!r}? add `fields: {{ground_truth: {name}}}` to `dataset`"
    listed = ", ".join(map(str, fields))
    return f"add `fields: {{ground_truth: FIELD}}` to `dataset`; the fields of the first item: {listed}"


def _fields(item: Item) -> list[str]:
    parts: tuple[Any, ...] = (item.data, item.extra, item.ground_truth, item.metadata)
    return list(dict.fromkeys(name for part in parts if isinstance(part, Mapping) for name in part))


def _facets(metric: BoundMetric, tasks: Sequence[Task], items: Sequence[Item]) -> list[UserError]:
    if not all(isinstance(task, PromptTask) for task in tasks):
        return []  # functions and graphs put into `metadata` what they like
    metadata = {name for task in tasks for name in task.facets} | _OF_ANSWERS
    problems: list[UserError] = []
    for facet in metric.facets:
        name = facet.removeprefix("metadata.")
        if {name, name.partition(".")[0]} & metadata or facet.partition(".")[0] in _OF_ROWS - {
            "metadata"
        }:
            continue
        if name.partition(".")[0] == "evaluation" or any(_has(item, facet) for item in items):
            continue
        known = {
            *(f"metadata.{entry}" for entry in metadata),
            "model_name",
            *(n for item in items[:1] for n in _fields(item)),
        }
        problems.append(
            UserError(
                f"no row can have the facet {facet!r}",
                where=f"metric {metric.name}",
                fix=nearest(facet, known),
            )
        )
    return problems


def _has(item: Item, facet: str) -> bool:
    row: dict[str, Any] = {**item.extra, **msgspec.structs.asdict(item)}
    return find_in_item(row, facet) is not UNSET


def _labels(metric: BoundMetric, scorers: Sequence[BoundScorer]) -> list[UserError]:
    """Labels that a metric includes and no scorer can give; the user's own scorers may give any."""
    if not all(
        str(getattr(scorer.function, "__module__", "")).startswith("assay.") for scorer in scorers
    ):
        return []
    names = [scorer.name for scorer in scorers]
    return [
        UserError(
            f"no scorer gives the label {label!r}",
            where=f"metric {metric.name}",
            fix=nearest(label, names),
        )
        for label in metric.include
        if "*" not in label
        and not any(label.startswith(f"{name}.") or fnmatchcase(name, label) for name in names)
    ]
