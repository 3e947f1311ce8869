"""Reports of pydantic-evals as items, responses and evaluations: one report is one experiment.

The report's cases are those whose task has ended; those that raised are a list of their own, and become responses with
an error. Averages are not in the file: they are computed as pydantic-evals does, and again from our rows.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import msgspec

from assay import reading
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    Rest,
    content_id,
    files_below,
    head_of,
    without_secrets,
)
from assay.formats.pydantic_evals.averages import Averages
from assay.formats.pydantic_evals.rows import (
    Names,
    Row,
    errored,
    evaluations_of,
    item_of,
    response_of,
)
from assay.records import Evaluation, decode_json
from assay.registry import reader
from assay.text.json_stream import BrokenJson, json_parts

_LOOK = 1 << 22  # bytes in which the first case ends, or this is not a report
_TAIL = 1 << 20  # the settings of an experiment stand at the end of its report
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_LISTS = ("cases", "failures")
# a dataset's cases have none of them
_OF_CASE = {"task_duration", "total_duration", "assertions", "error_stacktrace"}
_TOP = {"name", "cases", "failures", "analyses", "report_evaluator_failures", "experiment_metadata"}
_KNOWN = _TOP | {"trace_id", "span_id", "dataset_name"}


@reader
def pydantic_evals(path: Path) -> list[Foreign]:
    """A file that `to_json` of pydantic_core, or a type adapter, has written of a report; or a folder with some."""
    return [Report(file) for file in files_below(path, ".json") if _is_report(file)]


def _is_report(file: Path) -> bool:
    head = head_of(file)
    if not _BEGIN.match(head) or b'"cases"' not in head:
        return False
    try:
        with reading.opened(file) as opened:
            for key, number, value in json_parts(BytesIO(opened.read(_LOOK))):
                if key in _LISTS and number == 0:
                    return isinstance(value, dict) and not _OF_CASE.isdisjoint(cast("Row", value))
    except (BrokenJson, OSError):
        pass
    return False


class Report:
    """One report, streamed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.planned: int | None = None
        self.rejected = 0
        self.top: Row = _settings(file)
        named = str(self.top.get("dataset_name") or self.top.get("name") or file.stem)
        self.dataset = "-".join(dict.fromkeys([named, self._model]))
        self._rest = Rest()
        self._averages = Averages()
        self._notes: list[str] = []

    @property
    def source(self) -> Row:
        return {"format": "pydantic_evals", "files": [content_stamp(self.file.absolute())]}

    @property
    def facts(self) -> Row:
        """What the report says beyond its cases."""
        kept = {
            name: value
            for name, value in self.top.items()
            if name not in _LISTS and value not in (None, [], {})
        }
        return {"agents": [self._model], **without_secrets(kept)}

    @property
    def _model(self) -> str:
        settings = self.top.get("experiment_metadata")
        if isinstance(settings, dict):
            fields = cast("Row", settings)
            for name in ("model", "model_name"):
                if fields.get(name) and isinstance(fields[name], str):
                    return fields[name]
        return str(self.top.get("name") or self.file.stem)

    def notes(self) -> list[str]:
        return [*self._notes, *self._rest.notes()]

    def headlines(self) -> list[Headline]:
        scalars = [
            entry for entry in self.top.get("analyses") or () if entry.get("type") == "scalar"
        ]
        return [
            *self._averages.headlines(),
            *(
                Headline(
                    label="analyses",
                    metric=str(entry.get("title")),
                    value=entry.get("value"),
                    reason="it was computed by a report evaluator of the user",
                )
                for entry in scalars
            ),
        ]

    def cases(self) -> Iterator[ForeignCase]:
        self._rest, self._averages, self._notes, self.rejected = Rest(), Averages(), [], 0
        ids, pending = _Ids(), list[tuple[Names, Any, str]]()
        labels: dict[str, dict[str, None]] = {}  # of each evaluator
        top: Row = {}
        for key, row in self._rows(top):
            yield self._case(row, key == "failures", ids, labels, pending)
        for name in top.keys() - _KNOWN:
            self._rest.unknown[name] += 1
        self.top = {**top, "name": top.get("name", self.top.get("name"))}
        rows = [
            row
            for names, source, error in pending
            for row in _of_labels(names, source, error, labels)
        ]
        if rows:
            yield ForeignCase(evaluations=rows)
        if ids.again:
            self._notes.append(
                f"cases without a name that equal another, whose ids end with ~ and a number: {ids.again:,}"
            )
        self._note_failures(top)

    def _rows(self, top: Row) -> Iterator[tuple[str, Row]]:
        """Each case and failure; the report's other fields go to `top`."""
        try:
            with reading.opened(self.file) as file:
                for key, number, value in json_parts(file):
                    if key not in _LISTS:
                        top[key] = value if number is None else [*top[key], value]
                    elif isinstance(value, dict):
                        yield key, cast("Row", value)
                    elif number is not None or value != []:
                        self._reject(
                            f"{self.file}: an entry of {key!r} is not an object and is left out"
                        )
        except BrokenJson as error:
            self._reject(f"{self.file} is not whole, what follows is not read: {error}")

    def _case(
        self,
        row: Row,
        failed: bool,
        ids: "_Ids",
        labels: dict[str, dict[str, None]],
        pending: list[tuple[Names, Any, str]],
    ) -> ForeignCase:
        item = item_of(row, ids.of(row))
        response = response_of(
            row, item, self._model, str(self.top.get("name") or ""), self._rest, failed=failed
        )
        names = Names.of(response)
        if failed:
            pending.append((names, None, response.error or ""))
            return ForeignCase(item, response)
        evaluations = list(evaluations_of(row, names, self._rest))
        for evaluation in evaluations:
            labels.setdefault(evaluation.scorer, {})[evaluation.label] = None
        for failure in cast("list[Any]", row.get("evaluator_failures") or ()):
            if isinstance(failure, dict):
                fields = cast("Row", failure)
                pending.append((names, fields, str(fields.get("error_message") or "")))
        group = str(row.get("source_case_name") or "")
        self._averages.add(group, row, response, evaluations)
        return ForeignCase(item, response, evaluations)

    def _reject(self, what: str) -> None:
        self.rejected += 1
        self._notes.append(what)

    def _note_failures(self, top: Row) -> None:
        failures = top.get("report_evaluator_failures") or []
        if failures:
            first = (
                failures[0].get("error_message") if isinstance(failures[0], dict) else failures[0]
            )
            self._notes.append(
                f"report evaluators that failed: {len(failures):,}, the first with: {first}"
            )


