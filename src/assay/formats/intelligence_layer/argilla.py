"""Evaluation by people: outputs are submitted as records, answers are retrieved as results."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any, ClassVar
from uuid import uuid4

from assay.formats.intelligence_layer.connectors import (
    ArgillaClient,
    ArgillaEvaluation,
    RatingQuestion,
    RecordData,
    TextField,
)
from assay.formats.intelligence_layer.datasets import DatasetRepository
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExpectedOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    PartialEvaluationOverview,
    RunOverview,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.elo import ComparisonEvaluation, MatchOutcome
from assay.formats.intelligence_layer.evaluation_rows import stray_output
from assay.formats.intelligence_layer.evaluations import AsyncEvaluationRepository
from assay.formats.intelligence_layer.evaluator import EvaluatorBase
from assay.formats.intelligence_layer.logics import EvaluationLogicBase
from assay.formats.intelligence_layer.runs import RunRepository
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue, Input, Output, Record
from assay.text.plain import plain


class AsyncEvaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """What could not be submitted, and what was submitted and not answered yet, counts as failed."""

    @abstractmethod
    def submit(
        self, *run_ids: str, num_examples: int | None = None, abort_on_error: bool = False
    ) -> PartialEvaluationOverview:
        """Hand the outputs of these runs over."""

    @abstractmethod
    def retrieve(self, partial_overview_id: str) -> EvaluationOverview:
        """Store what is back by now; may be called again later."""


@dataclass(kw_only=True)
class RecordDataSequence(Record):
    records: Sequence[RecordData]


class ArgillaEvaluationLogic(ABC, EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """What people are shown (`fields`), what they are asked (`questions`), and how both become records and results."""

    def __init__(self, fields: Mapping[str, Any], questions: Sequence[Any]) -> None:
        self.fields = fields
        self.questions = questions

    @abstractmethod
    def to_record(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> RecordDataSequence:
        """The records to be labelled for one example."""

    @abstractmethod
    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> Evaluation:
        """The result of what somebody answered; `responses` has a value for the name of each question."""


class ArgillaEvaluator(AsyncEvaluator[Input, Output, ExpectedOutput, Evaluation]):
    """The id of an evaluation is that of the dataset of records that it was submitted as."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: AsyncEvaluationRepository,
        description: str,
        evaluation_logic: ArgillaEvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        argilla_client: ArgillaClient,
        workspace_id: str,
    ) -> None:
        super().__init__(
            dataset_repository, run_repository, evaluation_repository, description, evaluation_logic
        )
        self._partials = evaluation_repository
        self._client = argilla_client
        self._workspace_id = workspace_id

    def submit(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        dataset_name: str | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> PartialEvaluationOverview:
        """Hand over the records of each example; those that cannot be are stored as failures."""
        start = utc_now()
        runs = self._navigator().runs(*run_ids)
        cases = self._cases(runs, skip_example_on_any_failure, num_examples)
        logic = self._evaluation_logic
        dataset_id = self._client.create_dataset(
            self._workspace_id,
            dataset_name or str(uuid4()),
            fields=list(logic.fields.values()),
            questions=logic.questions,
        )
        submitted = 0
        for example, outputs in cases:
            for record in logic.to_record(example, *outputs).records:
                try:
                    self._client.add_record(dataset_id, record)
                    submitted += 1
                except Exception as error:
                    if abort_on_error:
                        raise
                    print(
                        plain(
                            f"Uploading a record to argilla failed with the following error:\n{error}"
                        )
                    )
                    self._keep(
                        dataset_id, example.id, FailedExampleEvaluation.from_exception(error)
                    )
        overview = PartialEvaluationOverview(
            run_overviews=frozenset(runs),
            id=dataset_id,
            start_date=start,
            submitted_evaluation_count=submitted,
            description=self.description,
            labels=set(labels or ()),
            metadata=dict(metadata or {}),
        )
        self._partials.store_partial_evaluation_overview(overview)
        return overview

    def retrieve(self, partial_overview_id: str) -> EvaluationOverview:
        partial = self._partials.partial_evaluation_overview(partial_overview_id)
        if partial is None:
            raise BadValue(
                f"nothing was submitted as {partial_overview_id!r}", fix="submit runs first"
            )
        answered = sorted(
            self._client.evaluations(partial_overview_id), key=lambda each: each.example_id
        )
        stored: dict[str, list[Any]] = {}
        for old in self._partials.example_evaluations(partial_overview_id, self.evaluation_type()):
            stored.setdefault(old.example_id, []).append(old.result)
        for each in answered:
            result = self._evaluation_logic.from_record(each)
            if result not in stored.get(each.example_id, []):
                self._keep(partial_overview_id, each.example_id, result)
        failed = self._partials.failed_example_evaluations(
            partial_overview_id, self.evaluation_type()
        )
        overview = EvaluationOverview(
            run_overviews=partial.run_overviews,
            id=partial_overview_id,
            start_date=partial.start_date,
            end_date=utc_now(),
            successful_evaluation_count=len(answered),
            failed_evaluation_count=partial.submitted_evaluation_count
            - len(answered)
            + len(failed),
            description=partial.description,
            labels=partial.labels,
            metadata=partial.metadata,
        )
        self._partials.store_evaluation_overview(overview)
        return overview

    def _cases(
        self,
        runs: Sequence[RunOverview],
        skip_example_on_any_failure: bool,
        num_examples: int | None,
    ) -> Iterator[tuple[Example[Input, ExpectedOutput], list[SuccessfulExampleOutput[Output]]]]:
        """Each example with its successful outputs, in the order of the runs."""
        dataset, output_type = self._navigator().common_dataset(runs, "refuse"), self.output_type()
        examples = list(
            self._dataset_repository.examples(
                dataset, self.input_type(), self.expected_output_type()
            )
        )
        stored = (self._run_repository.example_outputs(run.id, output_type) for run in runs)
        outputs = [{output.example_id: output for output in each} for each in stored]
        ids = {example.id for example in examples}
        for run, by_example in zip(runs, outputs, strict=True):
            for stray in sorted(by_example.keys() - ids):
                raise stray_output(run.id, stray)
        submitted = 0
        for example in examples:
            found = [by_example[example.id] for by_example in outputs if example.id in by_example]
            successful = [
                SuccessfulExampleOutput(
                    run_id=each.run_id, example_id=example.id, output=each.output
                )
                for each in found
                if not isinstance(each.output, FailedExampleRun)
            ]
            is_whole = len(found) == len(runs)  # else a run over part of the dataset
            if is_whole and not (skip_example_on_any_failure and len(successful) < len(runs)):
                yield example, successful
                submitted += 1
                if submitted == num_examples:
                    return


class InstructComparisonArgillaEvaluationLogic(
    ArgillaEvaluationLogic[Any, Any, None, ComparisonEvaluation]
):
    """Which of two completions of an instruction is better? Inputs have `instruction` and `input`, outputs
    `completion`. All pairs of runs are asked, or only those with one of `high_priority_runs`. Which completion stands
    first is drawn from `seed`; the record knows whose it is."""

    KEY_INSTRUCTION = "instruction"
    KEY_INPUT = "input"
    KEY_RESPONSE_1 = "first"
    KEY_RESPONSE_2 = "second"
    KEY_QUESTION = "winner"
    OPTIONS: ClassVar[list[int]] = [1, 2, 3]

    def __init__(self, high_priority_runs: frozenset[str] | None = None, *, seed: int = 0) -> None:
        self._high_priority_runs = high_priority_runs
        self._seed = seed
        super().__init__(
            fields={
                "KEY_INSTRUCTION": TextField(name=self.KEY_INSTRUCTION, title="Instruction"),
                "KEY_INPUT": TextField(name=self.KEY_INPUT, title="Input"),
                "KEY_RESPONSE_1": TextField(name=self.KEY_RESPONSE_1, title="Response 1"),
                "KEY_RESPONSE_2": TextField(name=self.KEY_RESPONSE_2, title="Response 2"),
            },
            questions=[
                RatingQuestion(
                    name=self.KEY_QUESTION,
                    title="Which response is better?",
                    description="1: the first response\n2: the second response\n3: both are equally good",
                    values=self.OPTIONS,
                )
            ],
        )

    def to_record(
        self, example: Example[Any, None], *output: SuccessfulExampleOutput[Any]
    ) -> RecordDataSequence:
        wanted = self._high_priority_runs
        pairs = [
            (first, second)
            for first, second in combinations(output, 2)
            if wanted is None or first.run_id in wanted or second.run_id in wanted
        ]
        return RecordDataSequence(records=[self._record(example, *pair) for pair in pairs])

    def _record(
        self,
        example: Example[Any, None],
        first: SuccessfulExampleOutput[Any],
        second: SuccessfulExampleOutput[Any],
    ) -> RecordData:
        if Random(f"{self._seed} {example.id} {first.run_id} {second.run_id}").random() < 0.5:
            first, second = second, first
        return RecordData(
            content={
                self.KEY_INSTRUCTION: _part(example.input, "instruction"),
                self.KEY_INPUT: _part(example.input, "input") or "",
                self.KEY_RESPONSE_1: _part(first.output, "completion"),
                self.KEY_RESPONSE_2: _part(second.output, "completion"),
            },
            example_id=example.id,
            metadata={self.KEY_RESPONSE_1: first.run_id, self.KEY_RESPONSE_2: second.run_id},
        )

    def from_record(self, argilla_evaluation: ArgillaEvaluation) -> ComparisonEvaluation:
        players = argilla_evaluation.metadata
        return ComparisonEvaluation(
            first_player=players[self.KEY_RESPONSE_1],
            second_player=players[self.KEY_RESPONSE_2],
            outcome=MatchOutcome.from_rank_literal(
                int(argilla_evaluation.responses[self.KEY_QUESTION])
            ),
        )


def _part(value: Any, name: str) -> Any:
    """A field of an object of any type, or of the JSON value that it is stored as."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
