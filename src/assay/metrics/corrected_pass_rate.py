"""The pass rate that people would have found, from a judge's verdicts and its calibration."""

import math
from typing import Any

import numpy as np

from assay.interfaces import Group, Values
from assay.registry import metric
from assay.stats.correction import Confusion, rogan_gladen
from assay.stats.intervals import effective_samples, item_contributions

JUDGE = "detailed_results.judge"


@metric(columns=[JUDGE, "players"], verdicts="needed", lower_is_better=False)
def corrected_pass_rate(group: Group) -> Values:
    """The share of answers that people would pass, estimated from how many the judge passes and how often it errs:
    (pass rate + specificity - 1) / (sensitivity + specificity - 1) (Rogan and Gladen 1978).

    How often it errs comes from `assay judge calibrate`. The interval (Lang and Reiczigel 2014) carries the uncertainty
    of that too. Null where there is no calibration, where it is another judge's, or where the judge is no better than
    chance. The row has `raw_pass_rate`, `sensitivity` and `specificity`.
    """
    raw = float(group.passed.mean())
    fields: dict[str, Any] = {"raw_pass_rate": raw, "sensitivity": None, "specificity": None}
    if any(group.columns["players"]):
        return Values(value=None, fields=fields, reason="in a match nobody passes: see win_rate")
    calibration = group.calibration
    if calibration is None:
        reason = "the judge is not calibrated; label some answers, then run `assay judge calibrate`"
        return Values(value=None, fields=fields, reason=reason)
    errors = Confusion(
        **{cell: float(calibration["confusion"][cell]) for cell in ("tp", "fp", "fn", "tn")}
    )
    rates = {"sensitivity": errors.sensitivity, "specificity": errors.specificity}
    fields |= {name: rate for name, rate in rates.items() if math.isfinite(rate)}
    fields["calibration_labels"] = calibration.get("labels")
    if _judges(group.columns[JUDGE]) != {calibration.get("judge")}:
        reason = "the calibration is of another judge: run `assay judge calibrate` again"
        return Values(value=None, fields=fields, reason=reason)
    per_item, n = item_contributions(group.item, group.passed.astype(np.float64)), len(group.item)
    found = rogan_gladen(
        raw, n if len(per_item) == n else effective_samples(per_item, n), errors, group.level
    )
    if found.value is None or found.low is None or found.high is None:
        return Values(value=None, fields=fields, reason=found.reason)
    return Values(value=found.value, fields=fields, interval=(found.low, found.high, found.method))


def _judges(column: list[Any]) -> set[str]:
    """The identities of those who gave the verdicts; a row that has none was not judged."""
    return {str(judge.get("id")) for judge in column if isinstance(judge, dict)}
