"""Runs in one of our stores: rows of `responses.jsonl`, traces in `traces.jsonl`, overviews in the manifest."""

import threading
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakValueDictionary

import msgspec

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.core.tracer.tracer import Tracer
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput, RunOverview
from assay.formats.intelligence_layer.evaluation.run.places import Places
from assay.formats.intelligence_layer.evaluation.run.rows import (
    StoredOutput,
    manifest_with,
    output_of,
    overview_of,
    row_of,
)
from assay.formats.intelligence_layer.evaluation.run.run_repository import RecoveryData, RunRepository
from assay.formats.intelligence_layer.evaluation.run.traces import ExampleTracer, Row, tracer_of
from assay.formats.intelligence_layer.types import BadValue
from assay.interfaces import Log, Store
from assay.store.repair import row_decoder

_KEPT = 16  # logs whose rows are found without reading them again


class StoredRunRepository(RunRepository):
    """A run is known as soon as it has a row or an overview. The rows themselves say which examples are finished: a
    run that was killed goes on from them."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self._storing, self._looking = threading.Lock(), threading.Lock()
        self._places: dict[tuple[str, str], Places] = {}
        self._open_tracers: WeakValueDictionary[tuple[str, str], ExampleTracer] = WeakValueDictionary()

    def store_run_overview(self, overview: RunOverview) -> None:
        self.store.put_manifest(manifest_with(overview, self.store.manifest("run", overview.id)))

    def run_overview(self, run_id: str) -> RunOverview | None:
        manifest = self.store.manifest("run", run_id)
        return None if manifest is None else overview_of(manifest)

    def run_overview_ids(self) -> Sequence[str]:
        return [run_id for run_id in self.store.ids("run") if self.run_overview(run_id) is not None]

    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        line = msgspec.json.encode(row_of(example_output)) + b"\n"
        with self._storing:
            rows = self._rows_in(example_output.run_id)
            if example_output.example_id in rows:
                with self.store.lock("run", example_output.run_id):
                    rows.remove(example_output.example_id)
            rows.append(example_output.example_id, line)

    def example_output(self, run_id: str, example_id: str, output_type: type[Output]) -> ExampleOutput[Output] | None:
        if not self._knows(run_id):
            return None
        rows = self._rows_in(run_id)
        position = _only(rows.all().get(example_id), example_id)
        return None if position is None else output_of(_decode(rows.log.read(position)), run_id, output_type)

    def example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        if not self._knows(run_id):
            return []
        return (output_of(row, run_id, output_type) for row in self._outputs(run_id))

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return sorted(self._rows_in(run_id).all()) if self._knows(run_id) else []

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        tracer = ExampleTracer(example_id, self._rows_in(run_id, "traces").log.append)
        self._open_tracers[run_id, example_id] = tracer
        return tracer

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        opened = self._open_tracers.get((run_id, example_id))
        if opened is not None:
            return opened
        rows = self._rows_in(run_id, "traces")
        positions = rows.all().get(example_id)
        if positions is None:
            return None
        decode = row_decoder(Row)
        return tracer_of(decode(rows.log.read(position)) for position in positions)

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
            position = _only(positions, example_id)
            if position is not None:
                yield _decode(rows.log.read(position))

    def _rows_in(self, run_id: str, name: str = "") -> Places:
        with self._looking:
            found = self._places.get((run_id, name))
            if found is None:
                if len(self._places) >= _KEPT:
                    self._places.clear()
                found = self._places[run_id, name] = Places(self.store.log("run", run_id, name))
            return found


_decode = row_decoder(StoredOutput)


def _only(positions: list[int] | None, example_id: str) -> int | None:
    if positions is not None and len(positions) > 1:
        raise BadValue(
            f"this run has several rows for {example_id!r}: it is a run of several models or prompts",
            fix="run each of them into a run of its own, or compare them with `assay compare`",
        )
    return positions[0] if positions else None
