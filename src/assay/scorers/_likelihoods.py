"""What likelihood tasks leave in a response."""

import math
from typing import Any

from assay.records import Response


def choices_in(response: Response) -> list[dict[str, Any]]:
    """What a likelihood task wrote."""
    output: Any = response.output
    if not isinstance(output, dict) or not isinstance(output.get("choices"), list) or not output["choices"]:
        raise LookupError("the response has no likelihoods: give its prompt `likelihood: {choices: …}`")
    return output["choices"]


def softmax(values: list[float]) -> list[float]:
    most = max(values)
    shares = [math.exp(value - most) for value in values]
    return [share / sum(shares) for share in shares]
