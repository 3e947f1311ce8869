"""Gates: what passes, fails and stays open, by interval and by number, from arguments and from a config."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from assay.analysis.compare.gate import Check, Gated, gate
from assay.config import GateConfig, load, resolved
from assay.errors import ConfigError, UserError
from assay.stats.intervals import clopper_pearson
from assay.stats.student import holm
from tests.analysis.rows import counted, rows_of, save
from tests.support import Lab


def checked(path: Path, **options: Any) -> Check:
    (check,) = gate(path, **options).checks
    return check


@pytest.mark.parametrize(
    ("bounds", "outcome", "by_number"),
    [
        ({"min": 0.6}, "passed", "passed"),
        ({"min": 0.65}, "inconclusive", "passed"),
        ({"min": 0.75}, "inconclusive", "failed"),
        ({"min": 0.8}, "failed", "failed"),
        ({"max": 0.8}, "passed", "passed"),
        ({"max": 0.72}, "inconclusive", "passed"),
        ({"max": 0.6}, "failed", "failed"),
    ],
)
def test_bounds(tmp_path: Path, bounds: dict[str, float], outcome: str, by_number: str) -> None:
    folder = save(tmp_path / "e", counted(140, 200))
    check = checked(folder, **bounds)
    assert (check.value, check.low, check.high) == (0.7, *clopper_pearson(140, 200))
    assert check.outcome == outcome
    deciding = {"min": check.low, "max": check.high}
    if outcome == "failed":
        deciding = {"min": check.high, "max": check.low}
    assert check.bound_used == deciding[check.bound]
    by_point = checked(folder, point=True, **bounds)
    assert (by_point.outcome, by_point.bound_used) == (by_number, None)


@pytest.mark.parametrize(
    ("passes", "outcome", "by_number"),
    [
        (700, "passed", "passed"),
        (693, "passed", "passed"),
        (686, "inconclusive", "passed"),
        (600, "failed", "failed"),
    ],
)
def test_drops_below_a_baseline(tmp_path: Path, passes: int, outcome: str, by_number: str) -> None:
    baseline, folder = (
        save(tmp_path / "old", counted(700, 1000)),
        save(tmp_path / "new", counted(passes, 1000)),
    )
    check = checked(folder, baseline=baseline, max_drop=0.02)
    assert check.value == pytest.approx((passes - 700) / 1000)
    assert check.outcome == outcome
    assert checked(folder, baseline=baseline, max_drop=0.02, point=True).outcome == by_number
    assert check.bound_used == (check.high if outcome == "failed" else check.low)
    assert ("; it takes at least" in check.why) == (outcome == "inconclusive")


def test_a_gain_is_no_drop(tmp_path: Path) -> None:
    baseline, folder = (
        save(tmp_path / "old", counted(50, 100)),
        save(tmp_path / "new", counted(80, 100)),
    )
    assert checked(folder, baseline=baseline, max_drop=0.0).outcome == "passed"


def test_errors_make_it_inconclusive_whatever_the_rest_says(tmp_path: Path) -> None:
    rows = counted(196, 198) + rows_of({"x": "errored", "y": "errored"})
    folder = save(tmp_path / "e", rows)
    check = checked(folder, min=0.5)
    assert check.outcome == "inconclusive"
    assert check.why == "2 of 200 rows of 'e' are errors, more than 0"
    assert checked(folder, min=0.5, point=True).outcome == "inconclusive"
    assert checked(folder, min=0.5, max_error_rate=0.01).outcome == "passed"
    baseline = save(tmp_path / "old", counted(100, 198))
    assert checked(baseline, baseline=folder, max_drop=0.9).outcome == "inconclusive"


def test_all_rows_errored_is_inconclusive(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", rows_of({"a": "errored", "b": "errored"}))
    check = checked(folder, min=0.5)
    assert (check.outcome, check.value, check.counts["errored"]) == ("inconclusive", None, 2)
    good = save(tmp_path / "good", counted(3, 5))
    assert checked(folder, baseline=good, max_drop=0.1).outcome == "inconclusive"
    assert checked(good, baseline=folder, max_drop=0.1).outcome == "inconclusive"


def test_no_interval_is_inconclusive_but_a_number_can_decide(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", rows_of({"only": True}))
    check = checked(folder, min=0.5)
    assert (check.outcome, check.why) == (
        "inconclusive",
        "there is no interval (an interval needs at least two items); see --point",
    )
    assert checked(folder, min=0.5, point=True).outcome == "passed"


def test_facets_choose_rows(tmp_path: Path) -> None:
    rows = counted(90, 100, metadata={"m": "a"}) + counted(10, 100, metadata={"m": "b"})
    folder = save(tmp_path / "e", rows)
    assert checked(folder, min=0.7, facets={"metadata.m": "a"}).outcome == "passed"
    assert checked(folder, min=0.7, facets={"m": "b"}).outcome == "failed"
    with pytest.raises(UserError, match="no row has m = 'c'"):
        gate(folder, min=0.7, facets={"m": "c"})


def test_items_on_one_side_only_are_left_out_and_said(tmp_path: Path) -> None:
    baseline, folder = (
        save(tmp_path / "old", counted(60, 100)),
        save(tmp_path / "new", counted(60, 90)),
    )
    check = checked(folder, baseline=baseline, max_drop=0.5)
    assert check.outcome == "passed"
    assert "(10 items are only on one side)" in check.why


# ---- weak evidence, several checks, missing rows


def graded(values: Any) -> list[dict[str, Any]]:
    return rows_of({f"q{at:05}": float(value) for at, value in enumerate(values)})


def test_weak_evidence_decides_nothing_unless_allowed(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", graded(np.linspace(0.8, 0.9, 20)))
    for bounds in ({"min": 0.1}, {"max": 0.1}):
        check = checked(folder, **bounds)
        assert check.outcome == "inconclusive"
        assert check.why == "the evidence is weak: fewer than 30 items; see --allow-weak"
    assert checked(folder, min=0.1, allow_weak=True).outcome == "passed"
    assert checked(folder, max=0.1, allow_weak=True).outcome == "failed"
    assert checked(folder, min=0.1, point=True).outcome == "passed"
    assert checked(folder, min=0.84, allow_weak=True).outcome == "inconclusive"


def test_few_verdicts_are_not_weak_because_their_interval_is_exact(tmp_path: Path) -> None:
    assert checked(save(tmp_path / "e", counted(20, 20)), min=0.8).outcome == "passed"


def test_an_open_interval_never_passes_nor_fails_on_that_side(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", graded(range(40)))
    config = tmp_path / "gates.yaml"
    for bound, outcome, why in (
        ("max: 1000", "inconclusive", "the bound lies within the interval, which is open above"),
        ("min: 1000", "inconclusive", "the bound lies within the interval, which is open above"),
        ("min: 1", "passed", "the whole interval keeps the bound"),
    ):
        config.write_text(
            "metrics: [{name: p99, type: percentile, params: {percentile: 99}}]\n"
            f"gates: [{{metric: p99, {bound}}}]"
        )
        (check,) = gate(folder, config=config).checks
        assert (check.outcome, check.why, check.high) == (outcome, why, None)


@pytest.mark.parametrize("seed", range(6))
def test_fails_are_corrected_for_their_number_as_holm_does(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    passes = random.binomial(60, random.choice([0.55, 0.65, 0.7, 0.75], 8))
    rows = [row for at, k in enumerate(passes) for row in counted(int(k), 60, metadata={"m": at})]
    folder = save(tmp_path / "e", rows)
    gates = [GateConfig(min=0.75, facets={"m": at}) for at in range(8)]
    tails = binom.cdf(passes, 60, 0.75).tolist()
    checks = gate(folder, gates).checks
    for check, tail, adjusted in zip(checks, tails, holm(tails), strict=True):
        if adjusted < 0.025:
            assert check.outcome == "failed"
            assert check.bound_used is not None
            assert check.bound_used < 0.75
        elif tail < 0.025:
            assert check.outcome == "inconclusive"
            assert check.why == "fails alone, not after correction for 8 checks"
        else:
            assert check.outcome in ("passed", "inconclusive")
    assert any(check.outcome == "failed" for check in gate(folder, gates, point=True).checks)


def test_passes_are_not_corrected(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", counted(90, 100))
    gates = [GateConfig(min=0.82)] * 9 + [GateConfig(min=0.99)]
    outcomes = [check.outcome for check in gate(folder, gates).checks]
    assert outcomes == ["passed"] * 9 + ["failed"]


def with_missing(right: int, wrong: int, missing: int) -> list[dict[str, Any]]:
    return counted(right, right + wrong) + rows_of({f"x{at}": "errored" for at in range(missing)})


@pytest.mark.parametrize(
    ("rows", "bounds", "outcome"),
    [
        (with_missing(190, 10, 2), {"min": 0.85}, "passed"),
        (with_missing(190, 10, 30), {"min": 0.85}, "inconclusive"),
        (with_missing(10, 190, 2), {"min": 0.2}, "failed"),
        (with_missing(10, 190, 40), {"min": 0.2}, "inconclusive"),
        (with_missing(10, 190, 2), {"max": 0.2}, "passed"),
        (with_missing(10, 190, 40), {"max": 0.2}, "inconclusive"),
        (with_missing(0, 200, 60), {"max": 0.2}, "inconclusive"),
        (with_missing(190, 10, 30), {"max": 0.85}, "inconclusive"),
    ],
)
def test_a_verdict_must_survive_the_missing_rows(
    tmp_path: Path, rows: list[dict[str, Any]], bounds: dict[str, float], outcome: str
) -> None:
    folder = save(tmp_path / "e", rows)
    check = checked(folder, max_error_rate=0.5, **bounds)
    assert check.outcome == outcome
    missing = check.counts["errored"]
    assert (check.why == f"{missing} missing rows could reverse it") == (outcome == "inconclusive")
    whole = save(tmp_path / "whole", rows[:200])
    assert checked(whole, **bounds).outcome != "inconclusive"
    by_point = checked(folder, max_error_rate=0.5, point=True, **bounds)
    assert by_point.outcome == checked(whole, point=True, **bounds).outcome


def test_a_drop_must_survive_the_missing_rows(tmp_path: Path) -> None:
    """The candidate has no answer to what is hard."""
    old = save(tmp_path / "old", counted(143, 200))
    verdicts: dict[str, Any] = {f"q{at:05}": at < 123 or "errored" for at in range(192)}
    new = save(tmp_path / "new", rows_of(verdicts | {f"q{at:05}": True for at in range(192, 200)}))
    check = checked(new, baseline=old, max_drop=0.02, max_error_rate=0.5)
    assert check.outcome == "inconclusive"
    assert check.why.startswith("69 missing rows could reverse it; ")


@pytest.mark.parametrize(("passes", "n", "bound"), [(45, 50, 0.8), (20, 20, 0.9), (33, 60, 0.6)])
def test_fewer_items_than_are_said_to_be_needed_settle_nothing(
    tmp_path: Path, passes: int, n: int, bound: float
) -> None:
    """Even if all further items were at the end of the interval that is farther from the bound."""
    check = checked(save(tmp_path / "e", counted(passes, n)), min=bound)
    said = re.search(r"it takes at least ([\d,]+) more item", check.why)
    assert said is not None
    assert check.low is not None
    assert check.high is not None
    farther = check.high if check.value and check.value > bound else check.low
    for more in range(int(said[1])):
        low, high = clopper_pearson(passes + farther * more, n + more)
        assert low < bound <= high


# ---- from a config


def lab_with(tmp_path: Path, gates: list[dict[str, Any]]) -> Path:
    lab = Lab(tmp_path)
    lab.config["gates"] = gates
    lab.run()
    return tmp_path / "out"


def test_the_folders_own_gates(tmp_path: Path) -> None:
    gates = [
        {
            "metric": "pass@1",
            "label": "exact_match",
            "min": 0.2,
            "facets": {"metadata.model_id": "calculator"},
        },
        {"metric": "mean", "label": "contains", "min": 0.1, "max": 0.9},
    ]
    folder = lab_with(tmp_path, gates)
    gated = gate(folder, allow_weak=True)
    assert {check.outcome for check in gate(folder).checks} == {"inconclusive"}
    assert [(check.bound, check.outcome) for check in gated.checks] == [
        ("min", "passed"),
        ("min", "passed"),
        ("max", "inconclusive"),
    ]
    assert gated.outcome == "inconclusive"


def test_a_config_of_gates_alone(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", counted(60, 100))
    save(tmp_path / "base", counted(60, 100))
    config = tmp_path / "gates.yaml"
    config.write_text("gates:\n  - {min: 0.4}\n  - {max_drop: 0.1}\n")
    gated: Gated = gate(folder, config=config, baseline=tmp_path / "base")
    assert [(check.bound, check.outcome) for check in gated.checks] == [
        ("min", "passed"),
        ("max_drop", "passed"),
    ]
    with pytest.raises(UserError, match="needs a baseline"):
        gate(folder, config=config)


def test_the_configs_policy_and_metrics_are_used(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "e", counted(60, 90) + rows_of({f"x{i}": "unparsed" for i in range(10)})
    )
    config = tmp_path / "gates.yaml"
    config.write_text(
        "metrics: [{name: lenient, type: pass_rate, on_unparsed: exclude}]\ngates: [{metric: lenient, min: 0.5}]"
    )
    assert gate(folder, config=config).checks[0].value == pytest.approx(60 / 90)
    config.write_text("policy: {on_unparsed: exclude}\ngates: [{metric: pass_rate, min: 0.5}]")
    assert gate(folder, config=config).checks[0].value == pytest.approx(60 / 90)


def test_gates_in_a_config_are_checked_and_written_out(tmp_path: Path) -> None:
    config = load(
        {"gates": [{"min": 0.5}, {"max_drop": 0.02, "baseline": "output/base"}]}, need="gate"
    )
    assert config.gates[0] == GateConfig(min=0.5)
    assert config.gates[1].baseline == str(Path.cwd() / "output/base")
    assert load(resolved(config), need="gate").gates == config.gates
    with pytest.raises(ConfigError) as error:
        load(
            {"gates": [{}, {"min": 1, "baseline": "x"}, {"max_drop": -1}, {"minn": 1}]}, need="gate"
        )
    for part in (
        "a gate needs a bound",
        "a baseline is only for max_drop",
        "max_drop must be",
        "did you mean 'min'",
    ):
        assert part in str(error.value)


# ---- bad input


def test_nothing_to_check(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", counted(1, 3))
    with pytest.raises(UserError, match="nothing to check"):
        gate(folder)
    with pytest.raises(UserError, match="a gate has no 'minn'") as error:
        gate(folder, minn=0.5)
    assert "did you mean 'min'" in error.value.fix
    with pytest.raises(UserError, match="the gate cannot be checked"):
        gate(folder, min="high")
    with pytest.raises(UserError, match="only for a gate on a drop"):
        gate(folder, min=0.5, baseline=folder)
    with pytest.raises(UserError, match="no file or folder"):
        gate(tmp_path / "nowhere", min=0.5)
    with pytest.raises(UserError, match="have no item in common"):
        gate(folder, baseline=save(tmp_path / "o", rows_of({"other": True})), max_drop=0.1)
