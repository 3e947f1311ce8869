"""What likelihood tasks leave in a response."""

import math
from typing import Any

from assay.scorers._parameters import verdict
from assay.sdk import JsonObject, Response, Score, as_list


def choices_in(response: Response) -> list[JsonObject]:
    """Return what a likelihood task wrote."""
    output: Any = response.output
    if (
        not isinstance(output, dict)
        or not isinstance(output.get("choices"), list)
        or not output["choices"]
    ):
        raise LookupError(
            "the response has no likelihoods: give its prompt `likelihood: {choices: …}`"
        )
    return output["choices"]


def softmax(values: list[float]) -> list[float]:
    most = max(values)
    shares = [math.exp(value - most) for value in values]
    return [share / sum(shares) for share in shares]


def choice_score(values: list[float], texts: list[str], right: list[int], **details: Any) -> Score:
    """Return whether the highest value is a right choice's, with what calibration needs. Of equal
    values the first counts."""
    chosen = max(range(len(values)), key=values.__getitem__)
    probabilities = softmax(values)
    details |= {
        "choice": chosen,
        "target": right[0],
        "text": texts[chosen],
        "values": [value if math.isfinite(value) else None for value in values],
        "probabilities": probabilities,
        "confidence": probabilities[chosen],
        "brier": sum((p - (at == right[0])) ** 2 for at, p in enumerate(probabilities)),
        "entropy": -sum(p * math.log(p) for p in probabilities if p > 0),
    }
    return verdict(chosen in right, **details)


def targets(value: Any, texts: list[str]) -> list[int]:
    """The numbers of the right choices."""
    return [_target(entry, texts) for entry in as_list(value)]


def _target(value: Any, texts: list[str]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(texts):
        return value
    text = str(value).strip()
    same = [at for at, choice in enumerate(texts) if choice.strip() == text]
    if same:
        return same[0]
    letter = ord(text.upper()) - ord("A") if len(text) == 1 else -1
    if 0 <= letter < len(texts):
        return letter
    raise LookupError(f"the expected choice {text[:80]!r} is none of the {len(texts)}")
