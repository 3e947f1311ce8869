"""What the harness computes of one document: from the answers, through each filter, a value for each metric."""

import copy
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.errors import UserError
from assay.formats.lm_eval.facade.importing import Sandbox, code_runs_in
from assay.formats.lm_eval.scoring.aggregations import NOT_FINITE
from assay.formats.lm_eval.scoring.filters import filtered
from assay.formats.lm_eval.scoring.measures import Entry, entries
from assay.formats.lm_eval.tasks.definition import Definition, Fields, called

WRONG = -100  # the harness's number of a choice that does not exist
Values = Fields
# Where `sound` gives another number, and why:
# references: of several references the harness only asks whether any scores above 0; the best score is right
# first document: the harness decides by the first document whether targets are lists; each document should
# likelihood: the harness cannot aggregate `likelihood`; the mean log-probability of the right choice can be
# regex: the harness stops at an answer with fewer matches than `group_select`; it should be the fallback
# median: of an even number of values the harness takes the upper one; the mean of the middle two is right
# stderr: the harness has no standard error for a task's own aggregation; the bootstrap gives one
# group size: the harness weighs a metric by the task's largest count; its own number of documents is right


def results(
    definition: Definition,
    doc: Fields,
    target: Any,
    choices: list[str] | None,
    answers: Sequence[Any],
    *,
    multiple_target: bool = False,
    sandbox: Sandbox | None = None,
    sound: bool = False,
) -> dict[tuple[str, str], Any]:
    """(metric, filter) → the document's value, as JSON (tuples and arrays are lists).

    target: doc_to_target's value; where doc_to_text chooses among inputs, that number
    answers: of generate_until the texts, one for each repeat; else (log-probability, greedy) of each request in order
    multiple_target: whether the target of the task's *first* document is a list with entries
    sandbox: where code in answers is run; without it, tasks that would run code are refused
    sound: without the harness's mistakes, which are listed above
    """
    if definition.unsafe_code and sandbox is None:
        what = f"{definition.task} runs code that a model wrote"
        raise UserError(what, where=definition.file, fix="add --unsafe-code if you want that")
    generated = definition.output_type == "generate_until"
    responses = (
        [list(answers)] if generated else [[_likelihood(definition, answer)] for answer in answers]
    )
    values: dict[tuple[str, str], Any] = {}
    what = f"{definition.task} cannot score this document"
    with code_runs_in(sandbox):
        for name, given in filtered(
            definition, [doc] * len(responses), responses, sound=sound
        ).items():
            case = _Case(definition, doc, target, choices, given, multiple_target, sound)
            made = called(case.values, what, definition.file)
            values |= {(metric, name): plain(value) for metric, value in made.items()}
    return values


def plain(value: Any) -> Any:
    """A value as JSON has it; a number that JSON has not is {"float": "nan"}, which aggregations read."""
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


