"""The small evaluation of `docs/pydantic_evals.md`; run with pydantic-evals' own Python by `make_logs.py`."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from pydantic_core import to_json
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReport


@dataclass
class RightAnswer(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return f"is {ctx.expected_output}." in ctx.output


def ask(url: str, model: str, question: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": question}]}
    request = Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"] or ""


def evaluate(questions: list[dict[str, str]], url: str, model: str, path: Path) -> EvaluationReport:
    dataset = Dataset(
        name="sums",
        cases=[
            Case(name=row["id"], inputs=row["question"], expected_output=row["answer"])
            for row in questions
        ],
        evaluators=[RightAnswer()],
    )
    report = dataset.evaluate_sync(
        lambda question: ask(url, model, question),
        name="sums",
        metadata={"model": model},
        progress=False,
    )
    path.write_bytes(to_json(report, indent=1))
    return report
