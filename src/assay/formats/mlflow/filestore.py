"""Traces in MLflow's file store: a folder for each, with small files for what the database has in tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from assay import reading
from assay.formats.mlflow.runs import read_texts, read_yaml
from assay.formats.mlflow.traces import Assessment, Trace, decoded, timestamp_of

Row = dict[str, Any]
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
    spans = cast("Row", data).get("spans") if isinstance(data, dict) else None
    milliseconds = info.get("execution_duration_ms")
    return Trace(
        id=str(info.get("trace_id") or folder.name),
        status=str(info.get("state") or ""),
        seconds=milliseconds / 1000 if isinstance(milliseconds, (int, float)) else 0.0,
        timestamp=timestamp_of(info.get("request_time")),
        request=metadata.get("mlflow.traceInputs", info.get("request_preview")),
        response=metadata.get("mlflow.traceOutputs", info.get("response_preview")),
        tags=read_texts(folder / "tags"),
        metadata=metadata,
        assessments=[
            _assessment(read_yaml(file)) for file in sorted((folder / "assessments").glob("*.yaml"))
        ],
        spans=[
            cast("Row", span) for span in cast("list[Any]", spans or ()) if isinstance(span, dict)
        ],
    )


def _assessment(row: Row) -> Assessment:
    kind = "expectation" if "expectation" in row else "feedback"
    given, source = cast("Row", row.get(kind) or {}), cast("Row", row.get("source") or {})
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
        metadata=cast("Row", row.get("metadata") or {}),
    )
