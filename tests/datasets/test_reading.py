"""Datasets of a config, from their files to the items of an experiment: what is read, and what is read again."""

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import assay
from assay.config import load
from assay.engine.experiment import dataset
from assay.engine.experiment.dataset import open_dataset, stamp_of
from assay.errors import UserError
from tests.support import Lab


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """The lab's items, in two files."""
    for name, rows in (("one", lab.rows[:2]), ("two", lab.rows[2:])):
        lab.write(f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    lab.config["dataset"] = {"path": str(lab.folder / "[ot]*.jsonl")}
    return lab


def ids(lab: Lab) -> list[str]:
    return [row["id"] for row in lab.read("items.jsonl")]


def readings(lab: Lab) -> int:
    """How often one more run reads the dataset."""
    with mock.patch(
        "assay.engine.experiment.experiment.open_dataset", side_effect=open_dataset
    ) as opened:
        lab.run()
    return opened.call_count


def test_several_files_are_one_dataset(lab: Lab) -> None:
    assert lab.run().ran == 4 * 2
    assert ids(lab) == ["q0", "q1", "q2", "q3"]
    manifest = json.loads((lab.folder / "out/manifest.json").read_text())["dataset"]
    assert [Path(file["path"]).name for file in manifest["plan"]["files"]] == [
        "one.jsonl",
        "two.jsonl",
    ]


def test_files_are_read_again_when_one_of_them_or_the_config_changes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the content decides, however slow this machine is
    monkeypatch.setattr(dataset, "RESTED_NS", 1 << 62)
    assert readings(lab) == 1
    assert readings(lab) == 0
    os.utime(lab.folder / "two.jsonl", (1, 1))
    assert readings(lab) == 0
    lab.write("two.jsonl", (lab.folder / "two.jsonl").read_text().replace("q3", "q9"))
    assert readings(lab) == 1
    lab.write("two.jsonl", (lab.folder / "two.jsonl").read_text().replace("q9", "q3"))
    assert readings(lab) == 1
    lab.write("three.jsonl", json.dumps({**lab.rows[0], "id": "new"}))
    assert readings(lab) == 1
    assert ids(lab) == ["q0", "q1", "new", "q2", "q3"]
    lab.config["dataset"]["filter"] = 'id != "q1"'
    assert readings(lab) == 1
    assert ids(lab) == ["q0", "new", "q2", "q3"]
    assert readings(lab) == 0


def test_a_larger_sample_pays_only_for_what_is_new(lab: Lab) -> None:
    lab.config["dataset"] |= {"sample": 2, "shuffle": True}
    assert lab.run().paid == 2 * 2
    lab.config["dataset"]["sample"] = 3
    assert lab.run().paid == 1 * 2
    lab.config["dataset"]["shuffle"] = 5
    assert lab.run().paid == 0


def test_the_limit_comes_last(lab: Lab) -> None:
    lab.config["dataset"] |= {"shuffle": 3, "filter": 'id != "q2"'}
    lab.run()
    shuffled = ids(lab)
    lab.config["limit"] = 2
    lab.run()
    assert ids(lab) == shuffled[:2]


@pytest.mark.parametrize("shuffle", [False, True])
def test_ids_that_repeat_across_files_are_refused_with_both_places(lab: Lab, shuffle: bool) -> None:
    lab.write("three.jsonl", "\n" + json.dumps(lab.rows[3]))
    lab.config["dataset"]["shuffle"] = shuffle
    with pytest.raises(UserError, match="two items have the id 'q3'") as caught:
        lab.run()
    assert set(caught.value.where.split(" and ")) == {
        f"{lab.folder}/three.jsonl:2",
        f"{lab.folder}/two.jsonl:2",
    }


def test_a_bad_field_or_filter_is_found_before_anything_is_spent(lab: Lab) -> None:
    for key, value in (("fields", {"id": "qid"}), ("filter", "nope > 1")):
        dataset = {**lab.config["dataset"], key: value}
        with pytest.raises(UserError) as caught:
            assay.validate({**lab.config, "dataset": dataset})
        assert f"{lab.folder}/one.jsonl:1" in str(caught.value)


def opened(folder: Path, dataset: Any) -> list[tuple[str, dict[str, Any]]]:
    source = load({"models": ["demo:small"], "dataset": dataset}, environ={}).dataset
    assert source is not None
    return list(open_dataset(source, folder))


def test_a_key_that_the_type_does_not_take(lab: Lab) -> None:
    with pytest.raises(UserError, match="jsonl has no parameter 'subset'"):
        opened(lab.folder, {**lab.config["dataset"], "subset": "main"})


def test_a_pattern_may_match_nothing_by_the_time_it_is_read(lab: Lab) -> None:
    source = load(lab.config, environ={}).dataset
    assert source is not None
    for name in ("one", "two"):
        (lab.folder / f"{name}.jsonl").unlink()
    for read in (
        lambda: list(open_dataset(source, lab.folder)),
        lambda: stamp_of(source, lab.folder),
    ):
        with pytest.raises(UserError, match="no file matches"):
            read()
