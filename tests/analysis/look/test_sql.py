"""SQL over an experiment's files: right types, and no way to write or to read anything else."""

import json
import shutil
from pathlib import Path

import pytest

import assay
from assay.analysis.look.export import Tables
from assay.analysis.look.sql import ask, connect
from assay.engine.experiment.resolve import find_source
from assay.errors import UserError
from tests.support import Lab


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name has everything that a pattern or a quote could trip over."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.config["output_dir"] = str(lab.folder / "it's [a] 'lab'*?")
    lab.run()
    return Path(lab.config["output_dir"])


def one(path: Path, sql: str) -> object:
    (row,) = assay.query(path, sql)
    (value,) = row.values()
    return value


def test_the_four_tables(out: Path) -> None:
    assert assay.query(out, "show tables") == [
        {"name": name} for name in ("evaluations", "items", "metrics", "responses")
    ]
    assert one(out, "select count(*) from responses join items on item_id = id") == 8
    assert one(out, "select metadata->>'model_id' from evaluations limit 1") == "calculator"
    assert one(out, "select data from items order by id limit 1") == {
        "question": "0 + 1",
        "note": "n",
    }
    assert one(out, "select part from evaluations limit 1") == [0, 1]
    assert one(out, 'select "metadata.model_id" from metrics limit 1') == "calculator"
    assert one(out, "with a as (from responses) select count(*) from a;  -- done") == 8
    assert assay.query(out, "select 1 as a, 2 as a") == [{"a": 1, "a_2": 2}]


def test_several_experiments_have_a_source(out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "responses.jsonl").write_text('{"item_id": "x", "response": "1", "extra": 5}\n')
    found = assay.query(
        [out, other],
        "select source, count(*) n, max(extra) e from responses group by all order by 2",
    )
    assert found == [{"source": "other", "n": 1, "e": 5}, {"source": out.name, "n": 8, "e": None}]


ATTACKS = [
    "copy responses to '{other}'",
    "copy (select 1) to '{own}' (format csv, use_tmp_file false)",
    "with x as (copy (select 1) to '{own}' (format csv, use_tmp_file false)) select * from x",
    "with x as (copy (select 1) to '{other}') select * from x",
    "/* */ with recursive y as (select 1), x as (copy (select 1) to '{own}' (use_tmp_file false)) from x",
    "select 1) ; copy (select 1) to '{own}' (use_tmp_file false); select * from (select 1",
    "explain analyze copy (select 1) to '{own}' (format csv, use_tmp_file false)",
    "prepare x as copy (select 1) to '{other}'",
    "select 1; drop view responses",
    "create table t as select 1",
    "insert into responses select * from responses",
    "update responses set response = ''",
    "delete from responses",
    "attach '{other}' as db",
    "export database '{other}'",
    "import database '{other}'",
    "install httpfs",
    "load json",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma database_list",
    "call pragma_version()",
    "pivot responses on model_name using count(*)",
    "commit",
    "select * from read_text('{secret}')",
    "select * from '{secret}'",
    "select * from read_csv('{secret}')",
    "select * from read_json('{folder}/../secret.csv')",
    "select * from glob('{folder}/*')",
    "select * from query('copy responses to ''{other}''')",
    "select * from query_table('{secret}')",
    "select * from 'http://127.0.0.1:9/x.csv'",
    "select * from sniff_csv('{secret}')",
    "select * from secret",
    "",
]


