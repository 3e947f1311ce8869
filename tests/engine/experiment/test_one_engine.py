"""One engine: the same experiment from a YAML file on the command line, from a dict, and from the three executors."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.interfaces import Limits, Price
from tests.support import without_times

CONFIG = """
dataset: items.jsonl
models:
  - {name: weak, type: demo, skill: 0.3}
  - {name: strong, type: demo, skill: 0.9}
prompt_templates:
  plain: "What is {{question}}?"
  chat:
    - {role: system, content: "Answer with a number."}
    - {role: user, content: "{{question}} = "}
sample_params: {temperature: 0.7, num_samples: 3}
evaluation_methods:
  - exact_match
  - {name: within, type: contains}
  - {name: size, path: size.py, function_name: size}
metrics:
  - {name: pass@2, type: pass_at_k, params: {k: 2}, facets: [model_name, prompt_template]}
  - {name: mean, facets: [topic]}
seed: 7
output_dir: OUT
"""
SIZE = """
def size(response, ground_truth, inference_result=None, **params):
    return {"labels": [{"label": {"name": "short"}, "result": {"passed": len(response) < 4}},
                       {"label": {"name": "seen"}, "result": {"score": len(inference_result["prompt"])}}]}
"""
ROWS = [
    {
        "id": f"q{i}",
        "data": {"question": f"{i} + {2 * i}"},
        "ground_truth": str(3 * i),
        "topic": "even" if i % 2 else "odd",
    }
    for i in range(6)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "size.py").write_text(SIZE)
    return tmp_path


def by_command_line(folder: Path, out: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG.replace("OUT", str(out)))
    subprocess.run(
        [sys.executable, "-m", "assay", "run", "config.yaml", "--no-progress"],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def by_dict(folder: Path, out: Path) -> None:
    import yaml

    config = yaml.safe_load(CONFIG.replace("OUT", str(out)))
    config["dataset"] = str(folder / "items.jsonl")
    config["evaluation_methods"][2]["path"] = str(folder / "size.py")
    assay.run(config)


def by_hand(folder: Path, out: Path) -> None:
    store = assay.FlatStore(out)
    assay.DatasetRepository(store).create(ROWS, name="items", id="x")
    demo, jinja = assay.model.get("demo"), assay.prompt.get("jinja")
    chat = [
        {"role": "system", "content": "Answer with a number."},
        {"role": "user", "content": "{{question}} = "},
    ]
    prompts = [jinja("What is {{question}}?", name="plain"), jinja(chat, name="chat")]
    tasks = [
        assay.prompt_task(prompt, demo(name, skill=skill), params={"temperature": 0.7}, samples=3)
        for name, skill in (("weak", 0.3), ("strong", 0.9))
        for prompt in prompts
    ]
    free = Limits(price=Price(input=0, output=0))
    assay.Runner(store, limits={"weak": free, "strong": free}, seed=7).run("x", tasks, 3, id="x")
    scorers = [
        assay.bind_scorer(assay.scorer.get("exact_match")),
        assay.bind_scorer(assay.scorer.get("contains"), name="within"),
        assay.bind_scorer(assay.scorer.get("size.py:size", base=folder), name="size"),
    ]
    assay.Evaluator(store, seed=7).evaluate(["x"], scorers, id="x")
    metrics = [
        assay.bind_metric(
            name="pass@2",
            type="pass_at_k",
            params={"k": 2},
            facets=["model_name", "prompt_template"],
        ),
        assay.bind_metric(name="mean", facets=["topic"]),
    ]
    assay.Aggregator(store).aggregate(["x"], metrics, id="x")


def stable(path: Path) -> list[str]:
    """The rows less their times, by their keys: rows of calls are in the order in which the calls ended."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        json.dumps(without_times(row))
        for row in sorted(rows, key=lambda row: (row["key"], row.get("part")))
    ]


def test_three_doors_lead_to_the_same_rows(folder: Path) -> None:
    doors = {"yaml": by_command_line, "dict": by_dict, "hand": by_hand}
    for name, door in doors.items():
        door(folder, folder / name)
    for name in ("dict", "hand"):
        assert (folder / name / "items.jsonl").read_bytes() == (
            folder / "yaml" / "items.jsonl"
        ).read_bytes()
        for file in ("responses.jsonl", "evaluation_results.jsonl"):
            assert stable(folder / name / file) == stable(folder / "yaml" / file)
        assert (folder / name / "metrics.jsonl").read_bytes() == (
            folder / "yaml" / "metrics.jsonl"
        ).read_bytes()
        assert (folder / name / "metrics.json").read_bytes() == (
            folder / "yaml" / "metrics.json"
        ).read_bytes()
    assert len(stable(folder / "yaml" / "responses.jsonl")) == 6 * 2 * 2 * 3
    assert len(stable(folder / "yaml" / "evaluation_results.jsonl")) == 6 * 2 * 2 * 3 * 4


def test_any_door_goes_on_where_another_stopped(folder: Path) -> None:
    by_hand(folder, folder / "out")
    before = (folder / "out" / "responses.jsonl").read_bytes()
    by_dict(folder, folder / "out")
    assert (folder / "out" / "responses.jsonl").read_bytes() == before
