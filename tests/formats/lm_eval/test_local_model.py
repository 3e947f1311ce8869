"""The real model: its likelihoods by llama.cpp give the numbers that lm-eval's own `hf` model gave, in float32."""

import asyncio
import gzip
import json
from collections.abc import Sequence
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import Any

import pytest

from assay.interfaces import Likelihood
from assay.models.local import local, pull

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs llama.cpp"),
]

FIXTURES = Path(__file__).parent / "local"
NOISE = 0.5  # nats of a continuation: llama.cpp rounds what it multiplies to eight bits


def fixture(task: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((FIXTURES / f"{task}.json.gz").read_bytes()))


def likelihoods(documents: Sequence[dict[str, Any]]) -> list[list[float]]:
    """The sums of log-probabilities: one for each request of each document."""
    model = local("smol", api="completions")
    assert hasattr(model, "likelihood")

    async def go() -> list[list[float]]:
        try:
            sums: list[list[float]] = []
            for document in documents:
                context = document["arguments"][0][0]
                continuations = [continuation for _, continuation in document["arguments"]]
                asked = Likelihood(
                    [{"role": "user", "content": context}], continuations=continuations
                )
                sums.append([sum(value.tokens) for value in (await model.likelihood(asked)).values])
            return sums
        finally:
            await model.close()

    pull()
    return asyncio.run(go())


def share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def test_accuracy_with_and_without_lengths() -> None:
    expected = fixture("mc_default")
    documents = expected["documents"]["mc_default"]
    sums = likelihoods(documents)
    theirs = [[answers[0][0] for answers in document["resps"]] for document in documents]
    for ours, other in zip(sums, theirs, strict=True):
        assert ours == pytest.approx(other, abs=NOISE)
    results = expected["results"]["results"]["mc_default"]
    right = [
        row.index(max(row)) == document["target"]
        for row, document in zip(sums, documents, strict=True)
    ]
    assert share(right) == pytest.approx(results["acc,none"], abs=1 / len(documents))
    lengths = [[len(choice) for choice in document["doc"]["choices"]] for document in documents]
    per_sign = [
        [value / size for value, size in zip(*pair, strict=True)]
        for pair in zip(sums, lengths, strict=True)
    ]
    right = [
        row.index(max(row)) == document["target"]
        for row, document in zip(per_sign, documents, strict=True)
    ]
    assert share(right) == pytest.approx(results["acc_norm,none"], abs=1 / len(documents))


def test_perplexity() -> None:
    expected = fixture("ll_default")
    sums = [value for (value,) in likelihoods(expected["documents"]["ll_default"])]
    results = expected["results"]["results"]["ll_default"]
    assert exp(-sum(sums) / len(sums)) == pytest.approx(results["perplexity,none"], rel=0.06)
