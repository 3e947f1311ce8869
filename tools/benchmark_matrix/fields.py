"""The fields of a document, as far as the code that reads them tells what they hold, and rows that have them."""

import json
import string
from collections.abc import Iterable, Sequence
from typing import Any

WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "inlet",
    "jetty",
    "knoll",
    "lagoon",
    "mesa",
    "notch",
    "ocean",
    "prairie",
]
LIST_LENGTH = 4


class Field:
    """What is read of a value. Later evidence adds to earlier; `kind` weighs it up."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.children: dict[str, Field] = {}
        self.item: Field | None = None
        self.values: list[Any] = []  # what it is compared with, or looked up in
        self.is_text = False
        self.is_number = False
        self.is_list = False
        self.range = 2  # of a number
        self.length = LIST_LENGTH
        self.inside: list[str] = []  # texts that the text is split at, or searched for
        self.encoded: Field | None = None  # the text is JSON or a Python literal of this
        self.twin: Field | None = None  # a list that has it
        self.forced = ""  # a kind that trials have decided

    def child(self, name: str) -> "Field":
        return self.children.setdefault(name, Field(name))

    def element(self) -> "Field":
        self.is_list = True
        if self.item is None:
            self.item = Field(self.name)
        return self.item

    def inner(self) -> "Field":
        self.is_text = True
        if self.encoded is None:
            self.encoded = Field(self.name)
        return self.encoded

    def one_of(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, (str, int, float)) and value not in self.values:
                self.values.append(value)

    @property
    def kind(self) -> str:
        if self.forced:
            return self.forced
        if self.encoded is not None:
            return "encoded"
        if self.children and not (self.item and self.item.children):
            return "dict"
        if self.is_list and not self.is_text:
            return "list"
        if self.item is not None and self.item.children:
            return "list"
        if self.twin is not None:
            return "member"
        if self.values:
            return "values"
        if self.is_number:
            return "digits" if self.is_text else "number"
        return "text"

    def add(self, other: "Field") -> None:
        """The evidence of another one, where this has none of its own."""
        bare = not (
            self.children
            or self.item
            or self.values
            or self.encoded
            or self.twin
            or self.is_number
            or self.is_list
        )
        for name, part in other.children.items():
            if name in self.children:
                self.children[name].add(part)
            elif bare or self.children:
                self.children[name] = part
        if bare and not self.is_text:
            vars(self).update(
                {key: value for key, value in vars(other).items() if key != "children"}
            )
        elif self.item is not None and other.item is not None:
            self.item.add(other.item)
        self.inside += [text for text in other.inside if text not in self.inside]

    def shape(self) -> Any:
        """Equal for equal rows."""
        kind = self.kind
        if kind == "dict":
            return [
                self.length,
                {name: part.shape() for name, part in sorted(self.children.items())},
            ]
        if kind == "list":
            return [kind, self.length, (self.item or Field()).shape()]
        inner = self.encoded.shape() if self.encoded is not None and kind == "encoded" else None
        return [kind, self.values, self.range, self.inside, inner]

    def value(self, row: int, path: Sequence[Any] = ()) -> Any:
        kind, name = self.kind, self.name or "text"
        if kind == "dict":
            return {key: part.value(row, (*path, key)) for key, part in self.children.items()}
        if kind == "list":
            item = self.item or Field(self.name)
            return [
                item.value(row + place if item.values else row, (*path, place))
                for place in range(self.length)
            ]
        if kind == "encoded":
            return json.dumps((self.encoded or Field()).value(row, path))
        if kind == "values":
            return self.values[(row + sum(map(len, map(str, path)))) % len(self.values)]
        if kind == "member" and self.twin is not None:
            return self.twin.value(row)[row % self.twin.length]
        if kind == "number":
            return row % self.range
        if kind == "float":
            return row + 0.5
        if kind == "digits":
            return str(row % self.range)
        if kind == "letter":
            return string.ascii_uppercase[row % self.range]
        if kind == "bool":
            return row % 2 == 0
        if kind == "none":
            return None
        place = "".join(f" {part}" for part in path if isinstance(part, int))
        words = f"{name}{place} {WORDS[row % len(WORDS)]} {row}"
        return words + "".join(
            f"{text}{WORDS[(row + at) % len(WORDS)]}" for at, text in enumerate(self.inside)
        )


def rows(root: Field, count: int) -> list[dict[str, Any]]:
    return [
        {name: part.value(row, (name,)) for name, part in root.children.items()}
        for row in range(count)
    ]
