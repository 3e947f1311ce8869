"""Metrics that tasks have from the `evaluate` library, whose code would come from its hub: our own versions.

`accuracy`, `f1` and `exact_match` are scikit-learn's and the harness's own formulas as `evaluate` calls them; `bleu` is
that of Papineni et al. 2002 without smoothing, on sacreBLEU's words; `rouge` is that of the `rouge-score` package with
its bootstrap; `code_eval` runs code in the sandbox for scored code.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from assay.formats.lm_eval.facade.importing import SANDBOX
from assay.formats.lm_eval.scoring.corpora import class_scores
from assay.formats.lm_eval.scoring.measures import exact_match
from assay.scorers._sandbox.run import SandboxLimits, level_here, run_tests
from assay.sdk import JsonObject, UserError
from assay.text.error_rate import distance
from assay.text.rouge import rouge_l, rouge_l_sum, rouge_n, words
from assay.text.translation import require_sacrebleu

_SEED = 1234  # numpy's in the harness, whose first ROUGE of a run begins with it
_RESAMPLES = 1000
_LIMITS = SandboxLimits(
    seconds=3.0, memory=1 << 30, files=16 << 20, processes=16
)  # evaluate's time


class HubMetric(NamedTuple):
    """What `evaluate.load` returns."""

    name: str

    def compute(
        self, *, predictions: Sequence[Any], references: Sequence[Any], **params: Any
    ) -> Any:
        if len(predictions) != len(references):
            raise ValueError(f"{len(predictions)} predictions and {len(references)} references")
        return METRICS[self.name](predictions, references, **params)


def _accuracy(
    predictions: Sequence[Any], references: Sequence[Any], normalize: bool = True
) -> dict[str, float]:
    right = sum(
        int(guess) == int(gold) for guess, gold in zip(predictions, references, strict=True)
    )
    return {"accuracy": right / len(references) if normalize else float(right)}


def _exact_match(
    predictions: Sequence[Any], references: Sequence[Any], **params: Any
) -> dict[str, float]:
    return exact_match(
        [str(text) for text in predictions], [str(text) for text in references], **params
    )


def _f1(
    predictions: Sequence[Any],
    references: Sequence[Any],
    average: str | None = "binary",
    pos_label: int = 1,
    labels: Sequence[int] | None = None,
) -> JsonObject:
    guesses, golds = [*map(int, predictions)], [*map(int, references)]
    if labels is not None and average == "micro":
        raise ValueError("f1 has no micro average over some of the labels")
    labels = sorted({*golds, *guesses}) if labels is None else labels
    is_binary = average == "binary"
    if is_binary and (len(labels) > 2 or (len(labels) == 2 and pos_label not in labels)):
        raise ValueError(
            f"f1 needs two classes, one of them {pos_label}, and there are {labels[:5]}"
        )
    scores, support = class_scores(golds, guesses, [pos_label] if is_binary else labels)
    if average is None:
        return {"f1": scores}
    if average == "micro":
        return {"f1": sum(map(int.__eq__, golds, guesses)) / len(golds)}
    weights = support if average == "weighted" else None
    return {"f1": float(np.average(scores, weights=weights))}


def _rouge(
    predictions: Sequence[str],
    references: Sequence[Any],
    rouge_types: Sequence[str] = ("rouge1", "rouge2", "rougeL", "rougeLsum"),
    use_aggregator: bool = True,
    use_stemmer: bool = False,
) -> JsonObject:
    """F-measures; of several references the best. The aggregate is the middle of a bootstrap of means, which depends on
    a random state: here that at the start of the harness's run."""
    listed = [[gold] if isinstance(gold, str) else gold for gold in references]
    pairs = list(zip(predictions, listed, strict=True))
    generator = np.random.RandomState(_SEED)
    made: JsonObject = {}
    for kind in rouge_types:
        scores = np.array([_best_overlap(kind, *pair, use_stemmer) for pair in pairs])
        made[kind] = scores.tolist()
        if use_aggregator:
            size = len(scores)
            means = [
                np.mean(scores[generator.choice(np.arange(size), size=size)])
                for _ in range(_RESAMPLES)
            ]
            made[kind] = float(np.percentile(means, 50))
    return made


