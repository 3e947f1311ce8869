"""Latency and cost from the index against the metrics `latency` and `cost` of the engine."""

from pathlib import Path

import pytest

import assay
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.spent import spent

FACETS = ["model_name", "prompt_template", "kind"]
PRICE = {"input": 2.0, "output": 10.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("spent") / "out"
    rows = [
        {
            "id": f"i{n}",
            "question": f"What is {n} + 7?",
            "answer": str(n + 7),
            "kind": n % 3 or None,
        }
        for n in range(30)
    ]
    assay.run(
        dataset=rows,
        models=[
            {"name": "priced", "type": "demo", "price": PRICE},
            {"name": "free", "type": "demo", "skill": 0.4},
        ],
        prompts={"short": "{{question}}", "long": "Please tell me: {{question}}"},
        scorers=[{"name": "exact_match", "params": {"expected": "answer"}}],
        metrics=[{"name": "latency", "facets": FACETS}, {"name": "cost", "facets": FACETS}],
        samples=3,
        output_dir=str(place),
    )
    return place


def test_it_is_what_the_engine_measures(folder: Path) -> None:
    shown = spent(Experiments([folder]), folder.name, FACETS)
    assert shown is not None
    rows = assay.frame(folder, "metrics").to_dict("records")
    assert len(rows) == 2 * 2 * 2 * 3
    for row in rows:
        kind = "null" if row["kind"] is None else str(row["kind"])
        values = {
            "model_name": row["model_name"],
            "prompt_template": row["prompt_template"],
            "kind": kind,
        }
        latency, cost = shown.of(values)
        if row["metric_name"] == "latency":
            assert latency == pytest.approx(row["median"])
        else:
            assert cost == pytest.approx(row["sum"])
            assert bool(cost) == (row["model_name"] == "priced")


def test_values_that_nothing_has_and_facets_that_are_none(folder: Path) -> None:
    experiments = Experiments([folder])
    shown = spent(experiments, folder.name, ["model_name"])
    assert shown is not None
    assert shown.of({"model_name": "nobody"}) == (None, None)
    with pytest.raises(UserError, match="no facet 'colour'"):
        spent(experiments, folder.name, ["colour"])
