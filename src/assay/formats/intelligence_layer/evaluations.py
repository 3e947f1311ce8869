"""Evaluations: what every repository of them can do, and those in one of our stores.

Results are rows of `evaluation_results.jsonl`; overviews stand in the manifest.

Results of examples ⇄ our evaluation rows, and a logic as a scorer that makes them.

A result is one commit of rows, whose first has it as `value`. A result with exactly one truth value or number has that
as verdict, so that `assay compare` and `assay gate` read it. Matches are a row each, with players and payoff as
everywhere in Assay, for `assay rank` and `assay trace`. A later result takes the place of an earlier one of the same
example, and for a single match of the same players.
"""

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.errors import Interrupted, LockedError
from assay.formats.intelligence_layer.datasets import example_of
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    RunOverview,
    SuccessfulExampleOutput,
    in_order,
)
from assay.formats.intelligence_layer.elo import ComparisonEvaluation, Matches
from assay.formats.intelligence_layer.logics import EvaluationLogic, identity_of
from assay.formats.intelligence_layer.original import (
    FileStore,
    OriginalRows,
    OriginalStore,
    manifests,
)
from assay.formats.intelligence_layer.runs import RowPlaces, value_of
from assay.formats.intelligence_layer.types import BadValue, from_json, is_ours, to_json
from assay.sdk import (
    CallError,
    Evaluation as Row,
    Item,
    JsonMapping,
    JsonObject,
    Log,
    Manifest,
    PermanentError,
    Response,
    Score,
    Store,
    TransientError,
    UserError,
    canonical,
    digest,
)
from assay.store.seal import seal
from assay.store.stores import MemoryStore
from assay.store.table.decode import read_rows, row_decoder
from assay.text.plain import plain

LABEL = "evaluation"


class StoredResult(msgspec.Struct, gc=False):
    """What is needed of a row to have the result again."""

    item_id: str
    key: str = ""
    outcome: str = "scored"
    error: str | None = None
    value: Any = None
    detailed_results: JsonObject = {}
    players: tuple[str, str] | None = None
    part: tuple[int, int] = (0, 1)

    @property
    def has_value(self) -> bool:
        """Return whether this is the first row of a result."""
        is_first = self.part[0] == 0 and self.detailed_results.get("match", 0) == 0
        return is_first and self.outcome != "skipped"

    @property
    def place(self) -> tuple[Any, ...]:
        """Return what a later result must share to take this one's place. Each failure is kept: several records of one
        example may fail."""
        if self.outcome == "errored":
            return (self.item_id, self.key)
        return (self.item_id,) if "match" in self.detailed_results else (self.item_id, self.players)


def scores_of(result: Any) -> list[Score]:
    """The labels of one result; a TypeError where JSON cannot hold it."""
    value = to_json(result)
    if isinstance(result, ComparisonEvaluation):
        scores = [_match(result, {})]
    elif isinstance(result, Matches) and result.comparison_evaluations:
        scores = [
            _match(match, {"match": number})
            for number, match in enumerate(result.comparison_evaluations)
        ]
    else:
        verdict = _verdict(value)
        is_truth = isinstance(verdict, bool)
        scores = [
            Score(
                passed=verdict if is_truth else None,
                score=None if verdict is None else float(verdict),
            )
        ]
    scores[0].value = value
    return scores


def _match(match: ComparisonEvaluation, details: JsonObject) -> Score:
    return Score(
        score=match.outcome.payoff[0],
        players=(match.first_player, match.second_player),
        details=details,
    )


def _verdict(value: Any) -> bool | float | None:
    """The one truth value or number of a result, itself or in a field."""
    fields = value.values() if isinstance(value, dict) else [value]
    numbers = [field for field in fields if isinstance(field, (bool, int, float))]
    return numbers[0] if len(numbers) == 1 and numbers[0] - numbers[0] == 0 else None


