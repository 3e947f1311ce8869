"""Logs of other programs in the viewer: by names that people know, with their numbers."""

from pathlib import Path
from typing import Any

import pytest

from assay.viewer.experiments import experiments_below
from tests.viewer.demo import ask

LOGS = Path(__file__).parents[1] / "formats"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))


def test_a_folder_of_logs_has_names_and_numbers() -> None:
    folder = LOGS / "deepeval/logs"
    shown = experiments_below([folder])
    assert set(shown.list()) == {
        f"test_run_{name}.json" for name in ("conversations", "every_field", "large", "tiny")
    }
    assert shown.names == [str(folder)]
    rows = ask(shown, "leaderboard")["rows"]
    means = {row["experiment"]: row["value"] for row in rows if row["label"] == "pass"}
    assert means["test_run_large.json"] == pytest.approx(7 / 12)
    assert means["test_run_tiny.json"] == pytest.approx(4 / 12)


def test_two_logs_of_one_task_are_told_apart() -> None:
    large, tiny = (LOGS / f"inspect_ai/logs/{name}.eval" for name in ("large", "tiny"))
    shown = experiments_below([large, tiny])
    assert set(shown.list()) == {"large.eval", "tiny.eval"}
    rows = ask(shown, "leaderboard")["rows"]
    assert {row["experiment"]: row["facets"]["model_name"] for row in rows} == {
        "large.eval": "openai/large",
        "tiny.eval": "openai/tiny",
    }
    asked = [row["question"] for row in ask(shown, "samples", limit=3)["rows"]]
    assert asked == ["What is 2 + 3?", "What is 7 + 8?", "What is 12 + 30?"]


def test_numbers_are_computed_again_when_a_log_changes(tmp_path: Path) -> None:
    log = tmp_path / "logs/run.json"
    log.parent.mkdir()
    counts: list[Any] = []
    for name in ("large", "tiny"):
        log.write_bytes((LOGS / f"pydantic_evals/logs/{name}.json").read_bytes())
        rows = ask(experiments_below([log.parent]), "leaderboard")["rows"]
        counts += [row["value"] for row in rows if row["label"] == "RightAnswer"]
    assert counts == pytest.approx([0.7, 0.4])
