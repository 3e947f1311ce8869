"""The ranking page has what `rank` says, with its charts; or the reason why there is none."""

from pathlib import Path

import msgspec
import pytest

import assay
from assay.errors import UserError
from tests.analysis.match_lab import won
from tests.analysis.rows import save
from tests.viewer.demo import ask, demo


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assay.run(
        Path(__file__).parents[2] / "examples" / "judges" / "pairs.yaml",
        output_dir=str(tmp_path / "pairs"),
    )
    return tmp_path


def test_the_ranking_is_that_of_rank(root: Path) -> None:
    for method in ("bradley-terry", "elo", "win-rate"):
        page = ask(root, "ranking", method=method)
        ranking = msgspec.json.decode(
            msgspec.json.encode(assay.rank([root / "pairs"], method=method))
        )
        assert page["standings"] == ranking["standings"]
        assert page["win_matrix"] == ranking["win_matrix"]
        assert (page["label"], page["method"], page["reason"]) == ("better", method, "")
    rating, matrix = page["charts"]
    assert ">large<" in rating["svg"]
    wins, ties = ranking["win_matrix"]["wins"][0][1], ranking["win_matrix"]["ties"][0][1]
    assert f">{wins} ({ties})<" in matrix["svg"]


def test_experiments_without_matches_are_left_out(root: Path) -> None:
    demo(root / "demo", limit=2)
    assert len(ask(root, "ranking")["standings"]) == 2
    none = ask(root, "ranking", experiment=["demo"])
    assert none["standings"] == []
    assert "judge_pairwise" in none["reason"]


def test_several_labels_and_groups_that_never_met(tmp_path: Path) -> None:
    rows = [*won("a", "b", 3, 2), *(row | {"label": "nicer"} for row in won("a", "b", 1, 4))]
    folder = save(tmp_path / "x", [*rows, *won("c", "d", 2)])
    (folder / "manifest.json").write_text("{}")
    page = ask(tmp_path, "ranking")
    assert page["label"] == "better"
    assert "never met" in page["reason"]
    other = ask(tmp_path, "ranking", label="nicer")
    assert [standing["player"] for standing in other["standings"]] == ["b", "a"]
    assert other["notes"][-1] == "there are also matches under better"


def test_a_method_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no method 'dice'"):
        ask(tmp_path, "ranking", method="dice")