def rows_of(example_evaluation: ExampleEvaluation[Any]) -> list[Row]:
    """The rows of a result that was not scored by the engine; they belong into one commit."""
    result = example_evaluation.result
    if isinstance(result, FailedExampleEvaluation):
        row = _row(
            example_evaluation, Score(outcome="errored", error=result.error_message), uuid4().hex
        )
        row.error_kind = "permanent"
        return [row]
    return [_row(example_evaluation, score) for score in scores_of(result)]


def rows_of_original(file: JsonObject) -> list[Row]:
    """The rows of a result as the original wrote it; by their fields, matches are told from other results."""
    value = json.loads(file["json_result"])
    types = (FailedExampleEvaluation,) if file["is_exception"] else (ComparisonEvaluation, Matches)
    fields: set[str] = set(value) if isinstance(value, dict) else set()
    type = next((type for type in types if fields == type.__dataclass_fields__.keys()), Any)
    result = from_json(value, type)
    evaluation_id, example_id = file["evaluation_id"], file["example_id"]
    return rows_of(
        ExampleEvaluation(evaluation_id=evaluation_id, example_id=example_id, result=result)
    )


def _row(example_evaluation: ExampleEvaluation[Any], score: Score, *apart: str) -> Row:
    players, payoff, passed = score.players, score.score, score.passed
    # in canonical order, with the payoff of the first
    if players is not None and payoff is not None:
        if players[0] > players[1]:
            players, payoff = (players[1], players[0]), 1.0 - payoff
        passed = payoff > 0.5
    elif payoff is not None and passed is None:
        passed = payoff > 0
    parts = (example_evaluation.evaluation_id, example_evaluation.example_id, *(players or apart))
    return Row(
        item_id=example_evaluation.example_id,
        label=LABEL,
        model_name=" vs ".join(players or ()),
        passed=passed,
        score=payoff,
        detailed_results=score.details,
        timestamp=time.time(),
        key=digest("intelligence-layer", canonical(parts)).hex(),
        scorer=LABEL,
        outcome=score.outcome,
        error=score.error,
        value=score.value,
        players=players,
    )


def result_of(
    row: StoredResult, evaluation_id: str, evaluation_type: type[Evaluation]
) -> ExampleEvaluation[Evaluation]:
    """The result again; a ValueError (pydantic's for its models) if it is not of this type."""
    if row.outcome == "scored":
        result: Any = from_json(row.value, evaluation_type)
    else:
        result = FailedExampleEvaluation(error_message=row.error or "")
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=row.item_id, result=result)


class ExampleScorer:
    """The user's logic as one of the engine's scorers. `failure` is the first exception that ends the evaluation: its
    example has a transient error, so that it is evaluated again when the evaluation resumes. `keep` stores a result in
    a repository of the user's own; `earlier` has results by example that need not be made again."""

    def __init__(
        self,
        logic: EvaluationLogic[Any, Any, Any, Any],
        types: tuple[Any, Any, Any],
        *,
        abort: bool,
        keep: Callable[[str, Any], None] | None,
        earlier: JsonMapping,
    ) -> None:
        self.stop = Stop()
        self.failure: BaseException | None = None
        self._logic = logic
        self._input_type, self._expected_output_type, self._output_type = types
        self._abort = abort
        self._keep = keep
        self._earlier = earlier

    def bound_scorer(self, skip_failures: bool, limit: int | None) -> BoundScorer:
        return BoundScorer(
            name=LABEL,
            function=self,
            params={},
            identity=digest("scorer", canonical((LABEL, identity_of(self._logic)))),
            form="together",
            mode="thread",
            reads="item",
            takes_context=False,
            player="run",
            skip_failures=skip_failures,
            takes_sides=True,
            limit=limit,
        )

    @contextmanager
    def raising(self, engine: Evaluator) -> Generator[None]:
        """Let the scorer stop this engine, and raise `failure` where it did."""
        engine.stop = self.stop
        try:
            yield
        except UserError as error:
            raise BadValue(error.what, where=error.where, fix=error.fix) from error
        except Interrupted:
            if self.failure is None:
                raise
        if self.failure is not None:
            raise self.failure

    def __call__(self, item: Item, *responses: Response, sides: Sequence[str]) -> list[Score]:
        """In a thread: the labels of one example; `sides` are the runs of the responses. What the logic raises is its
        row's error, unless it shall abort."""
        if self.failure is not None:  # raised while this example waited for its thread
            raise TransientError("stopped")
        if item.id in self._earlier:
            return scores_of(self._earlier[item.id])
        raised: CallError | None = None
        try:
            example = example_of(item, self._input_type, self._expected_output_type)
            outputs = [
                SuccessfulExampleOutput(
                    run_id=run, example_id=item.id, output=value_of(response, self._output_type)
                )
                for run, response in zip(sides, responses, strict=True)
            ]
            result: Any
            try:
                result = self._logic.do_evaluate(example, *outputs)
            except Exception as error:
                if self._abort:
                    raise
                result = failure_of(example.id, error)
                kind = TransientError if isinstance(error, TransientError) else PermanentError
                raised = kind(result.error_message)
            if self._keep is not None:
                self._keep(item.id, result)
            scores = scores_of(result)
        except (
            BaseException
        ) as error:  # handed over to the caller of `evaluate_runs`, who raises it
            self.failure = self.failure or error
            self.stop.request()
            raise TransientError("stopped") from None
        if raised is not None:
            raise raised
        return scores


