"""A folder of SyGra tasks, driven through real `assay sygra` processes and a real server on loopback."""

import json
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from assay.formats.sygra import run
from assay.formats.sygra.experiment import Result
from tests.cli.shell import COMMAND, Ended, assay, surrounding

REPORT = "tasks.eval.utils.MetricCollatorPostProcessor"


class Folder:
    """Two nodes over questions: ask, then compare. Tests change `graph` and `records`; a command writes both first."""

    def __init__(self, base: Path, url: str, records: int = 4) -> None:
        self.base = base
        self.url = url
        self.out = base / "out"
        self.environ: dict[str, str] = {
            "COLUMNS": "200",
            "SYGRA_EVAL_MODEL_URL": url,
            "SYGRA_EVAL_MODEL_MODEL": "openai/mock",
        }
        self.records: Any = [
            {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)}
            for n in range(records)
        ]
        self.graph: dict[str, Any] = {
            "data_config": {"source": {"type": "disk", "file_path": "tasks/qa/data.json"}},
            "graph_config": {
                "nodes": {
                    "ask": {
                        "node_type": "llm",
                        "model": {"name": "eval_model", "parameters": {"temperature": 0.1}},
                        "prompt": [{"user": "{question}"}],
                        "output_keys": "predicted_answer",
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
                    {"from": "START", "to": "ask"},
                    {"from": "ask", "to": "unit_metrics"},
                    {"from": "unit_metrics", "to": "END"},
                ],
            },
            "output_config": {
                "output_map": {
                    name: {"from": name}
                    for name in ("id", "question", "predicted_answer", "exact_match_result")
                }
            },
            "graph_post_process": [
                {
                    "processor": REPORT,
                    "params": {
                        "aggregator_metrics_map": [
                            {"name": "accuracy", "unit_metrics_results": ["exact_match_result"]},
                        ]
                    },
                }
            ],
        }

    @property
    def nodes(self) -> dict[str, Any]:
        return self.graph["graph_config"]["nodes"]

    @property
    def aggregators(self) -> list[dict[str, Any]]:
        return self.graph["graph_post_process"][-1]["params"]["aggregator_metrics_map"]

    def write(self, name: str, text: str) -> Path:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    def save(self) -> None:
        self.write("tasks/qa/graph_config.yaml", yaml.safe_dump(self.graph, sort_keys=False))
        self.write(
            "tasks/qa/data.json",
            self.records if isinstance(self.records, str) else json.dumps(self.records),
        )

    def start(
        self, *words: str, task: str = "qa", stdout: Any = subprocess.PIPE
    ) -> "subprocess.Popen[str]":
        command = [*COMMAND, *self._saved(task, words)]
        environ = surrounding(**self.environ)
        return subprocess.Popen(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=self.base, env=environ
        )

    def run(self, *words: str, task: str = "qa", seconds: float = 60.0) -> Ended:
        environ = surrounding(**self.environ)
        return assay(*self._saved(task, words), folder=self.base, environ=environ, seconds=seconds)

    def _saved(self, task: str, words: tuple[str, ...]) -> list[str]:
        self.save()
        return ["sygra", "--task", task, "--output_dir", str(self.out), "--no-progress", *words]

    def call(self, **options: Any) -> Result:
        """The same in this process, from Python."""
        self.save()
        entry = {"url": self.environ["SYGRA_EVAL_MODEL_URL"], "model": "mock"}
        self.write("models.yaml", yaml.safe_dump({"eval_model": entry}))
        return run("qa", base=str(self.base), output_dir=str(self.out), **options)

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.out.glob(pattern))

    def output(self) -> list[dict[str, Any]]:
        """The records of the only output file."""
        (path,) = [path for path in self.files("*output*.json*") if "Processor" not in path.name]
        text = path.read_text()
        return (
            json.loads(text)
            if path.suffix == ".json"
            else [json.loads(line) for line in text.splitlines()]
        )

    def report(self) -> dict[str, Any]:
        (path,) = self.files("*MetricCollatorPostProcessor*.json")
        (report,) = json.loads(path.read_text())
        return report
