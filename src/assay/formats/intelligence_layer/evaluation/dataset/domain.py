"""What an evaluation is done on: examples, and the dataset that they belong to."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.record import Record
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.tree import Tree

ExpectedOutput = TypeVar("ExpectedOutput")
"""What the output of a task is compared with: a label, a golden answer, None."""


def new_id() -> str:
    return str(uuid4())


@dataclass(kw_only=True, repr=False)
class Example(Record, Generic[Input, ExpectedOutput]):
    """An input for a task and what is expected of its output; both must be given and may be None."""

    input: Input
    expected_output: ExpectedOutput
    id: str = field(default_factory=new_id)
    metadata: dict[str, Any] | None = None

    def __str__(self) -> str:
        return (
            f"Example ID = {self.id}\n"
            f"Input = {self.input}\n"
            f"Expected output = {self.expected_output}\n"
            f"Metadata = {self.metadata}\n"
        )

    __repr__ = __str__

    def _rich_render(self) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(f"Example: {plain(self.id)}"))
        tree.add("Input").add(Text(plain(str(self.input))))
        tree.add("Expected Output").add(Text(plain(str(self.expected_output))))
        if self.metadata:
            tree.add("Metadata").add(Text(plain(str(self.metadata))))
        return tree


@dataclass(kw_only=True, repr=False)
class Dataset(Record):
    """What a set of examples is called; the examples themselves never change."""

    id: str = field(default_factory=new_id)
    name: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"Dataset ID = {self.id}\nName = {self.name}\nLabels = {self.labels}\nMetadata = {self.metadata}"

    __repr__ = __str__
