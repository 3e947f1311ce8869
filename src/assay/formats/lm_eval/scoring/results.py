"""What the harness computes of one document: from the answers, through each filter, a value for each metric."""

import copy
import math
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from assay.formats.lm_eval.facade.importing import Sandbox, code_runs_in
from assay.formats.lm_eval.scoring.aggregations import NOT_FINITE
from assay.formats.lm_eval.scoring.filters import filtered_responses
from assay.formats.lm_eval.scoring.measures import MetricEntry, entries
from assay.formats.lm_eval.tasks.definition import Definition, call_hook
from assay.sdk import JsonObject, UserError

WRONG = -100  # the harness's number of a choice that does not exist
Values = JsonObject
# Where `sound` gives another number, and why:
# references: of several references the harness only asks whether any scores above 0; the best score is right
# first document: the harness decides by the first document whether targets are lists; each document should
# likelihood: the harness cannot aggregate `likelihood`; the mean log-probability of the right choice can be
# regex: the harness stops at an answer with fewer matches than `group_select`; it should be the fallback
# median: of an even number of values the harness takes the upper one; the mean of the middle two is right
# stderr: the harness has no standard error for a task's own aggregation; the bootstrap gives one


def results(
    definition: Definition,
    doc: JsonObject,
    target: Any,
    choices: list[str] | None,
    answers: Sequence[Any],
    *,
    multiple_target: bool = False,
    sandbox: Sandbox | None = None,
    sound: bool = False,
) -> dict[tuple[str, str], Any]:
    """Return (metric, filter) → the document's value, as JSON (tuples and arrays are lists).

    target: doc_to_target's value; where doc_to_text chooses among inputs, that number
    answers: of generate_until the texts, one for each repeat; else (log-probability, greedy) of each request in order
    multiple_target: whether the target of the task's *first* document is a list with entries
    sandbox: where code in answers is run; without it, tasks that would run code are refused
    sound: without the harness's mistakes, which are listed above
    """
    if definition.unsafe_code and sandbox is None:
        what = f"{definition.task} runs code that a model wrote"
        raise UserError(what, where=definition.file, fix="add --unsafe-code if you want that")
    responses = [[_likelihood(definition, answer)] for answer in answers]
    if definition.output_type == "generate_until":
        responses = [list(answers)]
    values: dict[tuple[str, str], Any] = {}
    what = f"{definition.task} cannot score this document"
    with code_runs_in(sandbox):
        made = filtered_responses(definition, [doc] * len(responses), responses, sound=sound)
        for name, given in made.items():
            case = _FilteredAnswers(definition, doc, target, choices, given, multiple_target, sound)
            scored = call_hook(case.values, what, definition.file)
            values |= {(metric, name): plain(value) for metric, value in scored.items()}
    return values


