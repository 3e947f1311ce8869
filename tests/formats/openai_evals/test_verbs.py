"""Verbs on logs of OpenAI evals, imported and as they are; and the page's code is what made the logs."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.formats.openai_evals.test_import import LOGS
from tests.formats.verbs import read_by_every_verb

PAGE = Path(__file__).parents[3] / "docs/openai_evals.md"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_every_verb_reads_an_import(shell: Shell) -> None:
    ended = shell.call("import", str(LOGS / "match_tiny.jsonl"), "-o", "out/tiny", "--json")
    assert ended.code == 0, ended.said
    item = shell.call("sql", "out/tiny", "select item_id from responses limit 1", "--json").result[
        "item_id"
    ]
    rows = read_by_every_verb(shell, shell.folder / "out/tiny", item=item, label="match")
    assert [row["value"] for row in rows] == [0.5]


def test_two_logs_compare_as_they_are(shell: Shell) -> None:
    names = [str(LOGS / f"match_{name}.jsonl") for name in ("large", "tiny")]
    ended = shell.call("compare", *names, "--json")
    assert ended.code == 0, ended.said
    (pair,) = ended.result["pairs"]
    assert (pair["items"], pair["difference"]) == (8, -0.375)


def test_the_page_shows_what_made_the_logs() -> None:
    source = (Path(__file__).parent / "make_logs.py").read_text()
    registry = source.partition('EVALS = """\\\n')[2].partition('"""')[0]
    assert registry
    assert registry in PAGE.read_text()