def _best_overlap(kind: str, text: str, references: Sequence[str], stem: bool) -> float:
    return max(_overlap(kind, text, reference, stem) for reference in references)


def _overlap(kind: str, text: str, reference: str, stem: bool) -> float:
    if kind == "rougeLsum":
        return rouge_l_sum(text, reference, stem).f1
    ours, theirs = words(text, stem), words(reference, stem)
    if kind == "rougeL":
        return rouge_l(ours, theirs).f1
    return rouge_n(ours, theirs, int(kind.removeprefix("rouge"))).f1


def _bleu(predictions: Sequence[str], references: Sequence[Any], max_order: int = 4) -> JsonObject:
    require_sacrebleu()
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    split = Tokenizer13a()
    sums = np.zeros((max_order, 2))
    length = reference_length = 0
    for prediction, gold in zip(predictions, references, strict=True):
        listed = [gold] if isinstance(gold, str) else gold
        answer, *texts = (split(text).split() for text in [prediction, *listed])
        length += len(answer)
        reference_length += min(map(len, texts))
        for order in range(max_order):
            grams, *others = (_grams(text, order + 1) for text in [answer, *texts])
            sums[order] += (grams & reduce(or_, others)).total(), grams.total()
    precisions = [float(hits / total) if total else 0.0 for hits, total in sums]
    penalty = 1.0 if length > reference_length else math.exp(1 - reference_length / length)
    mean = math.exp(sum(map(math.log, precisions)) / max_order) if min(precisions) > 0 else 0.0
    return {"bleu": mean * penalty, "precisions": precisions, "brevity_penalty": penalty}


def _grams(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[at:] for at in range(size)), strict=False))


def _wer(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Edits of words over words of the references, at spaces, as jiwer splits them."""
    edits = length = 0
    for texts in zip(predictions, references, strict=True):
        ours, theirs = (re.sub(r"\s\s+", " ", str(text)).strip() for text in texts)
        if not theirs:
            raise ValueError("a reference has no words")
        edits += distance(ours.split(" ") if ours else [], theirs.split(" "), "words")
        length += theirs.count(" ") + 1
    return edits / length


def _code_eval(
    predictions: Sequence[Sequence[str]],
    references: Sequence[str],
    k: Sequence[int] = (1, 10, 100),
    **_: Any,
) -> tuple[dict[str, float], dict[int, list[Any]]]:
    """pass@k (Chen et al. 2021): the mean over tasks of 1 − C(n − c, k) / C(n, k), for each k that all tasks reach."""
    level = _sandbox_level()
    results: dict[int, list[Any]] = {}
    for task, (candidates, test) in enumerate(zip(predictions, references, strict=True)):
        verdicts = [run_tests(code, [test], None, _LIMITS, level) for code in candidates]
        results[task] = [_outcome(task, *each) for each in enumerate(verdicts)]
    counts = [(len(runs), sum(run["passed"] for _, run in runs)) for runs in results.values()]
    reached = [size for size in k if all(total >= size for total, _ in counts)]
    shares = {size: np.mean([_pass_at(*count, size) for count in counts]) for size in reached}
    return {f"pass@{size}": float(share) for size, share in shares.items()}, results


def _sandbox_level() -> Any:
    sandbox = SANDBOX.get()
    if sandbox is None:
        what = "its answers are code, which is run to score them"
        raise UserError(what, fix="add --unsafe-code if you want that")
    return level_here(sandbox == "weak")


def _outcome(task: int, number: int, verdict: Any) -> tuple[int, JsonObject]:
    result = "passed" if verdict.passed else f"failed: {'; '.join(verdict.problems)}"
    passed = bool(verdict.passed)
    outcome = {"task_id": task, "passed": passed, "result": result, "completion_id": number}
    return number, outcome


def _pass_at(total: int, right: int, k: int) -> float:
    if total - right < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(total - right + 1, total + 1)))


METRICS: dict[str, Callable[..., Any]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "exact_match": _exact_match,
    "rouge": _rouge,
    "bleu": _bleu,
    "code_eval": _code_eval,
    "wer": _wer,
}
