"""Simulated judges with known errors and biases: every diagnostic finds what was put in, and its interval holds the
truth as often as it promises."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.analysis.judge.accuracy import Estimate, confusion, corrected_rates, kappa, verdicts_of
from assay.analysis.judge.bias import length_bias, position_bias, self_preference
from assay.analysis.judge.calibrate import calibrate
from assay.analysis.judge.judged import JudgedAnswer, JudgedLabel
from tests.analysis.judges import label, match, response, save, verdict

LEVEL = 0.9
TIMES = 100


def judged(answers: list[JudgedAnswer], *, match: bool = False) -> JudgedLabel:
    return JudgedLabel("right", "right", answers, {"id": None}, {"j": None}, match)


def coverage(simulate: Callable[[np.random.Generator], Estimate], truth: float) -> float:
    """How often the interval holds the truth."""
    return (
        sum(_holds(simulate(np.random.default_rng(seed)), truth) for seed in range(TIMES)) / TIMES
    )


def _holds(found: Estimate, truth: float) -> bool:
    assert found.low is not None, found
    assert found.high is not None
    return found.low <= truth <= found.high


def fine(share: float) -> bool:
    """Not below the promise by more than chance."""
    return share >= LEVEL - 3 * (LEVEL * (1 - LEVEL) / TIMES) ** 0.5


# ---- length


def long_winded(
    random: np.random.Generator, slope: float, samples: int = 1, n: int = 150
) -> Estimate:
    """A judge whose log odds of a pass rise by `slope` with each doubling, on answers whose quality has nothing to do
    with their length; samples of an item are equally hard to judge."""
    answers: list[JudgedAnswer] = []
    lengths: dict[int, int] = {}
    for item in range(n):
        for sample in range(samples):
            key, truth = len(answers), float(random.random() < 0.6)
            lengths[key] = int(2 ** random.uniform(4, 11))
            odds = (1.5 if truth else -1.5) + slope * (np.log2(lengths[key]) - 7.5)
            passed = float(random.random() < 1 / (1 + np.exp(-odds)))
            answers.append(JudgedAnswer(f"q{item}", sample, "m", (), (key,), passed, truth))
    return length_bias(judged(answers), lengths, LEVEL)


@pytest.mark.parametrize(("slope", "samples"), [(0.0, 1), (0.5, 1), (-0.4, 2)])
def test_length_bias_is_found_and_covered(slope: float, samples: int) -> None:
    assert fine(coverage(lambda random: long_winded(random, slope, samples), float(np.exp(slope))))


def test_length_bias_by_an_independent_fit() -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(4)
    truth, logs = random.random(300) < 0.5, random.uniform(3, 9, 300).round()
    passed = random.random(300) < np.where(truth, 0.8, 0.3)
    lengths = {n: int(2 ** logs[n]) for n in range(300)}
    answers = [
        JudgedAnswer(f"q{n}", 0, "m", (), (n,), float(passed[n]), float(truth[n]))
        for n in range(300)
    ]
    found = length_bias(judged(answers), lengths, 0.95)
    columns = np.column_stack([logs, truth, np.ones(300)]).astype(float)
    expected = statsmodels.Logit(passed.astype(float), columns).fit(disp=0)
    assert found.value == pytest.approx(np.exp(expected.params[0]))
    groups = {"groups": np.arange(300)}
    robust = statsmodels.Logit(passed.astype(float), columns).fit(
        disp=0, cov_type="cluster", cov_kwds=groups, use_t=True
    )
    assert found.low == pytest.approx(np.exp(robust.conf_int()[0][0]), rel=0.005)


def test_length_bias_that_cannot_be_told() -> None:
    right = [JudgedAnswer(f"q{n}", 0, "m", (), (n,), float(n % 2), float(n % 2)) for n in range(40)]
    assert "only 0 times" in length_bias(judged(right), {n: n + 1 for n in range(40)}, LEVEL).method
    assert "are not there" in length_bias(judged(right), {}, LEVEL).method
    assert "are not there" in length_bias(judged([]), {}, LEVEL).method
    wrong = [JudgedAnswer(f"q{n}", 0, "m", (), (n,), float(n % 2), 1.0) for n in range(40)]
    assert "equally long" in length_bias(judged(wrong), dict.fromkeys(range(40), 7), LEVEL).method
    apart = [JudgedAnswer(f"q{n}", 0, "m", (), (n,), float(n > 20), 1.0) for n in range(40)]
    assert (
        "do not allow a fit"
        in length_bias(judged(apart), {n: 2**n for n in range(40)}, LEVEL).method
    )


# ---- seats


def seated(random: np.random.Generator, swayed: float, n: int = 60, pairs: int = 2) -> Estimate:
    """With the chance `swayed` the judge takes the first seat whatever stands there."""
    answers: list[JudgedAnswer] = []
    for item in range(n):
        hard = random.random()
        for pair in range(pairs):
            better = float(random.random() < hard)
            seats = {seat: better if random.random() >= swayed else 1.0 - seat for seat in (0, 1)}
            answers.append(JudgedAnswer(f"q{item}", pair, "a vs b", ("a", "b"), (), seats=seats))
    return position_bias(judged(answers, match=True), LEVEL)


@pytest.mark.parametrize("swayed", [0.0, 0.1, 0.5])
def test_position_bias_is_found_and_covered(swayed: float) -> None:
    """The first seat's payoff is 1/2 + swayed/2: as likely as not it would have won anyway."""
    assert fine(coverage(lambda random: seated(random, swayed), swayed / 2))


