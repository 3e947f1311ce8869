"""Reports of pydantic-evals as items, responses and evaluations: one report is one experiment.

The report's cases are those whose task has ended; those that raised are a list of their own, and become responses with
an error. Averages are not in the file: they are computed as pydantic-evals does, and again from our rows.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import msgspec

from assay import reading
from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    Row,
    content_id,
    failure,
    fields_of,
    files_below,
    first_text,
    head_of,
    json_row,
    rows_of,
    without_secrets,
)
from assay.formats.pydantic_evals.averages import Averages
from assay.formats.pydantic_evals.rows import evaluations_of, item_of, labelled, response_of
from assay.readers._results import FileResults
from assay.records import Evaluation, Response
from assay.registry import reader
from assay.text.json_stream import BrokenJson, json_parts

_LOOK = 1 << 22  # bytes in which the first case ends, or this is not a report
_TAIL = 1 << 20  # the settings of an experiment stand at the end of its report
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_LISTS = ("cases", "failures")
_MADE_UP = re.compile(r"Case \d+")
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
                    return not _OF_CASE.isdisjoint(fields_of(value))
    except (BrokenJson, OSError):
        pass
    return False


class Report(FileResults):
    """One report, streamed."""

    format = "pydantic_evals"
    said = {
        "again": "cases without a name that equal another, whose ids end with ~ and a number: {:,}"
    }

    def __init__(self, file: Path) -> None:
        self.file = file
        self.top: Row = _settings(file)
        named = str(self.top.get("dataset_name") or self.top.get("name") or file.stem)
        super().__init__("-".join(dict.fromkeys([named, self._model])), file)

    def begin(self) -> None:
        super().begin()
        self._averages = Averages()
        self._ids: dict[str, str] = {}  # of cases that are run several times
        self._labels: dict[str, dict[str, None]] = {}  # of each evaluator
        self._pending: list[tuple[Response, Row | None]] = []  # that gave no label

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
        settings = fields_of(self.top.get("experiment_metadata"))
        named = {name: value for name, value in settings.items() if value}
        return first_text(named, ("model", "model_name")) or str(
            self.top.get("name") or self.file.stem
        )

    def headlines(self) -> list[Headline]:
        reason = "it was computed by a report evaluator of the user"
        own = [
            Headline(
                label="analyses",
                metric=str(entry.get("title")),
                value=entry.get("value"),
                reason=reason,
            )
            for entry in self.top.get("analyses") or ()
            if entry.get("type") == "scalar"
        ]
        return [*self._averages.headlines(), *own]

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        top: Row = {}
        for key, row in self._rows(top):
            yield self._case(row, failed=key == "failures")
        for name in top.keys() - _KNOWN:
            self.rest.unknown[name] += 1
        self.top = {**top, "name": top.get("name", self.top.get("name"))}
        if self._pending:
            yield ForeignCase(evaluations=list(self._failed_labels()))
        self.odd["again"] = self.repeats.again.total()
        if failures := top.get("report_evaluator_failures"):
            first = fields_of(failures[0]).get("error_message", failures[0])
            self.further.append(
                f"report evaluators that failed: {len(failures):,}, the first with: {first}"
            )

    def _rows(self, top: Row) -> Iterator[tuple[str, Row]]:
        """Each case and failure; the report's other fields go to `top`."""
        try:
            with reading.opened(self.file) as file:
                for key, number, value in json_parts(file):
                    if key not in _LISTS:
                        top[key] = value if number is None else [*top[key], value]
                    elif isinstance(value, dict):
                        yield key, fields_of(value)
                    elif number is not None or value != []:
                        self.unread.add(f"{self.file}: an entry of {key!r} is not an object")
        except BrokenJson as error:
            self.unread.add(f"{self.file} is not whole, what follows is not read: {error}")

    def _case(self, row: Row, *, failed: bool) -> ForeignCase:
        item = item_of(row, self._id(row))
        response = response_of(
            row, item, self._model, str(self.top.get("name") or ""), self.rest, failed=failed
        )
        if failed:
            self._pending.append((response, None))
            return ForeignCase(item, response)
        evaluations = list(evaluations_of(row, response, self.rest))
        for evaluation in evaluations:
            self._labels.setdefault(evaluation.scorer, {})[evaluation.label] = None
        self._pending += [(response, entry) for entry in rows_of(row.get("evaluator_failures"))]
        group = str(row.get("source_case_name") or "")
        self._averages.add(group, row, response, evaluations)
        return ForeignCase(item, response, evaluations)

    def _id(self, row: Row) -> str:
        """The name of a case; its content where pydantic-evals has made up the name from the position."""
        group = str(row.get("source_case_name") or "")
        name = group or str(row.get("name") or "")
        if name and not _MADE_UP.fullmatch(name):
            return name
        if group in self._ids:
            return self._ids[group]
        id = content_id(row.get("inputs"), row.get("expected_output"))
        if again := self.repeats.count(id):
            id = f"{id}~{again + 1}"
        if group:
            self._ids[group] = id
        return id

    def _failed_labels(self) -> Iterator[Evaluation]:
        """A row with an error for each label that an evaluator gives, or, where the task has failed, that all give."""
        for response, source in self._pending:
            if source is None:
                for scorer, several in self._labels.items():
                    for label in several:
                        yield labelled(response, label, scorer, **failure(response.error))
                continue
            error = str(source.get("error_message") or "the evaluator has failed")
            scorer = str((fields_of(source.get("source")) or source).get("name"))
            for label in self._labels.get(scorer) or (str(source.get("name") or scorer),):
                yield labelled(response, label, scorer, detailed_results=source, **failure(error))


def _settings(file: Path) -> Row:
    """The fields of a report beside its cases, from its beginning and its end; a report whose fields stand in another
    order is read through."""
    head = re.match(rb'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")', head_of(file))
    with reading.opened(file) as opened:
        opened.seek(max(0, opened.seek(0, 2) - _TAIL))
        tail = opened.read()
        at = tail.rfind(b'"experiment_metadata"')
        try:
            if head and at >= 0:
                return {"name": msgspec.json.decode(head[1]), **json_row(b"{" + tail[at:])}
        except ValueError:
            pass
        opened.seek(0)
        top: Row = {}
        try:
            for key, number, value in json_parts(opened):
                if number is None and key not in _LISTS:
                    top[key] = value
        except BrokenJson:  # reported when its cases are read
            pass
        return top
