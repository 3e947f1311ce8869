"""What a config asks for and its data cannot give, found before anything is spent: expected answers that no item has,
facets and labels that no row can have, more samples than there are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec import UNSET

from assay.engine.aggregate.bind import NEEDED, BoundMetric
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.rows import labels_of
from assay.registry import nearest, parameters
from assay.sdk import ConfigError, Evaluation, Item, JsonObject, Log, Response, Task, UserError
from assay.store.table.decode import read_rows
from assay.store.table.facets import find_in_item
from assay.tasks.prompt import PromptTask
from assay.text.expected import NoExpectation, answer_fields
from assay.usercode import is_built_in

FEW, LOOKED_AT = 10, 1000  # items: most configs are right, and the first ones show it
DATASET, METHODS = "dataset", "evaluation_methods"  # keys of the config that problems are at
_Problem = tuple[tuple[str, ...], UserError]  # the scorers that it is about
_OF_ROWS = {*Evaluation.__struct_fields__, *Response.__struct_fields__, "evaluation", "source"}
_OF_ANSWERS = {"finish_reason", "response_id"}


def check(
    tasks: Sequence[Task],
    scorers: Sequence[BoundScorer],
    metrics: Sequence[BoundMetric],
    items: Iterable[Item],
    log: Log,
) -> None:
    """Raise a ConfigError with all problems. `log` has the labels that there are already."""
    remaining, looked_at = iter(items), list[Item]()
    for count in (FEW, LOOKED_AT - FEW):
        looked_at += islice(remaining, count)
        problems = [
            *(problem for scorer in scorers if (problem := _expectation(scorer, looked_at))),
            *(problem for metric in metrics for problem in _facets(metric, tasks, looked_at)),
            *(problem for metric in metrics for problem in _labels(metric, scorers)),
            *label_problems(scorers, metrics, looked_at, log),
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


def label_problems(
    scorers: Sequence[BoundScorer], metrics: Sequence[BoundMetric], items: Sequence[Item], log: Log
) -> list[UserError]:
    """Return what is wrong with labels to come; scorers whose verdicts are stored go on."""
    labels = {scorer.name: _labels_given(scorer, items) for scorer in scorers}
    found = [*_shared_labels(labels), *_passes_of_scores(scorers, metrics, labels)]
    rows = read_rows(log, _Labelled) if found else ()
    stored = {row.scorer for _, row in rows if row.passed is not None}
    return [problem for names, problem in found if not stored.issuperset(names)]


class _Labelled(msgspec.Struct):
    scorer: str = ""
    passed: bool | None = None


def _shared_labels(labels: Mapping[str, list[str]]) -> Iterator[_Problem]:
    owners: dict[str, str] = {}
    for name, label in ((name, label) for name, given in labels.items() for label in given):
        both = owners.setdefault(label, name), name
        if both[0] != name:
            what = f"the evaluation methods {both[0]!r} and {name!r} both give the label {label!r}"
            yield both, UserError(what, where=METHODS, fix="give one of them another `name:`")


def _passes_of_scores(
    scorers: Sequence[BoundScorer],
    metrics: Sequence[BoundMetric],
    labels: Mapping[str, list[str]],
) -> Iterator[_Problem]:
    """Yield metrics that count verdicts over labels that are only scores."""
    for scorer in (scorer for scorer in scorers if not scorer.verdicts):
        own = f"{scorer.name}."
        settable = "threshold" in parameters(scorer.function)
        fix = f"add `threshold:` to the params of {scorer.name}, or " if settable else ""
        fix += f"use `mean`, or `labels: {{exclude: [{scorer.name}*]}}`"
        for metric in (metric for metric in metrics if metric.verdicts == NEEDED):
            named = (pattern for pattern in metric.include if pattern.startswith(own))
            if any(map(metric.takes, chain(labels[scorer.name], named))):
                what = (
                    f"{metric.name} counts passes, and the labels of {scorer.name} are only scores"
                )
                yield (scorer.name,), UserError(what, where=f"metric {metric.name}", fix=fix)


def _labels_given(scorer: BoundScorer, items: Sequence[Item]) -> list[str]:
    """Return the labels that a built-in scorer gives to an empty answer; of any other, its name."""
    if _is_plain(scorer) and items:
        with suppress(Exception):  # the rows will say it
            result = scorer.function(items[0], Response(item_id=items[0].id), **scorer.params)
            return [score.label for score in labels_of(result, scorer)[0]]
    return [scorer.name]


def _is_plain(scorer: BoundScorer) -> bool:
    """Return whether it is built in, and looks at one answer by itself."""
    plain = scorer.form == "item" and scorer.mode == "inline"
    return plain and not scorer.batch and not scorer.takes_context


def _expectation(scorer: BoundScorer, items: Sequence[Item]) -> UserError | None:
    """Return what a built-in scorer says that compares one answer with an item's, if it says it of
    every item."""
    if not _is_plain(scorer) or not items:
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
    for facet in filter(None, [*metric.facets, metric.cluster_by.removeprefix("item.")]):
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
    row: JsonObject = {**item.extra, **msgspec.structs.asdict(item)}
    return find_in_item(row, facet) is not UNSET


def _labels(metric: BoundMetric, scorers: Sequence[BoundScorer]) -> list[UserError]:
    """Labels that a metric includes and no scorer can give; the user's own scorers may give any."""
    if not all(is_built_in(scorer.function) for scorer in scorers):
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
