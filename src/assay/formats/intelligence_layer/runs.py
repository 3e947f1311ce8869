"""Runs: what every repository of them can do, and those in one of our stores: outputs are rows of `responses.jsonl`,
traces rows of `traces.jsonl`, the overview stands in the manifest. Runs of the original in the same folder are read.

Outputs of examples ⇄ our response rows, and overviews of runs ⇄ their manifests.

A failure is a row whose outcome is `errored`: no output, of whatever type, can be taken for one. Text is the response
itself; any other output is the row's `output`, with its JSON as the response. Text that would then be taken for the
absence of an output is written in both places.
"""

import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final
from weakref import WeakValueDictionary

import msgspec

from assay.formats.intelligence_layer.domain import (
    ExampleOutput,
    FailedExampleRun,
    RecoveryData,
    RunOverview,
)
from assay.formats.intelligence_layer.original import (
    FileStore,
    OriginalRows,
    OriginalStore,
    manifests,
)
from assay.formats.intelligence_layer.tracer import ExampleTracer, InMemoryTracer, Tracer, tracer_of
from assay.formats.intelligence_layer.types import BadValue, Output, from_json, is_ours, to_json
from assay.sdk import (
    Answer,
    JsonObject,
    Log,
    Manifest,
    Response,
    Segment,
    Store,
    canonical,
    digest,
    response_key,
    safe_name,
)
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog
from assay.store.stores import MemoryStore
from assay.store.table.decode import read_rows, row_decoder

_NOTHING = "null"


class StoredOutput(msgspec.Struct, gc=False):
    """What is needed of a row to have the output again."""

    item_id: str
    response: str = ""
    error: str | None = None
    outcome: str = "ok"
    output: Any = None


def answer_with(output: Any) -> Answer:
    """Return what a row shows of an output."""
    value = to_json(output)
    if isinstance(value, str):
        return Answer(text=value, output=value if value == _NOTHING else None)
    return Answer(text=msgspec.json.encode(value).decode(), output=value)


def rows_of_original(row: JsonObject) -> list[Response]:
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
    """Return what the task returned; the row must not be a failure's."""
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


class _SampleRow(msgspec.Struct):
    item_id: str
    sample_index: int = 0

    @property
    def has_value(self) -> bool:
        """Of several samples the first counts."""
        return self.sample_index == 0


class RowPlaces:
    """Where the rows of each example are: those that have a value, as `mark` tells. Only what others append makes a new
    pass necessary to know the ids."""

    def __init__(self, log: Log, mark: Any = _SampleRow) -> None:
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


_KEPT = 16  # logs whose rows are found without reading them again


class RunRepository(ABC):
    """Keeps the outputs of examples and, when a run is finished, its overview. For the outputs of an unknown run
    there is a UserWarning, and none are given."""

    def __init__(self) -> None:
        self.locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    @abstractmethod
    def store_run_overview(self, overview: RunOverview) -> None: ...

    @abstractmethod
    def run_overview(self, run_id: str) -> RunOverview | None:
        """None as long as the run has not ended."""

    def run_overviews(self) -> Iterable[RunOverview]:
        """All overviews, sorted by id."""
        yield from filter(None, map(self.run_overview, self.run_overview_ids()))

    @abstractmethod
    def run_overview_ids(self) -> Sequence[str]:
        """The ids of all overviews, sorted."""

    @abstractmethod
    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        """Keep an output; it takes the place of an earlier one of the same run and example."""

    @final
    def store_example_output_parallel(
        self, tmp_hash: str, example_output: ExampleOutput[Output]
    ) -> None:
        """Like `store_example_output`, for several threads of one run."""
        with self.locks[tmp_hash]:
            self.store_example_output(example_output)

    @abstractmethod
    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | None: ...

    @abstractmethod
    def example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[Output]]:
        """All outputs, failures among them, sorted by the ids of their examples."""

    @abstractmethod
    def example_output_ids(self, run_id: str) -> Sequence[str]:
        """The ids of the examples that have an output or a failure, sorted."""

    def successful_example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[Output]]:
        outputs = self.example_outputs(run_id, output_type)
        return (output for output in outputs if not isinstance(output.output, FailedExampleRun))

    def failed_example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[Output]]:
        outputs = self.example_outputs(run_id, output_type)
        return (output for output in outputs if isinstance(output.output, FailedExampleRun))

    @abstractmethod
    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        """The trace of one example, if one was kept."""

    @abstractmethod
    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        """A tracer whose trace `example_tracer` finds later."""

    @final
    def create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        """Remember that a run was begun; what was remembered under this hash is forgotten."""
        with self.locks[tmp_hash]:
            self._create_temporary_run_data(tmp_hash, run_id)

    @final
    def temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        with self.locks[tmp_hash]:
            self._temp_store_finished_example(tmp_hash, example_id)

    @abstractmethod
    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        """Return what is remembered of a run that was begun and not finished."""

    @final
    def delete_temporary_run_data(self, tmp_hash: str) -> None:
        with self.locks[tmp_hash]:
            self._delete_temporary_run_data(tmp_hash)

    @abstractmethod
    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None: ...

    @abstractmethod
    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None: ...

    @abstractmethod
    def _delete_temporary_run_data(self, tmp_hash: str) -> None: ...


