"""Files that travel with a plan: which ones, where they end up, and that no key changes on the way."""

import json
import shutil
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import usercode
from assay.config import load, resolved
from assay.engine.cluster.shipping import STAYS, materialise, ship, variables, with_local_paths
from assay.engine.cluster.worker import work
from assay.engine.experiment.experiment import Experiment
from assay.engine.run.plan import describe, plan_digest
from assay.errors import ConfigError, StoreError
from assay.store.items import normalise_all
from assay.store.shared.objects import FolderObjects
from assay.threads import run_blocking
from tests.support import Lab


@pytest.fixture
def whole(tmp_path: Path) -> Lab:
    """A lab on a "driver" whose config names a file of every kind."""
    driver = tmp_path / "driver"
    driver.mkdir()
    lab = Lab(driver)
    (driver / "helpers").mkdir()
    lab.write("helpers/__init__.py", "")
    lab.write("helpers/words.py", "GOOD = 'good'\n")
    lab.write(
        "scorers.py",
        """
        from helpers.words import GOOD

        def is_good(item, response):
            return GOOD in response.response
        """,
    )
    lab.write(
        "metrics.py",
        "def share(evaluation_results, facets, **params):\n    return {'score': 1.0}\n",
    )
    lab.write("own.py", "def own(item, context):\n    return 'good'\n")
    lab.write("rubric.txt", "Is {{answer}} right? {{question}} {{criterion}}\n")
    lab.write(
        "shots.jsonl",
        '{"id": "s", "data": {"question": "50 + 1"}, "ground_truth": {"answer": "51"}}\n',
    )
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    judge = {
        "name": "judge_model",
        "type": "python",
        "path": str(driver / "model.py"),
        "function_name": "calculator",
    }
    lab.config |= {
        "models": [*lab.config["models"], {**judge, "helper": True}],
        "tasks": [str(driver / "own.py:own")],
        "prompt_templates": {
            "plain": "What is {{question}}?",
            "shots": {
                "text": "{{examples}} What is {{question}}?",
                "few_shot": {"path": str(driver / "shots.jsonl"), "n": 1},
            },
            "items": {"text": "{{examples}} What is {{question}}?", "few_shot": {"n": 1}},
        },
        "evaluation_methods": [
            "exact_match",
            str(driver / "scorers.py:is_good"),
            {"name": "rubric", "type": "judge_rubric", "params": _rubric(driver)},
        ],
        "metrics": [
            "mean",
            {"name": "share", "path": str(driver / "metrics.py"), "function_name": "share"},
        ],
    }
    return lab


def _rubric(driver: Path) -> dict[str, Any]:
    return {
        "prompt": str(driver / "rubric.txt"),
        "model": "judge_model",
        "criteria": {"right": "is right"},
    }


def _keys(experiment: Experiment, items: Path) -> dict[str, Any]:
    """What determines the keys of all rows: the fingerprints of tasks and the identities of scorers and metrics."""
    bound = experiment.bind()
    rows = list(normalise_all(map(json.loads, items.read_text().splitlines()), "items"))
    return {
        "plan": plan_digest(describe(bound.tasks, 1, "")),
        "cells": [task.prepare(item).fingerprint.hex() for task in bound.tasks for item in rows],
        "scorers": [scorer.identity.hex() for scorer in bound.scorers],
        "metrics": [usercode.identity(metric.function) for metric in bound.metrics],
    }


def _loaded(data: dict[str, Any], paths: dict[str, str], items: Path) -> Experiment:
    """As a worker loads a plan's config: the files from its own folder, the items from the store."""
    local = with_local_paths(data, paths)
    return Experiment(load({**local, "dataset": {"type": "jsonl", "path": str(items)}}))


def test_a_worker_without_the_files_has_the_same_keys(whole: Lab, tmp_path: Path) -> None:
    driver, root = whole.folder, FolderObjects(tmp_path / "root")
    experiment = assay.experiment(whole.config)
    items = Path(shutil.copy(driver / "items.jsonl", tmp_path / "stored.jsonl"))
    before, data = _keys(experiment, items), resolved(experiment.config)
    files = ship(experiment, root)
    driver.rename(tmp_path / "elsewhere")

    paths = materialise(files, root, tmp_path / "worker")
    assert all(
        Path(path).read_bytes() == root.read(f"files/{files[name]}") for name, path in paths.items()
    )
    assert _keys(_loaded(data, paths, items), items) == before


def test_which_files_travel(whole: Lab, tmp_path: Path) -> None:
    driver, root = whole.folder, FolderObjects(tmp_path / "root")
    names = {
        str(Path(path).relative_to(driver)) for path in ship(assay.experiment(whole.config), root)
    }
    assert names == {
        "model.py", "own.py", "scorers.py", "helpers/__init__.py", "helpers/words.py", "metrics.py", "rubric.txt",
        "shots.jsonl", "items.jsonl",
    }  # fmt: skip


def test_the_dataset_travels_only_as_examples(lab: Lab, tmp_path: Path) -> None:
    lab.write("items.jsonl", '{"question": "1 + 1", "answer": "2"}\n')
    files = ship(assay.experiment(lab.config), FolderObjects(tmp_path / "root"))
    assert list(files) == [str(lab.folder / "model.py")]


def test_files_that_are_there_are_used_where_they_are(whole: Lab, tmp_path: Path) -> None:
    root = FolderObjects(tmp_path / "root")
    files = ship(assay.experiment(whole.config), root)
    assert materialise(files, root, tmp_path / "worker") == {path: path for path in files}
    assert not (tmp_path / "worker").exists()


