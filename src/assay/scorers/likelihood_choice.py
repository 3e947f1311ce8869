"""The choice that a model finds most probable."""

import math
from typing import Any, Literal

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._likelihoods import choices_in, softmax
from assay.text.expected import expectation

By = Literal["raw", "characters", "bytes", "tokens", "unconditional"]


@scorer(reads="ground_truth", version=1)
def likelihood_choice(item: Item, response: Response, *, by: By = "raw", expected: str | None = None) -> Score:
    """The most probable choice of a [likelihood](likelihoods.md) task is the right one.

    Score: 1 or 0. `detailed_results` has the numbers of the `choice` that won and of the right one (`target`), the
    `values` that were compared, the `probabilities` of the choices (they add up to 1), the `confidence` in the one that
    won, the `brier` score and the `entropy` in nats. Of choices that are equally probable the first wins.

    Parameters:
    by: what is compared: the log-probability (`raw`: acc of lm-evaluation-harness), the same for each character of the
      choice without its delimiter (`characters`: acc_norm), for each of its bytes in UTF-8 (`bytes`) or for each token,
      or how much more probable the choice is than without the question (`unconditional`: acc_mutual_info)
    expected: the field of the ground truth that has the right choice: its number counted from 0, its text, or its
      letter; a list of them if several are right
    """
    answer = expectation(item, expected)
    choices = choices_in(response)
    right = _targets(answer, [str(choice["text"]) for choice in choices])
    values = [_value(choice, by) for choice in choices]
    chosen = max(range(len(values)), key=values.__getitem__)
    probabilities = softmax(values)
    brier = sum((p - (at == right[0])) ** 2 for at, p in enumerate(probabilities))
    passed = chosen in right
    details = {
        "choice": chosen,
        "target": right[0],
        "text": choices[chosen]["text"],
        "values": values,
        "probabilities": probabilities,
        "confidence": probabilities[chosen],
        "brier": brier,
        "entropy": -sum(p * math.log(p) for p in probabilities if p > 0),
        "greedy": choices[right[0]]["greedy"],
    }
    return Score(passed=passed, score=float(passed), details=details)


def _value(choice: dict[str, Any], by: By) -> float:
    text, value = str(choice["text"]), float(choice["logprob"])
    if by == "raw":
        return value
    if by == "unconditional":
        if "unconditional" not in choice:
            raise LookupError('the choices were not asked about by themselves: add `unconditional: ""` to `likelihood`')
        return value - float(choice["unconditional"])
    lengths = {"characters": len(text), "bytes": len(text.encode()), "tokens": int(choice["tokens"])}
    return value / lengths[by]


def _targets(value: Any, texts: list[str]) -> list[int]:
    """The numbers of the right choices."""
    values: list[Any] = value if isinstance(value, list) else [value]
    return [_target(entry, texts) for entry in values]


def _target(value: Any, texts: list[str]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(texts):
        return value
    text = str(value).strip()
    same = [at for at, choice in enumerate(texts) if choice.strip() == text]
    if same:
        return same[0]
    letter = ord(text.upper()) - ord("A") if len(text) == 1 else -1
    if 0 <= letter < len(texts):
        return letter
    raise LookupError(f"the expected choice {text[:80]!r} is none of the {len(texts)}")
