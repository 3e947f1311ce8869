"""Functions of our own tasks, called by the harness and by Assay alike."""

import statistics

from lm_eval.api.filter import Filter
from lm_eval.api.metrics import mean as imported_mean  # noqa: F401
from lm_eval.api.registry import register_aggregation, register_filter, register_metric


def overlap(references, predictions):
    """A share of words, as a number."""
    words, said = set(references[0].split()), set(predictions[0].split())
    return len(words & said) / max(1, len(words | said))


def lengths(references, predictions, scale=1):
    """Two metrics from one function."""
    return {
        "length": scale * len(predictions[0]),
        "gap": abs(len(predictions[0]) - len(references[0])),
    }


def pair_only(items):
    gold, result = items
    return float(gold[:1] == result[:1])


def of_document(doc, results):
    values = {
        "hit": float(str(doc["label"]) in str(results[0])),
        "pair": (doc["label"], len(str(results[0])) % 3),
    }
    return values if doc["label"] else {"hit": values["hit"]}


def of_likelihoods(doc, results):
    likelihoods = [likelihood for likelihood, _ in results]
    return {
        "spread": max(likelihoods) - min(likelihoods),
        "greedy": sum(greedy for _, greedy in results),
    }


def worst(items):
    return min(items)


def agreement(items):
    return sum(gold == guess for gold, guess in items) / len(items)


def fmean(items):
    return statistics.fmean(items)


def raises(doc, results):
    return {"hit": 1 / len(doc["text"][:0])}


def with_text(responses, docs):
    return [
        [doc["text"] + answer for answer in answers]
        for answers, doc in zip(responses, docs, strict=True)
    ]


class Reversed:
    def __init__(self, mark="") -> None:
        self.mark = mark

    def apply(self, resps, docs):
        return ([answer[::-1] + self.mark for answer in answers] for answers in resps)


def translated(doc, results):
    return dict.fromkeys(("bleu", "chrf", "ter"), (doc["two"], results[0]))


@register_filter("own_shortening")
class Shortening(Filter):
    def __init__(self, size) -> None:
        self.size = size

    def apply(self, resps, docs):
        return [[answer[: self.size] for answer in answers] for answers in resps]


@register_metric(metric="own_agreement", higher_is_better=True)
def own_agreement(items):
    return sum(map(str.__eq__, *items))


@register_aggregation("own_worst")
def own_worst(items):
    return min(items)
