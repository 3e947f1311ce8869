"""The pass rate that people would have found, from a judge's verdicts and its calibration."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.sdk import Group, JsonObject, Values, metric, short
from assay.stats.correction import Confusion, CorrectedRate, from_labels, rogan_gladen, worth

JUDGE = "detailed_results.judge"


@metric(
    columns=[JUDGE, "players", "responses"],
    verdicts="needed",
    lower_is_better=False,
    scale=(0, 1),
)
def corrected_pass_rate(group: Group) -> Values:
    """The share of answers that people would pass, estimated from a judge's verdicts and the labels
    of `assay judge calibrate`.

    Where people labelled some of these very answers: the rate of the labels, with the judge's
    verdicts on all answers as help (prediction-powered inference, Angelopoulos et al. 2023), or
    without that help where the interval of the labels alone is shorter. Where all labels are of
    other answers: (pass rate + specificity - 1) / (sensitivity + specificity - 1) (Rogan and Gladen
    1978; interval of Lang and Reiczigel 2014, which carries the uncertainty of all three rates).
    Null where there is no calibration, where it is another judge's, or where a judge known from
    other answers is no better than chance. The row has `raw_pass_rate`, `sensitivity` and
    `specificity`.
    """
    raw = float(group.passed.mean())
    fields: JsonObject = {"raw_pass_rate": raw, "sensitivity": None, "specificity": None}
    if any(group.columns["players"]):
        return Values(fields=fields, reason="in a match nobody passes: see win_rate")
    calibration = group.calibration
    if calibration is None:
        reason = "the judge is not calibrated; label some answers, then run `assay judge calibrate`"
        return Values(fields=fields, reason=reason)
    errors = Confusion(**calibration["confusion"])
    rates = {"sensitivity": errors.sensitivity, "specificity": errors.specificity}
    fields |= {name: rate for name, rate in rates.items() if math.isfinite(rate)}
    fields["calibration_labels"] = calibration.get("labels")
    if _judges(group.columns[JUDGE]) != {calibration.get("judge")}:
        reason = "the calibration is of another judge: run `assay judge calibrate` again"
        return Values(fields=fields, reason=reason)
    found = _from_own_labels(group, calibration.get("labelled") or {})
    if found.value is None:
        size = worth(group.unit, group.passed.astype(np.float64), np.ones(len(group.item)))
        found = rogan_gladen(raw, size, errors, group.level)
    if found.value is None or found.low is None or found.high is None:
        return Values(fields=fields, reason=found.reason)
    return Values(value=found.value, fields=fields, interval=(found.low, found.high, found.method))


def _judges(column: list[Any]) -> set[str]:
    """The identities of those who gave the verdicts; a row that has none was not judged."""
    return {str(judge.get("id")) for judge in column if isinstance(judge, dict)}


def _from_own_labels(group: Group, labelled: Mapping[str, Sequence[float]]) -> CorrectedRate:
    """Return the estimate from people's verdicts on answers of this group, if there are enough."""
    known = np.tile((math.nan, 1.0), (len(group.item), 1))
    for at, keys in enumerate(group.columns["responses"] if labelled else ()):
        if keys:
            known[at] = labelled.get(f"{short(str(keys[0])):016x}", known[at])
    truth, weights = known.T
    return from_labels(group.passed.astype(np.float64), truth, group.unit, weights, group.level)
