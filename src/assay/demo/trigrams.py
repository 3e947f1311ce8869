"""A language model of a few hundred words: trigrams of sentences about capitals, over words and, below them, bytes.

It gives the mock server and the demo model log-probabilities that are real ones, over a finite vocabulary, and small
enough to be computed by hand: p(w | u v) = (c(u v w) + p(w | v)) / (c(u v) + 1), and so on down to 1 / size.
"""

import math
import re
from collections import defaultdict
from functools import cache, lru_cache

from assay.demo.questions import CAPITALS

_PIECES = re.compile(r" ?\w+| ?[^\w\s]+|\s")
_SENTENCES = (
    "The capital of {0} is {1}.\n",
    "{1} is the capital of {0}.\n",
    "Question: capital of {0}?\nAnswer: {1}\n",
)
BEGINNING = b""  # the token before every text

History = tuple[bytes, ...]


class Trigrams:
    """Counts of what followed the last two, the last one, and no token."""

    def __init__(self, sentences: list[str]) -> None:
        self.words = {piece.encode() for text in sentences for piece in _PIECES.findall(text)}
        self.size = len(self.words | {bytes([byte]) for byte in range(256)})
        self.counts: dict[History, dict[bytes, int]] = defaultdict(lambda: defaultdict(int))
        for text in sentences:
            tokens = [BEGINNING, *self.tokens(text)]
            for at, token in enumerate(tokens[1:], 1):
                for length in range(3):
                    if length <= at:
                        self.counts[tuple(tokens[at - length : at])][token] += 1
        self.totals = {history: sum(counts.values()) for history, counts in self.counts.items()}
        self.best = lru_cache(100_000)(self._best)
        self.scored = lru_cache(100_000)(self._token_score)

    def tokens(self, text: str) -> list[bytes]:
        """The words that it has learned, and the bytes of everything else."""
        found: list[bytes] = []
        for piece in _PIECES.findall(text):
            word = piece.encode()
            found += [word] if word in self.words else [bytes([byte]) for byte in word]
        return found

    def probability(self, history: History, token: bytes) -> float:
        value = 1 / self.size
        for length in range(len(history) + 1):
            seen = history[len(history) - length :]
            if seen in self.totals:
                value = (self.counts[seen].get(token, 0) + value) / (self.totals[seen] + 1)
        return value

    def _best(self, history: History) -> bytes:
        """The token that is most probable: nothing beats it that never followed any part of the history."""
        parts = (history[at:] for at in range(len(history) + 1))
        candidates = sorted(
            {token for part in parts if part in self.totals for token in self.counts[part]}
        )
        return max(candidates, key=lambda token: self.probability(history, token))

    def _token_score(self, history: History, token: bytes) -> tuple[float, bytes, float]:
        """The log-probability of a token after two others, the best token, and that one's log-probability."""
        best = self.best(history)
        return (
            math.log(self.probability(history, token)),
            best,
            math.log(self.probability(history, best)),
        )


@cache
def language_model() -> Trigrams:
    pairs = [(country.title(), capital) for country, capital in CAPITALS.items()]
    return Trigrams([sentence.format(*pair) for pair in pairs for sentence in _SENTENCES])


def logprobs(tokens: list[bytes]) -> list[tuple[float, bytes, float]]:
    """Of each token after those before it: its log-probability, the best token there, and that one's."""
    model = language_model()
    whole = [BEGINNING, *tokens]
    return [
        model.scored(tuple(whole[max(0, at - 2) : at]), whole[at]) for at in range(1, len(whole))
    ]