def plain(value: Any) -> Any:
    """Return a value as JSON has it; a number that JSON has not is {"float": "nan"}, which aggregations read."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else {NOT_FINITE: repr(value)}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def _likelihood(definition: Definition, answer: Any) -> Any:
    return answer[0] if definition.output_type == "loglikelihood_rolling" else tuple(answer)


class _FilteredAnswers:
    """A document with what one filter made of its answers."""

    def __init__(
        self,
        definition: Definition,
        doc: JsonObject,
        target: Any,
        choices: list[str] | None,
        given: list[Any],
        multiple_target: bool,
        sound: bool,
    ) -> None:
        self.definition, self.doc = definition, doc
        self.target, self.choices, self.given = target, choices, given
        self.multiple_target = isinstance(target, list) if sound else multiple_target
        self.sound = sound

    def values(self) -> Values:
        hook = self.definition.process_results
        if hook is not None:
            return hook.value(copy.deepcopy(self.doc), self.given)
        listed = entries(self.definition)
        kind = self.definition.output_type
        if kind == "generate_until":
            return self._text_values(listed)
        if kind == "multiple_choice":
            values = self._choice_values(listed)
        elif kind == "loglikelihood_rolling":
            values = self._rolling_values()
        else:
            likelihood, greedy = self.given[0]
            values = {"perplexity": likelihood, "acc": int(greedy)}
        return {name: value for name, value in values.items() if name in listed}

    def _rolling_values(self) -> Values:
        (likelihood,) = self.given
        words, length = len(re.split(r"\s+", self.target)), len(self.target.encode())
        pairs = {"word_perplexity": words, "byte_perplexity": length, "bits_per_byte": length}
        return {name: (likelihood, size) for name, size in pairs.items()}

    def _choice_values(self, listed: dict[str, MetricEntry]) -> Values:
        choices = self.choices or []
        likelihoods, greedy = zip(*self.given, strict=True)
        unconditional: Sequence[float] = ()
        has_gain = "acc_mutual_info" in listed
        if has_gain and len(likelihoods) == 2 * len(choices):
            likelihoods, unconditional = likelihoods[: len(choices)], likelihoods[len(choices) :]
        gold = _gold(self.target, choices)
        by_length = zip(likelihoods, map(len, choices), strict=True)
        by_bytes = zip(likelihoods, map(len, map(str.encode, choices)), strict=True)
        pair = gold, _argmax(likelihoods)
        values: Values = {
            "acc": self._right(likelihoods, gold),
            "f1": pair,
            "mcc": pair,
            "acc_norm": self._right([_ratio(*pair) for pair in by_length], gold),
            "acc_bytes": self._right([_ratio(*pair) for pair in by_bytes], gold),
            "exact_match": self._all_greedy(gold, greedy),
            "brier_score": (gold, _softmax(likelihoods)) if "brier_score" in listed else None,
            "likelihood": (gold, likelihoods),
        }
        if self.sound and "likelihood" in listed:
            golds = gold if isinstance(gold, list) else [gold]
            values["likelihood"] = max(likelihoods[at] for at in golds)
        if has_gain:
            gains = [ll - alone for ll, alone in zip(likelihoods, unconditional, strict=True)]
            values["acc_mutual_info"] = float(_argmax(gains) == gold)
        return values

    def _right(self, scores: Sequence[float], gold: Any) -> float:
        guess = _argmax(scores)
        return float(guess in gold if self.multiple_target else guess == gold)

    def _all_greedy(self, gold: Any, greedy: Sequence[bool]) -> int:
        if self.multiple_target:
            return int(any(greedy[at] if at != WRONG else 0 for at in gold))
        return int(greedy[gold]) if gold != WRONG else 0

    def _text_values(self, listed: dict[str, MetricEntry]) -> Values:
        gold, result, several = self._reference(listed), self.given[0], self.multiple_target
        values: Values = {}
        for name, entry in listed.items():
            if not several:
                value = _measure(entry, gold, result)
            elif self.sound and gold:
                value = _best(entry, [_measure(entry, option, result) for option in gold])
            elif name == "exact_match":
                result = [result for _ in gold]  # the harness's next metrics get this list too
                value = float(_call(entry, gold, result)[name] > 0)
            else:
                scores = (_measure(entry, option, result) for option in gold)
                value = float(any(_single(name, score) for score in scores))
            values |= value if isinstance(value, dict) else {name: value}
        return values

    def _reference(self, listed: dict[str, MetricEntry]) -> Any:
        """Return the right answer; a list where there may be several."""
        gold, result, several = self.target, self.given[0], self.multiple_target
        if self.definition.doc_to_choice is not None:
            options = self.choices or []
            gold = [options[at] for at in gold] if self.sound and several else options[gold]
        elif several:
            gold = list(gold)
        elif "bypass" not in listed and not isinstance(result, list):
            gold = gold if type(gold) is type(result) else type(result)(gold)
        return [gold] if several and not isinstance(gold, list) else gold


def _call(entry: MetricEntry, references: list[Any], predictions: list[Any]) -> Any:
    assert entry.measure is not None
    return entry.measure(references=references, predictions=predictions, **entry.params)


def _measure(entry: MetricEntry, gold: Any, result: Any) -> Any:
    """Functions that take no references and predictions get a pair."""
    try:
        return _call(entry, [gold], [result])
    except TypeError:
        assert entry.measure is not None
        return entry.measure([gold, result])


def _best(entry: MetricEntry, scores: list[Any]) -> Any:
    """Return the best of the scores of several references; of pairs, one with all references."""
    choose = min if entry.higher_is_better is False else max
    if isinstance(scores[0], dict):
        return {key: choose(map(itemgetter(key), scores)) for key in scores[0]}
    if isinstance(scores[0], list):
        return [[gold for gold, _ in scores], scores[0][1]]
    return choose(scores)


def _single(name: str, value: Any) -> Any:
    return value[name] if isinstance(value, dict) else value


def _gold(target: Any, choices: list[str]) -> Any:
    """Return the number of the right choice, or numbers."""
    if isinstance(target, list):
        return [at if at < len(choices) else WRONG for at in target]
    if isinstance(target, int):
        return target if target < len(choices) else WRONG
    if isinstance(target, str):
        return choices.index(target) if target in choices else WRONG
    return target


def _ratio(likelihood: float, length: int) -> float:
    if length:
        return likelihood / length
    return (
        math.nan
        if likelihood == 0 or math.isnan(likelihood)
        else math.copysign(math.inf, likelihood)
    )


def _argmax(values: Sequence[float]) -> int:
    """Return the place of the first of the largest; like numpy's, the first that is not a number."""
    for at, value in enumerate(values):
        if value != value:
            return at
    return values.index(max(values))


def _softmax(values: Sequence[float]) -> Any:
    powers = np.exp(values - np.max(values))
    return powers / powers.sum()