def test_position_bias_that_cannot_be_told() -> None:
    assert "only a judge of pairs" in position_bias(judged([]), LEVEL).method
    one_seat = JudgedAnswer("q", 0, "a vs b", ("a", "b"), (), seats={0: 1.0})
    assert (
        "no pair was judged in both seats"
        in position_bias(judged([one_seat], match=True), LEVEL).method
    )


# ---- its own answers


def vain(random: np.random.Generator, kindness: float, n: int = 80) -> Estimate:
    """A judge that is wrong a fifth of the time, and in addition passes its own bad answers that often."""
    answers: list[JudgedAnswer] = []
    for item in range(n):
        hard = random.uniform(0.2, 0.8)
        for model in ("j", "x", "y"):
            truth = float(random.random() < hard)
            said = truth if random.random() < 0.8 else 1 - truth
            if model == "j" and not said and random.random() < kindness:
                said = 1.0
            answers.append(JudgedAnswer(f"q{item}", 0, model, (), (), said, truth))
    return self_preference(judged(answers), {"j"}, LEVEL)


@pytest.mark.parametrize("kindness", [0.0, 0.3])
def test_self_preference_is_found_and_covered(kindness: float) -> None:
    """Half of its own answers are called bad before kindness sets in."""
    assert fine(coverage(lambda random: vain(random, kindness), kindness / 2))


def test_self_preference_in_matches() -> None:
    """From the own answer's side, whichever player it is; matches without it do not count."""
    answers = [
        JudgedAnswer("a", 0, "j vs x", ("j", "x"), (), 1.0, 0.0),
        JudgedAnswer("b", 0, "a vs j", ("a", "j"), (), 0.0, 0.0),
        JudgedAnswer("c", 0, "a vs x", ("a", "x"), (), 0.0, 1.0),
    ]
    assert self_preference(judged(answers, match=True), {"j"}, LEVEL).value == pytest.approx(0.5)


def test_self_preference_that_cannot_be_told() -> None:
    own = [JudgedAnswer(f"q{n}", 0, "j", (), (), 1.0, 1.0) for n in range(5)]
    assert "gave none of the answers" in self_preference(judged(own), set(), LEVEL).method
    assert "labelled only the judge's own" in self_preference(judged(own), {"j"}, LEVEL).method
    assert "no labelled answer" in self_preference(judged([]), {"j"}, LEVEL).method


