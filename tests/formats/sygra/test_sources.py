"""Sources of a `data_config`: formats, ids, fields, cuts, and what is wrong with them."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.formats.sygra.data import item_ids, open_records
from assay.formats.sygra.data.sources import typed_rows
from assay.formats.sygra.data.transforms import plain_record
from tests.formats.sygra.data_support import bare, disk, load, problem, read, step, write_lines

ROWS = [{"q": "one", "n": 1}, {"q": "two", "n": 2}, {"q": "three", "n": 3}]


# ---- formats


def test_every_disk_format_gives_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    write_lines(tmp_path / "rows.jsonl", ROWS)
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame(ROWS).to_parquet(tmp_path / "rows.parquet")
    for suffix in ("json", "jsonl", "csv", "parquet"):
        assert bare(read(tmp_path, disk(f"rows.{suffix}"))) == ROWS, suffix
    (tmp_path / "rows.txt").write_text(json.dumps(ROWS))
    assert bare(read(tmp_path, disk("rows.txt", file_format="json"))) == ROWS
    assert bare(read(tmp_path, disk("rows.json", file_format="csv"))) == ROWS, "the suffix decides"
    assert bare(read(Path("/nowhere"), disk(str(tmp_path / "rows.json")))) == ROWS, (
        "a path may be absolute"
    )


def test_blank_lines_and_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"q": "a"}\n\n{"q": "b"}\n')
    assert bare(read(tmp_path, disk("rows.jsonl"))) == [{"q": "a"}, {"q": "b"}]
    for encoding in ("utf-16", "latin-1"):
        (tmp_path / "other.csv").write_text("q,n\nél,1\nünd,2\n", encoding=encoding)
        assert bare(read(tmp_path, disk("other.csv", encoding=encoding))) == [
            {"q": "él", "n": 1},
            {"q": "ünd", "n": 2},
        ]
    (tmp_path / "wrong.jsonl").write_text('{"q": "é"}\nnot json\n', encoding="latin-1")
    found = problem(tmp_path, disk("wrong.jsonl", encoding="latin-1"))
    assert found.where == f"{tmp_path / 'wrong.jsonl'}:2", "not the place of a copy"
    assert "not utf-16" in problem(tmp_path, disk("rows.jsonl", encoding="utf-16")).what
    assert (
        problem(tmp_path, disk("rows.jsonl", encoding="utf-61")).where
        == "data_config.source.encoding"
    )


CELLS = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.floats(-1e6, 1e6).map(lambda number: f"{number:.3f}"),
    st.sampled_from(
        ["True", "false", "TRUE", "007", " 5", "1e3", ".5", "5.", "0x10", "1_000", "x", "a,b", "-"]
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=6))
def test_csv_columns_have_the_types_that_pandas_gives(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    pd.DataFrame({"c": cells, "other": "text"}).to_csv(path, index=False)
    wanted = [row["c"] for row in pd.read_csv(path).to_dict("records")]
    found = [row["c"] for row in read(path.parent, disk("t.csv"))]
    assert found == wanted
    assert [type(value) for value in found] == [type(value) for value in wanted]


def test_gaps_in_a_csv_are_null_and_change_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "whole,part,flag,text,none\n1,1.5,True,NA,\n,,,,\nNA,nan,null,x,NaN\n"
    )
    assert bare(read(tmp_path, disk("t.csv"))) == [
        {"whole": 1, "part": 1.5, "flag": True, "text": "NA", "none": None},
        {"whole": None, "part": None, "flag": None, "text": None, "none": None},
        {"whole": None, "part": None, "flag": None, "text": "x", "none": None},
    ]
    assert list(typed_rows(lambda: iter([{"c": "12345678901234567890"}]))) == [
        {"c": "12345678901234567890"}
    ]


def test_values_that_json_lacks() -> None:
    record: dict[Any, Any] = {
        "nan": float("nan"),
        "deep": [{"x": float("nan")}, (1, 2)],
        "numpy": np.float64("nan"),
        "whole": np.int64(7),
        "array": np.array([[1.0, np.nan]]),
        "missing": pd.NaT,
        "na": pd.NA,
        "time": pd.Timestamp("2026-01-02T03:04:05"),
        1: "key",
    }
    assert plain_record(record) == {
        "nan": None,
        "deep": [{"x": None}, [1, 2]],
        "numpy": None,
        "whole": 7,
        "array": [[1.0, None]],
        "missing": None,
        "na": None,
        "time": "2026-01-02T03:04:05",
        "1": "key",
    }
    assert type(plain_record(record)["whole"]) is int


def test_nan_in_a_file_is_null(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"q": NaN, "deep": {"x": [NaN, 1]}}\n')
    assert bare(read(tmp_path, disk("rows.jsonl"))) == [{"q": None, "deep": {"x": [None, 1]}}]


# ---- Hugging Face


def dataset_folder(base: Path, data_files: str) -> Path:
    folder = base / "google" / "simpleqa-verified"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(
        f"---\nlicense: mit\nconfigs:\n- config_name: simpleqa_verified\n  data_files: {data_files}\n"
        "- config_name: other\n  data_files: other.jsonl\n---\n# About\n---\n"
    )
    (folder / "eval.csv").write_text("original_index,problem\n5,Who?\n6,What?\n")
    write_lines(folder / "more-0.jsonl", [{"original_index": 7, "problem": "a"}])
    write_lines(folder / "more-1.jsonl", [{"original_index": 8, "problem": "b"}])
    return folder


def hub(**more: Any) -> dict[str, Any]:
    return {
        "type": "hf",
        "repo_id": "google/simpleqa-verified",
        "config_name": "simpleqa_verified",
        **more,
    }


@pytest.mark.parametrize(
    "data_files",
    [
        "[{split: eval, path: eval.csv}, {split: more, path: 'more-*.jsonl'}]",
        "{eval: eval.csv, more: [more-0.jsonl, more-1.jsonl]}",
    ],
)
def test_a_dataset_in_a_folder_needs_no_package(
    tmp_path: Path, data_files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    dataset_folder(tmp_path, data_files)
    both = [{"original_index": 5, "problem": "Who?"}, {"original_index": 6, "problem": "What?"}]
    more = [{"original_index": 7, "problem": "a"}, {"original_index": 8, "problem": "b"}]
    assert bare(read(tmp_path, hub(split="eval"))) == both
    assert bare(read(tmp_path, hub(split=["eval", "more", "eval"]))) == [*both, *more]
    assert bare(read(tmp_path, hub(split="eval[1:]+more[:1]"))) == [both[1], more[0]]
    assert "'eval'" in problem(tmp_path, hub(split="evla")).fix
    assert "simpleqa_verified" in problem(tmp_path, hub(split="eval", config_name="simple")).fix
    assert "several configs" in problem(tmp_path, hub(config_name=None)).what
    assert "not understood" in problem(tmp_path, hub(split="eval[:10%]")).what


def test_an_edited_file_of_a_folder_is_read_anew(tmp_path: Path) -> None:
    folder = dataset_folder(tmp_path, "{eval: eval.csv}")
    assert len(read(tmp_path, hub(split="eval"))) == 2
    (folder / "eval.csv").write_text("original_index,problem\n9,New?\n")
    assert bare(read(tmp_path, hub(split="eval"))) == [{"original_index": 9, "problem": "New?"}]


def test_shards_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "owner" / "name" / "sub"
    folder.mkdir(parents=True)
    for number in range(3):
        write_lines(folder / f"train-{number}.jsonl", [{"n": number}])
    source = {
        "type": "hf",
        "repo_id": "owner/name",
        "config_name": "sub",
        "shard": {"regex": "-*.jsonl"},
    }
    assert bare(read(tmp_path, source)) == [{"n": 0}, {"n": 1}, {"n": 2}]
    source["shard"] = {"regex": "-*.jsonl", "index": [0, 2]}
    assert bare(read(tmp_path, source)) == [{"n": 0}, {"n": 2}]
    assert "train-0.jsonl" in problem(tmp_path, {**source, "split": "test"}).fix
    assert "folder only" in problem(tmp_path, {**source, "repo_id": "owner/none"}).what


def test_other_datasets_go_through_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is ours and has its own tests; here only what reaches it, and the key that it finds."""
    from assay import registry

    asked: list[Any] = []

    def hf(name: str, *, subset: str = "", split: str = "", revision: str = "") -> Any:
        import os

        asked.append((name, subset, split, os.environ.get("HF_TOKEN")))
        yield "row 1", {"n": float("nan")}

    monkeypatch.setitem(registry.dataset._found, "hf", hf)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("SYGRA_HF_TOKEN", raising=False)
    source = {"type": "hf", "repo_id": "owner/name", "token": "secret"}
    assert bare(read(tmp_path, source)) == [{"n": None}]
    read(tmp_path, {**source, "token": None, "split": "test"})
    monkeypatch.setenv("SYGRA_HF_TOKEN", "other")
    (tmp_path / "owner" / "name").mkdir(parents=True)
    read(tmp_path, {**source, "token": None, "config_name": "c"})
    folder = str(tmp_path / "owner" / "name")
    assert asked == [
        ("owner/name", "", "train", "secret"),
        ("owner/name", "", "test", None),
        (folder, "c", "train", "other"),
    ]
    import os

    assert "HF_TOKEN" not in os.environ


