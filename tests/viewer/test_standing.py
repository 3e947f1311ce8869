"""Ranks of the leaderboard's rows are those of `compare`, or a note says why there are none."""

from pathlib import Path

import pytest

import assay
from assay.viewer.pages import standing
from tests.support import Lab
from tests.viewer.demo import ask, content, demo


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("standings")
    demo(folder / "demo")
    return folder


@pytest.mark.parametrize("metric", ["pass@1", "pass@4"])
def test_ranks_are_those_of_compare(root: Path, metric: str) -> None:
    before = content(root)
    page = ask(root, "standing", metric=metric, label="exact_match")
    compared = assay.compare([root / "demo"], facet="task", metric=metric)
    ranks = {standing.name: list(standing.ranks) for standing in compared.standings}
    names = ["/".join(entry["facets"].values()) for entry in page["ranks"]]
    assert dict(zip(names, (entry["ranks"] for entry in page["ranks"]), strict=True)) == ranks
    assert len(names) == 4
    assert page["notes"] == []
    assert content(root) == before


def test_ranks_by_other_facets(root: Path) -> None:
    page = ask(root, "standing", metric="pass@1", label="exact_match", facet=["model_name"])
    compared = assay.compare([root / "demo"], facet="model_name", metric="pass@1")
    assert [entry["facets"]["model_name"] for entry in page["ranks"]] == [
        "demo-large",
        "demo-small",
    ]
    assert [entry["ranks"] for entry in page["ranks"]] == [
        list(each.ranks) for each in compared.standings
    ]


def test_experiments_stand_beside_each_other(root: Path, tmp_path: Path) -> None:
    for name, skill in (("one", 0.3), ("two", 0.95)):
        demo(
            tmp_path / name,
            models=[{"name": "m", "type": "demo", "skill": skill}],
            metrics=["mean"],
        )
    page = ask(tmp_path, "standing", metric="mean", label="exact_match")
    compared = assay.compare([tmp_path / "one", tmp_path / "two"])
    assert {entry["experiment"]: entry["ranks"] for entry in page["ranks"]} == {
        each.name: list(each.ranks) for each in compared.standings
    }
    assert page["ranks"][0]["ranks"] == [2, 2]


def test_rows_that_cannot_be_compared(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = ask(root, "standing", metric="pass@9", label="exact_match")
    assert nothing == {"ranks": [], "spent": [], "notes": ["there are no two rows to compare"]}
    across = ask(root, "standing", metric="pass@1", label="exact_match", facet=["kind"])
    assert across["ranks"] == []
    assert "have no item in common" in across["notes"][0]
    monkeypatch.setattr(standing, "MOST_SIDES", 3)
    many = ask(root, "standing", metric="pass@1", label="exact_match")
    assert many["ranks"] == []
    assert many["notes"] == [
        "4 rows are too many to compare each with each; choose fewer, at most 3"
    ]


def test_a_metric_of_the_users_own_is_not_run(tmp_path: Path) -> None:
    """Nor is a built-in taken for one that is called like it."""
    lab = Lab(tmp_path)
    own = lab.write("own.py", "def mean(evaluation_results, facets):\n    return {'mean': 1.0}\n")
    lab.config["models"] = [lab.model("a"), lab.model("b")]
    lab.config["metrics"] = [
        {"name": "mean", "type": "custom", "path": str(own), "facets": ["model_name"]}
    ]
    lab.run()
    assert [row["value"] for row in ask(tmp_path, "leaderboard")["rows"]] == [1.0] * 4
    by_model = ask(tmp_path, "leaderboard", facet=["model_name"])
    assert [row["value"] for row in by_model["rows"]] == [1.0] * 4  # as they are stored
    assert ask(tmp_path, "leaderboard", facet=["task"])["rows"] == []
    page = ask(tmp_path, "standing", metric="mean", label="exact_match")
    assert page["ranks"] == []
    assert "is code of yours" in page["notes"][0]
