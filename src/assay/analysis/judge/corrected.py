"""What the pass rate of each model would be by people's verdicts, from the judge's and from how it errs."""

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.judge.accuracy import Estimate, item_codes, mean_of, none, worth
from assay.analysis.judge.judged import Answer, Judged
from assay.interfaces import FloatArray
from assay.stats.correction import Confusion, prediction_powered, rogan_gladen
from assay.stats.correction import Estimate as Found


class Corrected(msgspec.Struct, kw_only=True):
    """The rate as the judge has it, and corrected: by its errors on all labelled answers, and by the labels of this
    model's own answers."""

    raw: Estimate
    rogan_gladen: Estimate
    ppi: Estimate


def corrected(judged: Judged, errors: Confusion, level: float) -> dict[str, Corrected]:
    """By model; in a match by pair, as the rate at which the first player wins."""
    models: dict[str, list[Answer]] = {}
    for answer in judged.answers:
        if answer.judge is not None:
            models.setdefault(answer.model, []).append(answer)
    return {model: _of_model(models[model], errors, level) for model in sorted(models)}


def _of_model(answers: list[Answer], errors: Confusion, level: float) -> Corrected:
    item, judge = item_codes(answers), np.array([answer.judge for answer in answers], np.float64)
    decided = judge != 0.5
    raw = mean_of(item[decided], judge[decided], np.ones(int(decided.sum())), level, "every verdict is a tie")
    if raw.value is None:
        by_errors = none("every verdict is a tie")
    else:
        size = worth(item[decided], judge[decided], np.ones(raw.n))
        by_errors = _estimate(rogan_gladen(raw.value, size, errors, level), raw.n)
    return Corrected(raw=raw, rogan_gladen=by_errors, ppi=_ppi(answers, item, judge, level))


def _ppi(answers: list[Answer], item: npt.NDArray[np.int64], judge: FloatArray, level: float) -> Estimate:
    truth = np.array([np.nan if answer.truth is None else answer.truth for answer in answers], np.float64)
    if np.isfinite(truth).all():
        return none("every answer is labelled: people's own rate says it", len(answers))
    weights = np.array([answer.weight for answer in answers])
    return _estimate(prediction_powered(judge, truth, item, weights, level), len(answers))


def _estimate(found: Found, n: int) -> Estimate:
    if found.value is None:
        return none(found.reason or "there is no value", n)
    return Estimate(value=found.value, low=found.low, high=found.high, method=found.method, n=n)
