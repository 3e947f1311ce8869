"""How alike an answer and a reference are, token by token, in the eyes of a language model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from assay.scorers._parameters import Encoded, ScorerCase, pairs, texts_of
from assay.scorers._transformers import TokenVectors, check_model, encoder
from assay.sdk import Score, scorer
from assay.text.rouge import Overlap

if TYPE_CHECKING:
    from assay.scorers._transformers import Vectors

_LAYERS = {  # those that agree best with people, as the authors of the measure found
    "bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9, "distilbert-base-uncased": 5,
    "roberta-base": 10, "roberta-large": 17, "roberta-large-mnli": 19, "xlm-roberta-base": 9, "xlm-roberta-large": 17,
    "microsoft/deberta-base": 9, "microsoft/deberta-base-mnli": 9, "microsoft/deberta-large": 16,
    "microsoft/deberta-large-mnli": 18, "microsoft/deberta-xlarge": 18, "microsoft/deberta-xlarge-mnli": 40,
}  # fmt: skip


@scorer(
    batch=256,
    reads="ground_truth",
    check=check_model,
    params=Encoded,
    verdicts="threshold",
    version=1,
)
def bertscore(
    cases: Sequence[ScorerCase],
    *,
    layer: Annotated[int, Meta(ge=0)] | None = None,
    **texts: Any,
) -> list[list[Score]]:
    """BERTScore of the answer: labels NAME.f1, NAME.precision and NAME.recall, each the best over the accepted answers.

    Score: precision is the mean over the answer's tokens of the greatest cosine with a token of the accepted answer,
    recall the other way round, F1 their harmonic mean 2·P·R / (P + R). Tokens are the hidden states of one layer of a
    model. Zhang et al. 2020, without idf weights and without rescaling; what a model adds at the ends of a text can be
    matched but is not counted, as in the `bert-score` package. An answer without tokens scores 0. Passes from
    `threshold` on, if it is set. `detailed_results` names the model, its weights and the layer: scores of different models
    cannot be compared. Needs `pip install 'assay-eval[neural]'`.

    Parameters:
    layer: the layer that gives the vectors; by default the one that the authors recommend for the model, else the last
    """
    encoded = Encoded(**texts)
    cases_read = pairs(cases, encoded)
    encodes = encoder(
        encoded.model, encoded.revision, _LAYERS.get(encoded.model) if layer is None else layer
    )
    needed = texts_of(cases_read)
    vectors = {
        text: _unit(tokens) for text, tokens in encodes.encode(needed, encoded.batch_size).items()
    }
    labels: list[list[Score]] = []
    for pair in cases_read:
        if isinstance(pair, Score):
            labels.append([pair])
            continue
        scores = [
            _token_overlap(vectors[pair.answer], vectors[reference])
            for reference in pair.references
        ]
        best = {
            name: round(max(getattr(each, name) for each in scores), 6)
            for name in ("f1", "precision", "recall")
        }
        labels.append([encoded.scored(value, model=encodes.identity) for value in best.values()])
        for name, label in zip(best, labels[-1], strict=True):
            label.label = f".{name}"
    return labels


def _unit(tokens: TokenVectors) -> TokenVectors:
    """The same with vectors of length 1."""
    import numpy as np

    lengths = np.linalg.norm(tokens.vectors, axis=1, keepdims=True)
    return TokenVectors(tokens.vectors / np.maximum(lengths, 1e-12), tokens.words)


def _token_overlap(answer: TokenVectors, reference: TokenVectors) -> Overlap:
    if not answer.words.any() or not reference.words.any():
        return Overlap(0.0, 0.0, 0.0)
    cosines: Vectors = answer.vectors @ reference.vectors.T
    precision = float(cosines.max(axis=1)[answer.words].mean())
    recall = float(cosines.max(axis=0)[reference.words].mean())
    both = precision + recall
    return Overlap(2 * precision * recall / both if both > 0 else 0.0, precision, recall)
