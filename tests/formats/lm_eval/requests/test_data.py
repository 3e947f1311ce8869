"""Where documents come from: local files, a mirror, a copy of a repository, the cache of `datasets`."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet
import pytest
from datasets import config as settings

from assay.errors import UserError
from assay.formats.lm_eval.asking.data import load, pull
from assay.formats.lm_eval.asking.documents import documents, plain
from assay.formats.lm_eval.tasks.definition import Definition, FewShotKeys

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = {
    "train": [{"q": f"t{number}", "a": "x", "deep": {"n": [number]}} for number in range(4)],
    "test": [{"q": f"q{number}", "a": "y", "deep": {"n": []}} for number in range(3)],
}


def task(**keys: Any) -> Definition:
    own: dict[str, Any] = {
        "test_split": "test",
        "doc_to_text": "{{q}} {{deep}}",
        "doc_to_target": "a",
        **keys,
    }
    shots = FewShotKeys(
        split=own.get("fewshot_split"), fewshot_delimiter="\n\n", target_delimiter=" "
    )
    return Definition(task="small", dataset_path="owner/words", fewshot_config=shots, **own)


def asked(definition: Definition) -> list[str]:
    return [plain(document.requests[0].messages) for document in documents(definition)]


TEXT = pyarrow.string()
SCHEMA = pyarrow.schema(
    {"q": TEXT, "a": TEXT, "deep": pyarrow.struct({"n": pyarrow.list_(pyarrow.int64())})}
)
EXPECTED = ["q0 {'n': []}", "q1 {'n': []}", "q2 {'n': []}"]


def jsonl(folder: Path, **splits: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def cached(tmp_path: Path, config: str = "default", commit: str = COMMIT) -> None:
    """Puts a dataset into the cache as `load_dataset` leaves it there when it has been downloaded."""
    files = {
        split: str(jsonl(tmp_path / "raw", **{split: rows}) / f"{split}.jsonl")
        for split, rows in ROWS.items()
    }
    loaded = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "other"))
    source = Path(loaded["train"].cache_files[0]["filename"]).parent
    place = tmp_path / "cache" / "owner___words" / config / "0.0.0" / commit
    place.mkdir(parents=True)
    info = json.loads((source / "dataset_info.json").read_text())
    for split in info["splits"].values():
        split["dataset_name"] = "words"
    (place / "dataset_info.json").write_text(
        json.dumps(info | {"dataset_name": "words", "config_name": config})
    )
    for split in ROWS:
        (place / f"words-{split}.arrow").write_bytes((source / f"json-{split}.arrow").read_bytes())


def test_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonl(tmp_path / "data/owner/words/default", **ROWS)
    monkeypatch.setenv("ASSAY_DATA", f"{tmp_path / 'none'}:{tmp_path / 'data'}")
    assert asked(task()) == EXPECTED
    assert load(task()).source == {
        "repository": "owner/words",
        "origin": str(tmp_path / "data/owner/words/default"),
    }


def test_a_mirror_has_configs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonl(tmp_path / "owner/words/en", test=[{"q": "english", "a": "", "deep": 1}])
    jsonl(tmp_path / "owner/words/default", test=[{"q": "any", "a": "", "deep": 1}])
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert asked(task(dataset_name="en")) == ["english 1"]
    assert asked(task()) == ["any 1"]


@pytest.mark.parametrize(("folder", "config"), [("data", None), ("en", "en")])
def test_a_copy_of_a_repository(
    folder: str, config: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "owner/words" / folder
    place.mkdir(parents=True)
    for part in range(3):
        table = pyarrow.Table.from_pylist(ROWS["test"][part : part + 1], schema=SCHEMA)
        pyarrow.parquet.write_table(table, place / f"test-0000{part}-of-00003.parquet")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert asked(task(dataset_name=config)) == EXPECTED


def test_the_cache_is_used_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(tmp_path)
    monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)  # a question to the hub would fail here
    data = load(task())
    assert [row["q"] for row in data.split("test")] == ["q0", "q1", "q2"]
    assert data.source == {"repository": "owner/words", "revision": COMMIT, "origin": "cache"}
    assert settings.HF_HUB_OFFLINE is False


def test_another_revision_is_not_the_cached_one(tmp_path: Path) -> None:
    cached(tmp_path)
    assert load(task(dataset_kwargs={"revision": COMMIT[:9]})).source["revision"] == COMMIT
    with pytest.raises(UserError, match="the cache has the revision 0123"):
        load(task(dataset_kwargs={"revision": "f" * 40}))


def test_missing_data_are_named_with_the_way_to_bring_them() -> None:
    with pytest.raises(UserError) as error:
        load(task(dataset_name="en", fewshot_split="train"))
    assert "owner/words (en), splits test, train" in error.value.what
    assert "assay benchmarks pull small -o DIR" in error.value.fix
    assert "ASSAY_DATA=DIR" in error.value.fix


def test_a_hub_that_cannot_be_reached_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(settings, "HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(
        UserError, match=r"127\.0\.0\.1:9 cannot be reached, and it is not in the cache"
    ):
        load(task())


def test_pull_makes_a_mirror_with_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(tmp_path)
    definition = task(fewshot_split="train", num_fewshot=2)
    before, content = asked(definition), load(definition).content("test")
    [result] = pull([definition, task()], tmp_path / "carried")
    assert (result.rows, result.written, result.problem) == (
        {"train": 4, "test": 3},
        ["test", "train"],
        "",
    )
    monkeypatch.setattr(settings, "HF_DATASETS_CACHE", tmp_path / "empty")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "carried"))
    assert asked(definition) == before
    data = load(definition)
    assert (data.source["revision"], data.content("test")) == (COMMIT, content)
    made = json.loads((tmp_path / "carried/owner/words/default/assay.json").read_text())
    assert made["splits"]["test"]["content"] == content


def test_pull_resumes_and_leaves_files_of_others_alone(tmp_path: Path) -> None:
    cached(tmp_path)
    folder = tmp_path / "carried"
    assert pull([task()], folder)[0].written == ["test"]
    [again] = pull([task(training_split="train")], folder)
    assert (again.written, again.rows) == (["train"], {"test": 3, "train": 4})
    assert pull([task(training_split="train")], folder)[0].written == []
    foreign = folder / "owner/words/default/train.parquet"
    foreign.write_bytes(b"mine")
    assert "is not replaced" in pull([task(training_split="train")], folder)[0].problem
    assert foreign.read_bytes() == b"mine"


def test_pull_goes_on_after_a_dataset_that_is_not_there(tmp_path: Path) -> None:
    cached(tmp_path, config="en")
    results = pull(
        [
            task(dataset_name="de"),
            task(dataset_name="en"),
            task(dataset_name="en", test_split="dev"),
        ],
        tmp_path / "x",
    )
    assert [bool(result.problem) for result in results] == [True, True]
    assert results[1].rows == {"test": 3}
    assert results[1].problem == "the dataset has no split dev"


def test_nothing_is_written_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cached(tmp_path)
    asked(task())
    pull([task()], tmp_path / "carried")
    assert capfd.readouterr() == ("", "")
