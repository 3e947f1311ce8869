"""The keys of `dataset:`: its forms, where its paths count from, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from assay.config import Config, DatasetConfig, SplitConfig, load, resolved, schema
from assay.errors import UserError

Loaded = Callable[..., Config]
Problems = Callable[..., list[UserError]]


def dataset_of(loaded: Loaded, dataset: Any, **options: Any) -> DatasetConfig:
    config = loaded({"models": ["m"], "dataset": dataset}, **options)
    assert config.dataset is not None
    assert loaded(resolved(config)) == config
    jsonschema.validate({"models": ["m"], "dataset": dataset}, schema())
    jsonschema.validate(resolved(config), schema())
    return config.dataset


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.jsonl.gz", "jsonl"),
        ("a.csv.zst", "csv"),
        ("a.TSV.GZ", "tsv"),
        ("a.parquet", "parquet"),
        ("*.jsonl", "jsonl"),
        (["d.jsonl", "sub/*.ndjson.gz"], "jsonl"),
    ],
)
def test_the_type_follows_from_the_suffix(
    loaded: Loaded, folder: Path, path: Any, kind: str
) -> None:
    (folder / "sub").mkdir()
    for name in ("a.jsonl.gz", "a.csv.zst", "a.TSV.GZ", "a.parquet", "sub/x.ndjson.gz"):
        (folder / name).touch()
    found = dataset_of(loaded, {"path": path})
    wanted = [str(folder / part) for part in path] if isinstance(path, list) else str(folder / path)
    assert (found.type, found.path) == (kind, wanted)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("stored:sums", DatasetConfig(type="stored", name="sums")),
        ("hf:openai/gsm8k", DatasetConfig(type="hf", name="openai/gsm8k")),
        (
            {"type": "hf", "name": "a/b", "subset": "main", "split": "test", "revision": "abc"},
            DatasetConfig(
                type="hf", name="a/b", subset="main", split=SplitConfig(name="test"), revision="abc"
            ),
        ),
        ({"type": "hf", "path": "a/b"}, DatasetConfig(type="hf", path="a/b")),
    ],
)
def test_named_datasets(loaded: Loaded, short: Any, long: DatasetConfig) -> None:
    assert dataset_of(loaded, short) == long


def test_a_repository_counts_from_the_folder_of_the_config(loaded: Loaded, folder: Path) -> None:
    config = loaded(
        "{models: m, dataset: {type: stored, name: n, repository: data}}",
        file="sub/c.yaml",
        overrides={"seed": 1},
    )
    assert config.dataset == DatasetConfig(
        type="stored", name="n", repository=str(folder / "sub/data")
    )


def test_what_is_done_to_the_rows(loaded: Loaded) -> None:
    keys: dict[str, Any] = {
        "path": "d.jsonl",
        "fields": {"id": "qid"},
        "filter": "n > 3",
        "sample": 5,
        "seed": 2,
    }
    found = dataset_of(loaded, {**keys, "split": {"name": "test", "ratio": 0.8}, "shuffle": 7})
    assert found.split == SplitConfig(name="test", ratio={"train": 0.8, "test": 0.2})
    assert (found.fields, found.filter, found.sample, found.shuffle, found.seed) == (
        {"id": "qid"},
        "n > 3",
        5,
        7,
        2,
    )
    assert dataset_of(loaded, {**keys, "shuffle": True}).shuffle is True
    parts = {"a": 0.5, "b": 0.25, "c": 0.25}
    assert dataset_of(
        loaded, {**keys, "split": {"name": "b", "ratio": parts}}
    ).split == SplitConfig(name="b", ratio=parts)


@pytest.mark.parametrize(
    ("dataset", "what", "where"),
    [
        ({"path": "*.nope.jsonl"}, "no file matches '*.nope.jsonl'", "dataset.path"),
        ({"path": ["d.jsonl", "gone.jsonl"]}, "there is no file 'gone.jsonl'", "dataset.path[1]"),
        ({"type": "jsonl", "path": 5}, "path must be text, got 5", "dataset.path"),
        ({"type": "stored"}, "the dataset has no name", "dataset"),
        ({"type": "hf"}, "the dataset has no name", "dataset"),
        ({"type": "csv"}, "the dataset has no path", "dataset"),
        (
            {"path": "d.jsonl", "split": "train"},
            "a jsonl dataset has no splits of its own",
            "dataset.split",
        ),
        (
            {"path": "d.jsonl", "split": {"name": "tran", "ratio": 0.8}},
            "the ratio has no part 'tran'",
            "dataset.split.name",
        ),
        (
            {"path": "d.jsonl", "split": {"name": "a", "ratio": {"a": 0.8, "b": 0.3}}},
            "the parts of a split are more than the whole",
            "dataset.split.ratio",
        ),
        (
            {"path": "d.jsonl", "sample": 0},
            "sample must be a whole number of at least 1, got 0",
            "dataset.sample",
        ),
        (
            {"path": "d.jsonl", "fields": ["id"]},
            "fields must be a mapping, got a list",
            "dataset.fields",
        ),
        ({"path": "d.jsonl", "fliter": "n"}, "unknown key 'fliter'", "dataset.fliter"),
    ],
)
def test_what_is_refused(problems: Problems, dataset: Any, what: str, where: str) -> None:
    (problem,) = problems({"models": ["m"], "dataset": dataset})
    assert (problem.what, problem.where) == (what, where)


def test_files_of_several_types(problems: Problems, folder: Path) -> None:
    (folder / "e.csv").touch()
    (problem,) = problems({"models": ["m"], "dataset": {"path": ["d.jsonl", "e.csv"]}})
    assert "is not clear from its name" in problem.what


# ---- buckets


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "memory"])
def test_addresses_of_buckets_stay_as_they_are(scheme: str) -> None:
    address = f"{scheme}://bucket/some/folder"
    config = load(
        {"dataset": f"{address}/a*.jsonl.gz", "models": ["demo:x"], "output_dir": f"{address}/out"}
    )
    assert config.dataset is not None
    assert (config.dataset.path, config.dataset.type) == (f"{address}/a*.jsonl.gz", "jsonl")
    assert config.output_dir == f"{address}/out"
    again = load(resolved(config))
    assert (again.dataset, again.output_dir) == (config.dataset, config.output_dir)


def test_a_list_of_addresses_and_outputs() -> None:
    paths = ["s3://bucket/a.csv", "s3://bucket/b.csv"]
    output = {"type": "csv", "path": "gs://bucket/out.csv"}
    config = load({"dataset": {"path": paths}, "models": ["demo:x"], "outputs": [output]})
    assert config.dataset is not None
    assert (config.dataset.path, config.dataset.type) == (paths, "csv")
    assert config.outputs[0].path == "gs://bucket/out.csv"


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("{}\n")
    config = load(
        {
            "dataset": f"file://{tmp_path}/items.jsonl",
            "models": ["demo:x"],
            "output_dir": f"file://{tmp_path}/out",
        }
    )
    assert config.dataset is not None
    assert (config.dataset.path, config.output_dir) == (
        str(tmp_path / "items.jsonl"),
        str(tmp_path / "out"),
    )
