"""What every place for runs can do. Implement this to keep runs elsewhere."""

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.core.tracer.tracer import Tracer
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput, FailedExampleRun, RunOverview
from assay.formats.intelligence_layer.record import Record


@dataclass(kw_only=True)
class RecoveryData(Record):
    """Which run was begun and not finished, and the examples that need not be run again."""

    run_id: str
    finished_examples: list[str] = field(default_factory=list[str])


class RunRepository(ABC):
    """Keeps the outputs of examples and, when a run is finished, its overview. Who asks for the outputs of an unknown
    run gets a UserWarning and none."""

    def __init__(self) -> None:
        self.locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)

    @abstractmethod
    def store_run_overview(self, overview: RunOverview) -> None: ...

    @abstractmethod
    def run_overview(self, run_id: str) -> RunOverview | None:
        """None as long as the run has not ended."""

    def run_overviews(self) -> Iterable[RunOverview]:
        """All overviews, sorted by id."""
        for run_id in self.run_overview_ids():
            overview = self.run_overview(run_id)
            if overview is not None:
                yield overview

    @abstractmethod
    def run_overview_ids(self) -> Sequence[str]:
        """The ids of all overviews, sorted."""

    @abstractmethod
    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        """Keep an output; it takes the place of an earlier one of the same run and example."""

    @final
    def store_example_output_parallel(self, tmp_hash: str, example_output: ExampleOutput[Output]) -> None:
        """The same for several threads of one run."""
        with self.locks[tmp_hash]:
            self.store_example_output(example_output)

    @abstractmethod
    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | None: ...

    @abstractmethod
    def example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        """All outputs, failures among them, sorted by the ids of their examples."""

    @abstractmethod
    def example_output_ids(self, run_id: str) -> Sequence[str]:
        """The ids of the examples that have an output or a failure, sorted."""

    def successful_example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        outputs = self.example_outputs(run_id, output_type)
        return (output for output in outputs if not isinstance(output.output, FailedExampleRun))

    def failed_example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
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
        """What is remembered of a run that was begun and not finished."""

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
