"""The lines of a samples file: how they are decoded, and which documents have been read."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

EMPTY = Raw(b"null")
_NEAR = 1 << 24  # documents of a task that are counted by their number


class Arguments(msgspec.Struct, gc=False):
    """What was asked once: a prompt, and either settings of a generation or a continuation."""

    arg_0: Any
    arg_1: Raw = EMPTY
    arg_2: Raw = EMPTY


class Sample(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line; its subclasses have the task's metrics as fields."""

    doc_id: int
    doc: Any
    arguments: dict[str, Arguments]
    resps: list[list[Any]]
    filtered_resps: list[Any]
    target: Any = ""
    filter: str = "none"
    metrics: list[str] = []
    doc_hash: str = ""
    prompt_hash: str = ""
    target_hash: str = ""


class Folded(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line about a document whose answer has been read with another filter: what is the same again is skipped."""

    doc_id: int
    doc: Raw
    arguments: Raw
    resps: Raw
    filtered_resps: list[Any]
    target: Raw = EMPTY
    filter: str = "none"
    metrics: list[str] = []
    doc_hash: Raw = EMPTY
    prompt_hash: str = ""
    target_hash: Raw = EMPTY


FIXED = {*Sample.__struct_fields__}


class Shape:
    """How lines with these metrics are read: whole, or folded. `columns` has (field, metric) of each metric."""

    def __init__(self, metrics: Sequence[str]) -> None:
        own = [name for name in dict.fromkeys(metrics) if name not in FIXED]
        fields: list[tuple[str, Any, Any]] = [(f"value_{at}", Any, UNSET) for at in range(len(own))]
        names = {f"value_{at}": name for at, name in enumerate(own)}
        self.kind, folded = (
            msgspec.defstruct(
                "Line", fields, bases=(base,), rename=names, forbid_unknown_fields=True, gc=False
            )
            for base in (Sample, Folded)
        )
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(self.kind).decode
        self.decode_folded: Callable[[bytes], Any] = msgspec.json.Decoder(folded).decode
        self.columns = list(names.items())
        self.known = {*FIXED, *own}
        self.metrics = list(metrics)


class Documents:
    """Numbers of documents, a byte each; only what no dataset is as long as is kept as a set."""

    def __init__(self) -> None:
        self._near = bytearray()
        self._far: set[int] = set()

    def add(self, number: int) -> bool:
        """Whether it is new."""
        near = self._near
        if not 0 <= number < _NEAR:
            is_new = number not in self._far
            self._far.add(number)
            return is_new
        if number >= len(near):
            near.extend(bytes(max(number + 1 - len(near), len(near))))
        is_new = not near[number]
        near[number] = 1
        return is_new


def arguments_of(value: Any) -> Any:
    """Arguments whose later parts are JSON text, as a line's are."""
    if not isinstance(value, dict):
        return value
    return {
        name: part if name == "arg_0" else Raw(msgspec.json.encode(part))
        for name, part in value.items()
    }
