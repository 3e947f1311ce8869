"""Reports of pydantic-evals as items, responses and evaluations: one report is one experiment.

The report's cases are those whose task has ended; those that raised are a list of their own, and become responses with
an error. Averages are not in the file: they are computed as pydantic-evals does, and again from our rows.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.foreign import (
    REST,
    Foreign,
    ForeignCase,
    Headline,
    content_id,
    evaluation_of,
    failure,
    files_below,
    head_of,
    json_row,
    key_of,
    without_secrets,
)
from assay.formats.pydantic_evals.averages import Averages
from assay.readers._results import FileResults, first_filled, response_of, tokens_of, without_empty
from assay.sdk import (
    Evaluation,
    JsonObject,
    Response,
    as_object,
    first_text,
    number_of,
    reader,
    rows_of,
)
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

_RUN = re.compile(r" \[(\d+)/(\d+)\]$")
_TEXTS = ("question", "input", "prompt", "text", "query")
_KINDS = ("scores", "labels", "assertions")
_CONTENT = {
    "name",
    "inputs",
    "expected_output",
    "metadata",
    "output",
    "task_duration",
    "error_message",
}
_PLACED = {*_CONTENT, "metrics", "attributes", "evaluator_failures", *_KINDS}
_KEPT = {"total_duration", "source_case_name", "trace_id", "span_id", "error_stacktrace"}
_RESULT = {"name", "value", "reason", "source", "evaluator_version"}


@reader
def pydantic_evals(path: Path) -> list[Foreign]:
    """A file that `to_json` of pydantic_core, or a type adapter, has written of a report; or a folder with some."""
    return [EvaluationReport(file) for file in files_below(path, ".json") if _is_report(file)]


def _is_report(file: Path) -> bool:
    head = head_of(file)
    if not _BEGIN.match(head) or b'"cases"' not in head:
        return False
    try:
        with reading.opened(file) as opened:
            for key, number, value in json_parts(BytesIO(opened.read(_LOOK))):
                if key in _LISTS and number == 0:
                    return not _OF_CASE.isdisjoint(as_object(value))
    except (BrokenJson, OSError):
        pass
    return False


class EvaluationReport(FileResults):
    """One report, streamed."""

    format = "pydantic_evals"
    said = {
        "again": "cases without a name that equal another, whose ids end with ~ and a number: {:,}"
    }

    def __init__(self, file: Path) -> None:
        self.file = file
        self.top: JsonObject = _settings(file)
        named = first_filled(self.top, ("dataset_name", "name")) or file.stem
        super().__init__("-".join(dict.fromkeys([named, self._model])), file)

    def begin(self) -> None:
        super().begin()
        self._averages = Averages()
        self._ids: dict[str, str] = {}  # of cases that are run several times
        self._labels: dict[str, dict[str, None]] = {}  # of each evaluator
        self._pending: list[tuple[Response, JsonObject | None]] = []  # that gave no label

    @property
    def facts(self) -> JsonObject:
        """Return what the report says beyond its cases."""
        kept = {name: value for name, value in self.top.items() if name not in _LISTS}
        return {"agents": [self._model], **without_secrets(without_empty(kept))}

    @property
    def _model(self) -> str:
        settings = without_empty(as_object(self.top.get("experiment_metadata")))
        named = first_text(settings, ("model", "model_name"))
        return named or self._report_name or self.file.stem

    @property
    def _report_name(self) -> str:
        return str(self.top.get("name") or "")

    def headlines(self) -> list[Headline]:
        made = self._averages.headlines()
        for entry in self.top.get("analyses") or ():
            if entry.get("type") == "scalar":
                title = str(entry.get("title"))
                made.append(Headline(label="analyses", metric=title, value=entry.get("value")))
                made[-1].reason = "it was computed by a report evaluator of the user"
        return made

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        top: JsonObject = {}
        for key, row in self._rows(top):
            yield self._case(row, failed=key == "failures")
        for name in top.keys() - _KNOWN:
            self.rest.unknown[name] += 1
        self.top = {**top, "name": top.get("name", self.top.get("name"))}
        if self._pending:
            yield ForeignCase(evaluations=list(self._failed_labels()))
        self.odd["again"] = self.repeats.again.total()
        if failures := top.get("report_evaluator_failures"):
            first = as_object(failures[0]).get("error_message", failures[0])
            self.further.append(
                f"report evaluators that failed: {len(failures):,}, the first with: {first}"
            )

    def _rows(self, top: JsonObject) -> Iterator[tuple[str, JsonObject]]:
        """Each case and failure; the report's other fields go to `top`."""
        try:
            with reading.opened(self.file) as file:
                for key, number, value in json_parts(file):
                    if key not in _LISTS:
                        top[key] = value if number is None else [*top[key], value]
                    elif isinstance(value, dict):
                        yield key, as_object(value)
                    elif number is not None or value != []:
                        self.unread.add(f"{self.file}: an entry of {key!r} is not an object")
        except BrokenJson as error:
            self.unread.add(f"{self.file} is not whole, what follows is not read: {error}")

    def _case(self, row: JsonObject, *, failed: bool) -> ForeignCase:
        item = _item_of(row, self._id(row))
        response = self._response(row, item, failed=failed)
        if failed:
            self._pending.append((response, None))
            return ForeignCase(item, response)
        evaluations = list(self._evaluations(row, response))
        for evaluation in evaluations:
            self._labels.setdefault(evaluation.scorer, {})[evaluation.label] = None
        self._pending += [(response, entry) for entry in rows_of(row.get("evaluator_failures"))]
        group = str(row.get("source_case_name") or "")
        self._averages.add(group, row, response, evaluations)
        return ForeignCase(item, response, evaluations)

    def _response(self, row: JsonObject, item: JsonObject, *, failed: bool) -> Response:
        """Return what the task returned, or the error that it raised."""
        output, task = row.get("output"), self._report_name
        number, count = _run_of(row)
        metrics = as_object(row.get("metrics"))
        cost = metrics.get("cost")
        metadata: JsonObject = {"model_id": self._model}
        metadata |= {name: row[name] for name in ("metrics", "attributes") if row.get(name)}
        if rest := self.rest.of(row, _PLACED, _KEPT, "case."):
            metadata[REST] = rest
        tokens = tokens_of(metrics, "input_tokens", "output_tokens")
        tokens["total_tokens"] = sum(filter(None, tokens.values())) or None
        error = str(row.get("error_message") or "the task has failed") if failed else None
        return response_of(
            item["id"],
            self._model,
            number,
            "" if failed else output,
            total_samples=count,
            prompt=first_text(item["data"], _TEXTS),
            inference_time=number_of(row.get("task_duration")) or 0.0,
            metadata=metadata,
            cost=None if number_of(cost) is None else cost,
            key=key_of("pydantic_evals", self._model, task, item["id"], number, failed, output),
            task=task,
            **tokens,
            **failure(error),
        )

    def _evaluations(self, row: JsonObject, response: Response) -> Iterator[Evaluation]:
        """Yield a row for each score, label and assertion."""
        for kind in _KINDS:
            for label, result in as_object(row.get(kind)).items():
                fields = result if isinstance(result, dict) else {"value": result}
                yield self._evaluation(label, kind[:-1], fields, response)

    def _evaluation(
        self, label: str, kind: str, result: JsonObject, response: Response
    ) -> Evaluation:
        value = result.get("value")
        number = number_of(value)
        details: JsonObject = {"kind": kind}
        for name in ("source", "evaluator_version"):
            if result.get(name) is not None:
                details[name] = result[name]
        details |= self.rest.of(result, _RESULT, (), "result.")
        if result.get("reason") is not None:
            details["explanation"] = result["reason"]
        scorer = str(as_object(result.get("source")).get("name") or label)
        row = _label(response, label, scorer, detailed_results=details)
        if kind == "label":
            row.value = value
        else:
            row.score = number
        unfit = value is None if kind == "label" else number is None
        if unfit:
            why = failure(f"{value!r} is not a number")
            return msgspec.structs.replace(row, **why)
        if kind == "assertion":
            row.passed = bool(value)
        return row

    def _id(self, row: JsonObject) -> str:
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
                        yield _label(response, label, scorer, **failure(response.error))
                continue
            error = str(source.get("error_message") or "the evaluator has failed")
            scorer = str((as_object(source.get("source")) or source).get("name"))
            for label in self._labels.get(scorer) or (str(source.get("name") or scorer),):
                yield _label(response, label, scorer, detailed_results=source, **failure(error))


def _settings(file: Path) -> JsonObject:
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
        top: JsonObject = {}
        try:
            for key, number, value in json_parts(opened):
                if number is None and key not in _LISTS:
                    top[key] = value
        except BrokenJson:  # reported when its cases are read
            pass
        return top


def _item_of(row: JsonObject, id: str) -> JsonObject:
    """Return the case as a dataset row; inputs that are not an object are the question."""
    inputs, metadata = row.get("inputs"), row.get("metadata")
    named = "question" if isinstance(inputs, str) else "input"
    data = inputs if isinstance(inputs, dict) else {named: inputs}
    own = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    return {
        "id": id,
        "data": data,
        "ground_truth": row.get("expected_output"),
        "metadata": {} if metadata is None else own,
    }


def _run_of(row: JsonObject) -> tuple[int, int]:
    """Return number and count of a case that is run several times, which its name ends with."""
    found = _RUN.search(str(row.get("name") or "")) if row.get("source_case_name") else None
    return (int(found[1]) - 1, int(found[2])) if found else (0, 1)


def _label(response: Response, label: str, scorer: str, **fields: Any) -> Evaluation:
    key = key_of("pydantic_evals", response.key, label)
    return evaluation_of(response, label, scorer=scorer, key=key, **fields)