# ---- ids


def test_ids_are_the_originals(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", [{"q": "x0", "ans": "no"}, {"q": "é", "ans": None}])
    first, second = read(tmp_path, disk("rows.jsonl"))
    assert first["id"] == "94741faf5d263adb6efc53f1f6c1db4bcdae1e3fbdd6bce3e789c7d9e156e0c3"
    assert second["id"] == hashlib.sha256(b'{"ans": null, "q": "\\u00e9"}').hexdigest()


def test_given_ids_and_id_columns(tmp_path: Path) -> None:
    write_lines(tmp_path / "given.jsonl", [{"id": 7, "key": "a"}, {"id": None, "key": "b"}])
    one, two = read(tmp_path, disk("given.jsonl"), id_column="key")
    assert one["id"] == 7, "the first record has an id, so ids are given"
    assert len(two["id"]) == 64
    write_lines(
        tmp_path / "column.jsonl",
        [{"id": None, "key": "a"}, {"id": "own", "key": None}, {"key": "c"}],
    )
    assert [row["id"] for row in read(tmp_path, disk("column.jsonl"), id_column="key")] == [
        "a",
        "own",
        "c",
    ]
    found = problem(tmp_path, disk("column.jsonl"), id_column="kye")
    assert found.where == "data_config.id_column"
    assert "'key'" in found.fix


def test_equal_records_have_equal_ids_and_distinct_items(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", [{"q": "same"}] * 3 + [{"q": "other"}])
    rows = read(tmp_path, disk("rows.jsonl"))
    assert len({row["id"] for row in rows}) == 2
    assert [id.removeprefix(row["id"]) for id, row in item_ids(rows)] == ["", "-2", "-3", ""]


def test_given_ids_that_repeat_get_distinct_texts() -> None:
    records = [{"id": id} for id in ("a", "a-2", "a", "a", 1, "1", 1.5, ["x"])]
    found = list(item_ids(records))
    assert [record for _, record in found] == records
    assert [id for id, _ in found] == ["a", "a-2", "a-3", "a-4", "1", "1-2", "1.5", '["x"]']


def test_records_whose_ids_are_digests_are_known_by_their_index(tmp_path: Path) -> None:
    indices: list[Any] = [7, 7, None, "", "a", 0]
    write_lines(
        tmp_path / "rows.jsonl", [{"q": n, "original_index": i} for n, i in enumerate(indices)]
    )
    rows = read(tmp_path, disk("rows.jsonl"))
    found = [id for id, _ in item_ids(rows, by_index=True)]
    assert found == ["7", "7-2", rows[2]["id"], rows[3]["id"], "a", "0"]
    assert [id for id, _ in item_ids(rows)] == [row["id"] for row in rows]
    without = rows[2:]  # the first one decides, so that more records do not change it
    assert [id for id, _ in item_ids(without, by_index=True)] == [row["id"] for row in without]
    given = [{"id": "q0", "original_index": 7}]
    assert [id for id, _ in item_ids(given, by_index=True)] == ["q0"]


# ---- fields and cuts


def test_fields_keep_the_id(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", [{"id": 1, "a": 2, "b": 3, "c": 4}])
    assert read(tmp_path, disk("rows.jsonl", fields=["b", "gone"])) == [{"id": 1, "b": 3}]
    assert read(tmp_path, disk("rows.jsonl", fields=[])) == [{"id": 1, "a": 2, "b": 3, "c": 4}]
    assert problem(tmp_path, disk("rows.jsonl", fields="b")).where == "data_config.source.fields"


@given(st.integers(1, 8), st.integers(0, 9), st.one_of(st.none(), st.integers(0, 9)))
def test_cuts_are_slices(
    tmp_path_factory: pytest.TempPathFactory, size: int, start: int, count: int | None
) -> None:
    base = tmp_path_factory.mktemp("cut")
    write_lines(base / "rows.jsonl", [{"n": number} for number in range(size)])
    wanted = list(range(size))[start:][: count or None]
    if wanted:
        assert [
            row["n"] for row in read(base, disk("rows.jsonl"), start=start, count=count)
        ] == wanted
    else:
        found = problem(base, disk("rows.jsonl"), start=start, count=count)
        assert f"has {size} records" in found.what


def test_the_original_lost_everything_here(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", [{"n": number} for number in range(5)])
    assert [row["n"] for row in read(tmp_path, disk("rows.jsonl"), start=3, count=5)] == [3, 4]


def test_only_as_much_is_read_as_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\nnot json\n')
    assert [
        row["n"]
        for row in read(tmp_path, disk("rows.jsonl", step("AddNewFieldTransform")), count=2)
    ] == [1, 2]


def test_no_source_means_empty_records(tmp_path: Path) -> None:
    for config in ({}, None, {"source": None}, {"sink": None}):
        rows = list(open_records(config, base=tmp_path, load=load, start=1, count=3))
        assert bare(rows) == [{}, {}, {}]
        assert len({id for id, _ in item_ids(rows)}) == 3
    with pytest.raises(UserError) as caught:
        open_records({}, base=tmp_path, load=load)
    assert "--num_records" in caught.value.fix


# ---- what is wrong


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.json", '{"rows": []}', "not a list"),
        ("a.json", '{"x": {"q": 1}}', "not a list"),
        ("a.json", '"text"', "not a list"),
        ("a.json", "", "empty"),
        ("a.json", "[]", "empty"),
        ("a.json", "[1]", "expected an object"),
        ("a.json", '[{"q": 1}', "not JSON"),
        ("a.jsonl", "", "empty"),
        ("a.jsonl", "[1]", "expected an object"),
        ("a.csv", "q,n\n", "empty"),
        ("a.csv", "q,n\n1\n", "fewer fields"),
        ("a.parquet", "no", "cannot be read"),
        ("a.txt", "{}", "format"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str, what: str) -> None:
    (tmp_path / name).write_text(content)
    found = problem(tmp_path, disk(name))
    assert what in found.what
    assert found.where
    assert found.fix


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"type": "servicenow", "table": "incident"}, "ServiceNow"),
        ({"type": "ftp"}, "unknown source type 'ftp'"),
        ({}, "unknown source type"),
        ({"type": "disk"}, "'file_path'"),
        ({"type": "disk", "file_path": "gone.json"}, "no file 'gone.json'"),
        ({"type": "hf"}, "'repo_id'"),
        ("rows.json", "must be a mapping"),
        (["rows.json"], "a list of sources is not offered"),
    ],
)
def test_bad_sources_are_refused_before_a_record_is_asked_for(
    tmp_path: Path, source: Any, what: str
) -> None:
    with pytest.raises(UserError) as caught:
        open_records({"source": source or {"x": 1}}, base=tmp_path, load=load)
    assert what in caught.value.what
    assert caught.value.where.startswith("data_config.source")
    with pytest.raises(UserError, match="negative"):
        open_records({}, base=tmp_path, load=load, start=-1, count=1)


