"""Runs lm-eval 0.4.13 and keeps what it writes: `logs/`.

    .venv/peers/lm_eval/bin/python tests/formats/lm_eval/make_logs.py [FOLDER]

`plain`: completions of two models that answer `tests/formats/peers.py`'s questions; `chat`: the same as a chat, three
times each; `likely`: likelihoods of `fake_answers.py`, with a group; `dummy`: lm-eval's own model without a server.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGS = Path(*sys.argv[1:2] or [HERE / "logs"]).absolute()
sys.path[:0] = [str(HERE.parent), str(HERE)]

import peers  # noqa: E402
from fake_answers import FakeServer  # noqa: E402

LM_EVAL = """
import functools, lm_eval
lm_eval.simple_evaluate = functools.partial(lm_eval.simple_evaluate, bootstrap_iters=200)
from lm_eval.__main__ import cli_evaluate
cli_evaluate()
"""  # the command has no flag for it, and 100,000 draws take minutes
STOPPING = (peers.REJECTED, peers.BROKEN)  # lm-eval ends at such an error, and writes nothing


def write_questions() -> None:
    rows = [row for row in peers.QUESTIONS if not any(part in row["question"] for part in STOPPING)]
    lines = [json.dumps({**row, "wrong": "0"}) for row in rows]
    (LOGS / "questions.jsonl").write_text("\n".join(lines) + "\n")


def evaluate(model: str, arguments: str, tasks: str, folder: str, *more: str) -> None:
    words = [
        "--model",
        model,
        "--tasks",
        tasks,
        "--include_path",
        "tasks",
        "--output_path",
        folder,
        "--log_samples",
    ]
    words += ["--model_args", arguments] if arguments else []
    offline = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-c", LM_EVAL, *words, *more]
    subprocess.run(command, cwd=LOGS, env=os.environ | offline, check=True)


def main() -> None:
    if not (LOGS / "tasks").exists():
        shutil.copytree(HERE / "logs/tasks", LOGS / "tasks")
    for name in ("plain", "chat", "likely", "dummy"):
        shutil.rmtree(LOGS / name, ignore_errors=True)
    write_questions()
    server = peers.serve()
    url = f"base_url=http://127.0.0.1:{server.server_address[1]}/v1"
    for model in peers.WRONG:
        own = f"model={model},{url}/completions,tokenizer_backend=none"
        evaluate("local-completions", own, "questions", "plain")
    own = f"model=large,{url}/chat/completions"
    evaluate("local-chat-completions", own, "questions_thrice", "chat", "--apply_chat_template")
    with FakeServer() as fake:
        own = f"model=fake,base_url={fake.url}/v1/completions,tokenizer_backend=remote,tokenized_requests=False"
        evaluate(
            "local-completions", own, "facts,texts", "likely", "--num_fewshot", "1", "--limit", "8"
        )
    evaluate("dummy", "", "questions,yes_or_no", "dummy")
    for file in LOGS.rglob("lm_cache"):
        shutil.rmtree(file)


if __name__ == "__main__":
    main()
