"""Gates on judges: a calibration that is missing, of another judge, too old, not good enough, or good."""

import time
from pathlib import Path
from typing import Any

import pytest

from assay.analysis.compare.gate import gate
from assay.analysis.compare.gate_calibration import Check
from assay.analysis.judge.calibrate import calibrate
from assay.config import load, resolved
from assay.errors import ConfigError, UserError
from assay.reports.compare import gate_text
from assay.reports.sheet import sheet
from assay.store.stores import FlatStore
from tests.analysis.judge.test_calibrate import table_of
from tests.analysis.judges import label, save, verdict


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows, labels = table_of(90, 8, 10, 72)
    calibrate(save(tmp_path / "e", rows), labels)
    return tmp_path / "e"


def checks(gated: Path, /, **wanted: Any) -> list[Check]:
    return gate(gated, calibration={"label": "right", **wanted}).checks


def age(folder: Path, days: float) -> None:
    store = FlatStore(folder)
    manifest = store.manifest("evaluation", folder.name)
    assert manifest is not None
    manifest.metadata["calibrations"]["right"]["created"] = time.time() - days * 86_400
    store.put_manifest(manifest)


def test_there_and_fresh(folder: Path) -> None:
    (check,) = checks(folder)
    assert (check.bound, check.outcome, check.items, check.samples) == ("fresh", "passed", 180, 180)
    age(folder, 20)
    (check,) = checks(folder, max_age_days=30)
    assert check.outcome == "passed"
    assert check.value == pytest.approx(20, abs=0.01)


@pytest.mark.parametrize(
    ("bound", "outcomes"),
    [
        ("min_kappa", [(0.65, "passed"), (0.8, "inconclusive"), (0.9, "failed")]),
        ("min_sensitivity", [(0.8, "passed"), (0.9, "inconclusive"), (0.97, "failed")]),
        ("min_specificity", [(0.8, "passed"), (0.9, "inconclusive"), (0.97, "failed")]),
    ],
)
def test_bounds_are_decided_by_the_interval(
    folder: Path, bound: str, outcomes: list[tuple[float, str]]
) -> None:
    for threshold, outcome in outcomes:
        fresh, check = checks(folder, **{bound: threshold})
        assert (fresh.outcome, check.outcome, check.threshold) == ("passed", outcome, threshold)
        assert check.low is not None
        assert check.name.endswith("of judge right")


def test_the_number_decides_with_point(folder: Path) -> None:
    wanted = {"label": "right", "min_sensitivity": 0.9, "min_specificity": 0.901}
    assert [check.outcome for check in gate(folder, calibration=wanted, point=True).checks] == [
        "passed",
        "passed",
        "failed",
    ]


def test_too_old(folder: Path) -> None:
    age(folder, 40)
    (check,) = checks(folder, max_age_days=30, min_kappa=0.1)
    assert check.outcome == "failed"
    assert (
        check.why
        == f"it is 40 days old, more than 30; run `assay judge calibrate {folder} --label right`"
    )


def test_missing(tmp_path: Path, folder: Path) -> None:
    rows, _ = table_of(5, 1, 1, 5)
    other = save(tmp_path / "f", rows)
    (check,) = checks(other, min_kappa=0.1)
    assert (check.outcome, check.value) == ("failed", None)
    assert check.why.startswith(
        f"there is no calibration of it in {str(other)!r}; run `assay judge calibrate"
    )
    (there,) = checks(other, path=str(folder))
    assert there.outcome == "passed"


def test_of_another_judge(tmp_path: Path, folder: Path) -> None:
    details = {"judge": {"id": "ffff", "model": "k"}}
    other = save(
        tmp_path / "f", [verdict(f"q{n}", True, detailed_results=details) for n in range(9)]
    )
    (check,) = checks(other, path=str(folder))
    assert check.outcome == "failed"
    assert "it is of the judge 0123456789abcdef, and the rows are by ffff; run" in check.why
    plain = save(tmp_path / "g", [verdict("q", True, detailed_results={})])
    (check,) = checks(plain, path=str(folder))
    assert "no row with the label 'right' names its judge" in check.why


def test_a_calibration_without_an_interval_is_inconclusive(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", [verdict("q", True)])
    calibrate(folder, [label("q", 1)])
    fresh, kappa, specificity = checks(folder, min_kappa=0.5, min_specificity=0.5)
    assert [check.outcome for check in (fresh, kappa, specificity)] == [
        "passed",
        "inconclusive",
        "inconclusive",
    ]
    assert specificity.why == "people failed none of the answers"


def test_one_that_cannot_be_read_is_to_be_made_again(folder: Path) -> None:
    store = FlatStore(folder)
    manifest = store.manifest("evaluation", folder.name)
    assert manifest is not None
    del manifest.metadata["calibrations"]["right"]["agreement"]
    store.put_manifest(manifest)
    (check,) = checks(folder)
    assert (check.outcome, "there is no calibration" in check.why) == ("failed", True)


def test_beside_other_bounds_and_in_reports(folder: Path) -> None:
    gated = gate(
        folder, min=0.4, calibration={"label": "right", "max_age_days": 9, "min_kappa": 0.95}
    )
    assert [check.outcome for check in gated.checks] == ["passed", "failed", "passed"]
    assert gated.outcome == "failed"
    assert "| calibration right | not older than 9 days | 0.0 days | – |" in sheet(gated).form(
        "markdown"
    )
    assert "failed: kappa of judge right, at least 0.95: 0.798" in gate_text(gated)


def test_in_a_config(folder: Path) -> None:
    wanted = {"label": "right", "max_age_days": 30, "min_kappa": 0.6, "path": "output/base"}
    config = load({"gates": [{"calibration": wanted}]}, need="gate")
    assert config.gates[0].calibration is not None
    assert config.gates[0].calibration.path == str(Path.cwd() / "output/base")
    assert load(resolved(config), need="gate").gates == config.gates
    file = folder.parent / "gates.yaml"
    file.write_text("gates: [{calibration: {label: right, min_sensitivity: 0.8}}]")
    assert [check.outcome for check in gate(folder, config=file).checks] == ["passed", "passed"]
    for bad, said in (
        ({}, "label"),
        ({"label": "x", "min_kapa": 1}, "did you mean 'min_kappa'"),
        ({"label": "x", "min_kappa": 2}, "min_kappa"),
        ({"label": "x", "max_age_days": 0}, "max_age_days"),
    ):
        with pytest.raises(ConfigError) as error:
            load({"gates": [{"calibration": bad}]}, need="gate")
        assert said in str(error.value)
    with pytest.raises(UserError, match="the gate cannot be checked"):
        gate(folder, calibration={"min_kappa": 0.5})
