"""`assay export`: every writer gives back what the rows hold."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.analysis.look.export import Export, Tables
from assay.engine.experiment.resolve import find_source
from assay.errors import StoreError, UserError
from assay.registry import writer
from assay.text.plain import plain
from tests.cli.shell import Shell

ROWS: list[dict[str, Any]] = [
    {"item_id": "a", "response": "=1+1", "sample_index": -1, "metadata": {"k": [1]}, "late": None},
    {"item_id": "b", "response": "a|b\n<i>", "error": None, "tokens_per_second": 0.5, "flag": True},
    {"item_id": "c", "response": 'ünï, "q"', "flag": False, "late": 3},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "x"
    path.mkdir()
    (path / "responses.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    )
    return path


def exported(folder: Path, name: str, **params: Any) -> Path:
    target = folder / f"out.{name}"
    write: Callable[..., None] = writer.get(name)
    write(Export(Tables(find_source(folder)), "responses", target), **params)
    return target


def test_csv_round_trips_and_disarms_formulas(folder: Path) -> None:
    with exported(folder, "csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == [
        "item_id", "sample_index", "response", "metadata", "error", "tokens_per_second", "late", "flag",
    ]  # fmt: skip
    assert [row["response"] for row in found] == ["'=1+1", "a|b\n<i>", 'ünï, "q"']
    assert found[0]["sample_index"] == "-1", "a negative number is no formula"
    assert json.loads(found[0]["metadata"]) == {"k": [1]}
    assert [(row["flag"], row["late"]) for row in found] == [("", ""), ("true", ""), ("false", "3")]
    with exported(folder, "csv", keep_formulas=True).open(newline="") as file:
        assert next(csv.DictReader(file))["response"] == "=1+1"


@pytest.mark.parametrize(
    "start", [*"=+-@\t\r＝", " =", "\ufeff=", "\xa0+", "\u200b@", "\x1b=", "\u2066 -"]
)
def test_whatever_a_spreadsheet_would_run_gets_an_apostrophe(folder: Path, start: str) -> None:
    rows = folder / "responses.jsonl"
    rows.write_text(
        json.dumps({"item_id": "a", f"{start}head": f"{start}cmd|' /C calc'!A0"}) + "\n"
    )
    with exported(folder, "csv").open(newline="") as file:
        header, line = csv.reader(file)
    assert header[1] == f"'{plain(start)}head"
    assert line[1].startswith(f"'{plain(start)}cmd")


@pytest.mark.parametrize("number", [-1, -0.5, 1e-7, "-12.5", "+3", "-1e-9", "-4.2%"])
def test_a_number_stays_one(folder: Path, number: object) -> None:
    (folder / "responses.jsonl").write_text(json.dumps({"item_id": "a", "x": number}) + "\n")
    with exported(folder, "csv").open(newline="") as file:
        assert list(csv.reader(file))[1][1] == str(number)


def test_json_and_jsonl(folder: Path) -> None:
    assert json.loads(exported(folder, "json").read_text()) == ROWS
    assert exported(folder, "jsonl").read_bytes() == (folder / "responses.jsonl").read_bytes()


def test_markdown_obeys_nothing(folder: Path) -> None:
    lines = exported(folder, "markdown").read_text().splitlines()
    assert len(lines) == 5
    assert lines[1].count("---") == 8
    assert r"a\|b &lt;i>" in lines[3]


def test_parquet_keeps_types(folder: Path) -> None:
    import duckdb

    target = exported(folder, "parquet")
    found = duckdb.execute(
        f"select item_id, sample_index, tokens_per_second, flag, late from '{target}'"
    ).fetchall()
    assert found == [
        ("a", -1, None, None, None),
        ("b", None, 0.5, True, None),
        ("c", None, None, False, 3),
    ]
    before = target.read_bytes()
    assert exported(folder, "parquet").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [
        ".assay-written",
        "out.parquet",
        "responses.jsonl",
    ]


def test_every_writer_writes_the_same_bytes_twice_and_has_a_sentence(folder: Path) -> None:
    for name in writer.names():
        if writer.get(name).__assay__.get("whole"):  # a format's: it has tests of its own
            continue
        assert written(exported(folder, name)) == written(exported(folder, name))
        assert writer.get(name).__doc__


def written(path: Path) -> dict[str, bytes]:
    """What is in a file, or in the files of a folder."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.name[0] != "."]
    assert files
    return {file.name: file.read_bytes() for file in files}


def test_a_bad_line_replaces_nothing(folder: Path) -> None:
    old = exported(folder, "csv").read_bytes()
    rows = folder / "responses.jsonl"
    rows.write_text(rows.read_text() + "[1]\n" + rows.read_text())
    for name in ("csv", "json", "markdown", "parquet"):
        with pytest.raises(UserError, match="not a row") as caught:
            exported(folder, name)
        assert "line 4" in caught.value.where
    assert (folder / "out.csv").read_bytes() == old


def test_a_place_that_cannot_be_written(folder: Path) -> None:
    for name in ("csv", "parquet"):
        with pytest.raises(StoreError):
            writer.get(name)(
                Export(Tables(find_source(folder)), "responses", folder / "responses.jsonl" / "x")
            )


def test_the_command(shell: Shell) -> None:
    assert shell.run().code == 0
    result = shell.call("export", "out", "--format", "csv", "--table", "metrics")
    assert result.code == 0
    assert result.out.splitlines()[0].startswith("metric_name,")
    assert shell.call("export", "out", "-o", "rows.jsonl").code == 0
    assert (shell.folder / "rows.jsonl").read_bytes() == (
        shell.out / "responses.jsonl"
    ).read_bytes()
    assert shell.call("export", "rows.jsonl", "-o", "rows.md").code == 0
    shell.write(
        "mine.py",
        """
        def ids(export, *, sep: str = ","):
            export.write([sep.join(row["item_id"] for row in export.rows()).encode()])
        """,
    )
    assert (
        len(shell.call("export", "out", "--format", "mine.py:ids", "--set", "sep=;").out.split(";"))
        == 4
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "cvs"), "did you mean 'csv'?"),
        (("--format", "csv", "--table", "response"), "did you mean 'responses'?"),
        (("--format", "csv", "--table", "metrics"), "tables with rows: responses"),
        (("--format", "parquet"), "name a file with -o"),
        (("--format", "json", "--keep-formulas"), "json has no parameter 'keep_formulas'"),
        ((), "name a format"),
    ],
)
def test_mistakes(shell: Shell, words: tuple[str, ...], said: str) -> None:
    shell.out.mkdir()
    (shell.out / "responses.jsonl").write_text('{"item_id": "x"}\n')
    result = shell.call("export", "out", *words)
    assert result.code == 2
    assert said in result.err
