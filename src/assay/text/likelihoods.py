"""Where a continuation begins among tokens, and how a text that is too long is asked about: rules, no model.

They are those that published numbers were made by: whitespace at the end of a context belongs to the continuation;
tokens that begin in the context are the context's; windows overlap only in what they do not score.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

WHO_HAS_THEM = (
    "use a server that has them (vLLM, SGLang, llama.cpp, Together, Fireworks) or `type: transformers`; "
    "chat servers with `top_logprobs` can be scored by letter_likelihood (docs/likelihoods.md)"
)


def split(context: str, continuation: str) -> tuple[str, str]:
    """The two texts with the whitespace between them on the continuation's side, as tokenizers want it."""
    kept = context.rstrip()
    return kept, context[len(kept) :] + continuation


def scored_tokens(tokens: Sequence[str], context: str, continuation: str) -> tuple[int, int] | None:
    """The first token that begins in the continuation, and the first behind it; None where the tokens' texts are not
    those two texts (pieces of a character). A first token that is not text, such as `<s>`, belongs to the context."""
    joined, text = "".join(tokens), context + continuation
    before = 0
    if not joined.startswith(text):
        before = len(tokens[0]) if tokens else 0
        if not joined.startswith(text, before):
            return None
    starts = [0, *accumulate(map(len, tokens))]
    first = bisect_left(starts, before + len(context), 1 if before else 0)
    return min(first, len(tokens)), min(bisect_left(starts, before + len(text), first), len(tokens))


def windows(tokens: Sequence[int], before: int, room: int) -> Iterator[tuple[list[int], int]]:
    """Pieces of at most `room` tokens and one that is only predicted, and how many at the end of each are scored: every
    token once. The first begins with `before`, later ones with as many earlier tokens as fit."""
    whole = [before, *tokens]
    for start in range(1, len(whole), room):
        stop = min(len(whole), start + room)
        yield whole[max(0, stop - room - 1) : stop], stop - start
