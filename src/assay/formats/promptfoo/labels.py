"""Which labels an answer gets: promptfoo's verdict and score, one for each assertion, one for each named score.

An assertion is called by its metric if no other one of its test has it, else by its type, with a number from the second
of a kind on. The names come from the test alone, so that an answer that failed has the same labels as others.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from assay.engine.experiment.imports.values import free_name
from assay.formats.promptfoo.shapes import Assertion, Component

VERDICT, SCORE = "pass", "score"
_OWN = frozenset({VERDICT, SCORE})
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


class Named(NamedTuple):
    """A label, what made it, and the metric that it stands for, if any."""

    label: str
    kind: str
    metric: str = ""


def planned(asserts: Sequence[Assertion] | None, variables: Mapping[str, Any]) -> list[Named]:
    """The labels of a test's assertions, in the order of their results, and of metrics that several of them share."""
    flat: list[tuple[str, str]] = []
    for entry in asserts or ():
        flat.append((entry.type, rendered(entry.metric, variables)))
        flat += [(inner.type, rendered(inner.metric, variables)) for inner in entry.asserts or ()]
    named = _named(flat)
    taken = {entry.label for entry in named}
    shared = {metric for _, metric in flat if metric} - taken - _OWN
    return [*named, *(Named(metric, "named_score", metric) for metric in sorted(shared))]


def of_results(results: Sequence[Component | None], variables: Mapping[str, Any]) -> list[Named]:
    """The label of each result of an assertion."""
    return _named([_kind(result, variables) for result in results])


def _kind(result: Component | None, variables: Mapping[str, Any]) -> tuple[str, str]:
    if result is None:
        return "assertion", ""
    if result.assertion is not None and result.assertion.type:
        return result.assertion.type, rendered(result.assertion.metric, variables)
    group = (result.metadata or {}).get("assertionSet")
    if isinstance(group, dict):
        return "assert-set", rendered(group.get("metric"), variables)
    return "assertion", ""


def _named(flat: list[tuple[str, str]]) -> list[Named]:
    alone = Counter(metric for _, metric in flat if metric)
    taken = {*_OWN, *alone}
    named: list[Named] = []
    for kind, metric in flat:
        label = (
            metric
            if alone[metric] == 1 and metric not in _OWN
            else free_name(kind or "assertion", taken)
        )
        taken.add(label)
        named.append(Named(label, kind or "assertion", metric))
    return named


def rendered(metric: Any, variables: Mapping[str, Any]) -> str:
    """The name of a metric, which may hold variables of the test."""
    if not isinstance(metric, str):
        return ""
    if "{{" not in metric:
        return metric
    return _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), metric)