def test_a_file_that_differs_is_refused_by_name(whole: Lab, tmp_path: Path) -> None:
    root = FolderObjects(tmp_path / "root")
    files = ship(assay.experiment(whole.config), root)
    whole.write("helpers/words.py", "GOOD = 'better'\n")
    (whole.folder / "rubric.txt").unlink()
    with pytest.raises(
        ConfigError, match=r"helpers/words.py' is not the file that the plan was made with"
    ):
        materialise(files, root, tmp_path / "worker")


def test_what_cannot_travel_is_refused_by_name(lab: Lab, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    words = lab.write("words.txt", "good")
    lab.write("scorers.py", "def is_good(item, response, *, words):\n    return True\n")
    server = {"type": "vllm", "command": "serve {model_path} {port}", "model_path": str(weights)}
    lab.config["models"] = [{"name": "local", **server}]
    method = {
        "path": str(lab.folder / "scorers.py"),
        "function_name": "is_good",
        "params": {"words": str(words)},
    }
    lab.config["evaluation_methods"] = [{"name": "is_good", **method}]
    lab.write("items.jsonl", '{"question": "1 + 1", "answer": "2"}\n')
    root = FolderObjects(tmp_path / "root")
    files = ship(assay.experiment(lab.config), root)
    assert files[str(weights)] == STAYS
    assert [entry.name for entry in root.names("files/")] == [
        f"files/{files[str(lab.folder / 'scorers.py')]}"
    ]
    weights.rmdir()
    words.unlink()
    with pytest.raises(ConfigError) as caught:
        materialise(files, root, tmp_path / "worker")
    assert [problem.what.partition("' is")[0] for problem in caught.value.problems] == [
        f"'{weights}",
        f"'{words}",
    ]


def test_an_object_that_is_damaged_is_not_used(whole: Lab, tmp_path: Path) -> None:
    root = FolderObjects(tmp_path / "root")
    files = ship(assay.experiment(whole.config), root)
    path = str(whole.folder / "scorers.py")
    root.write(f"files/{files[path]}", b"def is_good(item, response): return True")
    whole.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="missing or damaged"):
        materialise(files, root, tmp_path / "worker")


def test_recordings_by_their_folder_and_examples_by_a_pattern(lab: Lab, tmp_path: Path) -> None:
    folder = lab.folder / "earlier"
    folder.mkdir()
    (folder / "responses.jsonl").write_text("")
    for name in ("a", "b"):
        lab.write(f"{name}.shots.jsonl", '{"question": "1 + 1", "answer": "2"}\n')
    items = lab.write("items.jsonl", '{"question": "2 + 1", "answer": "3"}\n')
    lab.config["models"] = [{"name": "old", "type": "replay", "path": str(folder)}]
    shots = {"path": str(lab.folder / "*.shots.jsonl"), "n": 1}
    lab.config["prompt_templates"] = {
        "shots": {"text": "{{examples}} {{question}}", "few_shot": shots}
    }
    experiment, root = assay.experiment(lab.config), FolderObjects(tmp_path / "root")
    before, data = _keys(experiment, items), resolved(experiment.config)
    files = ship(experiment, root)
    for path in files:
        Path(path).unlink()
    folder.rmdir()
    paths = materialise(files, root, tmp_path / "worker")
    assert len(paths) == 3
    assert _keys(_loaded(data, paths, items), items) == before


def test_images_stay(lab: Lab, tmp_path: Path) -> None:
    png = lab.folder / "picture.png"
    png.write_bytes(b"\x89PNG\r\n\x1a\n")
    pages = lab.folder / "pages"
    pages.mkdir()
    lab.write("items.jsonl", '{"question": "2 + 1", "answer": "3"}\n')
    images = [
        {"type": "image", "path": path} for path in (str(png), f"{pages}/{{{{question}}}}.png")
    ]
    lab.config["prompt_templates"] = {"seen": [{"role": "user", "content": images}]}
    files = ship(assay.experiment(lab.config), FolderObjects(tmp_path / "root"))
    assert files[str(pages)] == STAYS
    assert files[str(png)] == STAYS + blake2b(png.read_bytes(), digest_size=16).hexdigest()


def test_secrets_are_only_named(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_API_KEY", "never-to-be-seen")
    headers = {"Authorization": "Bearer ${OTHER_TOKEN}"}
    remote = {
        "name": "m",
        "type": "openai",
        "endpoint": "http://x",
        "api_key": "${LAB_API_KEY}",
        "headers": headers,
    }
    lab.config |= {"models": [remote], "prompt_templates": {"p": "{{question}} costs ${NO_SECRET}"}}
    lab.write("items.jsonl", '{"question": "2 + 1", "answer": "3"}\n')
    config = load(lab.config)
    assert variables(resolved(config)) == ["LAB_API_KEY", "OTHER_TOKEN"]
    assert "never-to-be-seen" not in json.dumps(
        ship(Experiment(config), FolderObjects(tmp_path / "root"))
    )


def test_images_that_items_name_do_not_make_another_plan(lab: Lab) -> None:
    """What one process cannot know to be unchanged, keys decide: they hold the images' bytes."""
    for row in lab.rows:
        (lab.folder / f"{row['id']}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + row["id"].encode())
    lab.write("items.jsonl", "".join(json.dumps(row) + "\n" for row in lab.rows))
    parts = [
        {"type": "image", "path": f"{lab.folder}/{{{{id}}}}.png"},
        {"type": "text", "text": "{{question}}"},
    ]
    lab.config |= {"prompt_templates": {"seen": [{"role": "user", "content": parts}]}}
    lab.config["models"] = [{"name": "demo", "type": "demo"}]
    assay.run(lab.config, workers=0)
    assert run_blocking(lambda: work(lab.folder / "out")).result is not None
