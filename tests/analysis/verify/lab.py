"""A small folder that has all that a run leaves: judged labels, calls, traces, outputs, rows that were set aside."""

import json
from pathlib import Path
from typing import Any

import assay

CODE = """
def answer(prompt):
    n = int(prompt.split()[2])
    return str(n + 1) if n % 3 else "no idea"

async def careful(item, response, context):
    with context.span("looking", item=item.id):
        said = await context.complete([{"role": "user", "content": f"Is {response.response} right?"}], model="strict")
    return {"passed": len(said.text) % 2 == 0, "score": len(said.text) / 100}
"""


def config_of(folder: Path, **changes: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "code.py").write_text(CODE)
    rows = (
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(4)
    )
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = str(folder / "code.py")
    return {
        "name": "lab",
        "dataset": str(folder / "items.jsonl"),
        "models": [
            {"name": "small", "type": "python", "path": path, "function_name": "answer"},
            {"name": "strict", "type": "demo", "skill": 0.95, "helper": True},
        ],
        "prompt_template": "{{question}}",
        "num_samples": 2,
        "evaluation_methods": [
            "exact_match",
            {"name": "right", "type": "judge_correctness", "params": {"model": "strict"}},
            {"name": "careful", "type": "custom", "path": path, "function_name": "careful"},
        ],
        "metrics": [{"name": "pass@1", "facets": ["model_name"]}, "mean"],
        "outputs": [
            {"type": "csv", "table": "responses", "path": str(folder / "out" / "answers.csv")}
        ],
        "output_dir": str(folder / "out"),
        **changes,
    }


def run(folder: Path, **changes: Any) -> Path:
    assay.run(config_of(folder, **changes))
    return folder / "out"


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def save_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
