"""Whether passages entail or contradict a text, in the eyes of a model for natural language inference (NLI)."""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from assay.errors import UserError
from assay.scorers._transformers import chunks, load


class Judgement(NamedTuple):
    """Probabilities."""

    entailment: float
    contradiction: float


class Inference:
    def __init__(self, name: str, revision: str | None) -> None:
        self._loaded = load("AutoModelForSequenceClassification", name, revision)
        self.identity = self._loaded.identity
        labels: dict[int, str] = self._loaded.model.config.id2label
        places = [
            [at for at, label in labels.items() if label.lower().startswith(word)] for word in ("entail", "contra")
        ]
        if any(len(place) != 1 for place in places):
            shown = ", ".join(map(str, labels.values()))
            raise UserError(
                f"{name!r} is not a model for NLI: its labels are {shown}", fix="try microsoft/deberta-base-mnli"
            )
        self._places = [place[0] for place in places]

    def judge(self, pairs: Iterable[tuple[str, str]], batch_size: int) -> dict[tuple[str, str], Judgement]:
        """Of each (passage, text), whether the passage entails or contradicts the text."""
        tokenizer, model, torch, longest, _ = self._loaded
        judgements: dict[tuple[str, str], Judgement] = {}
        for batch in chunks(list(dict.fromkeys(pairs)), batch_size):
            inputs: Any = tokenizer(
                [passage for passage, _ in batch],
                [text for _, text in batch],
                padding=True,
                truncation="longest_first",
                max_length=longest,
                return_tensors="pt",
            )
            with torch.inference_mode():
                chances = model(**inputs.to(model.device)).logits.float().softmax(-1)[:, self._places]
            judgements.update(zip(batch, (Judgement(*row) for row in chances.tolist()), strict=True))
        return judgements


@cache
def inference(name: str, revision: str | None) -> Inference:
    return Inference(name, revision)
