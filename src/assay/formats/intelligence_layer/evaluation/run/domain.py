"""What a run leaves: an output or a failure for each example, and an overview of the whole."""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.record import Record
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.tree import Tree


@dataclass(kw_only=True)
class FailedExampleRun(Record):
    """Stands in an ExampleOutput for the output that a task did not give."""

    error_message: str

    @staticmethod
    def from_exception(exception: BaseException) -> "FailedExampleRun":
        """Type, message and traceback of what the task raised."""
        trace = "".join(traceback.format_exception(exception))
        return FailedExampleRun(error_message=f"{type(exception).__qualname__}: {exception}\n{trace}")


@dataclass(kw_only=True, repr=False)
class ExampleOutput(Record, Generic[Output]):
    """What a task gave for one example, or why it gave nothing."""

    run_id: str
    example_id: str
    output: Output | FailedExampleRun
    key = ""  # of the stored row, where it was read from one: no field

    def __str__(self) -> str:
        return f'Example ID={self.example_id}\nRelated Run ID={self.run_id}\nOutput="{self.output}"\n'

    __repr__ = __str__

    def _rich_render(self, skip_example_id: bool = False) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(f"Output: {plain(self.run_id)}"))
        if not skip_example_id:
            tree.add(Text(f"Example ID: {plain(self.example_id)}"))
        tree.add(Text(plain(str(self.output))))
        return tree


@dataclass(kw_only=True, repr=False)
class SuccessfulExampleOutput(Record, Generic[Output]):
    """An ExampleOutput that is no failure: what evaluation logics are given."""

    run_id: str
    example_id: str
    output: Output
    key = ""

    def __str__(self) -> str:
        return f'Run ID = {self.run_id}\nExample ID = {self.example_id}\nOutput = "{self.output}"\n'

    __repr__ = __str__


@dataclass(kw_only=True, frozen=True, repr=False)
class RunOverview(Record):
    """What was run on which dataset, when, and how many examples gave an output."""

    dataset_id: str
    id: str
    start: datetime
    end: datetime
    failed_example_count: int
    successful_example_count: int
    description: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return (
            f"Run Overview ID = {self.id}\n"
            f"Dataset ID = {self.dataset_id}\n"
            f"Start time = {self.start}\n"
            f"End time = {self.end}\n"
            f"Failed example count = {self.failed_example_count}\n"
            f"Successful example count = {self.successful_example_count}\n"
            f'Description = "{self.description}"\n'
            f'Labels = "{self.labels}"\n'
            f'Metadata = "{self.metadata}"\n'
        )

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.id)


def in_order(runs: Iterable[RunOverview]) -> list[RunOverview]:
    """In the order of their start: overviews of evaluations hold runs as a set."""
    return sorted(runs, key=lambda run: (run.start, run.id))
