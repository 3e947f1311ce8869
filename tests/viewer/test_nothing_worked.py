"""Experiments in which nothing worked: every response failed, every label failed, or there are no rows at all. They are
what one looks at most."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import AssayError
from assay.viewer.experiments import Experiments
from assay.viewer.pages import NAMES, page
from tests.viewer.demo import ask

ROWS = [{"id": f"i{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(4)]
METRICS: list[dict[str, Any]] = [
    {"name": "pass@1", "facets": ["model_name"]},
    {"name": "pass@2", "facets": ["model_name"]},
    *({"name": name, "facets": ["model_name"]} for name in ("mean", "median", "latency", "cost")),
]
CHARTS = ("intervals", "heat", "scatter", "scores", "latency", "tokens", "pass_at_k")


def broken(prompt: str) -> str:
    raise ValueError("it is broken")


def repeated(prompt: str) -> str:
    return prompt


def graded(item: Any, response: Any) -> float:
    raise ValueError("it cannot be graded")


KINDS = ("responses", "labels", "nothing", "empty")


def make(folder: Path, kind: str) -> None:
    if kind in ("responses", "labels"):
        assay.run(
            dataset=ROWS,
            models=[broken if kind == "responses" else repeated],
            prompts="{{question}}",
            scorers=[
                graded
                if kind == "labels"
                else {"name": "exact_match", "params": {"expected": "answer"}}
            ],
            metrics=METRICS,
            samples=2,
            output_dir=str(folder),
        )
        return
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    if kind == "empty":
        for name in ("items", "responses", "evaluation_results", "metrics"):
            (folder / f"{name}.jsonl").write_text("")


@pytest.fixture(scope="module", params=[*KINDS, "all"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("failed")
    for kind in KINDS if request.param == "all" else [request.param]:
        make(place / kind, kind)
    return place


def queries(name: str, experiments: Experiments) -> list[dict[str, Any]]:
    """Return what can be asked of a page here, everything that the app asks among it."""
    ids = list(experiments.list())
    board = ask(experiments, "leaderboard")
    of = [{"metric": row["metric"], "label": row["label"]} for row in board["rows"]]
    of += [{}, {"label": "graded"}]
    if name == "chart":
        places = {"rows": "experiment", "columns": "model_name"}
        return [{"name": chart, **places, **each} for chart in CHARTS for each in of] + [
            {"name": chart, "facet": ["task"]} for chart in CHARTS
        ]
    return {
        "standing": of,
        "sample": [{"item": "i0"}],
        "compare": [{"a": ids[0], "b": ids[-1]}, {"a": ids[0], "b": ids[-1], "facet": "task"}],
        "flips": [{"a": ids[0], "b": ids[-1]}],
        "judges": [{"experiment": id} for id in ids],
        "leaderboard": [{}, {"facet": ["task"]}],
        "samples": [{}, *({"sort": sort} for sort in ("score", "latency", "disagreement"))],
    }.get(name, [{}])


@pytest.mark.parametrize("name", NAMES)
def test_every_page_answers_or_says_why_not(folder: Path, name: str) -> None:
    experiments = Experiments([folder])
    for query in queries(name, experiments):
        texts = {key: value if isinstance(value, list) else [value] for key, value in query.items()}
        with suppress(AssayError):  # anything else is a defect
            page(experiments, name, texts)


@pytest.mark.parametrize("form", ["html", "md"])
def test_there_is_a_report(folder: Path, tmp_path: Path, form: str) -> None:
    assay.report([folder], tmp_path / f"report.{form}")
    assert (tmp_path / f"report.{form}").stat().st_size


def test_failures_are_counted_where_there_are_no_values(tmp_path: Path) -> None:
    make(tmp_path / "responses", "responses")
    rows = ask(tmp_path, "leaderboard")["rows"]
    mean = next(row for row in rows if row["metric"] == "mean")
    assert (mean["value"], mean["counts"]["errored"], mean["used"]) == (None, 8, 0)
    assay.report([tmp_path], tmp_path / "report.md")
    assert "| 8 errored |" in (tmp_path / "report.md").read_text()


def test_pass_at_k_that_cannot_be_computed_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of a metric that raised has no k."""
    make(tmp_path / "labels", "labels")
    lines = (tmp_path / "labels" / "evaluation_results.jsonl").read_text()
    scored = lines.replace('"outcome":"errored"', '"outcome":"scored","passed":true,"score":1.0')
    (tmp_path / "labels" / "evaluation_results.jsonl").write_text(scored)

    def fail(*_: Any) -> None:
        raise ValueError("it cannot be computed")

    monkeypatch.setattr("assay.metrics.pass_at_k.expected_pass_at_k", fail)
    chart = ask(tmp_path, "chart", name="pass_at_k")
    assert "pass@k of graded" in chart["svg"]
    assay.report([tmp_path], tmp_path / "report.html")
