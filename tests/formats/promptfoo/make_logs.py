"""Makes the logs of this folder by running promptfoo 0.121.20 (Node 20) against the planned server, without a network:

    python tests/formats/promptfoo/make_logs.py .venv/peers/promptfoo/node_modules/.bin/promptfoo [FOLDER]

`twelve.json` and `twelve.jsonl` are the evaluation of docs/promptfoo.md; `repeats.json` asks two of its questions three
times; `every_field.json` has two prompts, two settings of one model, all kinds of assertions, cached answers and a
person's rating.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import peers  # noqa: E402


def main(promptfoo: str, logs: Path) -> None:
    server = peers.serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with TemporaryDirectory() as folder:
        work = Path(folder)
        environ = settings(work, url)
        asked = [
            {"vars": {"question": row["question"], "answer": row["answer"]}}
            for row in peers.QUESTIONS
        ]
        (work / "questions.json").write_text(json.dumps(asked))
        evaluate(
            promptfoo,
            work,
            environ,
            "twelve_questions.yaml",
            "-j",
            "1",
            "-o",
            "twelve.json",
            "twelve.jsonl",
        )
        flags = (
            "--repeat",
            "3",
            "--filter-first-n",
            "2",
            "--filter-providers",
            "tiny",
            "-o",
            "repeats.json",
        )
        evaluate(promptfoo, work, environ, "twelve_questions.yaml", *flags)
        for _ in range(2):  # the second one takes its answers from the cache
            evaluate(
                promptfoo, work, environ, "every_field.yaml", "-j", "2", "-o", "every_field.json"
            )
        rate(promptfoo, work, environ)
        for name in ("twelve.json", "twelve.jsonl", "repeats.json", "every_field.json"):
            keep(work / name, logs / name)
    server.shutdown()


def settings(work: Path, url: str) -> dict[str, str]:
    own = {
        **{
            f"PROMPTFOO_DISABLE_{what}": "1"
            for what in ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
        },
        "PROMPTFOO_CONFIG_DIR": str(work / "state"),
        "PROMPTFOO_RETRY_5XX": "false",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "planned",
    }
    return {**os.environ, **own}


def evaluate(promptfoo: str, work: Path, environ: dict[str, str], config: str, *flags: str) -> None:
    shutil.copy(HERE / config, work)
    command = [promptfoo, "eval", "-c", config, "--no-table", "--no-progress-bar", *flags]
    # not 0: there are failures
    subprocess.run(command, cwd=work, env=environ, stdout=subprocess.DEVNULL)


def rate(promptfoo: str, work: Path, environ: dict[str, str]) -> None:
    """A person says in promptfoo's viewer that a wrong answer is right; the evaluation is exported again."""
    log = json.loads((work / "every_field.json").read_text())
    row = next(row for row in log["results"]["results"] if row["vars"]["answer"] == "5")
    human = {"pass": True, "score": 1, "reason": "looked at", "assertion": {"type": "human"}}
    rating = {
        **row["gradingResult"],
        "pass": True,
        "score": 1,
        "reason": "looked at",
        "comment": "fine for me",
    }
    rating["componentResults"] = [*row["gradingResult"]["componentResults"], human]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    viewer = subprocess.Popen([promptfoo, "view", "-n", "-p", str(port)], cwd=work, env=environ)
    try:
        address = f"http://127.0.0.1:{port}/api/eval/{log['evalId']}/results/{row['id']}/rating"
        post(address, rating)
    finally:
        viewer.terminate()
        viewer.wait()
    subprocess.run(
        [promptfoo, "export", "eval", log["evalId"], "-o", "every_field.json"],
        cwd=work,
        env=environ,
        check=True,
    )


def post(address: str, body: Any) -> None:
    headers = {"content-type": "application/json"}
    for _ in range(60):
        try:
            urllib.request.urlopen(
                urllib.request.Request(address, json.dumps(body).encode(), headers)
            ).close()
            return
        except (ConnectionError, urllib.error.URLError):
            time.sleep(0.5)
    raise SystemExit("promptfoo's viewer does not answer")


def keep(source: Path, target: Path) -> None:
    """The log without spaces, and without the folder that it was made in."""
    target.parent.mkdir(exist_ok=True)
    lines = source.read_text().splitlines() if source.suffix == ".jsonl" else [source.read_text()]
    text = "".join(
        json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False) + "\n"
        for line in lines
    )
    target.write_text(text.replace(str(source.parent), "."))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()), Path(*sys.argv[2:3] or [HERE / "logs"]))
