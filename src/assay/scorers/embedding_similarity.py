"""How alike an answer and a reference are as a whole, in the eyes of a language model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from assay.scorers._parameters import Encoded, ScorerCase, pairs, texts_of
from assay.scorers._transformers import TokenVectors, check_model, encoder
from assay.sdk import Score, scorer

if TYPE_CHECKING:
    from assay.scorers._transformers import Vectors

Pooling = Literal["mean", "first"]


@scorer(batch=256, reads="ground_truth", check=check_model, params=Encoded, version=1)
def embedding_similarity(
    cases: Sequence[ScorerCase],
    *,
    pooling: Pooling = "mean",
    threshold: float = 0.5,
    **texts: Any,
) -> list[Score]:
    """The cosine of the answer's and an accepted answer's embeddings, the best over the accepted answers.

    Score: a·b / (|a|·|b|), where an embedding is the mean of a text's token vectors in the last layer of a model
    (Reimers and Gurevych 2019), or the first of them. It lies between −1 and 1; a blank text is like another blank one
    (1) and like nothing else (0). Passes from `threshold` on.
    `detailed_results` names the model and its weights: scores of different models cannot be compared. Needs
    `pip install 'assay-eval[neural]'`.

    Parameters:
    pooling: which of a text's token vectors make its embedding; a model is trained for one of the two
    threshold: the least score that passes
    """
    encoded = Encoded(threshold=threshold, **texts)
    cases_read = pairs(cases, encoded)
    encodes = encoder(encoded.model, encoded.revision, None)
    needed = texts_of(cases_read)
    vectors = {
        text: _embedding(tokens, pooling)
        for text, tokens in encodes.encode(needed, encoded.batch_size).items()
    }
    scores: list[Score] = []
    for pair in cases_read:
        if isinstance(pair, Score):
            scores.append(pair)
            continue
        best = round(
            max(_cosine(pair.answer, reference, vectors) for reference in pair.references), 6
        )
        scores.append(
            Score(score=best, passed=best >= threshold, details={"model": encodes.identity})
        )
    return scores


def _cosine(answer: str, reference: str, vectors: "Mapping[str, Vectors]") -> float:
    if not answer.strip() or not reference.strip():
        return float(answer.strip() == reference.strip())
    return float(vectors[answer] @ vectors[reference])


def _embedding(tokens: TokenVectors, pooling: Pooling) -> "Vectors":
    import numpy as np

    vector = tokens.vectors.mean(axis=0) if pooling == "mean" else tokens.vectors[0]
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
