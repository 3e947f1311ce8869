"""Results show themselves in a notebook: their sheet, and a picture where there are intervals."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

import assay
from assay.reports.notebook import html, pictures
from tests.viewer.demo import demo

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("notebook") / "demo")


def test_a_result_and_a_comparison(folder: Path) -> None:
    result = assay.aggregate(folder)
    comparison = assay.compare([folder], facet="model_name")
    for value, mark in (
        (result, "demo-large, polite: 0.880"),
        (comparison, "demo-small − demo-large: -0.220"),
    ):
        page = value._repr_html_()
        assert page == html(value)
        assert page.startswith(assay.sheet(value).form("html"))
        (chart,) = pictures(value)
        assert page.endswith(chart.svg)
        assert any(mark in (title.text or "") for title in ElementTree.fromstring(chart.svg).iter())


def test_a_ranking_and_a_calibration(tmp_path: Path) -> None:
    assay.run(EXAMPLES / "judges" / "pairs.yaml", output_dir=str(tmp_path / "pairs"))
    ranking = assay.rank([tmp_path / "pairs"])
    assert "<svg" in ranking._repr_html_()
    assert [chart.title for chart in pictures(ranking)] == ["rating by bradley-terry", "win matrix"]
    assay.run(EXAMPLES / "judges" / "config.yaml", output_dir=str(tmp_path / "judges"))
    calibrated = assay.calibrate(tmp_path / "judges", EXAMPLES / "judges" / "labels.csv")
    assert "people: pass" in calibrated._repr_html_()


def test_what_has_no_picture_is_a_sheet(folder: Path) -> None:
    plan = assay.plan(EXAMPLES / "demo" / "config.yaml", output_dir=str(folder))
    assert plan._repr_html_() == assay.sheet(plan).form("html")


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    hostile = "</svg><script>alert(1)</script>"
    models = [{"name": name, "type": "demo"} for name in (hostile, "b")]
    demo(tmp_path / "x", models=models, limit=2)
    page = assay.compare([tmp_path / "x"], facet="model_name")._repr_html_()
    assert "<script" not in page
    assert page.count("</svg>") == 1
