"""`assay export --format sygra`: any experiment as SyGra's files: an output file with its report and metadata for each
model, and the items as `data.jsonl`.

A record has the fields of its item, the answer as `response`, and the result of a unit metric for each label. The
metadata say which field is which, so that they are read again without guessing.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from assay.analysis.look.export import Export, Tables
from assay.analysis.look.joining import Joining, Series
from assay.analysis.look.side_by_side import SideBySide
from assay.engine.experiment.imports.kept import KEPT, kept_of
from assay.errors import UserError
from assay.formats.sygra.exchange import OUTCOMES, Author, Roles, cases_of, item_of
from assay.formats.sygra.reader import DATA
from assay.records import Item, verdict_of
from assay.registry import writer
from assay.store.files import safe_name
from assay.store.items import encode_item, normalise
from assay.text.expected import accepted

Row = dict[str, Any]
_RESPONSE, _TRUTH, _INPUT = "response", "ground_truth", "input"
_LARGEST_JSON = 25_000  # more records than this are JSON lines
_VERSION = "1.0.0"
_encode = msgspec.json.Encoder().encode


@writer(name="sygra", whole="sygra")
def sygra(export: Export, *, extras: bool = True) -> list[str]:
    """SyGra's files in a folder: output records, report and metadata for each model of an experiment.

    Parameters:
    extras: write what SyGra has no field for beside its fields, so that an import gives all rows back
    """
    if export.path is None:
        raise UserError("sygra writes several files", fix="name a folder with -o")
    joining = Joining(export.tables)
    with SideBySide(export.path, force=export.force) as files:
        writing = _Writing(joining, files, export.tables, extras)
        writing.write_data()
        several = list(joining.series())
        for series in several:
            writing.write_series(series, safe_name(series.name) + "_" if len(several) > 1 else "")
        files.done()
    matches = f"{joining.matches:,} evaluations are of matches and have no place in SyGra's files"
    return [matches] if joining.matches else []


class _Writing:
    def __init__(self, joining: Joining, files: SideBySide, tables: Tables, extras: bool) -> None:
        self._joining, self._files, self._extras = joining, files, extras
        manifest = tables.source.manifest("dataset")
        self._dataset = (manifest.name if manifest else "") or tables.source.name
        self._experiment = tables.source.name
        fields: set[str] = set()
        flat = True
        for item in joining.items:
            flat = flat and isinstance(item.data, dict)
            fields.update(cast("Row", item.data) if flat else ())
        reserved = {"id", "error", "execution_error", OUTCOMES, KEPT, _RESPONSE, _TRUTH}
        flat = flat and not fields & reserved
        self._roles = Roles(
            columns=_columns(joining.labels, reserved | {_INPUT} | (fields if flat else set())),
            response=_RESPONSE,
            truth=_TRUTH,
            input="" if flat else _INPUT,
        )

    def write_data(self) -> None:
        self._files.write(DATA, b"")
        for item in self._joining.items:
            record = self._asked(item)
            if self._extras and normalise(item_of(record, self._roles)) != item:
                record[KEPT] = {"item": msgspec.json.decode(encode_item(item))}
            self._files.write(DATA, _encode(record) + b"\n")

    def _asked(self, item: Item) -> Row:
        data: Row = {_INPUT: item.data} if self._roles.input else cast("Row", item.data)
        return {"id": item.id, **data, _TRUTH: item.ground_truth}

    # ---- records

    def write_series(self, series: Series, prefix: str) -> None:
        lines = series.count > _LARGEST_JSON
        name = f"{prefix}output.{'jsonl' if lines else 'json'}"
        author = Author(
            model_name=series.address.model,
            task=series.address.task,
            sample_index=max(series.address.sample, 0),
            total_samples=series.total_samples,
            timestamp=series.timestamp,
        )
        counted: dict[str, tuple[int, int]] = dict.fromkeys(self._roles.columns, (0, 0))
        self._files.write(name, b"")
        for record in self._records(series, author, counted):
            if lines:
                self._files.write(name, _encode(record) + b"\n")
            else:
                before = b"[\n    " if self._files.is_empty(name) else b",\n    "
                text = msgspec.json.format(_encode(record), indent=4).replace(b"\n", b"\n    ")
                self._files.write(name, before + text)
        if not lines:
            self._files.write(name, b"[]\n" if self._files.is_empty(name) else b"\n]\n")
        self._write_about(series, author, prefix, counted)

    def _records(
        self, series: Series, author: Author, counted: dict[str, tuple[int, int]]
    ) -> Iterator[Row]:
        for response, evaluations in self._joining.cases(series):
            item = self._joining.item(response) or Item(
                id=str(response["item_id"]), data={}, ground_truth=None
            )
            record = self._asked(item)
            outcome, outcomes = response.get("outcome") or "ok", dict[str, Row]()
            record[_RESPONSE] = (
                None if outcome == "errored" else str(response.get("response") or "")
            )
            if outcome != "ok":
                outcomes[_RESPONSE] = {"outcome": outcome, "error": response.get("error")}
            given = dict(evaluations)
            for label, column in self._roles.columns.items():
                record[column] = None
                if label in given:
                    record[column] = result = _result(given[label], item, record[_RESPONSE])
                    if result is None:
                        found = verdict_of(given[label])[0]
                        found = "errored" if found == "scored" else found
                        outcomes[column] = {"outcome": found, "error": given[label].get("error")}
                    else:
                        right, total = counted[label]
                        counted[label] = right + result["correct"], total + 1
            record |= {OUTCOMES: outcomes} if outcomes else {}
            record |= {"error": response.get("error") or outcome} if outcome == "errored" else {}
            if self._extras:
                (case,) = cases_of(record, self._roles, author, 0, "")
                assert case.response is not None
                kept = kept_of("sygra", response, case.response, [row for _, row in evaluations])
                record[KEPT] = {"evaluations": [], **kept}
            yield record

    # ---- report and metadata

    def _write_about(
        self, series: Series, author: Author, prefix: str, counted: dict[str, tuple[int, int]]
    ) -> None:
        when = datetime.fromtimestamp(series.timestamp, UTC)
        columns = self._roles.columns
        results = {
            f"{columns[label]}-accuracy": {"accuracy": right / total}
            for label, (right, total) in counted.items()
            if total
        }
        summary = {
            "total_records": series.count,
            "timestamp": f"{when:%Y-%m-%d %H:%M:%S}",
            "status": "success",
        }
        report = [{"evaluation_summary": summary, "results": results}]
        self._put(f"{prefix}MetricCollatorPostProcessor.json", report, 4)
        done = series.count - series.errors
        about = {
            "metadata_version": _VERSION,
            "generated_at": when.isoformat(timespec="seconds"),
            "execution": {
                "task_name": self._dataset,
                "run_name": prefix.removesuffix("_"),
                "timing": {"start_time": None, "end_time": when.isoformat(timespec="seconds")},
            },
            "dataset": {
                "source_type": "disk",
                "source_path": DATA,
                "num_records_processed": series.count,
            },
            "aggregate_statistics": {
                "records": {
                    "total_processed": series.count,
                    "total_failed": series.errors,
                    "success_rate": done / series.count if series.count else None,
                }
            },
            "models": {series.address.model: {}},
            "nodes": {},
            KEPT: {
                "experiment": self._experiment,
                "dataset": self._dataset,
                "roles": msgspec.to_builtins(self._roles),
                "author": msgspec.to_builtins(author),
            },
        }
        self._put(f"metadata/metadata_{prefix}output.json", about, 2)

    def _put(self, name: str, content: Any, indent: int) -> None:
        self._files.write(name, msgspec.json.format(_encode(content), indent=indent) + b"\n")


def _columns(labels: list[str], taken: set[str]) -> dict[str, str]:
    """A field for each label, called like it where that is free."""
    columns: dict[str, str] = {}
    for label in labels:
        name = label or "label"
        while name in taken:
            name += "_result"
        columns[label] = name
        taken = taken | {name}
    return columns


def _result(evaluation: Row, item: Item, response: str | None) -> Row | None:
    """A label as the result of a unit metric; None for what is neither right nor wrong."""
    outcome, passed, score = verdict_of(evaluation)
    if outcome != "scored" or (passed is None and score != score):
        return None
    details = evaluation.get("detailed_results")
    explanation = cast("Row", details).get("explanation") if isinstance(details, dict) else None
    metadata: Row = {"validator": str(evaluation.get("scorer") or evaluation.get("label") or "")}
    metadata |= {} if score != score else {"score": score}
    metadata |= {"explanation": explanation} if explanation else {}
    return {
        "correct": score > 0 if passed is None else passed,
        "golden": {"text": _expected(item)},
        "predicted": {"text": response or ""},
        "metadata": metadata,
    }


def _expected(item: Item) -> Any:
    try:
        return accepted(item.ground_truth)[0]
    except LookupError:
        return None
