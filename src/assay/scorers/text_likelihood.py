"""How probable a text is to a model."""

import re

from assay.scorers._likelihoods import choices_in
from assay.sdk import Item, Response, Score, scorer

_WORDS = re.compile(r"\s+")


@scorer(reads="ground_truth", scale=(None, 0), version=1)
def text_likelihood(item: Item, response: Response) -> Score:
    """The log-probability of the text, or of the only choice, of a [likelihood](likelihoods.md) task.

    Score: the sum over its tokens, in nats. It passes where each token was the most probable one: the model would have
    written the text itself. `detailed_results` has `logprob`, and the lengths that `perplexity` and `bits_per_byte`
    divide by: `words` (what whitespace separates), `bytes` in UTF-8, `characters` and `tokens`.
    """
    choices = choices_in(response)
    if len(choices) > 1:
        return Score(
            outcome="skipped",
            error=f"{len(choices)} choices are no text: likelihood_choice scores them",
        )
    text = str(choices[0]["text"]) or response.prompt
    details = {
        "logprob": float(choices[0]["logprob"]),
        "words": len(_WORDS.split(text)),
        "bytes": len(text.encode()),
        "characters": len(text),
        "tokens": int(choices[0]["tokens"]),
    }
    return Score(passed=bool(choices[0]["greedy"]), score=details["logprob"], details=details)
