"""Makes the files in `logs/` by really running MLflow 3.17.2:

    .venv/peers/mlflow/bin/python tests/formats/mlflow/make_logs.py [FOLDER]

`mlruns` is the file store after two runs of `evaluation.py`; `database.json` and `store.json` are what
`mlflow.genai.evaluate` leaves in an SQLite database (its tables) and in the file store (its files), which the tests put
back. What names this machine or its user is left out.
"""

# ruff: noqa: E402

import json
import os
import shutil
import sqlite3
import sys
from getpass import getuser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]
os.environ |= {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_GENAI_EVAL_MAX_WORKERS": "1",
}

import mlflow
import peers
import yaml
from evaluation import ask, evaluate
from mlflow.entities import AssessmentSource, Feedback
from mlflow.genai.scorers import scorer

LOGS = Path(*sys.argv[1:2] or [HERE / "logs"]).absolute()
TABLES = [
    "alembic_version",
    "assessments",
    "datasets",
    "entity_associations",
    "experiments",
    "inputs",
    "latest_metrics",
    "metrics",
    "params",
    "runs",
    "spans",
    "tags",
    "trace_info",
    "trace_request_metadata",
    "trace_tags",
]
TRACEBACKS = ("stack_trace", "exception.stacktrace")
PRIVATE = ("mlflow.user", "mlflow.source.name", "mlflow.artifactLocation", "mlflow.source.git")


@scorer
def right(outputs: str | None, expectations: dict[str, str]) -> bool:
    return f"is {expectations['expected_response']}." in (outputs or "")


@scorer(aggregations=["mean", "median", "max", "p90", "variance"])
def brevity(outputs: str | None) -> Feedback:
    return Feedback(value=1 / max(1, len((outputs or "").split())), rationale="words were counted")


@scorer
def polite(outputs: str | None) -> str:
    return "yes" if outputs else "no"


@scorer
def mood(outputs: str | None) -> str:
    return "unknown"


@scorer
def fragile(outputs: str) -> float:
    if "Lima" in outputs:
        raise ValueError("planned failure of a scorer")
    return 1.0


def evaluate_traces(rows: list[dict[str, str]], url: str, uri: str) -> Any:
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("traced")

    def predict(question: str) -> str:
        said = ask(url, "large", question)
        if said.startswith("error"):
            raise RuntimeError(said)
        return said

    data = [
        {
            "inputs": {"question": row["question"]},
            "expectations": {"expected_response": row["answer"]},
        }
        for row in rows
    ]
    data[0]["tags"] = {"id": rows[0]["id"], "kind": "sum"}
    with mlflow.start_run(run_name="traced-large"):
        mlflow.log_params({"model": "large", "api_key": "sk-not-a-real-one"})
        result = mlflow.genai.evaluate(
            data=data, predict_fn=predict, scorers=[right, brevity, polite, mood, fragile]
        )
    first = result.result_df["trace_id"].iloc[0]
    source = AssessmentSource(source_type="HUMAN", source_id="annotator")
    mlflow.log_feedback(
        trace_id=first, name="right", value=False, source=source, rationale="too short"
    )
    return result


def scrubbed(value: Any, folder: str) -> Any:
    """Without what names this machine or its user, and without tracebacks, which quote the tool's source."""
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if not name.startswith(PRIVATE)}
        return {
            name: "left out" if name in TRACEBACKS else scrubbed(inner, folder)
            for name, inner in kept.items()
        }
    if isinstance(value, list):
        return [scrubbed(inner, folder) for inner in value]
    if not isinstance(value, str):
        return value
    if value[:1] in ("{", "["):
        return json.dumps(scrubbed(json.loads(value), folder))
    return "user" if value == getuser() else value.replace(folder, "")


def dumped(database: Path, folder: str) -> dict[str, Any]:
    """The tables by their names, with their columns and rows."""
    connection = sqlite3.connect(database)
    tables: dict[str, Any] = {}
    for name in TABLES:
        columns = [row[1] for row in connection.execute(f"pragma table_info({name})")]
        rows = [list(row) for row in connection.execute(f"select {', '.join(columns)} from {name}")]
        if "key" in columns:
            rows = [row for row in rows if not str(row[columns.index("key")]).startswith(PRIVATE)]
        tables[name] = {"columns": columns, "rows": scrubbed(rows, folder)}
    return tables


def contents(folder: Path) -> dict[str, str]:
    """The text of each file below a folder, but those of the experiment that MLflow makes by itself."""
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        place = file.relative_to(folder)
        if file.is_dir() or place.parts[0] == "0" or place.name.startswith(PRIVATE):
            continue
        text = file.read_text()
        if file.suffix == ".yaml":
            found[place.as_posix()] = yaml.safe_dump(
                scrubbed(yaml.safe_load(text), str(folder.parent))
            )
        else:
            found[place.as_posix()] = scrubbed(text, str(folder.parent))
    return found


def main() -> None:
    shutil.rmtree(LOGS, ignore_errors=True)
    server = peers.serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with TemporaryDirectory() as name:
        os.chdir(name)
        mlflow.set_tracking_uri("file:./mlruns")
        for model in peers.WRONG:
            evaluate(peers.QUESTIONS, url, model)
        for place, text in contents(Path(name, "mlruns")).items():
            (LOGS / "mlruns" / place).parent.mkdir(parents=True, exist_ok=True)
            (LOGS / "mlruns" / place).write_text(text)
        evaluate_traces(peers.QUESTIONS[3:], url, "sqlite:///mlflow.db")
        (LOGS / "database.json").write_text(json.dumps(dumped(Path("mlflow.db"), name)) + "\n")
        few = [
            row for row in peers.QUESTIONS if row["id"] in ("sum-2-3", "sum-40-2", "capital-peru")
        ]
        evaluate_traces(few, url, "file:./store")
        (LOGS / "store.json").write_text(json.dumps(contents(Path(name, "store")), indent=0) + "\n")


main()
