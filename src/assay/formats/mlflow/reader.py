"""MLflow's evaluations as items, responses and evaluations: one run is one experiment.

A table or the traces of a run give the rows; the metrics of the run, in its folder or in the database, are the numbers
that they are compared with.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay import reading
from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    files_below,
    without_secrets,
)
from assay.engine.experiment.imports.values import (
    Row,
    fields_of,
    number_of,
    rows_of,
    seconds_of,
)
from assay.formats.mlflow.database import (
    RUN_ID,
    Database,
    Run,
    read_texts,
    read_yaml,
    run_of_folder,
)
from assay.formats.mlflow.metrics import Scores, decoded
from assay.formats.mlflow.table import Columns, Table, columns_of
from assay.formats.mlflow.traces import Assessment, Trace, case_of
from assay.readers._results import FileResults
from assay.registry import reader

_SOURCE_RUN = "mlflow.sourceRun"


def runs_with_traces(folder: Path) -> dict[str, list[Path]]:
    """The folders of traces below a folder's `traces`, by the run that made them."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("traces/*/request_metadata/" + _SOURCE_RUN)):
        if any((file.parents[1] / "assessments").glob("*.yaml")):
            run = reading.text(file, errors="replace").strip()
            found.setdefault(run, []).append(file.parents[1])
    return found


def traces(folders: list[Path]) -> Iterator[Trace]:
    """The traces in these folders, in the order of their times."""
    infos = [(read_yaml(folder / "trace_info.yaml"), folder) for folder in folders]
    infos.sort(key=lambda entry: (str(entry[0].get("request_time")), entry[1]))
    for info, folder in infos:
        yield _trace(info, folder)


def _trace(info: Row, folder: Path) -> Trace:
    metadata = read_texts(folder / "request_metadata")
    content = folder / "artifacts" / "traces.json"
    data = decoded(reading.text(content, errors="replace")) if content.is_file() else {}
    return Trace(
        id=str(info.get("trace_id") or folder.name),
        status=str(info.get("state") or ""),
        seconds=(number_of(info.get("execution_duration_ms")) or 0.0) / 1000,
        timestamp=seconds_of(info.get("request_time")) or 0.0,
        request=metadata.get("mlflow.traceInputs", info.get("request_preview")),
        response=metadata.get("mlflow.traceOutputs", info.get("response_preview")),
        tags=read_texts(folder / "tags"),
        metadata=metadata,
        assessments=[
            _assessment(read_yaml(file)) for file in sorted((folder / "assessments").glob("*.yaml"))
        ],
        spans=rows_of(fields_of(data).get("spans")),
    )


def _assessment(row: Row) -> Assessment:
    kind = "expectation" if "expectation" in row else "feedback"
    given, source = fields_of(row.get(kind)), fields_of(row.get("source"))
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
        metadata=fields_of(row.get("metadata")),
    )


_DATABASES = (".db", ".sqlite", ".sqlite3")
_DATABASE = "mlflow.db"  # what MLflow calls it, beside the folder with artifacts
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
        for run in db.evaluated()
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


class _OfRun(FileResults):
    """What both kinds of results have in common."""

    format = "mlflow"
    said = {
        "metrics": "the metrics of the run were not found, so no number of MLflow's could be compared"
    }

    def __init__(self, run: Run, *files: Path) -> None:
        self.run = run
        self.planned = run.rows
        super().__init__("-".join(filter(None, [run.experiment, run.name])) or "mlflow", *files)

    def begin(self) -> None:
        super().begin()
        self._scores = Scores()
        self.odd["metrics"] = not self.run.metrics

    @property
    def source(self) -> Row:
        return {**super().source, "metrics": [self.run.metrics]}

    @property
    def rejected(self) -> int:
        return self.odd["unread"]

    @property
    def facts(self) -> dict[str, Any]:
        return {"agents": [self.run.model], **without_secrets(self.run.facts())}

    def headlines(self) -> list[Headline]:
        return self._scores.headlines(self.run.metrics)

    def notes(self) -> list[str]:
        status = self.run.status
        ended = status in ("", "FINISHED")
        named = f"the run {self.run.name!r} is not finished: its status is {status}"
        return super().notes() if ended else [*super().notes(), named]

    def _counted(self, cases: Iterator[ForeignCase]) -> Iterator[ForeignCase]:
        self.planned, count = self.run.rows, 0
        for case in cases:
            count += 1
            yield case
        # evaluated more than once in one run
        if self.planned is not None and count > self.planned:
            self.planned = None


class TableRun(_OfRun):
    """A table, and the run that it is an artifact of."""

    def __init__(self, file: Path, columns: Columns) -> None:
        self.file, self.columns = file, columns
        super().__init__(_run_of_table(file), file)

    @property
    def source(self) -> Row:
        metrics = [self.run.metrics, self.columns.outputs, self.columns.target]
        return {**super().source, "metrics": metrics}

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        table = Table(
            self.file, self.columns, self.run.model, self.run.name or "mlflow", self._scores
        )
        yield from self._counted(table.cases())
        self.further = table.problems
        self.odd["unread"] = len(table.problems)
        if self.columns.outputs is None:
            names = ", ".join(self.columns.names[at] for at in self.columns.features)
            self.further.append(
                f"no column is known to have the outputs; name one with --set outputs=, of: {names}"
            )


def _run_of_table(file: Path) -> Run:
    folder = file.absolute().parent.parent
    if file.absolute().parent.name == "artifacts":
        run = run_of_folder(folder)
        if run is None and RUN_ID.fullmatch(folder.name):
            beside = folder.parent.parent.parent / _DATABASE
            database = Database(beside)
            run = database.run(folder.name) if beside.is_file() and database.is_mlflow() else None
        if run is not None:
            return run
    return Run(name=file.name.removesuffix(".json"))


class TraceRun(_OfRun):
    """A run of `mlflow.genai.evaluate`, whose traces `read` gives."""

    def __init__(
        self,
        place: Path,
        run: Run,
        read: Callable[[], Iterator[Trace]],
        folders: Sequence[Path] = (),
    ) -> None:
        self.place, self._read, self._folders = place, read, folders
        self.version = {"run": run.id}
        super().__init__(run, place)

    @property
    def source(self) -> Row:
        if not self.place.is_file():
            self.files = tuple(file for one in self._folders for file in files_below(one, ""))
        return super().source

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        yield from self._counted(self._cases())

    def _cases(self) -> Iterator[ForeignCase]:
        run = self.run
        try:
            for trace in self._read():
                yield case_of(trace, run.id, run.model, run.name, self._scores, self.repeats)
        except sqlite3.Error as error:
            self.odd["unread"] += 1
            self.further.append(f"{self.place} cannot be read further: {error}")
