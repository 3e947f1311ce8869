"""Gates: what passes, fails and stays open, by interval and by number, from arguments and from a config."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.analysis.compare.gate import Check, Gated, gate
from assay.config import GateConfig, load, resolved
from assay.errors import ConfigError, UserError
from assay.stats.intervals import wilson
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
    assert (check.value, check.low, check.high) == (0.7, *wilson(140, 200))
    assert check.outcome == outcome
    assert checked(folder, point=True, **bounds).outcome == by_number


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
    assert ("items would settle it" in check.why) == (outcome == "inconclusive")


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


@pytest.mark.slow
def test_false_alarms_at_the_very_bound(tmp_path: Path) -> None:
    """A true drop of exactly max_drop: passing and failing are both errors, each below alpha / 2."""
    random = np.random.default_rng(12)
    outcomes: list[str] = []
    for _ in range(50):
        chance = np.clip(random.beta(6, 2, 80), 0.05, 1)
        old = {f"q{i}": bool(random.random() < chance[i]) for i in range(80)}
        new = {f"q{i}": bool(random.random() < chance[i] - 0.05) for i in range(80)}
        baseline, folder = (
            save(tmp_path / "old", rows_of(old)),
            save(tmp_path / "new", rows_of(new)),
        )
        outcomes.append(checked(folder, baseline=baseline, max_drop=0.05).outcome)
    allowed = 0.025 + 3 * (0.025 * 0.975 / 50) ** 0.5
    assert outcomes.count("passed") / 50 <= allowed
    assert outcomes.count("failed") / 50 <= allowed


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
    gated = gate(lab_with(tmp_path, gates))
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