@pytest.mark.parametrize("sql", ATTACKS)
def test_nothing_else_is_read_or_written(sql: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    own, other, secret = folder / "responses.jsonl", tmp_path / "other.csv", tmp_path / "secret.csv"
    own.write_text('{"item_id": "x", "response": "hello"}\n')
    secret.write_text("word\nswordfish\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UserError) as caught:
        assay.query(folder, sql.format(own=own, other=other, secret=secret, folder=folder))
    assert "swordfish" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_python_variables_are_no_tables(out: Path) -> None:
    pytest.importorskip("pandas")
    import pandas as pd

    secret = pd.DataFrame({"a": [1]})
    assert len(secret) == 1
    with pytest.raises(UserError, match="no table 'secret'"):
        assay.query(out, "select * from secret")


def test_mistakes_are_explained(out: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no table 'respones'") as caught:
        assay.query(out, "select * from respones")
    assert "did you mean 'responses'?" in caught.value.fix
    with pytest.raises(UserError, match="syntax error"):
        assay.query(out, "selct 1")
    with pytest.raises(UserError, match="reponse"):
        assay.query(out, "select reponse from responses")
    (tmp_path / "responses.jsonl").write_text('{"item_id": "x"}\n')
    with pytest.raises(UserError, match="there are no metrics here"):
        assay.query(tmp_path, "select * from metrics")


def test_bad_rows_are_named(tmp_path: Path) -> None:
    rows = tmp_path / "responses.jsonl"
    good = json.dumps({"item_id": "x", "inference_time": 1.0}) + "\n"
    rows.write_text(good * 1500 + "{broken\n" + good)
    with pytest.raises(UserError, match="not a row") as caught:
        assay.query(tmp_path, "select avg(inference_time) from responses")
    assert "line 1501" in caught.value.where
    rows.write_text(good * 1500 + '{"item_id": 7, "inference_time": "long"}\n')
    with pytest.raises(UserError, match="do not have one schema"):
        assay.query(tmp_path, "select avg(inference_time) from responses")
    rows.write_text(good + '{"item_id": 7, "inference_time": NaN, "metadata": {"a": NaN}}\n')
    assert one(tmp_path, "select count(*) from responses where item_id = '7'") == 1


def test_rows_are_read_as_they_are_asked_for(out: Path) -> None:
    with ask([out], "select i from range(1000000) t(i)") as answer:
        assert answer.columns == ["i"]
        assert [value for (value,) in (next(answer.tuples()) for _ in range(1))] == [0]


def folders(root: Path, rows: list[list[dict[str, object]]]) -> list[Path]:
    made: list[Path] = []
    for number, each in enumerate(rows):
        made.append(root / f"e{number:03}")
        made[-1].mkdir(parents=True)
        text = "".join(json.dumps({"item_id": "x", "response": "1", **row}) + "\n" for row in each)
        (made[-1] / "responses.jsonl").write_text(text)
    return made


def test_many_experiments_are_one_table_in_their_order(tmp_path: Path) -> None:
    """More than one SELECT reads; a number that is whole in some of them is none in the others."""
    places = folders(
        tmp_path, [[{"size": n if n % 3 else n + 0.5}, {"late": n}] for n in range(230)]
    )
    found = assay.query(places, "select source, size, late from responses")
    expected = [
        row
        for n in range(230)
        for row in (
            {"source": f"e{n:03}", "size": n if n % 3 else n + 0.5, "late": None},
            {"source": f"e{n:03}", "size": None, "late": n},
        )
    ]
    assert found == expected
    described = assay.query(places, "describe responses")
    types = {row["column_name"]: row["column_type"] for row in described}
    assert types == {
        "source": "VARCHAR", "item_id": "VARCHAR", "response": "VARCHAR", "size": "DOUBLE", "late": "BIGINT",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        ({"x": 5}, {"x": "five"}, ["5", "five"]),
        ({"x": [1]}, {"x": True}, [[1], True]),
        ({"X": 1}, {"x": 2}, [1, 2]),
        ({"source": "theirs"}, {"x": 1}, None),
    ],
)
def test_columns_that_do_not_agree(
    tmp_path: Path, first: dict[str, object], second: dict[str, object], values: list[object] | None
) -> None:
    places = folders(tmp_path, [[first], [second], [first]])
    if values is None:
        found = assay.query(places, "select source from responses order by 1")
        assert [row["source"] for row in found] == ["e001", "theirs", "theirs"]
        return
    found = assay.query(places, "select source, x from responses order by 1")
    assert [list(row.values())[1] for row in found] == [*values, values[0]]


def test_two_evaluations_of_one_run_show_its_rows_each(tmp_path: Path) -> None:
    (run,) = folders(tmp_path, [[{}, {}]])
    tables = [Tables(find_source(run)) for _ in range(2)]
    for name, one in zip("ab", tables, strict=True):
        one.source.name = name
    with connect(tables) as connection:
        counts = "SELECT source, count(*) FROM responses GROUP BY ALL ORDER BY 1"
        assert connection.execute(counts).fetchall() == [("a", 2), ("b", 2)]


@pytest.mark.parametrize("empty", [b"", b"not a row\n"])
def test_tables_without_rows_do_not_hide_the_others(
    out: Path, tmp_path: Path, empty: bytes
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    for name in ("responses", "evaluation_results", "metrics"):
        (copy / f"{name}.jsonl").write_bytes(empty)
    if empty:  # metrics that are no rows are a damaged file, not a table without rows
        (copy / "metrics.jsonl").unlink()
    assert one(copy, "select count(*) from items") == 4
    with pytest.raises(UserError, match=r"there are no responses here") as error:
        assay.query(copy, "select * from responses")
    assert error.value.fix == "tables with rows: items"
    assert assay.status(copy)[0].errors == 0
    assert assay.ls(copy)[0].name
    assert assay.trace(copy, next(iter(assay.query(copy, "select id from items")))["id"]).item


def test_an_export_of_an_empty_table_names_those_with_rows(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, copy := tmp_path / "copy")
    (copy / "responses.jsonl").write_bytes(b"")
    with pytest.raises(UserError, match=r"there are no responses in") as error:
        assay.export(copy, "csv", table="samples", output=tmp_path / "samples.csv")
    assert error.value.fix == "tables with rows: items, evaluations, metrics"
