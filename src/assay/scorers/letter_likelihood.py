"""The letter of a multiple-choice question that a chat model finds most probable as its answer."""

import math
import string
from typing import Any

from assay.scorers._likelihoods import choice_score, targets
from assay.sdk import Item, Response, Score, scorer
from assay.text.expected import expectation


@scorer(reads="ground_truth", version=1)
def letter_likelihood(
    item: Item,
    response: Response,
    *,
    labels: list[str] | None = None,
    expected: str | None = None,
    position: int = 0,
) -> Score:
    """The option whose letter is most probable at the beginning of a chat answer is the right one.

    Score: 1 or 0. This is not the likelihood of the options, but how probable the letters are as the next token. It
    needs answers that begin with the letter, with `logprobs: true` and `top_logprobs` (20 is usual). Tokens that mean
    the same letter (`B`, ` B`, `b`) are added; the sum over all letters is `mass`, and what the model gave to other
    tokens is left out of `probabilities`. If no letter is among the tokens, the answer is unparsed.

    Parameters:
    labels: what the options are called; by default A to D
    expected: the field of the ground truth that has the right option: its letter, or its number counted from 0
    position: which token of the answer is looked at, counted from 0
    """
    answer = expectation(item, expected)
    names = labels or list(string.ascii_uppercase[:4])
    right = targets(answer, names)
    masses = _masses(response, names, position)
    if masses is None:
        what = "the answer has no `top_logprobs`: set `logprobs: true` and `top_logprobs: 20` in `sample_params`"
        raise LookupError(what)
    total = sum(masses)
    if not total:
        return Score(
            outcome="unparsed",
            error=f"none of {', '.join(names)} is among the most probable tokens",
        )
    return choice_score(
        [math.log(mass) if mass else -math.inf for mass in masses], names, right, mass=total
    )


def _masses(response: Response, names: list[str], position: int) -> list[float] | None:
    """The probability of each letter, over all tokens that mean it."""
    entries: list[Any] = response.logprobs or []
    tops: Any = entries[position].get("top_logprobs") if len(entries) > position else None
    if not isinstance(tops, list) or not tops:
        return None
    masses = dict.fromkeys((name.casefold() for name in names), 0.0)
    for top in tops:
        token = str(top["token"]).strip("() .:*\n").casefold()
        if token in masses:
            masses[token] += math.exp(float(top["logprob"]))
    return list(masses.values())
