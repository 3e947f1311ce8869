"""The choice that a model finds most probable."""

from typing import Literal

from assay.scorers._likelihoods import choice_score, choices_in, targets
from assay.sdk import Item, JsonObject, Response, Score, scorer
from assay.text.expected import expectation

By = Literal["raw", "characters", "bytes", "tokens", "unconditional"]


@scorer(reads="ground_truth", version=1)
def likelihood_choice(
    item: Item, response: Response, *, by: By = "raw", expected: str | None = None
) -> Score:
    """The most probable choice of a [likelihood](likelihoods.md) task is the right one.

    Score: 1 or 0. `detailed_results` has the numbers of the `choice` that won and of the right one (`target`), the
    `values` that were compared, the `probabilities` of the choices (they add up to 1), the `confidence` in the one that
    won, the `brier` score and the `entropy` in nats. Of choices that are equally probable the first wins.

    Parameters:
    by: what is compared: the log-probability (`raw`: what papers call acc), the same for each character of the
      choice without its delimiter (`characters`: acc_norm), for each of its bytes in UTF-8 (`bytes`) or for each token,
      or how much more probable the choice is than without the question (`unconditional`: acc_mutual_info)
    expected: the field of the ground truth that has the right choice: its number counted from 0, its text, or its
      letter; a list of them if several are right
    """
    answer = expectation(item, expected)
    choices = choices_in(response)
    texts = [str(choice["text"]) for choice in choices]
    if texts == [""]:
        return Score(
            outcome="skipped", error="a whole text has no choices: text_likelihood scores it"
        )
    right = targets(answer, texts)
    return choice_score(
        [_value(choice, by) for choice in choices], texts, right, greedy=choices[right[0]]["greedy"]
    )


def _value(choice: JsonObject, by: By) -> float:
    text, value = str(choice["text"]), float(choice["logprob"])
    if by == "raw":
        return value
    if by == "unconditional":
        if "unconditional" not in choice:
            raise LookupError(
                'the choices were not asked about by themselves: add `unconditional: ""` to `likelihood`'
            )
        return value - float(choice["unconditional"])
    lengths = {
        "characters": len(text),
        "bytes": len(text.encode()),
        "tokens": int(choice["tokens"]),
    }
    return value / lengths[by]
