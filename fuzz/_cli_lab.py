"""A tiny world for the attack on the command line: configs, datasets, experiments, and other programs' folders."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[list[str]], Any]

MARK = "~"  # where `evil` goes in texts of the config
ITEMS = [
    {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1), "topic": "sums", "n": n}
    for n in range(3)
]
CONFIG: dict[str, Any] = {
    "name": "fuzz~",
    "dataset": {
        "path": "items.jsonl",
        "fields": {"id": "id", "question": "question", "ground_truth": "answer"},
        "filter": "n < 2",
        "sample": 2,
        "shuffle": 7,
    },
    "models": [
        {"name": "small~", "type": "demo", "skill": 0.6, "price": {"input": 1, "output": 2.5}},
        {
            "name": "own~",
            "type": "python",
            "path": "own.py",
            "function_name": "model",
            "timeout": 5,
        },
        {"name": "strict~", "type": "demo", "skill": 0.95, "helper": True},
    ],
    "prompts": [{"name": "file~", "path": "prompt.txt"}],
    "sample_params": {"temperature": 0.5, "max_tokens": 20, "stop": ["\n\n"]},
    "num_samples": 1,
    "evaluation_methods": [
        "exact_match",
        {"name": "number~", "type": "numeric_match", "params": {"tolerance": 0.1}},
        {"name": "right", "type": "judge_correctness", "params": {"model": "strict~"}},
        {
            "name": "own",
            "type": "custom",
            "path": "own.py",
            "function_name": "score",
            "params": {"least": 1},
        },
        {"name": "better", "type": "judge_pairwise", "params": {"model": "strict~"}},
    ],
    "metrics": [
        {
            "name": "pass_rate",
            "facets": ["model_name", "topic"],
            "labels": ["exact_match", "number~"],
        },
        {"name": "p90~", "type": "percentile", "params": {"percentile": 90}, "labels": ["number~"]},
        "mean",
        {"name": "wins~", "type": "win_rate"},
    ],
    "gates": [{"metric": "pass_rate", "label": "exact_match", "min": 0.1, "max_error_rate": 0.5}],
    "outputs": [
        {
            "type": "csv",
            "table": "responses",
            "path": "answers.csv",
            "params": {"keep_formulas": False},
        }
    ],
    "output_dir": "new",
    "max_retries": 0,
    "timeout": 5,
    "budget": {"usd": 10, "tokens": 100000, "seconds": 30},
    "prices": {name: {"input": 1, "output": 1} for name in ("own~", "strict~")},
    "policy": {"on_error": "wrong", "on_unparsed": "exclude", "on_refused": "wrong"},
    "ci_level": 0.9,
    "logging": {"level": "INFO", "file": "log.txt"},
    "env_vars": {"FUZZ": "1"},
}
OWN = """
def model(prompt):
    return "2"

def score(item, response, *, least: int = 1):
    return len(response.response) >= least

def rows():
    yield {"id": "a", "question": "1 + 1?", "answer": "2"}
