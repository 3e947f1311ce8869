"""MLflow's SQLite database: runs, their metrics, and traces with assessments. It is opened for reading only."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from assay import reading
from assay.foreign import head_of, unknown_version
from assay.formats.mlflow.metrics import MlflowRun, decoded_json
from assay.formats.mlflow.traces import Assessment, MlflowTrace
from assay.readers._results import small_yaml
from assay.sdk import UserError, as_object, number_of, rows_of

_LARGEST = 1 << 22  # bytes of a file with one fact
STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
RUN_ID = re.compile(r"[0-9a-f]{32}")


def run_of_folder(folder: Path) -> MlflowRun | None:
    """The run in a folder of the file store; None if it is not one."""
    meta = small_yaml(folder / "meta.yaml")
    if "run_id" not in meta:
        return None
    metrics = {
        name: value
        for name, text in read_texts(folder / "metrics").items()
        if (value := _last(text)) is not None
    }
    experiment = small_yaml(folder.parent / "meta.yaml")
    tags = read_texts(folder / "tags")
    status = meta.get("status")
    return MlflowRun(
        id=str(meta["run_id"]),
        name=tags.get("mlflow.runName") or str(meta.get("run_name") or meta["run_id"]),
        experiment=str(experiment.get("name") or ""),
        status=STATUSES.get(status or 0, str(status or "")),
        params=read_texts(folder / "params"),
        tags=tags,
        metrics=metrics,
        rows=_rows_of(folder),
    )


def _rows_of(folder: Path) -> int | None:
    inputs = [small_yaml(file) for file in sorted(folder.glob("inputs/*/meta.yaml"))]
    ids = {str(entry.get("source_id")) for entry in inputs if entry.get("source_type") == "DATASET"}
    if len(ids) != 1 or not RUN_ID.fullmatch(id := ids.pop()):
        return None
    return rows_in_profile(small_yaml(folder.parent / "datasets" / id / "meta.yaml").get("profile"))


def rows_in_profile(profile: Any) -> int | None:
    """The number of rows in the description of a dataset."""
    rows = as_object(decoded_json(profile)).get("num_rows")
    return rows if isinstance(rows, int) else None


def _last(text: str) -> float | None:
    """The value of the last line of a metric: time, value, step."""
    lines = text.split("\n")
    words = next((line.split() for line in reversed(lines) if line.strip()), [])
    try:
        return number_of(float(words[1]))
    except (IndexError, ValueError):
        return None


def read_texts(folder: Path) -> dict[str, str]:
    """The files below a folder, by their names; those of metrics stand in folders, as their names have slashes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {
        file.relative_to(folder).as_posix(): _text(file)
        for file in files
        if file.stat().st_size <= _LARGEST
    }


def _text(file: Path) -> str:
    try:
        return reading.text(file, errors="replace")
    except OSError:
        return ""


_BESIDE = "mlflow.db"  # what MLflow calls it, beside the folder with artifacts
_MAGIC = b"SQLite format 3\0"
_RUNS = {"runs", "metrics", "latest_metrics", "params", "tags", "experiments"}
_NEEDED = {  # the columns that are read of what MLflow 3 has added
    "trace_info": {
        "request_id",
        "timestamp_ms",
        "execution_time_ms",
        "status",
        "request_preview",
        "response_preview",
    },
    "assessments": {
        "assessment_id",
        "trace_id",
        "name",
        "assessment_type",
        "value",
        "error",
        "source_type",
        "valid",
    },
    "spans": {"trace_id", "span_id", "parent_span_id", "content"},
    "trace_request_metadata": {"key", "value", "request_id"},
    "trace_tags": {"key", "value", "request_id"},
}
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
_OF_RUN = """case when json_valid(assessment_metadata)
    then json_extract(assessment_metadata, '$."mlflow.assessment.sourceRunId"') end"""
_TRACES = f"""
    select request_id from trace_info where request_id in (
        select request_id from trace_request_metadata where key = 'mlflow.sourceRun' and value = :run
        union select source_id from entity_associations
        where source_type = 'trace' and destination_type = 'run' and destination_id = :run
        union select trace_id from assessments where {_OF_RUN} = :run
    ) order by timestamp_ms, request_id"""


