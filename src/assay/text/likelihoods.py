"""Where a continuation begins among tokens, and how a text that is too long is asked about: rules, no model.

They are those of lm-evaluation-harness, so that numbers can be compared: whitespace at the end of a context belongs to
the continuation; tokens that begin in the context are the context's; windows overlap only in what they do not score.
"""

from collections.abc import Iterator, Sequence

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
    text, end = context + continuation, 0
    first = None
    for at, token in enumerate(tokens):
        special = at == 0 and not text.startswith(token)
        if end >= len(context) and first is None and not special:
            first = at
        if end >= len(text):
            return (first or 0, at) if first is not None else None
        if not special:
            if not text.startswith(token, end):
                return None
            end += len(token)
    return (len(tokens) if first is None else first, len(tokens)) if end >= len(text) else None


def windows(tokens: Sequence[int], before: int, room: int) -> Iterator[tuple[list[int], int]]:
    """Pieces of at most `room` tokens and one that is only predicted, and how many at the end of each are scored: every
    token once. The first begins with `before`, later ones with as many earlier tokens as fit."""
    whole = [before, *tokens]
    for start in range(1, len(whole), room):
        stop = min(len(whole), start + room)
        yield whole[max(0, stop - room - 1) : stop], stop - start
