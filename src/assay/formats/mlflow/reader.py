"""MLflow's evaluations as items, responses and evaluations: one run is one experiment.

A table or the traces of a run give the rows; the metrics of the run, in its folder or in the database, are the numbers
that they are compared with.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from assay import reading
from assay.foreign import Foreign, ForeignCase, files_below, seconds_of
from assay.formats.mlflow.database import RUN_ID, Database, MlflowRun, read_texts, run_of_folder
from assay.formats.mlflow.metrics import RunResults, decoded_json
from assay.formats.mlflow.table import TableRun, columns_of
from assay.formats.mlflow.traces import Assessment, MlflowTrace, case_of
from assay.readers._results import small_yaml
from assay.sdk import JsonObject, as_object, number_of, reader, rows_of

_SOURCE_RUN = "mlflow.sourceRun"


def runs_with_traces(folder: Path) -> dict[str, list[Path]]:
    """The folders of traces below a folder's `traces`, by the run that made them."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("traces/*/request_metadata/" + _SOURCE_RUN)):
        if any((file.parents[1] / "assessments").glob("*.yaml")):
            run = reading.text(file, errors="replace").strip()
            found.setdefault(run, []).append(file.parents[1])
    return found


def traces(folders: list[Path]) -> Iterator[MlflowTrace]:
    """The traces in these folders, in the order of their times."""
    infos = [(small_yaml(folder / "trace_info.yaml"), folder) for folder in folders]
    infos.sort(key=lambda entry: (str(entry[0].get("request_time")), entry[1]))
    for info, folder in infos:
        yield _trace(info, folder)


def _trace(info: JsonObject, folder: Path) -> MlflowTrace:
    metadata = read_texts(folder / "request_metadata")
    content = folder / "artifacts" / "traces.json"
    data = decoded_json(reading.text(content, errors="replace")) if content.is_file() else {}
    return MlflowTrace(
        id=str(info.get("trace_id") or folder.name),
        status=str(info.get("state") or ""),
        seconds=(number_of(info.get("execution_duration_ms")) or 0.0) / 1000,
        timestamp=seconds_of(info.get("request_time")) or 0.0,
        request=metadata.get("mlflow.traceInputs", info.get("request_preview")),
        response=metadata.get("mlflow.traceOutputs", info.get("response_preview")),
        tags=read_texts(folder / "tags"),
        metadata=metadata,
        assessments=[
            _assessment(small_yaml(file))
            for file in sorted((folder / "assessments").glob("*.yaml"))
        ],
        spans=rows_of(as_object(data).get("spans")),
    )


def _assessment(row: JsonObject) -> Assessment:
    kind = "expectation" if "expectation" in row else "feedback"
    given, source = as_object(row.get(kind)), as_object(row.get("source"))
    return Assessment(
        id=str(row.get("assessment_id") or ""),
        name=str(row.get("assessment_name") or ""),
        kind=kind,
        value=given.get("value"),
        error=given.get("error"),
        source_type=str(source.get("source_type") or ""),
        source_id=str(source.get("source_id") or ""),
        rationale=row.get("rationale"),
        valid=row.get("valid") is not False,
        metadata=as_object(row.get("metadata")),
    )


_DATABASES = (".db", ".sqlite", ".sqlite3")
_ARTIFACTS = "mlruns"


@reader
def mlflow(path: Path, *, outputs: str = "", targets: str = "") -> list[Foreign]:
    """A table of `mlflow.models.evaluate`, a folder with runs, or MLflow's SQLite database.

    Parameters:
    outputs: the column of a table that has what the model said
    targets: the column of a table that has what was expected
    """
    found: dict[Path, Foreign] = {}
    databases = [
        db for file in files_below(path, *_DATABASES) if (db := Database(file)).is_mlflow()
    ]
    tables = files_below(path, ".json") if not databases or path.is_dir() else []
    tables += [table for db in databases for table in _tables_beside(db)]
    for table in tables:
        columns = columns_of(table, outputs=outputs, targets=targets)
        if columns is not None:
            found.setdefault(table.resolve(), TableRun(table, columns))
    results = list(found.values())
    results += [
        TraceRun(db.file, run, lambda db=db, run=run: db.traces(run.id))
        for db in databases
        for run in db.evaluated_runs()
    ]
    return results + (_of_file_store(path) if path.is_dir() else [])


def _tables_beside(database: Database) -> list[Path]:
    """The tables of the database's runs, in the folder that MLflow keeps beside it."""
    folder = database.file.parent / _ARTIFACTS
    named = (
        (experiment, run) for experiment, run in database.run_folders() if experiment.isdigit()
    )
    folders = [
        folder / experiment / run / "artifacts"
        for experiment, run in named
        if RUN_ID.fullmatch(run)
    ]
    return [table for place in folders if place.is_dir() for table in sorted(place.glob("*.json"))]


def _of_file_store(path: Path) -> list[Foreign]:
    """The runs with traces in an experiment of the file store, in one of its runs, or in a folder of experiments."""
    results: list[Foreign] = []
    wanted = path.name if RUN_ID.fullmatch(path.name) else ""
    experiments = (
        [path.parent] if wanted else [path, *sorted(path.iterdir()), *sorted(path.glob("mlruns/*"))]
    )
    for folder in experiments:
        for id, folders in runs_with_traces(folder).items():
            run = run_of_folder(folder / id) if RUN_ID.fullmatch(id) else None
            if run is not None and id.startswith(wanted):
                results.append(
                    TraceRun(folder / id, run, lambda folders=folders: traces(folders), folders)
                )
    return results


class TraceRun(RunResults):
    """A run of `mlflow.genai.evaluate`, whose traces `read` gives."""

    def __init__(
        self,
        place: Path,
        run: MlflowRun,
        read: Callable[[], Iterator[MlflowTrace]],
        folders: Sequence[Path] = (),
    ) -> None:
        self.place, self._read, self._folders = place, read, folders
        self.version = {"run": run.id}
        super().__init__(run, place)

    @property
    def source(self) -> JsonObject:
        if not self.place.is_file():
            self.files = tuple(file for one in self._folders for file in files_below(one, ""))
        return super().source

    def _cases(self) -> Iterator[ForeignCase]:
        try:
            for trace in self._read():
                yield case_of(trace, self.run, self.scores, self.repeats)
        except sqlite3.Error as error:
            self.odd["unread"] += 1
            self.further.append(f"{self.place} cannot be read further: {error}")
