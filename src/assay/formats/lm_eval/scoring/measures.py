"""The harness's measures of one document. Those of a whole corpus only keep the pair that is aggregated later."""

import math
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Definition, Fields, Hook, once, registered

Measure = Callable[..., Any]
DEFAULTS = {
    "generate_until": ["exact_match"],
    "multiple_choice": ["acc", "acc_norm"],
    "loglikelihood": ["perplexity", "acc"],
    "loglikelihood_rolling": ["word_perplexity", "byte_perplexity", "bits_per_byte"],
}
AGGREGATIONS = {  # of metrics whose entry has none
    **dict.fromkeys(
        ["acc", "acc_norm", "acc_mutual_info", "acc_bytes", "exact_match", "likelihood", "acc_all"],
        "mean",
    ),
    **dict.fromkeys(["word_perplexity", "byte_perplexity"], "weighted_perplexity"),
    **{
        name: name
        for name in [
            "brier_score",
            "perplexity",
            "bits_per_byte",
            "bypass",
            "f1",
            "bleu",
            "chrf",
            "chrf++",
        ]
    },
    "mcc": "matthews_corrcoef",
    "ter": "ter",
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


class Entry(msgspec.Struct, kw_only=True):
    """A metric of a task; `aggregation` is a name or a hook, None if neither the task nor the harness has any."""

    name: str
    measure: Measure | None
    params: Fields
    aggregation: str | Hook | None
    higher_is_better: bool | None

    @property
    def may_return_several(self) -> bool:
        return self.measure not in (None, _exact_match, _nothing, _pair)


def entries(definition: Definition) -> dict[str, Entry]:
    """The metrics of a task by name, in order."""
    return once(definition, _entries)


def _entries(definition: Definition) -> dict[str, Entry]:
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


def _name(entry: Fields) -> str | None:
    return entry["metric"] if isinstance(entry.get("metric"), str) else None


def _entry(definition: Definition, entry: Fields) -> Entry:
    if "metric" not in entry:
        raise UserError("an entry of metric_list has no `metric`", where=definition.file)
    if "aggregation" not in entry and entry["metric"] not in AGGREGATIONS:
        raise UserError(f"the metric {entry['metric']} has no `aggregation`", where=definition.file)
    metric = entry["metric"]
    name = metric
    measure: Measure | None = None
    if isinstance(metric, Hook):
        name = getattr(metric.value, "__name__", metric.name.rpartition(".")[2])
    if definition.process_results is None and definition.output_type == "generate_until":
        measure = metric.value if isinstance(metric, Hook) else _measure(definition, name, entry)
    return Entry(
        name=name,
        measure=measure,
        params={key: _value(value) for key, value in entry.items() if key not in _ENTRY_KEYS},
        aggregation=entry.get("aggregation", AGGREGATIONS.get(name)),
        higher_is_better=entry.get(
            "higher_is_better", name not in LOWER_IS_BETTER if name in AGGREGATIONS else None
        ),
    )


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Hook) else value


def _measure(definition: Definition, name: str, entry: Fields) -> Measure:
    if name in AGGREGATIONS and entry.get("hf_evaluate") is not True:
        return _exact_match if name == "exact_match" else _nothing if name == "bypass" else _pair
    own = registered(definition, "metric", name)
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


def _exact_match(**params: Any) -> Fields:
    return exact_match(**params)


def exact_match(
    predictions: Sequence[Any],
    references: Sequence[Any],
    regexes_to_ignore: Sequence[str] | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> Fields:
    """The share of predictions that equal their references, as numpy compares texts: NUL characters at the end do not
    count, and a text that is longer in lower case is cut."""
    # some tasks give texts
    tables = [_PUNCTUATION] * bool(ignore_punctuation) + [_DIGITS] * bool(ignore_numbers)
    if len(predictions) == len(references) == 1 and (
        regexes_to_ignore is None or regexes_to_ignore
    ):
        texts = predictions[0], references[0]
        if type(texts[0]) is str and type(texts[1]) is str:
            first, second = (
                _plain(text, regexes_to_ignore or (), ignore_case, tables) for text in texts
            )
            return {"exact_match": float(first == second)}
    sides: list[Any] = [predictions, references]
    if regexes_to_ignore is None:
        sides = [np.asarray(side) for side in sides]
    for pattern in regexes_to_ignore or ():
        sides = [np.array([re.sub(pattern, "", text) for text in side]) for side in sides]
    if ignore_case:
        sides = [np.char.lower(side) for side in sides]
    translate: Any = np.char.translate  # its annotation knows bytes only
    for table in tables:
        sides = [translate(side, table) for side in sides]
    equal = np.asarray(sides[0] == sides[1])
    return {"exact_match": float(np.mean(equal)) if equal.size else math.nan}


def _plain(
    text: str, patterns: Sequence[str], lower: bool, tables: list[dict[int, int | None]]
) -> str:
    width = len(text)
    for pattern in patterns:
        text = re.sub(pattern, "", text)
        width = len(text)
        text = text.rstrip("\0")
    if lower:
        text = text.rstrip("\0").lower()[:width]
    for table in tables:
        text = text.rstrip("\0").translate(table)
    return text.rstrip("\0")
