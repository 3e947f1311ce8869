"""Inputs of the core's workloads: items, configs, rows. Written without Assay, so that all trees get the same."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

SERVER = "{server}"  # stands for the mock server's address
PLAYERS = ("large", "small")
WORDS = "the river of an old city flows, slowly; by a green hill and its quiet (stone) bridge"


def write_lines(path: Path, rows: Iterator[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def write_json(path: Path, value: Any) -> None:
    """JSON is YAML, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_code(folder: Path) -> None:
    """User code of the workloads."""
    (folder / "code.py").write_text(
        dedent("""
            def count(data):
                return str(int(data["question"].split()[0]) + 1)

            def phrase(data):
                return data["answer"]

            def relative(item, first, second):
                return 0.5
            """)
    )


def questions(folder: Path, count: int) -> None:
    rows = (
        {
            "id": f"item-{i}",
            "data": {"question": f"{i} + 1"},
            "ground_truth": {"answer": str(i + 1)},
        }
        for i in range(count)
    )
    write_lines(folder / "items.jsonl", rows)
    write_code(folder)


def config(folder: Path, name: str, **keys: Any) -> None:
    write_json(
        folder / f"{name}.yaml",
        {"name": name, "dataset": "items.jsonl", "output_dir": "out", **keys},
    )


def flow(folder: Path) -> None:
    questions(folder, 8_000)
    config(
        folder,
        "flow",
        models=[{"name": "mock", "endpoint": SERVER, "max_concurrency": 64}],
        prompt_template="What is {{question}}? Answer with only the number.",
        evaluation_methods=["exact_match"],
        metrics=[{"name": "pass@1", "facets": ["metadata.model_id"]}],
    )


def answered(folder: Path, items: int = 15_000, **keys: Any) -> None:
    questions(folder, items)
    methods = keys.pop("evaluation_methods", ["exact_match"])
    tasks = [{"name": "count", "function": "code.py:count"}]
    config(folder, "answered", tasks=tasks, num_samples=4, evaluation_methods=methods, **keys)


def phrases(folder: Path, count: int, methods: list[Any]) -> None:
    """Answers of some words with three references each."""
    words = WORDS.split()

    def rows() -> Iterator[Any]:
        for i in range(count):
            truth = [f"{i} {' '.join(words[i % 5 + n : i % 5 + n + 6])}." for n in range(3)]
            answer = f"It is {i} {' '.join(words[i % 7 : i % 7 + 8])}!"
            yield {"id": f"p{i}", "data": {"answer": answer}, "ground_truth": truth}

    write_lines(folder / "items.jsonl", rows())
    write_code(folder)
    config(
        folder,
        "answered",
        tasks=[{"name": "phrase", "function": "code.py:phrase"}],
        evaluation_methods=methods,
    )


def squad(folder: Path) -> None:
    phrases(
        folder,
        15_000,
        [
            {"name": "exact", "type": "exact_match", "params": {"normalize": "squad"}},
            {"name": "f1", "params": {"threshold": 0}},
        ],
    )


def rouge(folder: Path) -> None:
    phrases(folder, 12_000, [{"name": "rouge", "params": {"threshold": 0}}])


def evaluations(path: Path, count: int, bias: int = 40) -> None:
    """As the engine writes them: two models, two prompts, ten samples of every item."""

    def rows() -> Iterator[Any]:
        for number in range(count):
            cell, sample = divmod(number, 10)
            item, task = divmod(cell, 4)
            passed = number * 2654435761 % 97 < bias
            yield {
                "item_id": f"item-{item}",
                "sample_id": f"item-{item}_sample_{sample}",
                "sample_index": sample,
                "label": "exact_match",
                "model_name": f"model-{task % 2}",
                "passed": passed,
                "score": float(passed),
                "detailed_results": {},
                "evaluation_time": 1.5e-06,
                "timestamp": 1763237000.123456,
                "metadata": {
                    "model_id": f"model-{task % 2}",
                    "prompt_template": f"prompt-{task // 2}",
                    "sampling": {"temperature": 0.7, "max_tokens": 512},
                    "finish_reason": "stop",
                    "response_id": f"chatcmpl-{number:012d}",
                },
                "key": f"{number * 2654435761 % 2**64:016x}{number:016x}",
                "part": [0, 1],
                "responses": [f"{number:032x}"],
                "scorer": "exact_match",
                "outcome": "scored",
            }

    write_lines(path, rows())


def aggregate(folder: Path) -> None:
    evaluations(folder / "rows/evaluation_results.jsonl", 500_000)
    facets = ["metadata.model_id", "prompt_template"]
    metrics = [{"name": f"pass@{k}", "facets": facets} for k in (1, 5)]
    write_json(folder / "metrics.yaml", {"metrics": metrics})


def compare(folder: Path) -> None:
    for name, bias in (("one", 40), ("other", 42)):
        evaluations(folder / name / "evaluation_results.jsonl", 200_000, bias)


def matches(folder: Path) -> None:
    questions(folder, 12_000)
    for name in PLAYERS:
        config(folder, name, tasks=[{"name": name, "function": "code.py:count"}])
    method = {
        "name": "better",
        "type": "pairwise",
        "params": {"decide": "code.py:relative", "players": "task"},
    }
    write_json(folder / "pairs.yaml", {"evaluation_methods": [method]})


def rank(folder: Path) -> None:
    order = random.Random(0)

    def rows() -> Iterator[Any]:
        for number in range(250_000):
            first, second = sorted(order.sample(range(30), 2))
            yield {
                "item_id": f"q{number % 3000}",
                "sample_id": "",
                "sample_index": number,
                "label": "better",
                "model_name": f"m{first:02} vs m{second:02}",
                "passed": None,
                "score": order.choice((0.0, 0.5, 1.0)),
                "detailed_results": {"verdict": "first"},
                "evaluation_time": 0.1,
                "timestamp": 0.0,
                "metadata": {},
                "key": f"{number:016x}",
                "part": [0, 1],
                "responses": [f"{first:016x}", f"{second:016x}"],
                "scorer": "better",
                "outcome": "scored",
                "players": [f"m{first:02}", f"m{second:02}"],
                "seat": 0,
            }

    write_lines(folder / "evaluation_results.jsonl", rows())
