"""What Assay tells coding agents is followed, word by word, in an empty folder; the map of the pages is whole."""

from pathlib import Path

import pytest

import assay
from assay.cli import COMMANDS
from tests.test_docs import ROOT, run_blocks
from tools.llms import FILE, text

AGENTS = "src/assay/data/agents"


def test_the_skill_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(f"{AGENTS}/SKILL.md", tmp_path)
    assert (tmp_path / "report.html").exists()


def test_the_skill_has_what_agents_look_for() -> None:
    head, body = (ROOT / AGENTS / "SKILL.md").read_text().removeprefix("---\n").split("\n---\n", 1)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == "assay"
    assert 50 < len(fields["description"]) < 1024
    assert len(body.splitlines()) < 120


def test_the_map_has_every_page() -> None:
    assert FILE.read_text() == text(), "python -m tools.llms writes it anew"
    for command in COMMANDS:
        assert f"docs/{command}.md" in text()


def test_both_come_with_the_package(tmp_path: Path) -> None:
    assert {path.name for path in assay.init(tmp_path / "skill", skill=True)} == {
        "SKILL.md",
        "llms.txt",
    }
    with pytest.raises(assay.errors.UserError, match="would be overwritten"):
        assay.init(tmp_path / "skill", skill=True)