def failure_of(example_id: str, error: Exception) -> FailedExampleEvaluation:
    """Return what a logic raised as a result, and print it."""
    print(
        plain(f'FAILED EVALUATION: example "{example_id}", {type(error).__qualname__}: "{error}"')
    )
    return FailedExampleEvaluation.from_exception(error)


def work_digest(
    runs: Sequence[RunOverview],
    logic: object,
    skip_example_on_any_failure: bool,
    num_examples: int | None,
) -> str:
    """Return a digest of all that the results of an evaluation depend on: an unfinished one continues only if this is equal."""
    parts = {
        "runs": [to_json(run, order="deterministic") for run in runs],
        "logic": identity_of(logic),
        "skip": skip_example_on_any_failure,
        "examples": num_examples,
    }
    return digest("intelligence-layer-evaluation", canonical(parts)).hex()


def stray_output(run_id: str, example_id: str) -> BadValue:
    return BadValue(
        f"the ids of example and output do not match: the run {run_id!r} has an output for {example_id!r}, "
        "which is not an example of its dataset",
        fix="run the task again on this dataset",
    )


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
        self._places: RowPlaces | None = None  # of the evaluation that was asked for last
        self._opening = threading.Lock()
        self._open: set[str] = set()

    @contextmanager
    def open_evaluation(self, digest: str, again: bool = False) -> Generator[str]:
        with ExitStack() as held:
            with self._opening:
                evaluation_id = self._unfinished_id(digest, again, held) or self._begun(
                    digest, held
                )
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
        log = self._known_log(evaluation_id)
        if self._places is None or self._places.log is not log:
            self._places = RowPlaces(log, StoredResult)
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
        """Yield what `example_evaluations` gives, read while it is asked for: a million of them need not be held."""
        log = self._known_log(evaluation_id)
        decode, rows = row_decoder(StoredResult), read_rows(log, StoredResult)
        last = {row.place: position for position, row in rows if row.has_value}
        for _, position in sorted(last.items(), key=lambda entry: entry[0][0]):
            yield result_of(decode(log.read(position)), evaluation_id, evaluation_type)

    def has_own_rows(self, evaluation_id: str) -> bool:
        """Return whether the store has what `example_evaluations` gives."""
        is_original = isinstance(self.store.log("evaluation", evaluation_id), OriginalRows)
        return is_ours(type(self).example_evaluations) and not is_original

    def _unfinished_id(self, digest: str, again: bool, held: ExitStack) -> str | None:
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

    def _known_log(self, evaluation_id: str) -> Log:
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
