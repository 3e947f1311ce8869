"""Makes the logs of this folder by running deepeval 4.3.1 against the planned server, without a network:

    .venv/peers/deepeval/bin/python tests/formats/deepeval/make_logs.py [FOLDER]

`twelve_questions.py` is the evaluation of docs/deepeval.md, with a good and a worse model.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
LOGS = Path(*sys.argv[1:2] or [HERE / "logs"])
sys.path.insert(0, str(HERE.parent))

import peers  # noqa: E402

OPT_OUT = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "NO",
}


def main() -> None:
    server = peers.serve()
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir()
    for model in peers.WRONG:
        keep(run("twelve_questions.py", address, model, "results"), model)
    keep(run("every_field.py", "results"), "every_field", "conversations")
    server.shutdown()


def run(script: str, *arguments: str) -> list[str]:
    """The test runs that a script writes, the first one first."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "questions.json").write_text(json.dumps(peers.QUESTIONS))
        command = [sys.executable, str((HERE / script).resolve()), *arguments]
        subprocess.run(
            command, cwd=work, env={**os.environ, **OPT_OUT}, check=True, stdout=subprocess.DEVNULL
        )
        return [file.read_text() for file in sorted((work / "results").glob("test_run_*.json"))]


def keep(runs: list[str], *names: str) -> None:
    for text, name in zip(runs, names, strict=True):
        (LOGS / f"test_run_{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