class _Ids:
    """The ids of cases: their names; content where pydantic-evals has made up the name from the position."""

    _MADE_UP = re.compile(r"Case \d+")

    def __init__(self) -> None:
        self.again = 0
        self._groups: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, row: Row) -> str:
        group = str(row.get("source_case_name") or "")
        name = group or str(row.get("name") or "")
        if name and not self._MADE_UP.fullmatch(name):
            return name
        if group in self._groups:
            return self._groups[group]
        id = content_id(row.get("inputs"), row.get("expected_output"))
        count = self._counts[id] = self._counts.get(id, 0) + 1
        if count > 1:
            self.again += 1
            id = f"{id}~{count}"
        if group:
            self._groups[group] = id
        return id


def _of_labels(
    names: Names, source: Any, error: str, labels: dict[str, dict[str, None]]
) -> Iterator[Evaluation]:
    """A row with an error for each label that an evaluator gives, or, where the task has failed, that all give."""
    if source is None:
        for scorer, several in labels.items():
            yield from (errored(names, label, scorer, error) for label in several)
        return
    fields = cast("Row", source)
    spec = fields.get("source")
    scorer = (
        str(cast("Row", spec).get("name")) if isinstance(spec, dict) else str(fields.get("name"))
    )
    for label in labels.get(scorer) or (str(fields.get("name") or scorer),):
        yield errored(names, label, scorer, error, details=fields)


def _settings(file: Path) -> Row:
    """The fields of a report beside its cases, from its beginning and its end; a report whose fields stand in another
    order is read through."""
    head = re.match(rb'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")', head_of(file))
    with reading.opened(file) as opened:
        opened.seek(max(0, opened.seek(0, 2) - _TAIL))
        tail = opened.read()
        at = tail.rfind(b'"experiment_metadata"')
        try:
            settings = decode_json(b"{" + tail[at:]) if head and at >= 0 else None
        except ValueError:
            settings = None
        if isinstance(settings, dict) and head is not None:
            return {"name": msgspec.json.decode(head[1]), **cast("Row", settings)}
        opened.seek(0)
        top: Row = {}
        try:
            for key, number, value in json_parts(opened):
                if number is None and key not in _LISTS:
                    top[key] = value
        except BrokenJson:  # reported when its cases are read
            pass
        return top