"""
GRAPH: dict[str, Any] = {
    "data_config": {"source": {"type": "disk", "file_path": "tasks/qa/data.json"}},
    "graph_config": {
        "nodes": {
            "say": {
                "node_type": "lambda",
                "lambda": "tasks.qa.code.say",
                "output_keys": ["predicted_answer"],
            },
            "unit_metrics": {
                "node_type": "lambda",
                "lambda": "tasks.eval.utils.UnitMetrics",
                "golden_key": "answer",
                "predicted_key": "predicted_answer",
                "unit_metrics_map": [{"name": "exact_match", "params": {"key": "text"}}],
                "output_keys": ["exact_match_result"],
            },
        },
        "edges": [
            {"from": "START", "to": "say"},
            {"from": "say", "to": "unit_metrics"},
            {"from": "unit_metrics", "to": "END"},
        ],
    },
    "output_config": {
        "output_map": {name: {"from": name} for name in ("id", "question", "exact_match_result")}
    },
    "graph_post_process": [
        {
            "processor": "tasks.eval.utils.MetricCollatorPostProcessor",
            "params": {
                "aggregator_metrics_map": [
                    {"name": "accuracy", "unit_metrics_results": ["exact_match_result"]}
                ]
            },
        }
    ],
}
SAY = 'def say(lambda_node_dict, state):\n    state["predicted_answer"] = {"text": "2"}\n    return state\n'
FREE = {
    "0": {
        "problem_type": "free-form",
        "context": None,
        "prompt": "2 + 3?",
        "target": ["5"],
        "benchmark_name": "DROP",
    }
}
CHOICE = {
    "0": {
        "problem_type": "multiple-choice",
        "context": "bag",
        "prompt": "Which?",
        "options": ["apple", "hammer"],
        "target": [0],
        "benchmark_name": "MMLU",
    }
}
CAMP = {
    "agent_name": "a",
    "dataset_name": "nq",
    "num_examples": 1,
    "timestamp": "2026-01-01",
    "metrics": {"f1": 1.0},
    "predictions": [
        {
            "question_id": "0",
            "question": "Who?",
            "prediction": "I",
            "expected_answers": ["I"],
            "metrics": {"f1": 1.0},
        }
    ],
}

# The words that begin a case: of each command one or more lines that succeed.
LINES = [
    "run config.yaml --no-progress",
    "run config.json --json --limit 1",
    "demo shown --no-progress",
    "plan config.yaml",
    "validate config.json",
    "lock config.yaml -o numbers.lock",
    "run config.yaml --lock-file numbers.lock --no-progress -o held",
    "verify out",
    "evaluate out --no-progress",
    "evaluate out -o scored -c config.yaml --no-progress",
    "aggregate out",
    "aggregate rows.jsonl -c metrics.yaml -o metrics",
    "compare out own~ small~ --facet model_name --label exact_match",
    "compare out again --metric pass_rate --label exact_match --where model_name=own~",
    "compare out own~ small~ --facet model_name --all-labels",
    "diff out again --label exact_match --limit 2",
    "diff out again --exit-code -o differs.html",
    "merge out again -o merged --prefer newest",
    "rank out --label better --rounds 100",
    "gate out --metric mean --label exact_match --min 0.1 --point",
    "gate out --max-drop 0.1 --baseline again --label exact_match --junit report.xml --markdown report.md",
    "judge calibrate out --labels people.csv --label right",
    "judge label out --label right --annotator a --count 2 -o answers.csv",
    "view out --no-open --port 0",
    "report out -o looked.html --samples 3",
    "report out -o looked.md",
    "trace out q1~",
    "ls .",
    "status out",
    "worker out",
    "export out -f csv -t evaluations",
    "export out -f markdown -o rows.md",
    "export out -t items -o items2.json",
    "export out -f ragicamp -o camp2",
    "dataset add items.csv --name more --set fields.id=id",
    "dataset add items.json --name more2",
    "dataset ls",
    "dataset show stored",
    "dataset verify stored",
    "local list",
    "list benchmarks q --unsupported",
    "benchmarks pull nothing -o pulled",
    "init started --example qa",
    "list scorer",
    "list providers",
    "list models http://127.0.0.1:9",
    "show exact_match",
    "schema -o schema.json",
    "mock-server --port 0",
    "import camp -o imported",
    "convert out table.csv",
    "convert camp een2 --to een",
    "mixeval run --data data -m own.py:model -o mx2 --no-progress --set max_retries=0",
    "mixeval score mx --data data -o scores --no-progress --set max_retries=0",
    "sygra --task tasks.qa --output_dir sy --no-progress",
]
SLOW = [
    "sql out 'select count(*) from responses'",
    "export out -o rows.parquet",
    "dataset add items.parquet --name p",
]


def build(folder: Path, run: Run, evil: str = "") -> None:
    """Write the files and run what makes experiments of them, with `folder` as the current one. `evil` is added to
    names, ids, questions and answers."""
    config = json.loads(json.dumps(CONFIG).replace(MARK, json.dumps(evil)[1:-1]))
    items = [
        {name: part if name == "n" else f"{part}{evil}" for name, part in item.items()}
        for item in ITEMS
    ]
    _write(folder / "config.json", json.dumps(config, indent=1))
    _write(folder / "config.yaml", _yaml(config))
    _write(
        folder / "metrics.yaml",
        "metrics: [{name: mean, facets: [model_name], labels: [exact_match]}]\n",
    )
    _write(folder / "items.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    _write(folder / "items.json", json.dumps(items))
    _write(folder / "people.csv", _people(evil))
    _write(folder / "own.py", OWN.replace('"2"', repr(f"2{evil}"), 1))
    _write(folder / "prompt.txt", "{% if topic %}{{ topic }}: {% endif %}{{ question }}")
    with open(folder / "items.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(ITEMS[0]))
        writer.writeheader()
        writer.writerows(items)
    for name, entries in (("free-form", FREE), ("multiple-choice", CHOICE)):
        _write(folder / "data/mixeval-2026-01-01/mixeval" / f"{name}.json", json.dumps(entries))
    _write(folder / "tasks/qa/graph_config.yaml", _yaml(GRAPH))
    _write(folder / "tasks/qa/data.json", json.dumps(items))
    _write(folder / "tasks/qa/code.py", SAY)
    _write(folder / "camp/a_nq_predictions.json", json.dumps(CAMP))
    for line in ("run config.yaml -o out --no-progress", "dataset add items.jsonl --name stored"):
        run(line.split())
    run(["mixeval", "run", "--data", "data", "-m", "own.py:model", "-o", "mx", "--no-progress"])
    run(["export", "out", "-t", "items", "-o", "items.parquet"])
    run(["evaluate", "out", "-o", "again", "--no-progress"])
    _write(folder / "rows.jsonl", (folder / "out/evaluation_results.jsonl").read_text())


def _people(evil: str) -> str:
    rows = [
        ("item", "model", "label"),
        *((f"q{n}{evil}", f"small{evil}", str(n)) for n in range(2)),
    ]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _yaml(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
