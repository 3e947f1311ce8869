"""Evaluations: what every repository of them can do, and those in one of our stores.

Results are rows of `evaluation_results.jsonl`; overviews stand in the manifest.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec

from assay.errors import LockedError
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    in_order,
)
from assay.formats.intelligence_layer.evaluation_rows import (
    StoredResult,
    result_of,
    rows_of,
    rows_of_original,
)
from assay.formats.intelligence_layer.original import (
    FileStore,
    OriginalRows,
    OriginalStore,
    manifests,
)
from assay.formats.intelligence_layer.run_rows import Places
from assay.formats.intelligence_layer.types import BadValue, from_json, is_ours, to_json
from assay.interfaces import Log, Store
from assay.records import Manifest
from assay.store.seal import seal
from assay.store.stores import MemoryStore
from assay.store.table.decode import read_rows, row_decoder

_encode = msgspec.json.Encoder().encode_lines
WORK = "work_digest"  # in the metadata: what an evaluation that has no overview yet is found by


class EvaluationRepository(ABC):
    """Keeps the results of examples and, when an evaluation is finished, its overview. An unknown evaluation is a
    ValueError where results are asked for, and None where its overview is."""

    def initialize_evaluation(self) -> str:
        """The id of a new evaluation."""
        return str(uuid4())

    @contextmanager
    def open_evaluation(self, digest: str, again: bool = False) -> Generator[str]:
        """The id of a new evaluation; or, in a repository that knows, of the one of the same digest that was begun,
        has no overview and that nobody is at. With `again` it may have an overview: its errors are retried."""
        yield self.initialize_evaluation()

    @abstractmethod
    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None: ...

    @abstractmethod
    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None: ...

    def evaluation_overviews(self) -> Iterable[EvaluationOverview]:
        """All overviews, sorted by id."""
        yield from filter(None, map(self.evaluation_overview, self.evaluation_overview_ids()))

    @abstractmethod
    def evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all overviews, sorted."""

    @abstractmethod
    def store_example_evaluation(
        self, example_evaluation: ExampleEvaluation[Evaluation]
    ) -> None: ...

    @abstractmethod
    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None: ...

    @abstractmethod
    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        """All results, sorted by the ids of their examples."""

    def successful_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        results = self.example_evaluations(evaluation_id, evaluation_type)
        return [
            evaluation
            for evaluation in results
            if not isinstance(evaluation.result, FailedExampleEvaluation)
        ]

    def failed_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        results = self.example_evaluations(evaluation_id, evaluation_type)
        return [
            evaluation
            for evaluation in results
            if isinstance(evaluation.result, FailedExampleEvaluation)
        ]


