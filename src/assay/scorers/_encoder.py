"""Texts as the vectors of their tokens: each different text goes through the model once."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.scorers._transformers import chunks, load

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    Mask = npt.NDArray[np.bool_]

_MOST_HELD = 1 << 24  # numbers that are remembered: 64 MB


class Tokens(NamedTuple):
    """A row for each token; `words` marks those that stand for text, not for its beginning and end."""

    vectors: "Vectors"
    words: "Mask"


class Encoder:
    """The hidden states of one layer of a model, by default its last."""

    def __init__(self, name: str, revision: str | None, layer: int | None) -> None:
        self._loaded = load("AutoModel", name, revision)
        self.layer = self._loaded.model.config.num_hidden_layers if layer is None else layer
        self.identity = {**self._loaded.identity, "layer": self.layer}
        self._known: dict[str, Tokens] = {}
        self._held = 0

    def encode(self, texts: Iterable[str], batch_size: int) -> dict[str, Tokens]:
        """The vectors of each text. References come back with every sample, so some texts are remembered."""
        wanted = dict.fromkeys(texts)
        found = {text: self._known[text] for text in wanted if text in self._known}
        for batch in chunks([text for text in wanted if text not in found], batch_size):
            found.update(zip(batch, self._forward(batch), strict=True))
        if self._held > _MOST_HELD:
            self._known, self._held = {}, 0
        new = {text: tokens for text, tokens in found.items() if text not in self._known}
        self._known |= new
        self._held += sum(tokens.vectors.size for tokens in new.values())
        return found

    def _forward(self, batch: list[str]) -> list[Tokens]:
        tokenizer, model, torch, longest, _ = self._loaded
        inputs: Any = tokenizer(
            batch,
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
            return_special_tokens_mask=True,
        )
        words = (inputs.pop("special_tokens_mask") == 0).numpy()
        present = inputs["attention_mask"].numpy() == 1
        last = self.layer == model.config.num_hidden_layers
        with torch.inference_mode():
            made = model(**inputs.to(model.device), output_hidden_states=not last)
        states = made.last_hidden_state if last else made.hidden_states[self.layer]
        vectors = states.float().cpu().numpy()
        return [Tokens(each[here], real[here]) for each, real, here in zip(vectors, words, present, strict=True)]


@cache
def encoder(name: str, revision: str | None, layer: int | None) -> Encoder:
    return Encoder(name, revision, layer)
