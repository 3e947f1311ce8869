"""What sways a judge besides the answer: the seat that it stands in, its length, and who wrote it.

Each diagnostic is an Estimate; where it cannot be made, `method` says why. The unit is the item throughout.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from assay.analysis.compare.paired import planned_scorers
from assay.analysis.judge.accuracy import Estimate, item_codes, none
from assay.analysis.judge.judged import JudgedAnswer, JudgedLabel
from assay.engine.evaluate.cases import readable, response_decoder
from assay.engine.evaluate.judges import OWN_ANSWERS
from assay.engine.experiment.sources import Source
from assay.interfaces import FloatArray, IntArray, Integers, Mask
from assay.sdk import JsonObject, short
from assay.stats.intervals import codes_of, item_contributions
from assay.stats.paired import Differences, interval
from assay.stats.student import t_quantile

# of the rarer kind: with fewer a regression says more about chance than about length
FEWEST_VERDICTS = 5
Ints = IntArray


def position_bias(judged: JudgedLabel, level: float) -> Estimate:
    """The payoff of the first seat above 0.5, over pairs judged in both seats: 0 if seats do not
    matter. Needs no labels."""
    if not judged.match:
        return none("only a judge of pairs has seats")
    pairs = [answer for answer in judged.answers if len(answer.seats) == 2]
    if not pairs:
        return none("no pair was judged in both seats")
    surplus = np.array([(answer.seats[0] - answer.seats[1]) / 2 for answer in pairs])
    return _mean_difference(item_contributions(item_codes(pairs), surplus), 0.5, len(pairs), level)


def _mean_difference(values: FloatArray, scale: float, n: int, level: float) -> Estimate:
    """The mean of per-item values that lie between ± scale."""
    if len(values) < 2:
        return Estimate(
            value=float(values.mean()), method="none: an interval needs at least two items", n=n
        )
    differences = Differences(values, scale)
    low, high = interval(differences, level)
    return Estimate(value=differences.mean, low=low, high=high, method="t", n=n)


def answer_lengths(source: Source, judged: Sequence[JudgedLabel]) -> dict[int, int]:
    """The length in characters of every labelled answer, by the beginning of its key."""
    wanted = {
        key for judge in judged for answer in judge.labelled_answers() for key in answer.responses
    }
    lengths: dict[int, int] = {}
    for log in source.logs("run"):
        for _, _, response in readable(log, response_decoder()):
            if short(response.key) in wanted and response.output is None:
                lengths[short(response.key)] = len(response.response)
    return lengths


def length_bias(judged: JudgedLabel, lengths: Mapping[int, int], level: float) -> Estimate:
    """Return how the odds of a pass change with each doubling of the answer's length, among answers
    that people labelled alike; in a match, of the first player's length against the second's. 1 if
    length does not matter."""
    chosen = [
        answer
        for answer in judged.labelled_answers()
        if answer.judge in (0, 1) and all(key in lengths for key in answer.responses)
    ]
    if not chosen or not any(answer.responses for answer in chosen):
        return none("the labelled answers' responses are not there")
    kept, columns, rarer = _strata(chosen)
    if rarer < FEWEST_VERDICTS:
        times = f"{rarer} time{'' if rarer == 1 else 's'}"
        return none(
            f"only {times} did the judge's verdicts on equally labelled answers differ", len(kept)
        )
    logs = np.array([_log_length(answer, lengths) for answer in kept])
    if float(np.ptp(logs)) == 0:
        return none("all answers are equally long", len(kept))
    verdicts = np.array([answer.judge == 1 for answer in kept])
    item, weights = item_codes(kept), np.array([answer.weight for answer in kept])
    design = np.column_stack([logs - logs.mean(), columns])
    fitted = logistic(design, verdicts, item, weights / weights.mean())
    freedom = int(item.max()) + 1 - design.shape[1]
    if fitted is None or freedom < 1:
        return none("length and verdicts do not allow a fit", len(kept))
    slope, error = float(fitted.coefficients[0]), float(np.sqrt(fitted.covariance[0, 0]))
    reach = t_quantile((1 + level) / 2, freedom) * error
    low, high = (float(np.exp(np.clip(end, -50, 50))) for end in (slope - reach, slope + reach))
    return Estimate(value=float(np.exp(slope)), low=low, high=high, method="logistic", n=len(kept))


def _strata(answers: Sequence[JudgedAnswer]) -> tuple[list[JudgedAnswer], FloatArray, int]:
    """The answers whose label the judge gave different verdicts to (others say nothing about
    length), an indicator column for each such label, and how often the judge gave the rarer
    verdict."""
    counted = Counter((answer.truth, answer.judge) for answer in answers)
    rarer = {truth: min(counted[truth, 0.0], counted[truth, 1.0]) for truth, _ in counted}
    telling = sorted(truth for truth, count in rarer.items() if truth is not None and count)
    kept = [answer for answer in answers if answer.truth in telling]
    return (
        kept,
        np.array([[float(answer.truth == kind) for kind in telling] for answer in kept]),
        sum(rarer.values()),
    )


def _log_length(answer: JudgedAnswer, lengths: Mapping[int, int]) -> float:
    first, *rest = (float(np.log2(max(lengths[key], 1))) for key in answer.responses)
    return first - sum(rest)


def own_models(source: Source, judged: JudgedLabel) -> set[str] | None:
    """The judged models that are the judge itself; None where a panel has some and does not say
    whose they are."""
    manifest = source.manifest("evaluation")
    recorded: JsonObject = manifest.metadata.get(OWN_ANSWERS) or {} if manifest else {}
    own = set[str](recorded.get(judged.scorer, ()))
    panel = planned_scorers(source).get(judged.scorer, {}).get("params", {}).get("model")
    if (
        not own
        or not isinstance(panel, list)
        or set(judged.models) == set(cast("list[str]", panel))
    ):
        return own
    return own & set(judged.models) or None


def self_preference(judged: JudgedLabel, own: Collection[str] | None, level: float) -> Estimate:
    """Return how much more the judge favours its own answers than people do, beyond what it does
    with others' answers. `own` are the models that are the judge itself; None if that is not
    known."""
    answers = [answer for answer in judged.labelled_answers() if answer.judge is not None]
    if own is None:
        return none("a model of the panel gave answers, and which of them it is was not recorded")
    if not own:
        return none("the judge gave none of the answers itself")
    if not answers:
        return none("no labelled answer has a verdict")
    surplus = np.array([cast("float", one.judge) - cast("float", one.truth) for one in answers])
    if judged.match:
        mine = np.array([one.players[0] in own for one in answers])
        alone = np.array([(one.players[0] in own) != (one.players[1] in own) for one in answers])
        groups = [(alone, np.where(mine, surplus, -surplus))]
    else:
        mine = np.array([one.model in own for one in answers])
        groups = [(mine, surplus), (~mine, -surplus)]
    if not all(chosen.any() for chosen, _ in groups):
        return none("people labelled only the judge's own answers, or none of them", len(answers))
    item, weights = item_codes(answers), np.array([one.weight for one in answers])
    value = sum(_mean(chosen, values, weights) for chosen, values in groups)
    per_item = value + sum(
        _contributions(chosen, values, weights, item) for chosen, values in groups
    )
    return _mean_difference(np.asarray(per_item), 2.0, len(answers), level)


def _mean(chosen: Mask, values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values[chosen], weights=weights[chosen]))


def _contributions(chosen: Any, values: FloatArray, weights: FloatArray, item: Ints) -> FloatArray:
    """Return what each item adds to or takes from the mean of the chosen values: the linearised
    ratio."""
    used = weights * chosen
    spread = np.bincount(item, weights=used * (values - _mean(chosen, values, weights)))
    return spread * len(spread) / used.sum()


_MOST_STEPS = 50
_LARGEST = 30.0  # on the scale of log odds: beyond it the fit runs off, as verdicts can be told apart without error


class LogisticFit(NamedTuple):
    """Coefficients in the order of the columns, and their cluster-robust covariance."""

    coefficients: FloatArray
    covariance: FloatArray


def logistic(
    columns: FloatArray,
    outcome: Mask,
    cluster: Integers,
    weights: FloatArray,
) -> LogisticFit | None:
    """Log odds of the outcome as a linear function of the columns, by Newton's method; None where
    no finite one fits best."""
    coefficients = np.zeros(columns.shape[1])
    for _ in range(_MOST_STEPS):
        chance = 1 / (1 + np.exp(-columns @ coefficients))
        scores = columns * (weights * (outcome - chance))[:, None]
        information = (columns * (weights * chance * (1 - chance))[:, None]).T @ columns
        try:
            step = np.linalg.solve(information, scores.sum(axis=0))
        except np.linalg.LinAlgError:
            return None
        coefficients = coefficients + np.clip(step, -2, 2)
        if np.abs(columns @ coefficients).max() > _LARGEST:
            return None
        if np.abs(step).max() < 1e-9:
            return LogisticFit(coefficients, _robust(scores, information, cluster))
    return None


def _robust(scores: FloatArray, information: FloatArray, cluster: Integers) -> FloatArray:
    """The sandwich over clusters, with the usual factor for few of them."""
    inverse = codes_of(cluster)
    groups, (n, k) = int(inverse.max()) + 1, scores.shape
    sums = np.stack([np.bincount(inverse, weights=column) for column in scores.T], axis=1)
    bread = np.linalg.inv(information)
    factor = groups / max(groups - 1, 1) * (n - 1) / max(n - k, 1)
    return factor * bread @ (sums.T @ sums) @ bread