# ---- images and sounds

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.mark.parametrize(
    "value",
    [
        PNG,
        b"OggSxx",
        {"bytes": PNG, "path": None},
        [PNG],
        {"array": [0.0], "sampling_rate": 8000},
        "pictures/one.png",
        ["no.png", "pictures/ONE.MP3"],
    ],
)
def test_an_image_or_a_sound_in_the_first_record_is_refused(
    tmp_path: Path, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay import registry

    def hf(name: str, *, subset: str, split: str) -> Any:
        yield "row 1", {"q": "text", "x": value}

    monkeypatch.setitem(registry.dataset._found, "hf", hf)
    (tmp_path / "data/pictures").mkdir(parents=True)
    for name in ("one.png", "ONE.MP3"):
        (tmp_path / "data/pictures" / name).write_bytes(b"")
    source = {"type": "hf", "repo_id": "data"}
    with pytest.raises(UserError) as caught:
        open_records({"source": source}, base=tmp_path, load=load)
    assert caught.value.what == "an image or a sound is not offered"
    assert caught.value.where == "data_config.source: field 'x' of the first record"
    assert "data:image/png;base64,…" in caught.value.fix
    assert bare(read(tmp_path, {**source, "fields": ["q"]})) == [{"q": "text"}]


def test_what_only_looks_like_a_file_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.png"
    elsewhere.write_bytes(PNG)
    (tmp_path / "base").mkdir()
    texts = ["data:image/png;base64,AAAA", "https://example.com/one.png", "gone.png", "\0.png"]
    rows = [
        {"x": text} for text in [*texts, "../elsewhere.png", str(elsewhere), "x" * 999 + ".png"]
    ]
    for row in rows:
        write_lines(tmp_path / "base/rows.jsonl", [row])
        assert bare(read(tmp_path / "base", disk("rows.jsonl"))) == [row]


# ---- size

CHILD = """
import sys
from pathlib import Path
from assay.formats.sygra.data import open_records
from tests.formats.sygra.data_support import disk, load, step
steps = [step("RenameFieldsTransform", mapping={"q": "question"}), step("AddRetryFieldsTransform", max_retries=1),
         step("AddNewFieldTransform", mapping={"x": 1}), step("SkipRecords", range="[:2],[-2:]")]
source = disk(sys.argv[1], *steps)
count = sum(1 for _ in open_records({"source": source}, base=Path("."), load=load))
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1]
print(count, peak)
"""


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_memory_does_not_grow_with_records(tmp_path: Path, suffix: str) -> None:
    peaks: list[int] = []
    for size in (10_000, 100_000):
        path = tmp_path / f"{size}.{suffix}"
        text = "a question that is long enough to be seen in memory " * 3
        if suffix == "csv":
            path.write_text("n,q\n" + "".join(f"{number},{text}\n" for number in range(size)))
        else:
            rows = (f'{{"n": {number}, "q": "{text}"}}' for number in range(size))
            path.write_text("[" + ",\n".join(rows) + "]" if suffix == "json" else "\n".join(rows))
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True
        )
        count, peak = map(int, done.stdout.split())
        assert count == size - 4
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 2_000, f"90,000 records more took {peaks[1] - peaks[0]} kB"
