"""The multiple-choice questions of one loaded Hugging Face dataset, read only: its `test` split."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from assay.formats.intelligence_layer.connectors.base.json_serializable import JsonSerializable, SerializableDict
from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.evaluation.dataset.dataset_repository import DatasetRepository
from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset, Example, ExpectedOutput
from assay.formats.intelligence_layer.record import Record
from assay.formats.intelligence_layer.types import BadValue

_LETTERS = "ABCD"


@dataclass(kw_only=True)
class MultipleChoiceInput(Record):
    question: str
    choices: Sequence[str]


class SingleHuggingfaceDatasetRepository(DatasetRepository):
    """Rows have `question`, `choices` and the number of the `answer`; ids are row numbers. Whatever dataset is asked
    for, it is this one."""

    def __init__(self, huggingface_dataset: Any) -> None:
        self._rows = huggingface_dataset

    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        _read_only()

    def delete_dataset(self, dataset_id: str) -> None:
        _read_only()

    def dataset(self, dataset_id: str) -> Dataset | None:
        _read_only()

    def dataset_ids(self) -> Iterable[str]:
        _read_only()

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        found = self.examples(dataset_id, input_type, expected_output_type)
        return next((example for example in found if example.id == example_id), None)

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        if input_type is not MultipleChoiceInput:
            raise BadValue(f"the inputs of this dataset are MultipleChoiceInput, not {input_type}")
        if expected_output_type not in (str, Any, JsonSerializable):
            raise BadValue(f"the expected outputs of this dataset are str, not {expected_output_type}")
        skipped = examples_to_skip or frozenset()
        return (
            Example(
                id=str(number),
                input=cast(Input, MultipleChoiceInput(question=row["question"], choices=row["choices"])),
                expected_output=cast(ExpectedOutput, _LETTERS[row["answer"]]),
            )
            for number, row in sorted(enumerate(self._rows["test"]), key=lambda numbered: str(numbered[0]))
            if str(number) not in skipped
        )


def _read_only() -> NoReturn:
    raise NotImplementedError("a single Hugging Face dataset can only be read: its `examples` and its `example`")
