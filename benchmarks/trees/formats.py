"""Inputs of the formats' workloads, in the shapes of the programs that they come from."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.trees.core import SERVER, WORDS, write_json, write_lines

LIBRARY = """
from dataclasses import dataclass
from assay.formats.intelligence_layer.core import Task
from assay.formats.intelligence_layer.evaluation import (
    AggregationLogic, Aggregator, Evaluator, Example, FileAggregationRepository, FileDatasetRepository,
    FileEvaluationRepository, FileRunRepository, Runner, SingleOutputEvaluationLogic,
)

class Upper(Task[str, str]):
    def do_run(self, input: str, task_span) -> str:
        return input.upper()

@dataclass
class Mark:
    right: bool

class Right(SingleOutputEvaluationLogic[str, str, str, Mark]):
    def do_evaluate_single_output(self, example, output):
        return Mark(output == example.expected_output)

class Mean(AggregationLogic[Mark, float]):
    def aggregate(self, evaluations):
        marks = [mark.right for mark in evaluations]
        return sum(marks) / len(marks)

datasets, runs, evaluations, aggregations = (
    kind("library")
    for kind in (FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository)
)
examples = [Example(id=f"e{n}", input=f"text {n}", expected_output=f"TEXT {n}") for n in range(6000)]
datasets.create_dataset(examples, "texts", id="texts")
run = Runner(Upper(), datasets, runs, "upper").run_dataset("texts")
evaluation = Evaluator(datasets, runs, evaluations, "right", Right()).evaluate_runs(run.id)
statistics = Aggregator(evaluations, aggregations, "mean", Mean()).aggregate_evaluation(evaluation.id).statistics
assert statistics == 1.0, statistics
"""


def graph(folder: Path) -> None:
    """Ask, then compare: a task of SyGra with its report."""
    rows = (
        {"id": f"q{i}", "question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(4_000)
    )
    write_lines(folder / "records.jsonl", rows)
    write_json(folder / "models.yaml", {"mock": {"url": SERVER}})
    ask = {
        "node_type": "llm",
        "model": {"name": "mock", "parameters": {"temperature": 0.7}},
        "prompt": [{"user": "{question} Answer with only the number."}],
        "output_keys": "predicted",
    }
    unit = {
        "node_type": "lambda",
        "lambda": "tasks.eval.utils.UnitMetrics",
        "golden_key": "answer",
        "predicted_key": "predicted",
        "unit_metrics_map": [{"name": "exact_match", "params": {"key": "text"}}],
        "output_keys": ["exact_match_result"],
    }
    report = {
        "aggregator_metrics_map": [
            {"name": "accuracy", "unit_metrics_results": "exact_match_result"}
        ]
    }
    nodes = ("START", "ask", "unit_metrics", "END")
    task = {
        "data_config": {"source": {"type": "disk", "file_path": "records.jsonl"}},
        "graph_config": {
            "nodes": {"ask": ask, "unit_metrics": unit},
            "edges": [{"from": one, "to": other} for one, other in pairwise(nodes)],
        },
        "output_config": {
            "output_map": {
                name: {"from": name} for name in ("id", "question", "exact_match_result")
            }
        },
        "graph_post_process": [
            {"processor": "tasks.eval.utils.MetricCollatorPostProcessor", "params": report}
        ],
    }
    write_json(folder / "tasks/bench/graph_config.yaml", task)


def mixeval(folder: Path) -> None:
    """Entries and responses of both kinds in the original's shape and layout."""
    text = WORDS.split()
    names = {"free-form": ("TriviaQA", "DROP"), "multiple-choice": ("MMLU", "PIQA", "BoolQ")}
    for kind, benchmarks in names.items():
        entries: dict[str, Any] = {}
        for number in range(1_500):
            words = [text[(number * 7 + step) % len(text)] for step in range(4)]
            entry = {
                "problem_type": kind,
                "context": None,
                "benchmark_name": benchmarks[number % len(benchmarks)],
                "prompt": f"In which {words[0]} was the {words[1]} number {number} found?",
            }
            options = {"options": [f"{word} {number}" for word in words], "target": [number % 4]}
            more = {"target": [f"{words[2]} {number}"]} if kind == "free-form" else options
            entries[str(number)] = {**entry, **more}
        write_json(folder / "data/mixeval-2026-01-01/mixeval" / f"{kind}.json", entries)
        short = kind.replace("free-form", "freeform").replace("multiple-choice", "multichoice")
        for model in ("one", "two"):
            place = (
                folder / "responses" / model / "mixeval/2026-01-01" / f"{model}_close_{short}.jsonl"
            )
            answers = ("A", "**B**", "The answer is (C), because of the rest.", "D. stone 7")
            rows = (
                {
                    **entry,
                    "id": id,
                    "response": f"It is {entry['target'][0]}."
                    if "form" in kind
                    else answers[int(id) % 4],
                }
                for id, entry in entries.items()
            )
            write_lines(place, rows)


def three_files(folder: Path) -> None:
    """RAGiCamp's files."""
    count = 20_000
    asked = [{"id": f"q{n}", "question": f"Which one is number {n}?"} for n in range(count)]
    answers = [[f"answer {n % 97}", "another"] for n in range(count)]
    write_json(
        folder / "given/bench_questions.json",
        {
            "dataset_name": "bench",
            "num_questions": count,
            "questions": [
                {**row, "expected_answer": accepted[0], "all_acceptable_answers": accepted}
                for row, accepted in zip(asked, answers, strict=True)
            ],
        },
    )
    write_json(
        folder / "given/agent_predictions.json",
        {
            "agent_name": "agent",
            "dataset_name": "bench",
            "timestamp": "2026-01-01T00:00:00.000000",
            "num_examples": count,
            "predictions": [
                {
                    "question_id": row["id"],
                    "question": row["question"],
                    "prediction": f"answer {n % 89}",
                    "metrics": {"exact_match": float(n % 2)},
                    "metadata": {},
                }
                for n, row in enumerate(asked)
            ],
        },
    )
