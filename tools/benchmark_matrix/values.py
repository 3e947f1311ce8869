"""What the reading of Python code knows of a value, besides fields."""

import ast
from typing import Any

from tools.benchmark_matrix.fields import Field


class Constant:
    def __init__(self, value: Any) -> None:
        self.value = value


class Docs:
    """A dataset, whose rows are `root`."""


def numbered(text: ast.JoinedStr) -> list[str]:
    """The names that a text with a hole has for the numbers 0 to 5."""
    parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in text.values]
    return ["".join(str(number) if part is None else part for part in parts) for number in range(6)]


class Several:
    """One constant after the other."""

    def __init__(self, values: Any) -> None:
        self.values = values


class Rows(Field):
    """What is iterated together: the element is the tuple of the elements."""

    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.parts = parts

    def element(self) -> Any:
        return self.parts


class Projected(Field):
    """A list of a part of each element of another."""

    def __init__(self, part: Field, source: Field) -> None:
        super().__init__(part.name)
        self.item, self.length, self.part = part, source.length, part

    def value(self, row: int, path: Any = ()) -> Any:
        return [self.part.value(row, (place,)) for place in range(self.length)]


class Length:
    def __init__(self, field: Field) -> None:
        self.field = field
