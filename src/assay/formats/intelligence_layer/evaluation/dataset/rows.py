"""Examples ⇄ our dataset rows."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.evaluation.dataset.domain import Example, ExpectedOutput
from assay.formats.intelligence_layer.types import BadValue, from_json, to_json
from assay.records import Item


def item_of(example: Example[Any, Any]) -> Item:
    if not isinstance(example.id, str) or not example.id:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadValue(f"an example's id must be text, got {example.id!r}", fix="leave `id` out: it is then made")
    return Item(
        id=example.id,
        data=to_json(example.input),
        ground_truth=to_json(example.expected_output),
        metadata=to_json(example.metadata or {}),
    )


def example_of(
    item: Item, input_type: type[Input], expected_output_type: type[ExpectedOutput]
) -> Example[Input, ExpectedOutput]:
    """The example again; a ValueError (pydantic's for its models) if it is not of these types."""
    return Example(
        id=item.id,
        input=from_json(item.data, input_type),
        expected_output=from_json(item.ground_truth, expected_output_type),
        metadata=item.metadata or None,
    )


def sorted_items(examples: Iterable[Example[Any, Any]]) -> list[Item]:
    """The rows of a new dataset in the order in which examples are read; ids that repeat are refused."""
    items = sorted((item_of(example) for example in examples), key=lambda item: item.id)
    for one, next_one in pairwise(items):
        if one.id == next_one.id:
            raise BadValue(f"two examples have the id {one.id!r}", fix="give each example its own id, or none")
    return items
