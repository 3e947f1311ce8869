"""`assay sql`: tables for people, JSON lines and CSV for programs."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def asked(shell: Shell) -> Shell:
    shell.out.mkdir()
    rows = [
        {"item_id": f"q{n}", "response": f"=cmd{n}\x1b[2J\n[red]", "metadata": {"n": n}}
        for n in range(300)
    ]
    (shell.out / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return shell


def test_a_table_that_says_what_it_left_out(asked: Shell) -> None:
    result = asked.call("sql", "out", "select item_id, response from responses order by item_id")
    assert result.code == 0
    assert "\x1b" not in result.said
    assert "[red]" in result.out
    assert result.out.count("=cmd") == 200
    assert "the first 200 rows" in result.err
    assert asked.call("sql", "out", "from responses", "--rows", "0").out.count("=cmd") == 300


def test_json_and_csv_print_every_row(asked: Shell) -> None:
    found = asked.call(
        "sql", "out", "select item_id, metadata, sum(1) over () as big from responses", "--json"
    ).events()
    assert len(found) == 300
    assert found[7] == {"item_id": "q7", "metadata": {"n": 7}, "big": 300}
    assert asked.call(
        "sql", "out", "select 170141183460469231731687303715884105727 as huge", "--json"
    ).events() == [{"huge": 170141183460469231731687303715884105727}]
    lines = asked.call(
        "sql", "out", "select item_id, null as x, response from responses limit 1", "--csv"
    ).out
    assert lines.startswith("item_id,x,response\nq0,,\"'=cmd0")


def test_mistakes(asked: Shell) -> None:
    asked.save()
    before = asked.files()
    written = asked.call("sql", "out", "copy responses to 'x.csv'")
    assert (written.code, "one SELECT" in written.err) == (2, True)
    assert asked.call("sql", "select 1").code == 2
    assert asked.call("sql", "out", "select 1", "--json", "--csv").code == 2
    assert "no file or folder" in asked.call("sql", "nowhere", "select 1").err
    assert asked.files() == before


def test_without_duckdb_it_says_what_to_install(asked: Shell, tmp_path: Path) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "duckdb.py").write_text("raise ImportError('gone')")
    asked.environ["PYTHONPATH"] = str(tmp_path / "shadow")
    result = asked.call("sql", "out", "select 1")
    assert result.code == 2
    assert "pip install 'assay-eval[sql]'" in result.err
