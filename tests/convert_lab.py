"""A small folder with everything that rows can hold, and how two folders are compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.engine.experiment.imports.results import import_one
from assay.foreign import ForeignCase, Headline, Read, key_of
from assay.records import Evaluation, Response

ROWS = (
    "items.jsonl",
    "responses.jsonl",
    "evaluation_results.jsonl",
    "metrics.jsonl",
    "calls.jsonl",
    "traces.jsonl",
)


class Given:
    """Results as a reader gives them."""

    planned: int | None = None
    rejected = 0

    def __init__(self, cases: list[ForeignCase], dataset: str = "lab") -> None:
        self.dataset = dataset
        self.source = {"format": "lab", "count": len(cases)}
        self.facts: dict[str, Any] = {}
        self._cases = cases

    def cases(self) -> Iterator[ForeignCase]:
        return iter(self._cases)

    def notes(self) -> list[str]:
        return []

    def headlines(self) -> list[Headline]:
        return []


QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "q1",
        "data": {"question": "2 + 2?", "level": 1},
        "ground_truth": "4",
        "metadata": {"topic": "sums"},
    },
    {
        "id": "q/2 ü",
        "data": {"question": "Größer als „drei“?\nja, nein", "options": ["a", {"b": None}]},
        "ground_truth": ["x", "y"],
    },
    {
        "id": "3",
        "data": {"question": "=SUM(1)", "level": 2.0, "flag": True, "empty": ""},
        "source": {"page": 7},
    },
    {
        "id": "four",
        "data": {"question": "12", "context": "line\r\nline two", "nothing": None},
        "ground_truth": None,
    },
    {
        "id": "left out",
        "data": {"question": "Nobody was asked this."},
        "ground_truth": {"answer": "-"},
    },
]
ANSWERS = [
    "4",
    '=HYPERLINK("x")',
    "",
    "ja \U0001f600 \u2028 'nein'",
    '{"a": 1}',
    " 7 ",
    "true",
    'a,b;"c"\n',
]


def response(item: str, model: str, sample: int, number: int, **more: Any) -> Response:
    task = f"{model}/short"
    fields: dict[str, Any] = {
        "sample_id": f"{item}_sample_{sample}",
        "sample_index": sample,
        "total_samples": 2,
        "model_name": model,
        "prompt": f"Answer: {item}",
        "response": ANSWERS[number % len(ANSWERS)],
        "inference_time": 0.1 + number / 7,
        "timestamp": 1.75e9 + number,
        "metadata": {"model_id": model, "sampling": {"temperature": 0.5}, "seen": [number]},
        "total_tokens": 12 + number,
        "prompt_tokens": 10,
        "completion_tokens": 2 + number,
        "key": key_of("lab", item, model, sample),
        "task": task,
        "cost": number / 1000,
        "served_model": f"{model}-2026",
    }
    return Response(item_id=item, **{**fields, **more})


def evaluation(
    answer: Response, label: str, scorer: str, score: float | None, **more: Any
) -> Evaluation:
    fields: dict[str, Any] = {
        "sample_id": answer.sample_id,
        "sample_index": answer.sample_index,
        "label": label,
        "model_name": answer.model_name,
        "score": score,
        "passed": None if score is None else score >= 0.5,
        "detailed_results": {"explanation": f"because {answer.response}", "parts": [1, 2.5, None]},
        "evaluation_time": 0.01,
        "timestamp": answer.timestamp + 1,
        "metadata": {**answer.metadata, "grader": scorer},
        "key": key_of("label", answer.key, label, scorer),
        "responses": [answer.key],
        "scorer": scorer,
    }
    return Evaluation(item_id=answer.item_id, **{**fields, **more})


ODD: list[dict[str, Any]] = [
    {},
    {
        "outcome": "errored",
        "response": "",
        "error": 'HTTP 500: "broken"',
        "error_kind": "transient",
        "cost": None,
        "total_tokens": None,
    },
    {"outcome": "refused", "response": "I cannot help with that.", "reasoning": "hm\n…"},
    {
        "tool_calls": [{"id": "c1", "name": "add", "arguments": {"a": 1, "b": [2.0]}}],
        "messages": [{"role": "user", "content": "hi"}],
    },
    {"outcome": "skipped", "response": "", "error": "no budget", "prompt_tokens": 0},
    {
        "output": {"steps": [1, {"x": None}]},
        "logprobs": [{"token": "a", "logprob": -0.5}],
        "served_fingerprint": "fp",
    },
]


def cases() -> list[ForeignCase]:
    found: list[ForeignCase] = []
    number = 0
    answers: dict[tuple[str, str], Response] = {}
    for model in ("small", "org/großes modell:7b"):
        for item in QUESTIONS[:4]:
            for sample in range(2):
                answer = response(item["id"], model, sample, number, **ODD[number % len(ODD)])
                answers.setdefault((item["id"], model), answer)
                found.append(ForeignCase(item, answer, labels(answer, number)))
                number += 1
    found.append(ForeignCase(QUESTIONS[4]))
    a, b = answers["q1", "small"], answers["q1", "org/großes modell:7b"]
    match = {
        "players": (a.model_name, b.model_name),
        "seat": 1,
        "responses": [a.key, b.key],
        "model_name": "",
    }
    found.append(ForeignCase(evaluations=[evaluation(a, "better", "arena", 1.0, **match)]))
    return found


def labels(answer: Response, number: int) -> list[Evaluation]:
    if answer.outcome == "errored":
        return [
            evaluation(
                answer, "exact_match", "exact", None, outcome="errored", error="nothing to score"
            )
        ]
    several = [
        evaluation(answer, "exact_match", "exact", float(number % 2), part=(0, 2)),
        evaluation(
            answer,
            "length of it, in %",
            "exact",
            1 / (number + 3),
            passed=None,
            part=(1, 2),
            value=number,
        ),
    ]
    if number % 3 == 0:
        several.append(
            evaluation(answer, "exact_match", "judge (strict)", 0.25, value={"votes": [1, 0]})
        )
    if number % 4 == 1:
        refused = {"outcome": "unparsed", "error": "no verdict in: …", "passed": None}
        several.append(evaluation(answer, "odd (label)", "judge", None, **refused))
    return several


METRIC = {
    "metric_name": "mean",
    "metric_type": "mean",
    "facets": ["model_name"],
    "model_name": "small",
    "label": "exact_match",
    "value": 0.5,
}


def make(folder: Path, given: list[ForeignCase] | None = None, *, beside: bool = True) -> Path:
    """An experiment's folder with these cases."""
    import_one(Read("lab", Given(cases() if given is None else given)), folder)
    if beside:
        (folder / "metrics.jsonl").write_text(json.dumps(METRIC) + "\n")
        (folder / "calls.jsonl").write_text(
            '{"key":"k1","step":"judge","response":{"text":"yes"}}\n'
        )
        (folder / "traces.jsonl").write_text('{"key":"k1","item_id":"q1","spans":[{"name":"a"}]}\n')
    return folder


def content(folder: Path) -> dict[str, Any]:
    """All that a folder holds, in an order that does not depend on the files."""
    found: dict[str, Any] = {}
    for name in ROWS:
        file = folder / name
        lines = file.read_text("utf-8").split("\n")[:-1] if file.exists() else []
        found[name] = sorted(
            (json.loads(line) for line in lines), key=lambda row: json.dumps(row, sort_keys=True)
        )
    found["config.yaml"] = (folder / "config.yaml").read_text()
    return found