class _Case:
    """A document with what one filter made of its answers."""

    def __init__(
        self,
        definition: Definition,
        doc: Fields,
        target: Any,
        choices: list[str] | None,
        given: list[Any],
        multiple_target: bool,
        sound: bool,
    ) -> None:
        self.definition = definition
        self.doc = doc
        self.target = target
        self.choices = choices
        self.given = given
        self.multiple_target = isinstance(target, list) if sound else multiple_target
        self.sound = sound

    def values(self) -> Values:
        hook = self.definition.process_results
        if hook is not None:
            return hook.value(copy.deepcopy(self.doc), self.given)
        listed = entries(self.definition)
        if self.definition.output_type == "generate_until":
            return self._generated(listed)
        if self.definition.output_type == "multiple_choice":
            return self._chosen(listed)
        is_rolling = self.definition.output_type == "loglikelihood_rolling"
        values = self._rolling() if is_rolling else self._continued()
        return {name: value for name, value in values.items() if name in listed}

    def _continued(self) -> Values:
        likelihood, greedy = self.given[0]
        return {"perplexity": likelihood, "acc": int(greedy)}

    def _rolling(self) -> Values:
        (likelihood,) = self.given
        words, length = len(re.split(r"\s+", self.target)), len(self.target.encode())
        pairs = {"word_perplexity": words, "byte_perplexity": length, "bits_per_byte": length}
        return {name: (likelihood, size) for name, size in pairs.items()}

    def _chosen(self, listed: Mapping[str, Entry]) -> Values:
        choices = self.choices or []
        likelihoods, greedy = zip(*self.given, strict=True)
        unconditional: Sequence[float] = ()
        if "acc_mutual_info" in listed and len(likelihoods) == 2 * len(choices):
            likelihoods, unconditional = likelihoods[: len(choices)], likelihoods[len(choices) :]
        gold = _gold(self.target, choices)
        guess = _argmax(likelihoods)
        by_length = _argmax(
            [_ratio(*pair) for pair in zip(likelihoods, map(len, choices), strict=True)]
        )
        by_bytes = _argmax(
            [
                _ratio(ll, len(choice.encode()))
                for ll, choice in zip(likelihoods, choices, strict=True)
            ]
        )
        exact = self._all_greedy(gold, greedy)
        values: Values = {
            "acc": self._right(guess, gold),
            "f1": (gold, guess),
            "mcc": (gold, guess),
            "acc_norm": self._right(by_length, gold),
            "acc_bytes": self._right(by_bytes, gold),
            "exact_match": exact,
            "brier_score": (gold, _softmax(likelihoods)) if "brier_score" in listed else None,
            "likelihood": (gold, likelihoods),
        }
        if self.sound and "likelihood" in listed:
            values["likelihood"] = max(
                likelihoods[at] for at in (gold if isinstance(gold, list) else [gold])
            )
        if "acc_mutual_info" in listed:
            gains = [ll - alone for ll, alone in zip(likelihoods, unconditional, strict=True)]
            values["acc_mutual_info"] = float(_argmax(gains) == gold)
        return {name: value for name, value in values.items() if name in listed}

    def _right(self, guess: int, gold: Any) -> float:
        return float(guess in gold if self.multiple_target else guess == gold)

    def _all_greedy(self, gold: Any, greedy: Sequence[bool]) -> int:
        if self.multiple_target:
            return int(any(greedy[at] if at != WRONG else 0 for at in gold))
        return int(greedy[gold]) if gold != WRONG else 0

    def _generated(self, listed: Mapping[str, Entry]) -> Values:
        gold, result, several = self.target, self.given[0], self.multiple_target
        if self.definition.doc_to_choice is not None:
            options = self.choices or []
            gold = [options[at] for at in gold] if self.sound and several else options[gold]
        elif several:
            gold = list(gold)
        elif type(gold) is not type(result) and not (
            "bypass" in listed or isinstance(result, list)
        ):
            gold = type(result)(gold)
        if several and not isinstance(gold, list):
            gold = [gold]
        values: Values = {}
        for name, entry in listed.items():
            if not several:
                value = _measured(entry, gold, result)
            elif self.sound and gold:
                value = _best(entry, [_measured(entry, option, result) for option in gold])
            elif name == "exact_match":
                result = [result for _ in gold]  # the harness's next metrics get this list too
                value = float(_called(entry, gold, result)[name] > 0)
            else:
                value = float(
                    any(_single(name, _measured(entry, option, result)) for option in gold)
                )
            values |= value if isinstance(value, dict) else {name: value}
        return values


def _called(entry: Entry, references: list[Any], predictions: list[Any]) -> Any:
    assert entry.measure is not None
    return entry.measure(references=references, predictions=predictions, **entry.params)


def _measured(entry: Entry, gold: Any, result: Any) -> Any:
    """Functions that take no references and predictions get a pair."""
    try:
        return _called(entry, [gold], [result])
    except TypeError:
        assert entry.measure is not None
        return entry.measure([gold, result])


def _best(entry: Entry, scores: list[Any]) -> Any:
    """The best of the scores of several references; of pairs, one with all references."""
    choose = min if entry.higher_is_better is False else max
    if isinstance(scores[0], dict):
        return {key: choose(score[key] for score in scores) for key in scores[0]}
    if isinstance(scores[0], list):
        return [[gold for gold, _ in scores], scores[0][1]]
    return choose(scores)


def _single(name: str, value: Any) -> Any:
    return value[name] if isinstance(value, dict) else value


def _gold(target: Any, choices: list[str]) -> Any:
    """The number of the right choice, or numbers."""
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
    """The first of the largest; like numpy's, the first that is not a number."""
    for at, value in enumerate(values):
        if value != value:
            return at
    return values.index(max(values))


def _softmax(values: Sequence[float]) -> Any:
    powers = np.exp(values - np.max(values))
    return powers / powers.sum()