class StoredRunRepository(RunRepository):
    """A run is known as soon as it has a row or an overview. The rows themselves say which examples are finished: a
    run that was killed resumes from them."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self._storing, self._looking = threading.Lock(), threading.Lock()
        self._places: dict[tuple[str, str], RowPlaces] = {}
        self._open_tracers: WeakValueDictionary[tuple[str, str], ExampleTracer] = (
            WeakValueDictionary()
        )

    def store_run_overview(self, overview: RunOverview) -> None:
        self.store.put_manifest(manifest_with(overview, self.store.manifest("run", overview.id)))

    def run_overview(self, run_id: str) -> RunOverview | None:
        manifest = self.store.manifest("run", run_id)
        return None if manifest is None else overview_of(manifest)

    def run_overview_ids(self) -> Sequence[str]:
        return [
            manifest.id
            for manifest in manifests(self.store, "run")
            if overview_of(manifest) is not None
        ]

    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        line = msgspec.json.encode(row_of(example_output)) + b"\n"
        with self._storing:
            rows = self._rows_in(example_output.run_id)
            if example_output.example_id in rows:
                with self.store.lock("run", example_output.run_id):
                    rows.remove(example_output.example_id)
            rows.append(example_output.example_id, line)

    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | None:
        if not self._knows(run_id):
            return None
        rows = self._rows_in(run_id)
        position = only_position(rows.all().get(example_id), example_id)
        return (
            None
            if position is None
            else output_of(decode_output(rows.log.read(position)), run_id, output_type)
        )

    def example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[Output]]:
        if not self._knows(run_id):
            return []
        return (output_of(row, run_id, output_type) for row in self._outputs(run_id))

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return sorted(self._rows_in(run_id).all()) if self._knows(run_id) else []

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        write = self._rows_in(run_id, "traces").log.append
        tracer = self._open_tracers[run_id, example_id] = ExampleTracer(example_id, write)
        return tracer

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        opened = self._open_tracers.get((run_id, example_id))
        if opened is not None:
            return opened
        rows = self._rows_in(run_id, "traces")
        positions = rows.all().get(example_id)
        if positions is None:
            return None
        return tracer_of(map(row_decoder(JsonObject), map(rows.log.read, positions)))

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        lines = [msgspec.json.decode(line, type=str) for _, line in self._recovery(tmp_hash).scan()]
        if not lines:
            return None
        run_id, *noted = lines
        done = [row.item_id for row in self._outputs(run_id) if row.outcome != "errored"]
        return RecoveryData(run_id=run_id, finished_examples=list(dict.fromkeys([*noted, *done])))

    def _create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        self._recovery(tmp_hash).replace([msgspec.json.encode(run_id) + b"\n"])

    def _temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:
        self._recovery(tmp_hash).append(msgspec.json.encode(example_id) + b"\n")

    def store_with(self, run_ids: Iterable[str]) -> Store | None:
        """The store, if its rows are what `example_outputs` gives: one sample of each example, in our layout."""
        if not is_ours(type(self).example_outputs):
            return None
        for run_id in run_ids:
            log, manifest = self._rows_in(run_id).log, self.store.manifest("run", run_id)
            samples = manifest.plan.get("samples", 1) if manifest else len(log.segments()[:1])
            if samples != 1 or isinstance(log, OriginalRows):
                return None
        return self.store

    @abstractmethod
    def _recovery(self, tmp_hash: str) -> Log:
        """The log of an unfinished run: its id, then the examples that were noted as finished."""

    def _knows(self, run_id: str) -> bool:
        if self._rows_in(run_id).log.segments() or self.store.manifest("run", run_id) is not None:
            return True
        warnings.warn(f"the repository has no run {run_id!r}", stacklevel=3)
        return False

    def _outputs(self, run_id: str) -> Iterator[StoredOutput]:
        """The rows sorted by the ids of their examples."""
        rows = self._rows_in(run_id)
        for example_id, positions in sorted(rows.all().items()):
            position = only_position(positions, example_id)
            if position is not None:
                yield decode_output(rows.log.read(position))

    def _rows_in(self, run_id: str, name: str = "") -> RowPlaces:
        with self._looking:
            places = self._places.get((run_id, name))
            if places is None:
                if len(self._places) >= _KEPT:
                    self._places.clear()
                places = self._places[run_id, name] = RowPlaces(self.store.log("run", run_id, name))
            return places


class FileRunRepository(StoredRunRepository):
    def __init__(self, root_directory: Path) -> None:
        root = Path(root_directory)
        self._original = OriginalStore(root, "run", "output", rows_of_original)
        super().__init__(FileStore(root, self._original))
        self._folder = root / "runs"

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        tracer = super().example_tracer(run_id, example_id)
        if tracer is None and (self._original_traces(run_id) / f"{example_id}.jsonl").is_file():
            warnings.warn("traces of the original are not read", stacklevel=2)
        return tracer

    def trace_counts(self, run_id: str) -> tuple[int, int]:
        """Return how many examples have a trace of ours, and how many one of the original's."""
        theirs = sum(1 for _ in self._original_traces(run_id).rglob("*.jsonl"))
        return len(self._rows_in(run_id, "traces").all()), theirs

    def _original_traces(self, run_id: str) -> Path:
        return self._original.path(run_id) / "trace"

    def _recovery(self, tmp_hash: str) -> Log:
        return FileLog(self._recovery_file(tmp_hash))

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._recovery_file(tmp_hash).unlink(missing_ok=True)

    def _recovery_file(self, tmp_hash: str) -> Path:
        return self._folder / f"{safe_name(tmp_hash)}.tmp"


class InMemoryRunRepository(StoredRunRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self._unfinished: dict[str, MemoryLog] = {}
        self._tracers: dict[tuple[str, str], InMemoryTracer] = {}

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        # which keeps inputs and outputs as they are
        self._tracers[run_id, example_id] = InMemoryTracer()
        return self._tracers[run_id, example_id]

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return self._tracers.get((run_id, example_id))

    def _recovery(self, tmp_hash: str) -> Log:
        return self._unfinished.setdefault(tmp_hash, MemoryLog())

    def _delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._unfinished.pop(tmp_hash, None)


def run_store(repository: RunRepository, runs: Sequence[RunOverview], output_type: Any) -> Store:
    """Return the store in which the engine finds the outputs of runs: the repository's own, or a copy in memory."""
    stored = (
        repository.store_with(run.id for run in runs)
        if isinstance(repository, StoredRunRepository)
        else None
    )
    if stored is not None:
        return stored
    memory = MemoryStore()
    for run in runs:
        memory.put_manifest(manifest_with(run, None))
        log = memory.log("run", run.id)
        for output in repository.example_outputs(run.id, output_type):
            log.append(msgspec.json.encode(row_of(output)) + b"\n")
    return memory
