"""Log-probabilities of prompts, as servers of open models give them: completions with `echo`, and `prompt_logprobs`.

A text begins with the token `<s>`, whose log-probability nobody knows, as with the tokenizers of most such models.
"""

from itertools import islice

import msgspec

from assay.demo import trigrams
from assay.records import JsonObject

BEGINNING = "<s>"
CONTEXT = 4096  # tokens
_MOST_GENERATED = 16

# a token, its log-probability, the best token in its place, its own
Entry = tuple[bytes, float | None, bytes, float]


class ScoringRequest(msgspec.Struct):
    """The part of a completions request that asks about its prompts."""

    model: str = ""
    prompt: str | list[str] = ""
    max_tokens: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None

    @property
    def scores(self) -> bool:
        return self.prompt_logprobs is not None or (bool(self.echo) and self.logprobs is not None)


def answer(request: ScoringRequest) -> JsonObject | str:
    """The body of the answer, or what is wrong with the request."""
    prompts = [request.prompt] if isinstance(request.prompt, str) else request.prompt
    choices: list[JsonObject] = []
    asked = generated = 0
    for index, prompt in enumerate(prompts):
        tokens = trigrams.language_model().tokens(prompt)
        if len(tokens) + 1 > CONTEXT:
            return f"maximum context length is {CONTEXT} tokens, the prompt has {len(tokens) + 1}"
        more = _continuation(tokens, min(request.max_tokens or 0, _MOST_GENERATED))
        scored = trigrams.logprobs([*tokens, *more])
        entries: list[Entry] = [(BEGINNING.encode(), None, b"", 0.0)]
        entries += [
            (token, *values) for token, values in zip([*tokens, *more], scored, strict=True)
        ]
        choices.append({"index": index, **_choice(request, prompt, entries, len(more))})
        asked += len(tokens) + 1
        generated += len(more)
    return {
        "id": "cmpl-scored",
        "object": "text_completion",
        "model": request.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": generated,
            "total_tokens": asked + generated,
        },
    }


def _continuation(tokens: list[bytes], count: int) -> list[bytes]:
    history = [trigrams.BEGINNING, *tokens]
    while len(history) - len(tokens) - 1 < count:
        history.append(trigrams.language_model().best(tuple(history[-2:])))
    return history[len(tokens) + 1 :]


def _choice(
    request: ScoringRequest, prompt: str, entries: list[Entry], generated: int
) -> JsonObject:
    before = len(entries) - generated
    text = b"".join(entry[0] for entry in entries[before:]).decode(errors="replace")
    choice: JsonObject = {"finish_reason": "length", "logprobs": None}
    choice["text"] = prompt + text if request.echo else text
    if request.logprobs is not None:
        shown = entries if request.echo else entries[before:]
        choice["logprobs"] = {
            "tokens": [_text(token) for token, *_ in shown],
            "token_logprobs": [value for _, value, *_ in shown],
            "top_logprobs": [
                None if value is None else {_text(best): most} for _, value, best, most in shown
            ],
        }
    if request.prompt_logprobs is not None:
        choice["prompt_logprobs"] = [_entry(*entry) for entry in islice(entries, before)]
    return choice


def _entry(token: bytes, value: float | None, best: bytes, most: float) -> JsonObject | None:
    """One position of `prompt_logprobs`: the prompt's token and the best one, by their numbers."""
    if value is None:
        return None
    own = {"logprob": value, "rank": 1 if token == best else 2, "decoded_token": _text(token)}
    first = {"logprob": most, "rank": 1, "decoded_token": _text(best)}
    return {_number(token): own} if token == best else {_number(token): own, _number(best): first}


def _number(token: bytes) -> str:
    return str(int.from_bytes(token, "big"))


def _text(token: bytes) -> str:
    return token.decode(errors="replace")
