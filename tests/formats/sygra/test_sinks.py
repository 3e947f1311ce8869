"""Sinks: each format read back by someone else's reader, aliases, and failures that are told."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from assay.errors import RunFailed, UserError
from assay.formats.sygra.data import open_records
from assay.formats.sygra.data.sinks import check_sinks, write_sinks
from tests.formats.sygra.data_support import bare, disk, load, read

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "n": 1,
        "text": 'line\nfeed, "quotes" é\u2028',
        "deep": {"x": [1, None]},
        "flag": True,
    },
    {"id": "b", "n": 2, "text": "=1+1", "deep": {}, "flag": False, "late": 1.5},
    {"id": "c", "n": None, "text": "", "deep": None, "flag": None},
]


def opened(rows: list[dict[str, Any]] = ROWS) -> Callable[[], Iterator[dict[str, Any]]]:
    return lambda: iter(rows)


def sink(base: Path, rows: list[dict[str, Any]] = ROWS, **config: Any) -> list[str]:
    return write_sinks({"sink": config}, opened(rows), base=base)


def test_json_is_what_the_library_writes(tmp_path: Path) -> None:
    assert sink(tmp_path, type="json", file_path="made/out.json") == [
        "3 records written to made/out.json"
    ]
    assert (tmp_path / "made/out.json").read_text() == json.dumps(
        ROWS, indent=2, ensure_ascii=False
    )
    sink(tmp_path, [], type="json", file_path="empty.json")
    assert (tmp_path / "empty.json").read_text() == "[]"
    sink(tmp_path, type="json", file_path="wide.json", encoding="utf-16")
    assert json.loads((tmp_path / "wide.json").read_text("utf-16")) == ROWS


def test_jsonl_is_replaced_not_doubled(tmp_path: Path) -> None:
    for _ in range(2):
        sink(tmp_path, type="jsonl", file_path="out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == ROWS
    assert lines[-1] == ""


def test_csv_is_a_table(tmp_path: Path) -> None:
    sink(tmp_path, type="csv", file_path="out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["id", "n", "text", "deep", "flag", "late"]
    assert [row["text"] for row in found] == [row["text"] for row in ROWS]
    assert json.loads(found[0]["deep"]) == {"x": [1, None]}
    assert [row["n"] for row in found] == ["1", "2", ""]
    again = read(tmp_path, disk("out.csv"))
    assert [(row["id"], row["n"], row["flag"], row["late"]) for row in again] == [
        ("a", 1, True, None),
        ("b", 2, False, 1.5),
        ("c", None, None, None),
    ]
    sink(tmp_path, [], type="csv", file_path="empty.csv")
    assert (tmp_path / "empty.csv").read_text().strip() == ""


def test_parquet_has_types(tmp_path: Path) -> None:
    rows = [
        {**row, "mixed": mixed, "o'clock": "2026-01-02"}
        for row, mixed in zip(ROWS, (1, "x", None), strict=True)
    ]
    sink(tmp_path, rows, type="parquet", file_path="o'ut.parquet")
    frame = pd.read_parquet(tmp_path / "o'ut.parquet")
    assert frame["n"].dropna().tolist() == [1, 2]
    assert frame["flag"].dropna().tolist() == [True, False]
    assert frame["text"].tolist() == [row["text"] for row in ROWS]
    assert frame["o'clock"].tolist() == ["2026-01-02"] * 3, (
        "a text that looks like a date stays one"
    )
    again = read(tmp_path, disk("o'ut.parquet"))
    assert [row["deep"] for row in again] == [{"x": [1, None]}, {}, None]
    assert [row["mixed"] for row in again] == [1, "x", None]
    assert not list(tmp_path.glob(".*"))


def test_the_suffix_tells_the_format_and_the_type_where_it_does_not(tmp_path: Path) -> None:
    sink(tmp_path, type="json", file_path="a.jsonl")
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) >= 3
    sink(tmp_path, type="csv", file_path="a.txt")
    assert (tmp_path / "a.txt").read_text().startswith("id,n,")
    sink(tmp_path, file_path="a.out")
    assert json.loads((tmp_path / "a.out").read_text()) == ROWS
    sink(tmp_path, type="disk", file_path=str(tmp_path / "b.json"))
    assert json.loads((tmp_path / "b.json").read_text()) == ROWS


def test_nan_is_null(tmp_path: Path) -> None:
    for suffix in ("json", "jsonl"):
        sink(tmp_path, [{"x": float("nan"), "y": [float("nan")]}], file_path=f"n.{suffix}")
        assert bare(read(tmp_path, disk(f"n.{suffix}"))) == [{"x": None, "y": [None]}]
        assert "NaN" not in (tmp_path / f"n.{suffix}").read_text()


def test_aliases_divide_the_columns(tmp_path: Path) -> None:
    rows = [{"a->x": 1, "b->y": 2, "score": 3}, {"a->x": 4, "score": 5}]
    sinks = [
        {"alias": "a", "file_path": "a.jsonl"},
        {"alias": "b", "file_path": "b.jsonl"},
        {"alias": "__others__", "file_path": "rest.jsonl"},
        {"alias": "gone", "file_path": "gone.jsonl"},
    ]
    notes = write_sinks({"sink": sinks}, opened(rows), base=tmp_path)
    assert notes[1] == "1 records written to b.jsonl"
    assert [bare(read(tmp_path, disk(f"{name}.jsonl"))) for name in ("a", "b", "rest")] == [
        [{"x": 1}, {"x": 4}],
        [{"y": 2}],
        [{"score": 3}, {"score": 5}],
    ]
    assert notes[3].startswith("0 records")
    sink(tmp_path, rows, file_path="all.jsonl")
    assert bare(read(tmp_path, disk("all.jsonl"))) == rows, "a single sink loses no column"


def test_no_sink_writes_nothing(tmp_path: Path) -> None:
    for config in (None, {}, {"sink": None}, {"sink": []}):
        assert write_sinks(config, opened(), base=tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_one_failing_sink_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sinks = [
        {"alias": "a", "file_path": "file/in/the/way.json"},
        {"alias": "__others__", "file_path": "ok.jsonl"},
    ]
    with pytest.raises(RunFailed) as caught:
        write_sinks({"sink": sinks}, opened(), base=tmp_path)
    assert "1 of 2 sinks" in caught.value.what
    assert (tmp_path / "ok.jsonl").exists()


def test_a_failure_while_writing_keeps_the_older_file(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield {"a": 1}
        raise RuntimeError("gone")

    for name in ("out.json", "out.csv", "out.parquet"):
        (tmp_path / name).write_text("old")
        with pytest.raises(RuntimeError):
            write_sinks({"sink": {"file_path": name}}, broken, base=tmp_path)
        assert (tmp_path / name).read_text() == "old"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("config", "what", "where"),
    [
        ({"type": "servicenow"}, "ServiceNow", "data_config.sink.type"),
        ({"type": "jsno", "file_path": "x"}, "unknown sink type 'jsno'", "data_config.sink.type"),
        ({"type": "json"}, "'file_path'", "data_config.sink"),
        (
            {"file_path": "x.json", "encoding": "utf-61"},
            "unknown encoding",
            "data_config.sink.encoding",
        ),
        ({"type": "hf"}, "'repo_id'", "data_config.sink"),
        ("out.json", "must be a mapping", "data_config.sink"),
        (["out.json"], "must be a mapping", "data_config.sink"),
        (
            [{"file_path": "a.json", "alias": "a"}, {"file_path": "b.json"}],
            "'alias'",
            "data_config.sink[1]",
        ),
        (
            [{"file_path": "a.json", "alias": "a"}, {"file_path": "b.json", "alias": "a"}],
            "two sinks have the alias 'a'",
            "data_config.sink[0]",
        ),
    ],
)
def test_bad_sinks_are_refused_before_anything_is_read(
    tmp_path: Path, config: Any, what: str, where: str
) -> None:
    for call in (
        lambda: check_sinks({"sink": config}),
        lambda: open_records({"sink": config}, base=tmp_path, load=load, count=1),
        lambda: write_sinks({"sink": config}, opened(), base=tmp_path),
    ):
        with pytest.raises(UserError) as caught:
            call()
        assert what in caught.value.what
        assert caught.value.where == where
    assert not list(tmp_path.iterdir())


# ---- the hub: nothing here leaves the machine


def test_a_push_hands_rows_and_names_to_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    pushed: list[Any] = []

    def push(self: Any, repo_id: str, **options: Any) -> None:
        pushed.append((repo_id, options, self.to_list()))

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("SYGRA_HF_TOKEN", "from the environment")
    monkeypatch.setattr(datasets.Dataset, "push_to_hub", push)
    rows = [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
    notes = sink(
        tmp_path,
        rows,
        type="hf",
        repo_id="owner/name",
        config_name="c",
        split="test",
        private=False,
    )
    assert notes == ["2 records pushed to the dataset owner/name"]
    options = {
        "config_name": "c",
        "split": "test",
        "private": False,
        "token": "from the environment",
    }
    assert pushed == [("owner/name", options, rows)]
    sink(tmp_path, rows, type="hf", repo_id="owner/name", token="own")
    assert pushed[1][1] == {
        "config_name": "default",
        "split": "train",
        "private": True,
        "token": "own",
    }

    def refused(self: Any, repo_id: str, **options: Any) -> None:
        raise ConnectionError("no route\nmore")

    monkeypatch.setattr(datasets.Dataset, "push_to_hub", refused)
    with pytest.raises(RunFailed, match="could not be pushed: no route"):
        sink(tmp_path, rows, type="hf", repo_id="owner/name")


def test_a_push_that_cannot_be_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"sink": {"type": "hf", "repo_id": "owner/name"}}
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="HF_HUB_OFFLINE"):
        check_sinks(config)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match="needs the package datasets"):
        check_sinks(config)


def test_sinks_do_not_hold_the_records(tmp_path: Path) -> None:
    import tracemalloc

    def many() -> Iterator[dict[str, Any]]:
        return ({"id": str(number), "text": "x" * 1000} for number in range(5_000))

    for suffix in ("json", "jsonl", "csv", "parquet"):
        write_sinks({"sink": {"file_path": f"warm.{suffix}"}}, opened(), base=tmp_path)
        tracemalloc.start()
        write_sinks({"sink": {"file_path": f"many.{suffix}"}}, many, base=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_500_000, f"{suffix}: 5 MB of records took {peak} bytes"