class StoredEvaluationRepository(EvaluationRepository):
    """An evaluation exists as soon as it has a row or an overview."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._logs: dict[str, Log] = {}  # an open log is much quicker than one opened for each row
        self._places: Places | None = None  # of the evaluation that was asked for last
        self._opening = threading.Lock()
        self._open: set[str] = set()

    @contextmanager
    def open_evaluation(self, digest: str, again: bool = False) -> Generator[str]:
        with ExitStack() as held:
            with self._opening:
                evaluation_id = self._unfinished(digest, again, held) or self._begun(digest, held)
                self._open.add(evaluation_id)
                held.callback(self._open.discard, evaluation_id)
            yield evaluation_id

    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        overview = evaluation_overview
        log = self._log(overview.id)
        log.sync()
        self._logs.pop(overview.id)
        manifest = self.store.manifest("evaluation", overview.id) or _manifest(overview)
        if not manifest.digest:  # not made by the engine, which has noted all of this
            counts = {
                "scored": overview.successful_evaluation_count,
                "errored": overview.failed_evaluation_count,
            }
            manifest.counts = {name: count for name, count in counts.items() if count}
            seal(manifest, log)
        manifest.name = overview.description
        manifest.started, manifest.ended = (
            overview.start_date.timestamp(),
            overview.end_date.timestamp(),
        )
        manifest.complete = True
        manifest.labels = sorted(overview.labels)
        manifest.metadata |= to_json(overview.metadata)
        manifest.plan["overview"] = to_json(overview)
        self.store.put_manifest(manifest)

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        manifest = self.store.manifest("evaluation", evaluation_id)
        stored = manifest.plan.get("overview") if manifest else None
        return None if stored is None else from_json(stored, EvaluationOverview)

    def evaluation_overview_ids(self) -> Sequence[str]:
        return self._ids_with("overview")

    def unfinished_ids(self) -> Sequence[str]:
        """Return the ids of what the original, or 0.1, handed to people and has no results of."""
        return [id for id in self._ids_with("partial") if self.evaluation_overview(id) is None]

    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None:
        self._log(example_evaluation.evaluation_id).append(_encode(rows_of(example_evaluation)))

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None:
        log = self._known(evaluation_id)
        if self._places is None or self._places.log is not log:
            self._places = Places(log, StoredResult)
        positions = self._places.all().get(example_id)
        if not positions:
            return None
        return result_of(
            row_decoder(StoredResult)(log.read(positions[-1])), evaluation_id, evaluation_type
        )

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        return list(self.results(evaluation_id, evaluation_type))

    def results(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Iterator[ExampleEvaluation[Evaluation]]:
        """What `example_evaluations` gives, read while it is asked for: a million of them need not be held."""
        log = self._known(evaluation_id)
        decode, rows = row_decoder(StoredResult), read_rows(log, StoredResult)
        last = {row.place: position for position, row in rows if row.has_value}
        for _, position in sorted(last.items(), key=lambda entry: entry[0][0]):
            yield result_of(decode(log.read(position)), evaluation_id, evaluation_type)

    def has_own_rows(self, evaluation_id: str) -> bool:
        """Whether the store has what `example_evaluations` gives."""
        is_original = isinstance(self.store.log("evaluation", evaluation_id), OriginalRows)
        return is_ours(type(self).example_evaluations) and not is_original

    def _unfinished(self, digest: str, again: bool, held: ExitStack) -> str | None:
        """An evaluation to continue, locked until `held` is closed."""
        for evaluation_id in self.store.ids("evaluation"):
            if evaluation_id not in self._open and self._waits(evaluation_id, digest, again):
                with ExitStack() as trying:
                    try:
                        trying.enter_context(self.store.lock("evaluation", evaluation_id))
                    except LockedError:  # another process is at it
                        continue
                    if self._waits(evaluation_id, digest, again):  # which may just have finished it
                        held.push(trying.pop_all())
                        return evaluation_id
        return None

    def _waits(self, evaluation_id: str, digest: str, again: bool) -> bool:
        manifest = self.store.manifest("evaluation", evaluation_id)
        # 0.1 kept it there
        if manifest is None or digest not in (manifest.metadata.get(WORK), manifest.digest):
            return False
        return again or "overview" not in manifest.plan

    def _begun(self, digest: str, held: ExitStack) -> str:
        evaluation_id, now = self.initialize_evaluation(), time.time()
        held.enter_context(self.store.lock("evaluation", evaluation_id))
        if self.store.manifest("evaluation", evaluation_id) is None:
            begun = Manifest(
                kind="evaluation",
                id=evaluation_id,
                created=now,
                started=now,
                metadata={WORK: digest},
            )
            self.store.put_manifest(begun)
        return evaluation_id

    def _ids_with(self, overview: str) -> list[str]:
        return [
            manifest.id
            for manifest in manifests(self.store, "evaluation")
            if overview in manifest.plan
        ]

    def _log(self, evaluation_id: str) -> Log:
        log = self._logs.get(evaluation_id)
        if log is None:
            log = self._logs[evaluation_id] = self.store.log("evaluation", evaluation_id)
        return log

    def _known(self, evaluation_id: str) -> Log:
        log = self._logs.get(evaluation_id) or self.store.log("evaluation", evaluation_id)
        if not log.segments() and self.store.manifest("evaluation", evaluation_id) is None:
            raise BadValue(f"the repository has no evaluation {evaluation_id!r}")
        return log


def _manifest(overview: EvaluationOverview) -> Manifest:
    """The manifest of an evaluation whose results are stored one by one."""
    runs = in_order(overview.run_overviews)
    datasets = sorted({run.dataset_id for run in runs})
    return Manifest(
        kind="evaluation",
        id=overview.id,
        name=overview.description,
        created=overview.start_date.timestamp(),
        started=overview.start_date.timestamp(),
        inputs=[
            *({"kind": "run", "id": run.id} for run in runs),
            *({"kind": "dataset", "id": dataset} for dataset in datasets),
        ],
        labels=sorted(overview.labels),
        metadata=to_json(overview.metadata),
    )


class InMemoryEvaluationRepository(StoredEvaluationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())


class FileEvaluationRepository(StoredEvaluationRepository):
    def __init__(self, root_directory: Path) -> None:
        original = OriginalStore(Path(root_directory), "evaluation", read=rows_of_original)
        self.files = FileStore(root_directory, original)
        super().__init__(self.files)

    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        super().store_evaluation_overview(evaluation_overview)
        from assay.engine.experiment.imports.rows import means_config

        means_config(
            self.files.directory("evaluation", evaluation_overview.id), evaluation_overview.id
        )
