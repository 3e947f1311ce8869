"""Makes the reports in `logs/` by really running pydantic-evals 2.62.0:

    .venv/peers/pydantic_evals/bin/python tests/formats/pydantic_evals/make_logs.py [FOLDER]

`large.json` and `tiny.json` are what the page shows, `repeated.json` has all that a report can hold, and
`averages.json` what pydantic-evals itself computes of each.
"""

# ruff: noqa: E402

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

import peers
from evaluation import ask, evaluate
from pydantic_core import to_jsonable_python
from pydantic_evals import Case, Dataset, increment_eval_metric, set_eval_attribute
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext, ReportEvaluator
from pydantic_evals.reporting.analyses import ScalarResult

LOGS = Path(*sys.argv[1:2] or [HERE / "logs"]).absolute()


@dataclass
class Graded(Evaluator):
    """A score, a label and an assertion with reasons; it fails on one question."""

    evaluation_name = "graded"
    evaluator_version = "2"

    def evaluate(self, ctx: EvaluatorContext) -> dict[str, Any]:
        if "Peru" in ctx.inputs["text"]:
            raise ValueError("planned failure of an evaluator")
        words = len(ctx.output["said"].split())
        right = str(ctx.expected_output["number"]) in ctx.output["said"]
        return {
            "brevity": EvaluationReason(value=1 / max(1, words), reason=f"{words} words"),
            "style": "empty" if not words else "sentence",
            "right": EvaluationReason(value=right, reason="compared with the number"),
        }


@dataclass
class Share(ReportEvaluator):
    def evaluate(self, ctx: Any) -> ScalarResult:
        return ScalarResult(title="answered", value=len(ctx.report.cases), unit="cases")


@dataclass
class Broken(ReportEvaluator):
    def evaluate(self, ctx: Any) -> ScalarResult:
        raise ValueError("planned failure of a report's evaluator")


def repeated(url: str) -> Any:
    """Cases without names, two of them alike, structured inputs and outputs, three runs of each."""

    def task(inputs: dict[str, str]) -> dict[str, str]:
        said = ask(url, "large", inputs["text"])
        increment_eval_metric("input_tokens", len(inputs["text"].split()))
        increment_eval_metric("output_tokens", len(said.split()))
        increment_eval_metric("cost", 0.001)
        set_eval_attribute("mood", "calm")
        return {"said": said}

    rows = [*peers.QUESTIONS[3:6], *peers.QUESTIONS[8:], peers.QUESTIONS[3]]
    cases = [
        Case(
            inputs={"text": row["question"]},
            expected_output={"number": row["answer"]},
            metadata={"kind": row["id"][:3]},
        )
        for row in rows
    ]
    dataset = Dataset(
        name="mixed", cases=cases, evaluators=[Graded()], report_evaluators=[Share(), Broken()]
    )
    return dataset.evaluate_sync(task, name="mixed", repeat=3, max_concurrency=1, progress=False)


def scrubbed(value: Any) -> Any:
    """Without tracebacks, which quote the tool's source and name places on this machine."""
    if isinstance(value, dict):
        return {
            name: "left out" if name == "error_stacktrace" else scrubbed(inner)
            for name, inner in value.items()
        }
    return [scrubbed(inner) for inner in value] if isinstance(value, list) else value


def main() -> None:
    LOGS.mkdir(exist_ok=True)
    server = peers.serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    reports = {
        model: evaluate(peers.QUESTIONS, url, model, LOGS / f"{model}.json")
        for model in peers.WRONG
    }
    reports["repeated"] = repeated(url)
    averages = {name: report.averages().model_dump() for name, report in reports.items()}
    (LOGS / "averages.json").write_text(json.dumps(averages, indent=1) + "\n")
    for name, report in reports.items():
        (LOGS / f"{name}.json").write_text(
            json.dumps(scrubbed(to_jsonable_python(report)), indent=1) + "\n"
        )


main()
