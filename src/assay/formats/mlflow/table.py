"""The table that `mlflow.models.evaluate` stores as `eval_results_table.json`: columns, and rows as lists.

It does not say what its columns are. Those of metrics end with `/score` and `/justification`; of the others, the output
and the target are told by their names, which the user can give.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay import reading
from assay.foreign import REST, ForeignCase, content_id, head_of, key_of
from assay.formats.mlflow.database import run_of_table
from assay.formats.mlflow.metrics import RunResults, evaluation, number_of, text_of
from assay.readers._results import response_of
from assay.sdk import Evaluation, JsonObject, Response, count_of, first_text, list_of
from assay.text.json_stream import BrokenJson, json_parts

_COLUMNS = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"columns"\s*:\s*(\[.*?\])\s*,\s*"(?:data|index)"\s*:', re.DOTALL
)
_SCORE, _JUSTIFICATION = "/score", "/justification"
_MEASURED = ("latency", "token_count")
_OUTPUTS = ("outputs", "predictions", "prediction", "output", "response", "result")
_TARGETS = (
    "target",
    "targets",
    "ground_truth",
    "expected_response",
    "expected_output",
    "expected",
    "reference",
    "answer",
    "label",
    "labels",
)
_IDS = ("id", "item_id", "question_id", "example_id", "request_id")
_VERSION = re.compile(r"/v\d+$")


class TableColumns(NamedTuple):
    """Where the parts of a row are."""

    names: list[str]
    outputs: int | None
    target: int | None
    id: int | None
    features: list[int]
    scores: dict[str, int]
    reasons: dict[str, int]
    measured: dict[str, int]

    def label(self, metric: str) -> str:
        """Return a metric's name without its version, unless another one has that name."""
        short = _VERSION.sub("", metric)
        alike = [name for name in self.scores if _VERSION.sub("", name) == short]
        return short if len(alike) == 1 else metric


def _column_names(file: Path) -> list[str]:
    begin = _COLUMNS.match(head_of(file))
    try:
        return msgspec.json.decode(begin[1], type=list[str]) if begin else []
    except (ValueError, RecursionError):
        return []


def columns_of(file: Path, *, outputs: str = "", targets: str = "") -> TableColumns | None:
    """Return the columns of a table of MLflow's; None for any other file."""
    names = _column_names(file)
    places = {name: at for at, name in enumerate(names)}
    measured = {name: at for name, at in places.items() if name in _MEASURED}
    scores = _columns_with_end(places, _SCORE)
    if not scores and not measured:
        return None
    reasons = _columns_with_end(places, _JUSTIFICATION)
    taken = {*measured.values(), *scores.values(), *reasons.values()}
    others = {name: at for name, at in places.items() if at not in taken}
    output = _first(others, [outputs] if outputs else _OUTPUTS)
    target = _first(others, [targets] if targets else _TARGETS)
    id = _first(others, _IDS)
    features = [at for at in others.values() if at not in (output, target, id)]
    return TableColumns(names, output, target, id, features, scores, reasons, measured)


def _columns_with_end(places: dict[str, int], end: str) -> dict[str, int]:
    """Return where the columns with such names are, by the names without the end."""
    return {name.removesuffix(end): at for name, at in places.items() if name.endswith(end)}


def _first(columns: dict[str, int], wanted: Collection[str]) -> int | None:
    return next((columns[name] for name in wanted if name in columns), None)


class TableRun(RunResults):
    """A table, and the run that it is an artifact of."""

    def __init__(self, file: Path, columns: TableColumns) -> None:
        self.file, self.columns = file, columns
        super().__init__(run_of_table(file), file)
        self._task = self.run.name or "mlflow"

    @property
    def source(self) -> JsonObject:
        metrics = [self.run.metrics, self.columns.outputs, self.columns.target]
        return {**super().source, "metrics": metrics}

    def cases(self) -> Iterator[ForeignCase]:
        yield from super().cases()
        self.odd["unread"] = len(self.further)
        if self.columns.outputs is None:
            names = ", ".join(self.columns.names[at] for at in self.columns.features)
            self.further.append(
                f"no column is known to have the outputs; name one with --set outputs=, of: {names}"
            )

    def _cases(self) -> Iterator[ForeignCase]:
        width = len(self.columns.names)
        try:
            with reading.opened(self.file) as file:
                for key, number, row in json_parts(file):
                    if key != "data" or number is None:
                        continue
                    if len(list_of(row)) == width:
                        yield self._case(row)
                    else:
                        self.further.append(
                            f"{self.file} [{number}] does not have {width} values and is left out"
                        )
        except BrokenJson as error:
            self.further.append(f"{self.file} is not whole, what follows is not read: {error}")

    def _case(self, row: list[Any]) -> ForeignCase:
        columns = self.columns
        data = {columns.names[at]: row[at] for at in columns.features}
        if "inputs" in data and not {"input", "question", "prompt"} & data.keys():
            data["input"] = data.pop("inputs")
        target = None if columns.target is None else row[columns.target]
        own = None if columns.id is None else row[columns.id]
        id = str(own) if isinstance(own, (str, int)) and own != "" else content_id(data, target)
        sample = self.repeats.count(id)  # a further evaluation in the run is appended to its table
        response = self._response(row, id, sample, data)
        evaluations = [
            self._evaluation(name, at, row, response) for name, at in columns.scores.items()
        ]
        return ForeignCase(
            {"id": id, "data": data, "ground_truth": target, "metadata": {}}, response, evaluations
        )

    def _response(self, row: list[Any], id: str, sample: int, data: JsonObject) -> Response:
        columns, model, task = self.columns, self.run.model, self._task
        said = None if columns.outputs is None else row[columns.outputs]
        measured = {name: number_of(row[at]) for name, at in columns.measured.items()}
        for name, value in measured.items():
            if value is not None:
                self.scores.add(name, value)
        metadata: JsonObject = {"model_id": model}
        if columns.outputs is None:
            metadata[REST] = {"output": "the table has no column of this name"}
        return response_of(
            id,
            model,
            sample,
            said,
            response=text_of(said),
            prompt=first_text(data, ("question", "input", "prompt")),
            inference_time=measured.get("latency") or 0.0,
            completion_tokens=count_of(measured.get("token_count")),
            metadata=metadata,
            key=key_of("mlflow", model, task, id, sample, said),
            task=task,
        )

    def _evaluation(self, name: str, at: int, row: list[Any], response: Response) -> Evaluation:
        label = self.columns.label(name)
        made = evaluation(response, label, row[at], scorer=name)
        if made.score is not None:
            self.scores.add(name, made.score, label)
        reason = row[self.columns.reasons[name]] if name in self.columns.reasons else None
        if reason is not None:
            made.detailed_results = {"explanation": reason}
            if made.outcome == "errored":
                made.error = str(reason)
        return made
