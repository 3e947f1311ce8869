"""Outputs of examples ⇄ our response rows, and overviews of runs ⇄ their manifests.

A failure is a row whose outcome is `errored`: no output, of whatever type, can be taken for one. Text is the response
itself; any other output is the row's `output`, with its JSON as the response. Text that would then be taken for the
absence of an output is written in both places.
"""

import threading
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from assay.formats.intelligence_layer.domain import ExampleOutput, FailedExampleRun, RunOverview
from assay.formats.intelligence_layer.types import BadValue, Output, from_json, to_json
from assay.interfaces import Answer, Log
from assay.records import Manifest, Response, Segment
from assay.store.keys import canonical, digest, response_key
from assay.store.table.decode import read_rows, row_decoder

_NOTHING = "null"
Row = dict[str, Any]


class StoredOutput(msgspec.Struct, gc=False):
    """What is needed of a row to have the output again."""

    item_id: str
    response: str = ""
    error: str | None = None
    outcome: str = "ok"
    output: Any = None


def answer_with(output: Any) -> Answer:
    """What a row shows of an output."""
    value = to_json(output)
    if isinstance(value, str):
        return Answer(text=value, output=value if value == _NOTHING else None)
    return Answer(text=msgspec.json.encode(value).decode(), output=value)


def rows_of_original(row: Row) -> list[Response]:
    """The one row of a file of the original, in which only the fields of a failure tell that it is one."""
    output: Any = row["output"]
    if isinstance(output, dict) and output.keys() == {"error_message"}:
        output = FailedExampleRun(error_message=output["error_message"])
    return [
        row_of(ExampleOutput(run_id=row["run_id"], example_id=row["example_id"], output=output))
    ]


def row_of(example_output: ExampleOutput[Any]) -> Response:
    """The row of an output that no engine made."""
    example_id, output = example_output.example_id, example_output.output
    failed = output.error_message if isinstance(output, FailedExampleRun) else None
    answer = answer_with(output) if failed is None else Answer(outcome="errored")
    fingerprint = digest("output", canonical((answer.text, answer.output, failed)))
    return Response(
        item_id=example_id,
        sample_id=f"{example_id}_sample_0",
        response=answer.text,
        timestamp=time.time(),
        error=failed,
        key=response_key(example_id, "", 0, fingerprint).hex(),
        outcome=answer.outcome,
        error_kind="permanent" if failed is not None else None,
        output=answer.output,
    )


def output_of(
    row: StoredOutput | Response, run_id: str, output_type: type[Output]
) -> ExampleOutput[Output]:
    """The output again, or the failure; a ValueError (pydantic's for its models) if it is not of this type."""
    failed = row.outcome == "errored"
    output: Any = (
        FailedExampleRun(error_message=row.error or "") if failed else value_of(row, output_type)
    )
    return ExampleOutput(run_id=run_id, example_id=row.item_id, output=output)


def value_of(row: StoredOutput | Response, output_type: type[Output]) -> Output:
    """What the task returned; the row must not be a failure's."""
    text: Any = None if row.response == _NOTHING else row.response
    return from_json(text if row.output is None else row.output, output_type)


def manifest_with(overview: RunOverview, old: Manifest | None) -> Manifest:
    """The run's manifest with the overview in it; what the engine noted there stays."""
    manifest = old or Manifest(
        kind="run",
        id=overview.id,
        created=overview.start.timestamp(),
        started=overview.start.timestamp(),
        ended=overview.end.timestamp(),
        complete=True,
        counts={"ok": overview.successful_example_count, "errored": overview.failed_example_count},
        inputs=[{"kind": "dataset", "id": overview.dataset_id}],
    )
    manifest.name = overview.description
    manifest.labels = sorted(overview.labels)
    manifest.metadata["overview"] = to_json(overview)
    return manifest


def overview_of(manifest: Manifest) -> RunOverview | None:
    """The overview that was stored with a run; for a run that `assay run` finished, what its manifest tells."""
    # there it is the original's
    stored = manifest.metadata.get("overview") or manifest.plan.get("overview")
    if stored is not None:
        return from_json(stored, RunOverview)
    if not manifest.complete or manifest.ended is None:
        return None
    failed = manifest.counts.get("errored", 0)
    outcomes = ("ok", "refused", "skipped", "errored")
    return RunOverview(
        dataset_id=next(
            (str(source["id"]) for source in manifest.inputs if source.get("kind") == "dataset"), ""
        ),
        id=manifest.id,
        start=datetime.fromtimestamp(manifest.started, UTC),
        end=datetime.fromtimestamp(manifest.ended, UTC),
        failed_example_count=failed,
        successful_example_count=sum(manifest.counts.get(name, 0) for name in outcomes) - failed,
        description=manifest.name or manifest.id,
        labels=set(manifest.labels),
    )


class _Mark(msgspec.Struct):
    item_id: str
    sample_index: int = 0

    @property
    def has_value(self) -> bool:
        """Of several samples the first counts."""
        return self.sample_index == 0


class Places:
    """Where the rows of each example are: those that have a value, as `mark` tells. Only what others append makes a new
    pass necessary to know the ids."""

    def __init__(self, log: Log, mark: Any = _Mark) -> None:
        self.log = log
        self._mark = mark
        self._segments: list[Segment] | None = None
        self._positions: dict[str, list[int]] = {}
        self._appended = False  # the ids are known, the positions not all
        self._guard = threading.RLock()

    def __contains__(self, example_id: str) -> bool:
        with self._guard:
            if self._segments != self.log.segments():
                self._scan()
            return example_id in self._positions

    def all(self) -> dict[str, list[int]]:
        """The positions of the rows of each example, in the order of the log."""
        with self._guard:
            if self._appended or self._segments != self.log.segments():
                self._scan()
            return self._positions

    def remove(self, example_id: str) -> None:
        """Take the example's rows out of the log."""
        with self._guard:
            mine = set(self.all().pop(example_id))
            self.log.replace(
                line + b"\n" for position, line in self.log.scan() if position not in mine
            )
            self._segments, self._appended = self.log.segments(), True

    def append(self, example_id: str, line: bytes) -> None:
        """Add the row of an example that has none."""
        with self._guard:
            self.log.append(line)
            self._positions[example_id] = []
            self._segments, self._appended = self.log.segments(), True

    def _scan(self) -> None:
        self.log.close()  # what it has open may have been replaced by another process
        self._segments, self._appended, self._positions = self.log.segments(), False, {}
        for position, row in read_rows(self.log, self._mark):
            if row.has_value:
                self._positions.setdefault(row.item_id, []).append(position)


decode_output = row_decoder(StoredOutput)


def only_position(positions: list[int] | None, example_id: str) -> int | None:
    if positions is not None and len(positions) > 1:
        raise BadValue(
            f"this run has several rows for {example_id!r}: it is a run of several models or prompts",
            fix="run each of them into a run of its own, or compare them with `assay compare`",
        )
    return positions[0] if positions else None
