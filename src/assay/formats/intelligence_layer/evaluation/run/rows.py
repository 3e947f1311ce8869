"""Outputs of examples ⇄ our response rows, and overviews of runs ⇄ their manifests.

A failure is a row whose outcome says so: no output, of whatever type, can be taken for one. Text is the response
itself; any other output is the row's `output`, with its JSON as the response. Text that would then be taken for the
absence of an output is written in both places.
"""

import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput, FailedExampleRun, RunOverview
from assay.formats.intelligence_layer.types import from_json, to_json
from assay.interfaces import Answer
from assay.records import Manifest, Response
from assay.store.keys import canonical, digest, response_key

_NOTHING = "null"


class StoredOutput(msgspec.Struct, gc=False):
    """What is needed of a row to have the output again."""

    item_id: str
    sample_index: int = 0
    response: str = ""
    error: str | None = None
    task: str = ""
    outcome: str = "ok"
    output: Any = None
    key: str = ""


def answer_with(output: Any) -> Answer:
    """What a row shows of an output."""
    value = to_json(output)
    if isinstance(value, str):
        return Answer(text=value, output=value if value == _NOTHING else None)
    return Answer(text=msgspec.json.encode(value).decode(), output=value)


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


def output_of(row: StoredOutput, run_id: str, output_type: type[Output]) -> ExampleOutput[Output]:
    """The output again; a ValueError (pydantic's for its models) if it is not of this type."""
    if row.outcome == "errored":
        output: Any = FailedExampleRun(error_message=row.error or "")
    else:
        text = None if row.response == _NOTHING else row.response
        output = from_json(text if row.output is None else row.output, output_type)
    found = ExampleOutput(run_id=run_id, example_id=row.item_id, output=output)
    found.key = row.key
    return found


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
    stored = manifest.metadata.get("overview")
    if stored is not None:
        return from_json(stored, RunOverview)
    if not manifest.complete or manifest.ended is None:
        return None
    failed = manifest.counts.get("errored", 0)
    outcomes = ("ok", "refused", "skipped", "errored")
    return RunOverview(
        dataset_id=next((str(each["id"]) for each in manifest.inputs if each.get("kind") == "dataset"), ""),
        id=manifest.id,
        start=datetime.fromtimestamp(manifest.started, UTC),
        end=datetime.fromtimestamp(manifest.ended, UTC),
        failed_example_count=failed,
        successful_example_count=sum(manifest.counts.get(name, 0) for name in outcomes) - failed,
        description=manifest.name or manifest.id,
        labels=set(manifest.labels),
    )
