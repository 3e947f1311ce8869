"""Logs that are damaged, cut off, newer than we know, or made to harm: a clear word, and nothing lost that is whole."""

import json
import zipfile
from pathlib import Path
from struct import pack_into
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

import assay.formats.inspect_ai.archive as archives
from assay.errors import UserError
from assay.formats.inspect_ai.archive import Archive, Unreadable
from assay.formats.inspect_ai.reader import inspect_ai, is_log
from tests.formats.inspect_ai.lab import (
    LOGS,
    Zipped,
    cases,
    frames,
    header,
    imported,
    plain,
    rows,
    sample,
    write_eval,
    write_json,
)


def zstd_eval(path: Path, members: dict[str, bytes]) -> Path:
    zipped = Zipped()
    content = b"".join(zipped.member(name, data) for name, data in members.items())
    path.write_bytes(content + zipped.end())
    return path


@pytest.mark.parametrize(
    "content", [b"", b"{", b"PK\x03\x04", b'{"version": 2}', b"[1]", b"\x00" * 100]
)
def test_other_files_are_not_logs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.eval"
    path.write_bytes(content)
    assert inspect_ai(path) == []
    assert inspect_ai(tmp_path) == []


def test_another_archive_is_not_a_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "some.eval", "w") as file:
        file.writestr("package.json", "{}")
    assert not is_log(tmp_path / "some.eval")


def test_the_list_of_an_eval_set_is_not_a_log(tmp_path: Path) -> None:
    told = json.loads(write_json(tmp_path / "log.json", header(plan={}), []).read_text())
    assert is_log(tmp_path / "log.json")
    (tmp_path / "log.json").unlink()
    (tmp_path / "logs.json").write_text(json.dumps({"2026-11-17_sums.eval": told}, indent=2))
    assert inspect_ai(tmp_path) == []


def test_a_log_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "odd.name").write_bytes((LOGS / "large.eval").read_bytes())
    assert len(cases(tmp_path / "odd.name")) == 24


@pytest.mark.parametrize("write", [write_eval, write_json])
def test_a_newer_version_is_refused(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "log", header(version=3, novelty={"a": 1}), [sample()])
    with pytest.raises(UserError, match=r"version 3.*novelty"):
        inspect_ai(path)


def test_unknown_fields_are_kept_and_counted(tmp_path: Path) -> None:
    several = [sample("a"), sample("b", mood="good"), sample("c", mood="bad")]
    several[1]["scores"]["match"]["confidence"] = 0.9
    result = imported(
        write_eval(tmp_path / "log.eval", header(novelty=1), several), tmp_path / "out"
    )
    sources = {
        row["item_id"]: row["metadata"]["source"]
        for row in rows(tmp_path / "out", "responses.jsonl")
    }
    assert sources["b"] == {"mood": "good", "scores.match.confidence": 0.9}
    assert sources["c"] == {"mood": "bad"}
    (note,) = (note for note in result.notes if "not understood" in note)
    assert "sample.mood (2)" in note
    assert "header.novelty (1)" in note


def test_secrets_are_not_imported(tmp_path: Path) -> None:
    about = header()
    about["eval"] |= {
        "model_args": {"api_key": "sk-1234"},
        "model_base_url": "http://me:hidden@host/v1",
    }
    imported(write_eval(tmp_path / "log.eval", about, [sample()]), tmp_path / "out")
    everything = b"".join(
        file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()
    )
    assert b"sk-1234" not in everything
    assert b"hidden" not in everything


def test_nan_is_no_score(tmp_path: Path) -> None:
    several = [sample("a", value=float("nan")), sample("b", value={"x": float("nan"), "y": 1})]
    first, second = cases(write_eval(tmp_path / "log.eval", header(), several))
    assert [(row.outcome, row.score) for row in first.evaluations] == [("errored", None)]
    assert [(row.label, row.outcome, row.score) for row in second.evaluations] == [
        ("match.x", "errored", None),
        ("match.y", "scored", 1.0),
    ]


def test_the_last_of_two_members_counts(tmp_path: Path) -> None:
    path = write_eval(tmp_path / "log.eval", header(), [sample("old")])
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("samples/0_epoch_1.json", json.dumps(sample("new")))
    assert [case.response.item_id for case in cases(path) if case.response] == ["new"]


def test_members_in_several_frames(tmp_path: Path) -> None:
    data = json.dumps(sample("framed")).encode()
    zipped = Zipped()
    content = zipped.member("samples/x.json", data[:10], data[10:])
    content += zipped.member("header.json", json.dumps(header()).encode()) + zipped.end()
    (tmp_path / "log.eval").write_bytes(content)
    assert frames(data[:10], data[10:]) in content
    (case,) = cases(tmp_path / "log.eval")
    assert case.response is not None
    assert case.response.item_id == "framed"


def test_zstandard_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(UserError, match="zstandard") as caught:
        inspect_ai(LOGS / "large.eval")
    assert "assay-eval[zstd]" in caught.value.fix


