"""The judges' page has what `calibrate` found or would find; nothing is stored by looking."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import assay
from tests.analysis.judged_lab import judged
from tests.viewer.demo import ask, content, demo

EXAMPLE = Path(__file__).parents[2] / "examples" / "judges"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judges")
    assay.run(EXAMPLE / "config.yaml", output_dir=str(folder / "judges"))
    return folder


def test_a_judge_that_nobody_checked(root: Path) -> None:
    page = ask(root, "judges", experiment="judges")
    assert page["judges"] == []
    assert "no judge was compared with people's labels" in page["reason"]
    assert f"assay judge label {root / 'judges'}" in page["reason"]


def test_no_judge(tmp_path: Path) -> None:
    demo(tmp_path / "demo", limit=2)
    assert "no judge gave a label here" in ask(tmp_path, "judges")["reason"]


def test_labels_are_compared_and_nothing_is_stored(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "judges", tmp_path / "judges")
    with (EXAMPLE / "labels.csv").open() as rows:
        labels = "".join(json.dumps(row) + "\n" for row in csv.DictReader(rows))
    (tmp_path / "judges" / "labels.jsonl").write_text(labels)
    before = content(tmp_path)
    page = ask(tmp_path, "judges", experiment="judges")
    assert content(tmp_path) == before
    _same(page, assay.calibrate(tmp_path / "judges"))
    (tmp_path / "judges" / "labels.jsonl").unlink()
    # what is stored now
    assert ask(tmp_path, "judges", experiment="judges")["judges"] == page["judges"]


def _same(page: dict[str, object], calibrated: object) -> None:
    from assay.analysis.judge.calibrate import Calibrated

    assert isinstance(calibrated, Calibrated)
    judges = page["judges"]
    assert isinstance(judges, list)
    assert [judge["label"] for judge in judges] == [each.label for each in calibrated.calibrations]
    for judge, each in zip(judges, calibrated.calibrations, strict=True):
        facts = {what: (value, span) for what, value, span in judge["facts"]}
        kappa, percent = each.agreement.kappa, each.agreement.percent
        assert facts["Cohen's kappa"] == (
            f"{kappa.value:.3f}",
            f"{kappa.low:.3f} … {kappa.high:.3f}",
        )
        assert facts["agreement"] == (
            f"{percent.value:.3f}",
            f"{percent.low:.3f} … {percent.high:.3f}",
        )
        assert facts["sensitivity"][0] == f"{each.sensitivity.value:.3f}"
        assert facts["labelled answers"] == (f"{each.labels:,}", "")
        for count in (each.counted.tp, each.counted.fn, each.counted.fp, each.counted.tn):
            assert f">{count:.0f}<" in judge["charts"][0]["svg"]


def test_a_judge_with_grades_has_a_curve(tmp_path: Path) -> None:
    lab = judged(tmp_path, "graded", items=40)
    people = {f"q{number}": number % 5 >= 2 and number % 7 > 0 for number in range(40)}
    rows = [{"item": item, "label": said} for item, said in people.items()]
    (tmp_path / "out" / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (judge,) = ask(lab.folder, "judges")["judges"]
    assert [chart["title"] for chart in judge["charts"]] == [
        "graded: people's verdicts and the judge's",
        "graded: reliability",
    ]
    curve = assay.calibrate(tmp_path / "out", keep=False).calibrations[0].curve
    expected = [
        np.mean([said for item, said in people.items() if int(item[1:]) % 5 == grade])
        for grade in range(5)
    ]
    assert [point.score for point in curve] == [0, 0.25, 0.5, 0.75, 1]
    assert [point.passed.value for point in curve] == pytest.approx(expected)
    assert [point.passed.n for point in curve] == [8] * 5


def test_a_judge_of_yes_and_no_has_none(root: Path) -> None:
    calibrated = assay.calibrate(root / "judges", EXAMPLE / "labels.csv", keep=False)
    assert all(each.curve == [] for each in calibrated.calibrations)
    assert calibrated.stored == ""
