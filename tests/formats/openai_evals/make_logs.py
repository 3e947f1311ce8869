"""Runs OpenAI evals 3.0.1.post1 on `tests/formats/peers.py`'s questions and keeps what it writes: `logs/*.jsonl`.

    .venv/peers/openai_evals/bin/python tests/formats/openai_evals/make_logs.py [FOLDER]

`match_large` and `match_tiny`: exact answers of two models; `fuzzy`: metrics; `stopped`: the server fails, and so does
the run; `steps`: an eval of our own (`steps.py`) that records every other kind of event.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import peers  # noqa: E402

LOGS = Path(*sys.argv[1:2] or [HERE / "logs"])
# evals ends at the first of them
FAULTY = (peers.REFUSED, peers.CUT_OFF, peers.REJECTED, peers.BROKEN)
# --- docs
EVALS = """\
questions:
  id: questions.test.v0
  metrics: [accuracy]
questions.test.v0:
  class: evals.elsuite.basic.includes:Includes
  args: {samples_jsonl: questions.jsonl}
"""
# --- end
MORE = """\
fuzzy:
  id: fuzzy.test.v0
  metrics: [f1_score]
fuzzy.test.v0:
  class: evals.elsuite.basic.fuzzy_match:FuzzyMatch
  args: {samples_jsonl: questions.jsonl}
all-questions:
  id: all-questions.test.v0
  metrics: [accuracy]
all-questions.test.v0:
  class: evals.elsuite.basic.includes:Includes
  args: {samples_jsonl: every.jsonl}
steps:
  id: steps.test.v0
  metrics: [score]
steps.test.v0:
  class: steps:Steps
  args: {samples_jsonl: questions.jsonl}
"""


def sample(row: dict[str, str]) -> str:
    system = {"role": "system", "content": "Answer in one sentence."}
    asked = {"role": "user", "content": row["question"]}
    return json.dumps({"input": [system, asked], "ideal": row["answer"]})


def write_registry(url: str, folder: Path) -> None:
    for name in ("evals", "completion_fns", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "evals/all.yaml").write_text(EVALS + MORE)
    plain = [row for row in peers.QUESTIONS if not any(part in row["question"] for part in FAULTY)]
    for name, rows in (("questions", plain), ("every", peers.QUESTIONS)):
        (folder / f"data/{name}.jsonl").write_text("".join(sample(row) + "\n" for row in rows))
    functions = {
        name: {
            "class": "steps:Chat",
            "args": {"model": name, "api_base": url},
        }
        for name in peers.WRONG
    }
    (folder / "completion_fns/peers.yaml").write_text(json.dumps(functions))


def evaluate(model: str, name: str, log: str, registry: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("oaieval")),
        model,
        name,
        "--registry_path",
        registry.name,
    ]
    command += ["--record_path", f"{log}.jsonl"]
    own = {
        "OPENAI_API_KEY": "none",
        "EVALS_THREADS": "3",
        "EVALS_SHOW_EVAL_PROGRESS": "0",
        "PYTHONPATH": str(HERE),
    }
    done = subprocess.run(
        command, cwd=registry.parent, env=os.environ | own, check=False, timeout=100
    )
    print(log, "ended with", done.returncode)
    text = (registry.parent / f"{log}.jsonl").read_text()
    (LOGS / f"{log}.jsonl").write_text(re.sub(r'"(/[^" ]*/)(registry|bin|oaieval)', r'"\2', text))


def main(work: Path) -> None:
    registry = work / "registry"
    server = peers.serve()
    write_registry(f"http://127.0.0.1:{server.server_address[1]}/v1", registry)
    LOGS.mkdir(exist_ok=True)
    evaluate("large", "questions", "match_large", registry)
    evaluate("tiny", "questions", "match_tiny", registry)
    evaluate("large", "fuzzy", "fuzzy", registry)
    evaluate("large", "steps", "steps", registry)
    evaluate("large", "all-questions", "stopped", registry)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
