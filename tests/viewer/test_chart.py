"""Charts draw the engine's numbers; what cannot be drawn is an error with a way out."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import assay
from assay.errors import UserError
from tests.support import Lab
from tests.viewer.demo import ask, demo, rows_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    demo(folder / "demo")
    return folder


def tips(chart: dict[str, Any], tag: str) -> list[str]:
    """What one reads when pointing at marks."""
    marks = ElementTree.fromstring(chart["svg"]).iter(f"{SVG}{tag}")
    return [title.text or "" for mark in marks if (title := mark.find(f"{SVG}title")) is not None]


def test_intervals_are_those_of_the_rows(root: Path) -> None:
    drawn = tips(ask(root, "chart", name="intervals", metric="pass@4"), "circle")
    rows = [
        row for row in rows_of(root / "demo", "metrics.jsonl") if row["metric_name"] == "pass@4"
    ]
    assert drawn == [
        f"{row['metadata.model_id']}, {row['prompt_template']}: {row['value']:.3f} "
        f"({row['ci_low']:.3f} to {row['ci_high']:.3f}); 46 items, 184 samples"
        for row in rows
    ]


def test_a_heat_map_has_a_cell_for_each_pair(root: Path, tmp_path: Path) -> None:
    chart = ask(root, "chart", name="heat", rows="kind", columns="model_name", metric="pass@1")
    metrics = [{"name": "pass@1", "type": "pass_at_k", "facets": ["kind", "model_name"]}]
    result = assay.aggregate(root / "demo", metrics=metrics, output_dir=str(tmp_path / "again"))
    expected = {f"{row['kind']}, {row['model_name']}: {row['value']:.3f}" for row in result.metrics}
    assert {tip.partition(";")[0] for tip in tips(chart, "rect")} == expected
    assert len(expected) == 12


def test_experiments_may_be_a_side_of_a_heat_map(root: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        demo(tmp_path / name, limit=8)
    chart = ask(tmp_path, "chart", name="heat", rows="experiment", columns="model_name")
    assert len(tips(chart, "rect")) == 4
    with pytest.raises(UserError, match="several experiments"):
        ask(tmp_path, "chart", name="heat", rows="kind", columns="model_name")


def test_a_scatter_has_each_row_at_its_price(root: Path) -> None:
    chart = ask(root, "chart", name="scatter", by="latency", metric="pass@1")
    rows = [row for row in ask(root, "leaderboard")["rows"] if row["metric"] == "pass@1"]
    spent = ask(root, "standing", metric="pass@1", label="exact_match")["spent"]
    drawn = tips(chart, "circle")
    assert [tip.partition(" at ")[0].partition(" (")[0] for tip in drawn] == [
        f"{', '.join(row['facets'].values())}: {row['value']:.3f}" for row in rows
    ]
    assert [tip.partition(" at ")[2].partition(";")[0] for tip in drawn] == [
        f"{row['latency']:.3g}" for row in spent
    ]


@pytest.mark.parametrize(
    ("name", "field"), [("latency", "inference_time"), ("tokens", "total_tokens")]
)
def test_distributions_of_responses(root: Path, name: str, field: str) -> None:
    drawn = tips(ask(root, "chart", name=name), "rect")
    responses = rows_of(root / "demo", "responses.jsonl")
    for model in ("demo-small", "demo-large"):
        values = [row[field] for row in responses if row["model_name"] == model]
        bars = [tip for tip in drawn if tip.startswith(model)]
        numbers = [
            [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d.,e-]*", bar.partition(":")[2])]
            for bar in bars
        ]
        assert sum(count for count, *_ in numbers) == len(values) == numbers[0][1]
        if name == "tokens":
            assert [count for count, *_ in numbers] == [
                values.count(n) for n in sorted(set(values))
            ]


def test_distribution_of_scores_by_prompt(root: Path) -> None:
    drawn = tips(
        ask(root, "chart", name="scores", by="prompt_template", label="exact_match"), "rect"
    )
    rows = rows_of(root / "demo", "evaluation_results.jsonl")
    for prompt in ("short", "polite"):
        scores = [row["score"] for row in rows if row["metadata"]["prompt_template"] == prompt]
        passed = next(tip for tip in drawn if tip.startswith(prompt) and tip.endswith(" to 1"))
        assert passed.startswith(f"{prompt}: {scores.count(1.0)} of {len(scores)} ")


def test_failed_responses_are_counted_beside_a_distribution(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.write(
        "model.py",
        'def calculator(prompt):\n    if "2 + 1" in prompt:\n        raise ValueError("no")\n    return "1"\n',
    )
    lab.config["models"] = [lab.model("calculator")]
    lab.run()
    assert "calculator (2 without), 6" in ask(tmp_path, "chart", name="latency")["svg"]


def test_pass_at_k_goes_over_k(root: Path, tmp_path: Path) -> None:
    drawn = tips(ask(root, "chart", name="pass_at_k"), "circle")
    metrics = [
        {
            "name": f"pass@{k}",
            "type": "pass_at_k",
            "params": {"k": k},
            "facets": ["metadata.model_id", "prompt_template"],
        }
        for k in (1, 2, 4)
    ]
    result = assay.aggregate(root / "demo", metrics=metrics, output_dir=str(tmp_path / "again"))
    expected = {
        f"{row['metadata.model_id']}, {row['prompt_template']}: {row['value']:.3f} "
        f"({row['ci_low']:.3f} to {row['ci_high']:.3f}) at {row['k']}"
        for row in result.metrics
    }
    assert set(drawn) == expected
    assert len(expected) == 12


@pytest.mark.parametrize(
    ("query", "what", "fix"),
    [
        ({"name": "heat"}, "two facets", "rows"),
        (
            {"name": "intervals", "metric": "recall"},
            "no row has the metric 'recall'",
            "pass@1 of exact_match",
        ),
        ({"name": "scatter", "by": "colour"}, "colour", "cost or latency"),
        ({"name": "scores", "label": "none"}, "no label 'none'", "exact_match"),
        ({"name": "latency", "by": "item_id"}, "no facet 'item_id'", "another facet"),
        ({"name": "pie"}, "not there", "correct the address"),
    ],
)
def test_what_cannot_be_drawn(root: Path, query: dict[str, str], what: str, fix: str) -> None:
    with pytest.raises(UserError) as raised:
        ask(root, "chart", **query)
    assert what in raised.value.what
    assert fix in raised.value.fix


def test_one_sample_has_no_curve(tmp_path: Path) -> None:
    demo(tmp_path / "one", **{"sample_params.num_samples": 1}, limit=4, metrics=["mean"])
    with pytest.raises(UserError, match="no pass@k to draw"):
        ask(tmp_path, "chart", name="pass_at_k")
    (tmp_path / "one" / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="no metrics to draw"):
        ask(tmp_path, "chart", name="intervals")