class Database:
    """One file; each question opens it anew."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def connect(self) -> closing[sqlite3.Connection]:
        connection = sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=ro", uri=True)
        connection.execute("pragma trusted_schema = off")
        connection.row_factory = sqlite3.Row
        return closing(connection)

    def is_mlflow(self) -> bool:
        if not head_of(self.file).startswith(_MAGIC):
            return False
        with suppress(sqlite3.Error), self.connect() as connection:
            return _tables(connection).keys() >= _RUNS
        return False

    def run(self, id: str) -> MlflowRun | None:
        with suppress(sqlite3.Error), self.connect() as connection:
            return _run(connection, id)
        return None

    def run_folders(self) -> list[tuple[str, str]]:
        """(experiment, run) of all runs that were not deleted."""
        with suppress(sqlite3.Error), self.connect() as connection:
            asked = "select experiment_id, run_uuid from runs where lifecycle_stage = 'active' order by start_time"
            return [(str(row[0]), str(row[1])) for row in connection.execute(asked)]
        return []

    def evaluated_runs(self) -> list[MlflowRun]:
        """The runs that have feedback on traces."""
        try:
            return self._evaluated_runs()
        except sqlite3.Error as error:
            fix = "restore it from a copy, or rescue what is left with `sqlite3 FILE .recover`"
            raise UserError(
                f"the database cannot be read: {error}", where=str(self.file), fix=fix
            ) from None

    def _evaluated_runs(self) -> list[MlflowRun]:
        with self.connect() as connection:
            tables = _tables(connection)
            if "assessments" not in tables:
                return []
            missing = {
                f"{name}.{column}"
                for name, needed in _NEEDED.items()
                for column in needed - tables.get(name, set())
            }
            if missing:
                version = connection.execute("select version_num from alembic_version").fetchone()
                named = (
                    f"{version[0]}, without {', '.join(sorted(missing))}" if version else "unknown"
                )
                raise unknown_version("a database of MLflow", named, self.file)
            asked = f"select distinct {_OF_RUN} as run from assessments where assessment_type = 'feedback'"
            ids = [str(row["run"]) for row in connection.execute(asked) if row["run"] is not None]
            runs = [run for id in ids if (run := _run(connection, id)) is not None]
        return sorted(runs, key=lambda run: (run.experiment, run.name, run.id))

    def traces(self, run: str) -> Iterator[MlflowTrace]:
        """The traces of a run, in the order of their times."""
        with self.connect() as connection:
            for row in connection.execute(_TRACES, {"run": run}):
                yield _trace(connection, str(row["request_id"]))


def _tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    names = [
        str(row[0])
        for row in connection.execute("select name from sqlite_master where type = 'table'")
    ]
    asked = "select name from pragma_table_info(?)"
    return {name: {str(row[0]) for row in connection.execute(asked, [name])} for name in names}


def _run(connection: sqlite3.Connection, id: str) -> MlflowRun | None:
    found = connection.execute("select * from runs where run_uuid = ?", [id]).fetchone()
    if found is None:
        return None
    experiment = connection.execute(
        "select name from experiments where experiment_id = ?", [found["experiment_id"]]
    ).fetchone()
    metrics = connection.execute(
        "select key, value from latest_metrics where run_uuid = ? and not is_nan", [id]
    )
    return MlflowRun(
        id=id,
        name=str(found["name"] or id),
        experiment=str(experiment[0]) if experiment else "",
        status=str(found["status"] or ""),
        params=_pairs(connection, "params", "run_uuid", id),
        tags=_pairs(connection, "tags", "run_uuid", id),
        metrics={str(key): float(value) for key, value in metrics},
        rows=_rows(connection, id),
    )


def _rows(connection: sqlite3.Connection, id: str) -> int | None:
    asked = """select dataset_profile from datasets where dataset_uuid in
        (select source_id from inputs where source_type = 'DATASET' and destination_id = ?)"""
    with suppress(sqlite3.Error):  # older versions have no datasets
        profiles = connection.execute(asked, [id]).fetchall()
        return rows_in_profile(profiles[0][0]) if len(profiles) == 1 else None
    return None


def _pairs(connection: sqlite3.Connection, table: str, owner: str, id: str) -> dict[str, str]:
    rows = connection.execute(f"select key, value from {table} where {owner} = ?", [id])
    return {str(key): str(value) for key, value in rows}


def _trace(connection: sqlite3.Connection, id: str) -> MlflowTrace:
    info = dict(
        connection.execute("select * from trace_info where request_id = ?", [id]).fetchone()
    )
    metadata = _pairs(connection, "trace_request_metadata", "request_id", id)
    spans = connection.execute(
        "select content, model_name from spans where trace_id = ? order by start_time_unix_nano, span_id",
        [id],
    ).fetchall()
    return MlflowTrace(
        id=id,
        status=str(info["status"] or ""),
        seconds=(info["execution_time_ms"] or 0) / 1000,
        timestamp=(info["timestamp_ms"] or 0) / 1000,
        request=metadata.get("mlflow.traceInputs", info["request_preview"]),
        response=metadata.get("mlflow.traceOutputs", info["response_preview"]),
        tags=_pairs(connection, "trace_tags", "request_id", id),
        metadata=metadata,
        assessments=list(_assessments(connection, id)),
        spans=rows_of([decoded_json(row["content"]) for row in spans]),
        tokens={name: info.get(name) for name in _TOKENS},
        cost=info.get("total_cost"),
        model=next((str(row["model_name"]) for row in spans if row["model_name"]), None),
    )


def _assessments(connection: sqlite3.Connection, id: str) -> Iterator[Assessment]:
    asked = "select * from assessments where trace_id = ? order by created_timestamp, assessment_id"
    for row in map(dict, connection.execute(asked, [id])):
        yield Assessment(
            id=str(row["assessment_id"]),
            name=str(row["name"]),
            kind=str(row["assessment_type"]),
            value=decoded_json(row["value"]),
            error=decoded_json(row["error"]),
            source_type=str(row["source_type"] or ""),
            source_id=str(row.get("source_id") or ""),
            rationale=row.get("rationale"),
            valid=bool(row["valid"]) if row["valid"] is not None else True,
            metadata=as_object(decoded_json(row.get("assessment_metadata"))),
        )


def run_of_table(file: Path) -> MlflowRun:
    folder = file.absolute().parent.parent
    if file.absolute().parent.name == "artifacts":
        run = run_of_folder(folder)
        if run is None and RUN_ID.fullmatch(folder.name):
            beside = folder.parent.parent.parent / _BESIDE
            database = Database(beside)
            run = database.run(folder.name) if beside.is_file() and database.is_mlflow() else None
        if run is not None:
            return run
    return MlflowRun(name=file.name.removesuffix(".json"))
