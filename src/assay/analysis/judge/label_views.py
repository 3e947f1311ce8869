"""What a labeller is shown of an answer: question, reference and answer, and nothing that tells who gave it.

The names of models are blotted out of the answers; the two answers of a pair stand in an order that is drawn anew for
each pair.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from assay.analysis.judge.label_frame import Address, Unit
from assay.engine.experiment.sources import Source
from assay.records import Item, Response
from assay.store.items import decode_item
from assay.store.keys import canonical, digest
from assay.store.repair import open_rows, row_decoder
from assay.text.answers import answer_of
from assay.text.expected import expectation
from assay.text.template import question, variables

BLOT = "[model]"
_SHORTEST_NAME = 3
_FAMILY = re.compile(r"(?=.*\d)[^\W\d_]{3,}")  # the first word of a name such as Qwen2.5-7B


class View(msgspec.Struct, kw_only=True):
    """`answers` has one text, or two for a pair; `swapped`: the second player's stands first."""

    question: str = ""
    reference: str | None = None
    answers: list[str]
    swapped: bool = False


def views(source: Source, units: Sequence[Unit], seed: int = 0) -> dict[Address, View]:
    """The views of some answers: one pass over the responses and one over the items."""
    responses = _responses(source, units)
    items = _items(source, {unit.address.item for unit in units})
    blotted = _blotted(_names(responses.values()))
    shown: dict[Address, View] = {}
    for unit in units:
        keys: Sequence[Any] = unit.responses or (unit.address[:3],)
        rows = [responses[key] for key in keys if key in responses]
        if len(rows) < len(keys):  # set aside since it was judged
            continue
        swapped = len(rows) == 2 and bool(digest("seat", b"%d" % seed, canonical(unit.address))[0] & 1)
        answers = [blotted(_answer(row)) for row in (reversed(rows) if swapped else rows)]
        item = items.get(unit.address.item)
        asked = question(variables(item)) if item else rows[0].prompt
        reference = _reference(item) if item else None
        shown[unit.address] = View(question=asked, reference=reference, answers=answers, swapped=swapped)
    return shown


def _responses(source: Source, units: Sequence[Unit]) -> dict[Any, Response]:
    """By key; rows from elsewhere, which have none, by where they stand."""
    wanted: set[Any] = {key for unit in units for key in (unit.responses or (unit.address[:3],))}
    responses: dict[Any, Response] = {}
    for log in source.logs("run"):
        for _, row in open_rows(log, None, row_decoder(Response)):
            for key in (row.key, (row.item_id, row.sample_index, row.model_name)):
                if key in wanted:
                    responses[key] = row
    return responses


def _items(source: Source, wanted: Collection[str]) -> dict[str, Item]:
    items: dict[str, Item] = {}
    for log in source.logs("dataset"):
        for number, (_, line) in enumerate(log.scan(), 1):
            if line.strip():
                item = decode_item(line, f"items, line {number}")
                if item.id in wanted:
                    items[item.id] = item
    return items


def _answer(row: Response) -> str:
    """What a judge is given as well: without reasoning."""
    return answer_of(row, strip_reasoning=True) if row.response or row.output is None else _text(row.output)


def _reference(item: Item) -> str | None:
    try:
        return _text(expectation(item, None))
    except LookupError:
        separate = item.ground_truth is not None and item.ground_truth is not item.data
        return _text(item.ground_truth) if separate else None


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return " | ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ---- names


def _names(rows: Iterable[Response]) -> set[str]:
    """Everything that the answering models are called, and the family that a name begins with."""
    names: set[str] = set()
    for row in rows:
        metadata: Mapping[str, Any] = row.metadata
        names |= {str(name) for name in (row.model_name, metadata.get("model_id"), row.served_model) if name}
    families: set[str] = set()
    for name in names:
        if family := _FAMILY.match(name.rpartition("/")[2]):
            families.add(family.group())
    return {name for name in names | families if len(name) >= _SHORTEST_NAME}


def _blotted(names: Collection[str]) -> Any:
    """A function that blots names out of a text, longer ones first, wherever they are whole words."""
    if not names:
        return lambda text: text
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?![^\W\d_])", re.IGNORECASE)
    return lambda text: pattern.sub(BLOT, text)