# ---- corrected rates and agreement


def erring(
    random: np.random.Generator, rate: float, labelled: int, n: int = 300, samples: int = 1
) -> JudgedLabel:
    """A judge with a sensitivity of 0.9 and a specificity of 0.75; samples of an item are as likely to be good."""
    answers: list[JudgedAnswer] = []
    for item in range(n):
        chance = random.beta(4 * rate, 4 * (1 - rate))
        for sample in range(samples):
            truth = float(random.random() < chance)
            said = float(random.random() < (0.9 if truth else 0.25))
            answers.append(
                JudgedAnswer(
                    f"q{item}", sample, "m", (), (), said, truth if item < labelled else None
                )
            )
    return judged(answers)


@pytest.mark.parametrize(("rate", "samples"), [(0.5, 1), (0.85, 1), (0.6, 3)])
def test_corrected_rates_cover_the_truth(rate: float, samples: int) -> None:
    held = dict.fromkeys(("raw", "rogan_gladen", "ppi"), 0)
    for seed in range(TIMES):
        found = erring(np.random.default_rng(seed), rate, 80, samples=samples)
        rates = corrected_rates(found, confusion(verdicts_of(found.answers)), LEVEL)["m"]
        for name in held:
            held[name] += _holds(getattr(rates, name), rate)
    assert fine(held["rogan_gladen"] / TIMES)
    assert fine(held["ppi"] / TIMES)
    assert held["raw"] < 0.8 * TIMES  # what the correction is for


def test_kappa_covers_the_truth() -> None:
    table = np.array([[0.5 * 0.9, 0.5 * 0.1], [0.5 * 0.25, 0.5 * 0.75]])
    by_chance = float((table.sum(axis=0) * table.sum(axis=1)).sum())
    truth = (float(np.trace(table)) - by_chance) / (1 - by_chance)
    for labelled in (25, 100):
        share = coverage(
            lambda random, n=labelled: kappa(verdicts_of(erring(random, 0.5, n, n).answers), LEVEL),
            truth,
        )
        assert fine(share)


# ---- all at once, from files


def test_from_files(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    odds_of = np.array([-2, 2])[:, None] + 0.8 * (np.linspace(4, 9, 99) - 6.5)
    kinder = float((1 / (1 + np.exp(-odds_of - 1.5)) - 1 / (1 + np.exp(-odds_of))).mean())
    for item in (f"q{n}" for n in range(300)):
        good: dict[str, bool] = {}
        for model in ("j", "x"):
            good[model] = bool(random.random() < 0.5)
            length = int(2 ** random.uniform(4, 9))
            odds = (
                (2 if good[model] else -2)
                + 0.8 * (np.log2(length) - 6.5)
                + (1.5 if model == "j" else 0)
            )
            rows.append(verdict(item, bool(random.random() < 1 / (1 + np.exp(-odds))), model=model))
            answers.append(response(item, "x" * length, model=model))
            labels.append(label(item, int(good[model]), model=model))
        first = float(good["j"] >= good["x"])
        seen = first if random.random() < 0.8 else 1 - first
        for seat in (0, 1):
            said = 1.0 - seat if random.random() < 0.4 else seen
            rows.append(match(item, said, seat, ("j", "x"), label="pair", scorer="pair"))
        labels.append(label(item, first, model="j vs x"))
    folder = save(tmp_path / "e", rows, answers, metadata={"own_answers": {"right": ["j"]}})
    found = {one.label: one for one in calibrate(folder, labels).calibrations}
    for estimate, put_in in (
        (found["right"].length_bias, np.exp(0.8)),
        (found["right"].self_preference, kinder),
        (found["pair"].position_bias, 0.2),
        (found["pair"].length_bias, 1.0),
    ):
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < put_in < estimate.high
    for biased in (found["right"].self_preference, found["pair"].position_bias):
        assert biased.low is not None
        assert biased.low > 0.05
