"""What MLflow has left, put back where it was: an SQLite database, and the file store with traces."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parent / "logs"
RUNS = LOGS / "mlruns"


def table_of(model: str) -> Path:
    """The table of a run in the file store."""
    (name,) = [file for file in RUNS.rglob("mlflow.runName") if file.read_text() == model]
    return name.parents[1] / "artifacts" / "eval_results_table.json"


def tables(logs: Path = LOGS) -> dict[str, Any]:
    return json.loads((logs / "database.json").read_text())


def database(folder: Path, content: dict[str, Any] | None = None) -> Path:
    """A database with these tables, or with MLflow's own."""
    file = folder / "mlflow.db"
    with closing(sqlite3.connect(file)) as connection:
        for name, table in (content or tables()).items():
            columns = ", ".join(f'"{column}"' for column in table["columns"])
            connection.execute(f'create table "{name}" ({columns})')
            marks = ", ".join("?" * len(table["columns"]))
            connection.executemany(f'insert into "{name}" values ({marks})', table["rows"])
        connection.commit()
    return file


def store(folder: Path, logs: Path = LOGS) -> Path:
    """The file store of `mlflow.genai.evaluate`."""
    for place, text in json.loads((logs / "store.json").read_text()).items():
        file = folder / "store" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "store"
