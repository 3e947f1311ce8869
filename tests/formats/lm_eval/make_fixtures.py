"""Runs lm-eval itself and keeps what it did: the expected values of the tests.

Run it with an interpreter that has lm-eval 0.4.13 (with its `api` extra, sacrebleu, scikit-learn):

    python make_fixtures.py            # everything: our tasks (expected/) and the shipped ones (shipped/expected/)
    python make_fixtures.py gen_* …    # only runs whose names match
    python make_fixtures.py --gguf FILE  # the runs on a real model (local/); needs torch, transformers and gguf

Each run is a process of its own, with an empty cache, its own server (`fake_answers.py`) and the working directory
of this file, to which the paths of `data/` are relative. `runs.yaml` has the runs that differ from "the task by its
name, no options"; `shipped/runs.yaml` those of the tasks that come with lm-eval, whose data is `shipped/data/`, laid
out as a mirror of the hub: `<repository>/<config or default>/<split>.jsonl`.
`expected/<run>.json.gz` (a `Fixture` below) is one JSON object; floats that JSON lacks are "NaN", "Infinity" texts.
"""

import argparse
import contextlib
import fnmatch
import gzip
import json
import logging
import math
import os
import sys
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

os.environ |= {"TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import datasets
import lm_eval
import yaml
from fake_answers import FakeServer
from lm_eval.config.task import TaskConfig
from lm_eval.tasks import TaskManager
from sent import sent

HERE = Path(__file__).parent
AT_ONCE = 2
LOCAL = ("mc_default", "mc_unicode", "ll_default", "roll_default")
ENDPOINTS = {
    "local-completions": ("/v1/completions", {"tokenizer_backend": "remote"}),
    "local-chat-completions": ("/v1/chat/completions", {"tokenizer_backend": None}),
}
MODEL = {"model": "fake", "tokenized_requests": False, "max_retries": 1}
MACHINE = {"config_source", "base_url", "tokenizer_backend", "pretrained", *MODEL}
KEPT = (
    "results",
    "groups",
    "group_subtasks",
    "versions",
    "n-shot",
    "higher_is_better",
    "n-samples",
)
HASHES = ("doc_hash", "prompt_hash", "target_hash")


class Fixture(TypedDict, total=False):
    """What a run asked and what came out of it."""

    # tasks (names), model (endpoint) and the options of `simple_evaluate` that were set
    run: dict[str, Any]
    requests: Any  # the bodies that the server got, in the order of their arrival; of shipped tasks their hashes
    documents: dict[str, list[dict[str, Any]]]  # task → one entry for each document
    # of ours: task → its definition as run; functions are "<function NAME>"
    configs: dict[str, dict[str, Any]]
    # lm-eval's results, groups, group_subtasks, versions, n-shot, higher_is_better, n-samples
    results: dict[str, Any]
    error: dict[str, str]  # instead of all but `run`: type and message of what lm-eval raised


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(json.dumps(value))
        case dict():
            return {str(key): plain(part) for key, part in value.items()}
        case list() | tuple() | set():
            return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return (
        f"<{type(value).__name__} {getattr(value, '__name__', '')}>"
        if callable(value)
        else str(value)
    )


def documents(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a samples file, one entry for each document: what a filter changes is under its name."""
    entries: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    for sample in samples:
        place = places[sample["filter"]] = places.get(sample["filter"], -1) + 1
        if place == len(entries):
            entry = {
                key: sample[key]
                for key in ("doc_id", "doc", "target", "arguments", "resps", *HASHES)
            }
            entries.append(entry | {"filters": {}})
        metrics = {name: sample[name] for name in sample["metrics"]}
        entries[place]["filters"][sample["filter"]] = {
            "filtered_resps": sample["filtered_resps"],
            "metrics": metrics,
        }
    return entries


def definition(config: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        key: value for key, value in (config.get("metadata") or {}).items() if key not in MACHINE
    }
    return {**config, "metadata": metadata}


def mirrored(root: Path) -> Any:
    """`datasets.load_dataset` with a mirror folder in place of the hub."""
    load = datasets.load_dataset

    def load_dataset(path: str, name: str | None = None, **options: Any) -> Any:
        folder = root / path / (name or "default")
        if not folder.is_dir():
            return load(path, name, **options)
        return {
            file.stem: load("json", data_files=str(file), split="train")
            for file in sorted(folder.iterdir())
        }

    return load_dataset


@cache
def task_manager(include: Path | None) -> TaskManager:
    """The index of a folder or, without one, of lm-eval's own tasks."""
    return TaskManager(include_path=include and str(include), include_defaults=include is None)


def evaluate(run: dict[str, Any], include: Path | None) -> Fixture:
    """The fixture of a run; the model is the fake server, or a real one if the run says `hf`."""
    model = run.get("model", "local-completions")
    options = {"bootstrap_iters": 2000} | {
        key: run[key] for key in run.keys() - {"tasks", "model", "model_args"}
    }
    with FakeServer() as server:
        arguments = run.get("model_args", {})
        if model != "hf":
            path, tokenizer = ENDPOINTS[model]
            arguments = MODEL | {"base_url": server.url + path} | tokenizer | arguments
        manager = task_manager(include)
        manager._factory._meta = arguments | options.pop("metadata", {})  # as the command line does
        try:
            found = lm_eval.simple_evaluate(
                model, arguments, run["tasks"], task_manager=manager, **options
            )
        except Exception as error:
            text = str(error).replace(str(HERE) + "/", "").replace(server.url, "URL")
            return {"run": run, "error": {"type": type(error).__name__, "message": text[:500]}}
        requests = [json.loads(body) for body in server.bodies]
        fixture: Fixture = {
            "run": run | {"bootstrap_iters": options["bootstrap_iters"]},
            "requests": requests if include else sent(requests),
            "documents": {name: documents(rows) for name, rows in found["samples"].items()},
            "results": {key: found[key] for key in KEPT if key in found},
        }
        if include:
            fixture["configs"] = {
                name: definition(config) for name, config in found["configs"].items()
            }
            return fixture
        for entry in (entry for entries in fixture["documents"].values() for entry in entries):
            del entry["doc"], entry["arguments"]  # no text of lm-eval's tasks is kept
        return fixture


class Run(NamedTuple):
    """A run: what it asks, the folder of its tasks (None: lm-eval's own) and the folder of its fixture."""

    name: str
    options: dict[str, Any]
    include: Path | None
    folder: Path

    def make(self) -> bool:
        """Writes the fixture; false if the run failed, or did not although its name begins with err_."""
        with tempfile.TemporaryDirectory() as cache:
            datasets.config.HF_DATASETS_CACHE = Path(cache)
            fixture = evaluate({"tasks": [self.name]} | self.options, self.include)
        if ("error" in fixture) != self.name.startswith("err_"):
            print(f"{self.name}: {fixture.get('error', 'no error')}", flush=True)
            return False
        self.options.get("model_args", {}).pop("pretrained", None)  # a path of this machine
        text = json.dumps(
            plain(fixture), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        return True

    def start(self) -> int:
        """Makes it in a process of its own, whose id this is."""
        task_manager(self.include)  # before the fork: reading 14,000 files takes long
        pid = os.fork()
        if not pid:
            code = 1
            with contextlib.suppress(Exception):
                code = 0 if self.make() else 1
            os._exit(code)
        return pid


def all_runs(gguf: Path | None) -> list[Run]:
    tasks, shipped = HERE / "tasks", HERE / "shipped"
    if gguf:
        model = {"pretrained": str(gguf.parent), "gguf_file": gguf.name, "dtype": "float32"}
        options = {"model": "hf", "model_args": model, "device": "cpu", "batch_size": 4}
        return [Run(name, deepcopy(options), tasks, HERE / "local") for name in LOCAL]
    special = yaml.safe_load((HERE / "runs.yaml").read_text())
    names = {*task_manager(tasks).all_tasks, *special}
    runs = [Run(name, special.get(name) or {}, tasks, HERE / "expected") for name in names]
    of_shipped = yaml.safe_load((shipped / "runs.yaml").read_text())
    return runs + [
        Run(name, options or {}, None, shipped / "expected") for name, options in of_shipped.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--gguf", type=Path)
    given = parser.parse_args()
    os.chdir(HERE)
    logging.disable(logging.CRITICAL)
    datasets.disable_progress_bars()
    TaskConfig.serialize_function = lambda self, value, keep_callable=False: (
        value if keep_callable else plain(value)
    )
    datasets.load_dataset = mirrored(HERE / "shipped/data")
    runs = [
        run
        for run in all_runs(given.gguf)
        if any(fnmatch.fnmatch(run.name, each) for each in given.patterns)
    ]
    if given.gguf:  # torch's threads do not live on after a fork
        return bool([run.name for run in runs if not run.make()])
    children: dict[int, str] = {}
    failed: list[str] = []
    for run in [*runs, *[None] * AT_ONCE]:
        if children and (run is None or len(children) == AT_ONCE):
            pid, status = os.wait()
            failed += [children.pop(pid)] if status else []
            children.pop(pid, None)
        if run:
            children[run.start()] = run.name
    print(f"{len(runs)} runs; failed: {' '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
