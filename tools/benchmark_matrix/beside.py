"""The same synthetic rows and answers through lm-eval itself: requests, values of documents and results compared.

`python -m tools.benchmark_matrix.beside [--tasks PATTERN] [--count N] [--random-seed N]`, with an interpreter that has
lm-eval 0.4.13. Prints every difference.
"""

import argparse
import fnmatch
import math
import os
import random
import tempfile
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

import numpy as np

from assay.formats.lm_eval.scoring.results import plain
from assay.formats.lm_eval.tasks import task_keys
from assay.formats.lm_eval.tasks.definition import Definition, TaskDocument
from assay.formats.lm_eval.tasks.index import index
from assay.formats.lm_eval.tasks.task_keys import definition
from tools.benchmark_matrix import trial


class Theirs:
    """A task as the harness runs it, on the rows; answers are those of `trial`."""

    def __init__(self, task: Definition, made: list[dict[str, Any]]) -> None:
        import datasets
        from lm_eval.api.task import ConfigurableTask  # pyright: ignore[reportMissingImports]
        from lm_eval.tasks._yaml_loader import load_yaml  # pyright: ignore[reportMissingImports]

        # on disk, so that the harness finds what process_docs has made, as it does with data of the hub
        tables: dict[str, Any] = {}
        for split in trial.splits_of(task):
            folder = tempfile.mkdtemp(prefix="beside")
            trial.dataset(made).save_to_disk(folder)
            tables[split] = datasets.load_from_disk(folder)
        datasets.load_dataset = lambda **_: tables
        config = {
            key: value
            for key, value in load_yaml(task.file).items()
            if key not in ("tag", "group", "task_list")
        }
        metadata = config.get("metadata") or {}
        config["metadata"] = {
            **(metadata if isinstance(metadata, dict) else {"_metadata": metadata}),
            "config_source": task.file,
        }
        config.pop("custom_dataset", None)
        random.seed(0)
        np.random.seed(1234)
        self.task = ConfigurableTask(config=config)
        self.task.set_fewshot_seed(1234)
        self.task.build_all_requests()

    def documents(self) -> dict[int, list[Any]]:
        made: dict[int, list[Any]] = defaultdict(list)
        for instance in sorted(self.task.instances, key=lambda one: (one.doc_id, one.idx)):
            made[instance.doc_id].append(instance)
        return made

    def scored(
        self, task: Definition, documents: list[TaskDocument]
    ) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
        from lm_eval.api.metrics import mean, stderr_for_metric  # pyright: ignore[reportMissingImports]

        theirs = self.documents()
        for document in documents:
            answers = trial.answers(task, document)
            if task.output_type == "generate_until":
                theirs[document.id][0].resps.extend(answers)
            else:
                for instance, answer in zip(theirs[document.id], answers, strict=True):
                    instance.resps.append(
                        answer[0] if task.output_type == "loglikelihood_rolling" else answer
                    )
        self.task.apply_filters()
        values: dict[Any, list[Any]] = defaultdict(list)
        for name in self.task.instances[0].filtered_resps:
            for number, doc in self.task.doc_iterator():
                given = [one.filtered_resps[name] for one in theirs[number]]
                for metric, value in self.task.process_results(doc, given).items():
                    values[metric, name].append(value)
        numbers: dict[Any, Any] = {}
        for (metric, name), column in values.items():
            chosen = self.task.aggregation().get(metric, mean)
            error = stderr_for_metric(metric=chosen, bootstrap_iters=10)
            numbers[metric, name] = (
                chosen(column),
                error(column) if error and len(column) > 1 else None,
            )
        return values, numbers


def same(ours: Any, theirs: Any) -> bool:
    theirs = plain(theirs)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9) or (
            ours != ours and theirs != theirs
        )
    return ours == theirs


def asked(task: Definition, document: TaskDocument) -> list[Any]:
    made: list[Any] = []
    for request in document.requests:
        text = "".join(part["content"] + part["delimiter"] for part in request.messages)
        if task.output_type == "generate_until":
            made.append((text, request.params))
        elif request.rolling:
            made.append((request.continuation,))
        else:
            made.append((text, request.continuation))
    return made


def compared(name: str, file: str) -> tuple[str, str]:
    """What is different, and how."""
    task = definition(task_keys.load(Path(file)), file, {})
    outcome = trial.try_task(task, {})
    if outcome.schema is None:
        return "does not bind", outcome.problem
    made = trial.made_of(outcome.schema, task)
    problem, documents, ours = outcome.problem, [], ({}, {})
    try:
        documents = trial.bind(task, made)
        ours = trial.values_of(task, documents), trial.score(task, documents)
    except (Exception, SystemExit) as error:
        problem = trial.text(error)
    try:
        harness = Theirs(task, made)
        theirs = harness.documents()
        if documents:
            for document in documents:
                there = [tuple(one.arguments) for one in theirs[document.id]]
                if not same(asked(task, document), there):
                    return (
                        "requests",
                        f"document {document.id}: {asked(task, document)!r:.600} | {there!r:.600}",
                    )
        scored = harness.scored(task, documents) if documents else ({}, {})
    except (Exception, SystemExit) as error:
        return (
            ("both fail", f"{problem} | {error}")
            if problem
            else ("only the harness fails", repr(error))
        )
    if problem:
        return "only ours fails", problem
    for what, one, other in zip(("values", "results"), ours, scored, strict=True):
        if set(one) != set(other):
            return what, f"{sorted(one)} | {sorted(other)}"
        for key in one:
            if not same(one[key], other[key]):
                return what, f"{key}: {one[key]!r:.400} | {plain(other[key])!r:.400}"
    return "same", ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", default="*")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--random-seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = [
        entry
        for entry in index().entries.values()
        if entry.kind == "task" and not entry.unsupported
    ]
    families: dict[Path, list[Any]] = defaultdict(list)
    for entry in entries:
        if fnmatch.fnmatch(entry.name, options.tasks):
            families[Path(entry.file).parent].append(entry)
    draw = random.Random(options.random_seed)
    os.environ["TQDM_DISABLE"] = "1"
    chosen = [draw.choice(part) for part in families.values()]
    draw.shuffle(chosen)
    counts: Counter[str] = Counter()
    for entry in chosen[: options.count]:
        try:
            verdict, detail = compared(entry.name, entry.file)
        except (Exception, SystemExit) as error:
            verdict, detail = "broken", repr(error)
        counts[verdict] += 1
        if verdict != "same":
            print(f"{entry.name}: {verdict}: {detail}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
