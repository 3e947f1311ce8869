"""The harness's measures of one document. Those of a whole corpus only keep the pair that is aggregated later."""

import math
import re
import string
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from assay.formats.lm_eval.tasks.definition import (
    Definition,
    Hook,
    once,
    registered_value,
    value_of_key,
)
from assay.sdk import JsonObject, UserError

Measure = Callable[..., Any]
DEFAULTS = {
    "generate_until": ["exact_match"],
    "multiple_choice": ["acc", "acc_norm"],
    "loglikelihood": ["perplexity", "acc"],
    "loglikelihood_rolling": ["word_perplexity", "byte_perplexity", "bits_per_byte"],
}
_MEANS = ("acc", "acc_norm", "acc_mutual_info", "acc_bytes", "exact_match", "likelihood", "acc_all")
_OWN = (
    "brier_score",
    "perplexity",
    "bits_per_byte",
    "bypass",
    "f1",
    "bleu",
    "chrf",
    "chrf++",
    "ter",
)
AGGREGATIONS = {  # of metrics whose entry has none
    **dict.fromkeys(_MEANS, "mean"),
    **dict.fromkeys(["word_perplexity", "byte_perplexity"], "weighted_perplexity"),
    **{name: name for name in _OWN},
    "mcc": "matthews_corrcoef",
}
LOWER_IS_BETTER = {
    "brier_score",
    "perplexity",
    "word_perplexity",
    "byte_perplexity",
    "bits_per_byte",
    "ter",
}
_ENTRY_KEYS = {"metric", "aggregation", "higher_is_better", "hf_evaluate"}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DIGITS = str.maketrans("", "", string.digits)


class MetricEntry(msgspec.Struct, kw_only=True):
    """A metric of a task; `aggregation` is a name or a hook, None if neither the task nor the harness has any."""

    name: str
    measure: Measure | None
    params: JsonObject
    aggregation: str | Hook | None
    higher_is_better: bool | None

    @property
    def may_return_several(self) -> bool:
        return self.measure not in (None, _exact_match, _nothing, _pair)


def entries(definition: Definition) -> dict[str, MetricEntry]:
    """The metrics of a task by name, in order."""
    return once(definition, _entries)


def _entries(definition: Definition) -> dict[str, MetricEntry]:
    listed = definition.metric_list
    if listed is None:
        listed = [{"metric": name} for name in DEFAULTS[definition.output_type]]
    # with process_results, the harness knows a metric that is a function by no name
    made = [
        _entry(definition, entry)
        for entry in listed
        if not definition.process_results or _name(entry)
    ]
    return {entry.name: entry for entry in made}


def _name(entry: JsonObject) -> str | None:
    return entry["metric"] if isinstance(entry.get("metric"), str) else None


def _entry(definition: Definition, entry: JsonObject) -> MetricEntry:
    if "metric" not in entry:
        raise UserError("an entry of metric_list has no `metric`", where=definition.file)
    metric = entry["metric"]
    if "aggregation" not in entry and metric not in AGGREGATIONS:
        raise UserError(f"the metric {metric} has no `aggregation`", where=definition.file)
    name, measure = metric, None
    if isinstance(metric, Hook):
        name = getattr(metric.value, "__name__", metric.name.rpartition(".")[2])
    if definition.process_results is None and definition.output_type == "generate_until":
        measure = metric.value if isinstance(metric, Hook) else _measure(definition, name, entry)
    higher_is_better = name not in LOWER_IS_BETTER if name in AGGREGATIONS else None
    return MetricEntry(
        name=name,
        measure=measure,
        params={key: value_of_key(value) for key, value in entry.items() if key not in _ENTRY_KEYS},
        aggregation=entry.get("aggregation", AGGREGATIONS.get(name)),
        higher_is_better=entry.get("higher_is_better", higher_is_better),
    )


def _measure(definition: Definition, name: str, entry: JsonObject) -> Measure:
    if name in AGGREGATIONS and entry.get("hf_evaluate") is not True:
        return {"exact_match": _exact_match, "bypass": _nothing}.get(name, _pair)
    own = registered_value(definition, "metric", name)
    if own is not None:
        return own
    from assay.formats.lm_eval.facade.importing import load

    return load(name).compute


def _pair(items: list[Any]) -> list[Any]:
    """Kept for the aggregation. A call with references and predictions is a TypeError, as in the harness, whose second
    try passes [reference, prediction]."""
    return items


def _nothing(items: list[Any]) -> None:
    return None


def _exact_match(**params: Any) -> JsonObject:
    return exact_match(**params)


def exact_match(
    predictions: Sequence[Any],
    references: Sequence[Any],
    regexes_to_ignore: Sequence[str] | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> JsonObject:
    """Return the share of predictions that equal their references, as numpy compares texts: NUL characters at the end do
    not count, and a text that is longer in lower case is cut."""
    sides: list[Any] = [predictions, references]
    if regexes_to_ignore is None:
        sides = [np.asarray(side) for side in sides]
    for pattern in regexes_to_ignore or ():
        ignored = partial(re.sub, pattern, "")
        sides = [np.array([*map(ignored, side)]) for side in sides]
    if ignore_case:
        sides = [np.char.lower(side) for side in sides]
    translate: Any = np.char.translate  # its annotation knows bytes only
    # some tasks give texts as flags
    for table in [_PUNCTUATION] * bool(ignore_punctuation) + [_DIGITS] * bool(ignore_numbers):
        sides = [translate(side, table) for side in sides]
    equal = np.asarray(sides[0] == sides[1])
    return {"exact_match": float(np.mean(equal)) if equal.size else math.nan}