def test_a_file_that_was_cut_off_gives_its_whole_samples(tmp_path: Path) -> None:
    whole = (LOGS / "large.eval").read_bytes()
    path = tmp_path / "torn.eval"
    path.write_bytes(whole[: len(whole) // 2])
    result = imported(path, tmp_path / "out")
    assert 5 < sum(result.responses.values()) < 24
    assert result.rejected == 1
    assert any("cut off" in note for note in result.notes)


def test_a_json_log_that_was_cut_off_gives_its_whole_samples(tmp_path: Path) -> None:
    path = write_json(tmp_path / "log.json", header(), [sample(str(number)) for number in range(5)])
    path.write_bytes(path.read_bytes()[:-40])
    result = imported(path, tmp_path / "out")
    assert (sum(result.responses.values()), result.rejected) == (4, 1)


def test_a_damaged_sample_is_left_out(tmp_path: Path) -> None:
    data = bytearray((LOGS / "large.eval").read_bytes())
    with zipfile.ZipFile(LOGS / "large.eval") as file:
        at = file.getinfo("samples/sum-7-8_epoch_1.json").header_offset
    data[at + 200] ^= 255
    (tmp_path / "log.eval").write_bytes(data)
    result = imported(tmp_path / "log.eval", tmp_path / "out")
    assert (sum(result.responses.values()), result.rejected) == (23, 1)
    assert any("sum-7-8_epoch_1" in note for note in result.notes)


@pytest.mark.parametrize(
    "broken",
    [
        b"[]",
        b"{",
        b'"a"',
        b'{"id": {}}',
        b'{"epoch": 1}',
        b'{"id":"a","scores":3}',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_what_is_not_a_sample_is_rejected(tmp_path: Path, broken: bytes) -> None:
    members = {"header.json": json.dumps(header()).encode(), "samples/a.json": broken}
    members["samples/b.json"] = json.dumps(sample("b")).encode()
    result = imported(zstd_eval(tmp_path / "log.eval", members), tmp_path / "out")
    assert (sum(result.responses.values()), result.rejected) == (1, 1)


def test_names_are_never_paths(tmp_path: Path) -> None:
    members = {
        "header.json": json.dumps(header()).encode(),
        "samples/../../../x.json": json.dumps(sample("../y")).encode(),
    }
    result = imported(zstd_eval(tmp_path / "in.eval", members), tmp_path / "deep/out")
    assert sum(result.responses.values()) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["deep", "in.eval"]
    assert [entry.name for entry in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "FREE", 1 << 16)
    bomb = b'{"id":"' + b"a" * (1 << 22) + b'"}'
    members = {"header.json": json.dumps(header()).encode(), "samples/a.json": bomb}
    members["samples/b.json"] = json.dumps(sample("b")).encode()
    result = imported(zstd_eval(tmp_path / "log.eval", members), tmp_path / "out")
    assert (sum(result.responses.values()), result.rejected) == (1, 1)


def test_a_size_that_lies_bounds_what_is_unpacked(tmp_path: Path) -> None:
    data = bytearray(
        zstd_eval(tmp_path / "a.eval", {"samples/a.json": b" " * (1 << 20)}).read_bytes()
    )
    pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 10)
    (tmp_path / "b.eval").write_bytes(data)
    with Archive(tmp_path / "b.eval") as archive, pytest.raises(Unreadable):
        archive.read(archive.members["samples/a.json"])


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    zipped = Zipped()
    content = zipped.member("header.json", json.dumps(header()).encode())
    zipped.directory *= 50
    (tmp_path / "log.eval").write_bytes(content + zipped.end())
    with pytest.raises(UserError, match="overlap"):
        inspect_ai(tmp_path / "log.eval")


def test_encrypted_and_unknown_methods_are_told(tmp_path: Path) -> None:
    path = zstd_eval(tmp_path / "log.eval", {"header.json": json.dumps(header()).encode()})
    for at, value, word in ((8, 1, "encrypted"), (10, 14, "unknown method")):
        data = bytearray(path.read_bytes())
        pack_into("<H", data, data.index(b"PK\x01\x02") + at, value)
        (tmp_path / "other.eval").write_bytes(data)
        with pytest.raises(UserError, match=word):
            inspect_ai(tmp_path / "other.eval")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.one_of(
    st.sampled_from("CIPN"), st.booleans(), st.integers(-5, 5), st.floats(-1e6, 1e6), TEXTS
)
SCORES = st.one_of(VALUES, st.dictionaries(TEXTS, VALUES, max_size=3), st.lists(VALUES, max_size=3))
IDS = st.one_of(st.integers(-(2**53), 2**53), TEXTS)


@given(
    st.lists(st.tuples(IDS, TEXTS, SCORES), max_size=4, unique_by=lambda row: repr(row[0])),
    st.sampled_from([None, 1]),
)
def test_whatever_stands_in_samples_arrives(
    tmp_path_factory: Any, several: list[Any], indent: int | None
) -> None:
    folder = tmp_path_factory.mktemp("any")
    samples = [
        sample(id, value=value, input=text, metadata={text: text}) for id, text, value in several
    ]
    archive = cases(write_eval(folder / "log.eval", header(), samples))
    assert plain(cases(write_json(folder / "log.json", header(), samples, indent))) == plain(
        archive
    )
    for case, (id, text, value) in zip(archive, several, strict=True):
        assert case.item is not None
        assert case.response is not None
        assert (case.item["id"], case.item["data"]["input"]) == (str(id), text)
        assert len(case.evaluations) == (len(value) if isinstance(value, (dict, list)) else 1)
        assert b"\n" not in msgspec.json.encode(case)


@given(st.binary(max_size=200), st.integers(0, 4000))
def test_noise_never_surprises(tmp_path_factory: Any, noise: bytes, at: int) -> None:
    folder = tmp_path_factory.mktemp("noise")
    data = bytearray((LOGS / "letters.eval").read_bytes())
    data[at : at + len(noise)] = noise
    (folder / "log.eval").write_bytes(data)
    try:
        for log in inspect_ai(folder / "log.eval"):
            list(log.cases())
            log.notes()
            log.headlines()
    except UserError:
        pass
