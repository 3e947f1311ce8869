"""Hugging Face datasets, offline: folders that `datasets` wrote, and a cache laid out as the hub's downloads are.

The library reads its environment when it is imported, so it lives in two child
processes: one that builds, one that asks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from assay.errors import UserError
from assay.registry import dataset

COMMIT, OTHER = "a" * 40, "b" * 40
BUILD = """
import sys, datasets
from pathlib import Path
datasets.disable_progress_bars()
root = Path(sys.argv[1])
def rows(split, count):
    return datasets.Dataset.from_list([{"qid": n, "answers": {"text": [split]}} for n in range(count)])
both = datasets.DatasetDict({"train": rows("train", 3), "test": rows("test", 2)})
both.save_to_disk(root / "saved")
both["test"].save_to_disk(root / "one")
(root / "repo/data").mkdir(parents=True)
for split in both:
    both[split].to_parquet(root / f"repo/data/{split}-00000-of-00001.parquet")
datasets.load_dataset(str(root / "repo"))
(made,) = Path(datasets.config.HF_DATASETS_CACHE).glob("repo/*/*/*/")
cached = Path(datasets.config.HF_DATASETS_CACHE) / "someone___asked/default/0.0.0" / sys.argv[2]
cached.mkdir(parents=True)
for file in made.iterdir():
    file.rename(cached / file.name.replace("repo-", "asked-"))
"""
ASK = """
import json, sys
from assay.datasets.hf import hf, stamp
from assay.errors import UserError
for line in sys.stdin:
    call, name, params = json.loads(line)
    try:
        print(json.dumps(list(hf(name, **params)) if call == "rows" else stamp(name, **params)))
    except UserError as error:
        print(json.dumps([error.what, error.where, error.fix]))
"""

Ask = Callable[..., Any]
CALLS: list[tuple[str, str, dict[str, str]]] = [
    ("rows", "saved", {"split": "test"}),
    ("rows", "one", {}),
    ("rows", "repo", {"split": "test"}),
    ("rows", "saved", {}),
    ("rows", "saved", {"split": "tset"}),
    ("stamp", "repo", {"split": "test"}),
    ("stamp", "repo", {"split": "train"}),
    ("rows", "someone/asked", {"split": "test"}),
    ("rows", "someone/asked", {"split": "test", "revision": COMMIT}),
    ("rows", "someone/asked", {"split": "test", "revision": OTHER}),
    ("rows", "someone/asked", {"split": "test", "subset": "gone"}),
    ("stamp", "someone/asked", {"split": "test"}),
    ("stamp", "someone/asked", {"split": "test", "revision": OTHER}),
    ("rows", "nobody/nothing", {"split": "test"}),
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """What one of CALLS answers: rows, a stamp, or the three parts of an error."""
    root = tmp_path_factory.mktemp("hf")
    environ = {**os.environ, "HF_HOME": str(root / "home")}
    environ.pop("HF_DATASETS_CACHE", None)
    subprocess.run(
        [sys.executable, "-c", BUILD, str(root), COMMIT],
        env=environ,
        check=True,
        capture_output=True,
    )
    lines = "".join(json.dumps(call) + "\n" for call in CALLS)
    environ["HF_HUB_OFFLINE"] = "1"
    told = subprocess.run(
        [sys.executable, "-c", ASK],
        env=environ,
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
    )
    assert told.stderr == ""
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    return lambda call, name, **params: answers[CALLS.index((call, name, params))]


@pytest.mark.parametrize("name", ["saved", "repo", "someone/asked"])
def test_folders_and_the_cache_are_read_offline(ask: Ask, name: str) -> None:
    expected = [
        [f"{name} row {n + 1}", {"qid": n, "answers": {"text": ["test"]}}] for n in range(2)
    ]
    assert ask("rows", name, split="test") == expected


def test_a_dataset_without_splits(ask: Ask) -> None:
    assert len(ask("rows", "one")) == 2


def test_a_split_must_be_named_and_exist(ask: Ask) -> None:
    assert ask("rows", "saved") == [
        "'saved' has several splits",
        "dataset.split",
        "valid: test, train",
    ]
    what, _, fix = ask("rows", "saved", split="tset")
    assert what == "'saved' has no split 'tset'"
    assert "did you mean 'test'?" in fix


def test_a_pinned_revision_is_the_one_in_the_cache_or_refused(ask: Ask) -> None:
    assert ask("rows", "someone/asked", split="test", revision=COMMIT) == ask(
        "rows", "someone/asked", split="test"
    )
    what, where, _ = ask("rows", "someone/asked", split="test", revision=OTHER)
    assert where == "dataset.revision"
    assert COMMIT in what
    assert OTHER in what


def test_the_revision_is_recorded(ask: Ask) -> None:
    assert ask("stamp", "someone/asked", split="test") == {"revision": COMMIT}
    assert ask("stamp", "someone/asked", split="test", revision=OTHER) == {"revision": OTHER}
    assert (
        ask("stamp", "repo", split="test")["revision"]
        != ask("stamp", "repo", split="train")["revision"]
    )


def test_what_is_not_in_the_cache(ask: Ask) -> None:
    what, where, fix = ask("rows", "nobody/nothing", split="test")
    assert (
        what
        == "the Hugging Face dataset 'nobody/nothing' is not in the cache, and HF_HUB_OFFLINE is set"
    )
    assert (where, fix) == ("dataset", "run once without HF_HUB_OFFLINE, or name a local folder")
    assert "'gone'" in ask("rows", "someone/asked", split="test", subset="gone")[0]


def test_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError) as caught:
        list(dataset.get("hf")("someone/asked"))
    assert caught.value.fix == "pip install 'assay-eval[hf]'"
