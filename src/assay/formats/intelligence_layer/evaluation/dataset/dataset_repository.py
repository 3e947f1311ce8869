"""What every place for datasets can do. Implement this to keep datasets elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from assay.formats.intelligence_layer.connectors.base.json_serializable import SerializableDict
from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset, Example, ExpectedOutput


class DatasetRepository(ABC):
    """Datasets do not change once they are created. An unknown dataset is None where it is asked for itself, and a
    ValueError where its examples are."""

    @abstractmethod
    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        """Store examples as a dataset; a ValueError if the id is taken or two examples have one id."""

    @abstractmethod
    def delete_dataset(self, dataset_id: str) -> None:
        """Remove a dataset with its examples; an unknown one is no error."""

    @abstractmethod
    def dataset(self, dataset_id: str) -> Dataset | None:
        """What is known of a dataset beside its examples."""

    def datasets(self) -> Iterable[Dataset]:
        """All datasets, sorted by id."""
        for dataset_id in self.dataset_ids():
            dataset = self.dataset(dataset_id)
            if dataset is not None:
                yield dataset

    @abstractmethod
    def dataset_ids(self) -> Iterable[str]:
        """The ids of all datasets, sorted."""

    @abstractmethod
    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        """One example of a dataset, or None if the dataset has no such example."""

    @abstractmethod
    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        """The examples sorted by id, as text: "10" comes before "9"."""
