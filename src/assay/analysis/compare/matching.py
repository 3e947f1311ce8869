"""Which items and labels of experiments that different tools made are the same: items by the text of their questions
where ids do not tell, labels as the caller pairs them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace

from assay.analysis.compare.paired import Hashes, Side, sources_of
from assay.engine.experiment.sources import Source
from assay.sdk import Item, JsonObject, Log, UserError, check_name, id_hash
from assay.store.items import decode_item
from assay.store.table.facets import text_of
from assay.text.template import question, variables

_FIELDS = ("question", "input", "prompt", "problem", "query")
_ENOUGH = 0.5  # share of the items of one id that must ask the same, so that ids can be trusted


def match_items(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    """The sides with items that have the same id if they are the same, and what was done for that.
    Ids of experiments that Assay ran are trusted; those that other tools gave, and different ones,
    are compared with the questions."""
    of_source = {id(side.source): side for side in sides}
    sources = sources_of(sides)
    pairs = [*combinations(of_source.values(), 2)]
    if not pairs or not all(source.logs("dataset") for source in sources):
        return list(sides), []
    shared = [np.isin(first.columns.ids, second.columns.ids).any() for first, second in pairs]
    if all(shared) and not any(map(_is_imported, sources)):
        return list(sides), []
    texts = {id(source): _texts(source) for source in sources}
    if all(_agree(texts[id(first.source)], texts[id(second.source)]) for first, second in pairs):
        return list(sides), []
    matched = [_by_text(side, texts[id(side.source)]) for side in sides]
    return matched, [
        "the ids of the items differ: those are paired that ask the same, word for word"
    ]


def _is_imported(source: Source) -> bool:
    manifest = source.manifest("run")
    return manifest is not None and "adopted" in manifest.plan


def read_items(log: Log) -> Iterator[tuple[int, Item]]:
    """Yield (position, item) of the items of a log; a line that is none is an error."""
    for number, (position, line) in enumerate(log.scan(), 1):
        if line.strip():
            yield position, decode_item(line, f"items, line {number}")


def _texts(source: Source) -> dict[int, int]:
    """By the hash of an item's id: that of its question."""
    items = (item for log in source.logs("dataset") for _, item in read_items(log))
    return {id_hash(item.id): id_hash(" ".join(_question_of(item).split())) for item in items}


def _question_of(item: Item) -> str:
    data: JsonObject = item.data if isinstance(item.data, dict) else {"input": item.data}
    value = next((data[field] for field in _FIELDS if data.get(field)), None)
    chat: list[Any] = value if isinstance(value, list) else []
    for each in chat:  # what the user said last
        if isinstance(each, dict) and "content" in each:
            value = each["content"]
    return question(variables(item)) if value is None else text_of(value)


def _agree(first: Mapping[int, int], second: Mapping[int, int]) -> bool:
    """Return whether items of one id mostly ask the same."""
    shared = first.keys() & second.keys()
    return bool(shared) and sum(first[id] == second[id] for id in shared) >= _ENOUGH * len(shared)


def _by_text(side: Side, texts: Mapping[int, int]) -> Side:
    """The side with the hashes of questions for those of ids; of a question that comes several
    times, nothing can tell which is meant, and these keep ids of their own."""
    columns = side.columns
    new = np.array([texts.get(id, id) for id in columns.ids.tolist()], dtype=np.uint64)
    values, counts = np.unique(new, return_counts=True)
    repeated = np.isin(new, values[counts > 1])
    new[repeated] = columns.ids[repeated]
    order = np.argsort(new)
    place = np.empty(len(order), dtype=columns.item.dtype)
    place[order] = np.arange(len(order))
    hashes: Hashes = new[order]
    return _with_columns(side, ids=hashes, item=place[columns.item])


def _with_columns(side: Side, **changes: Any) -> Side:
    whole = side.whole
    columns = replace(whole.columns, **changes)
    changed = replace(whole, columns=columns, as_read=whole.as_read or whole.columns, facts={})
    return replace(side, whole=changed)


def match_labels(sides: Sequence[Side], wanted: str) -> tuple[list[Side], str, list[str]]:
    """The sides, the label to look at, and what was done: `first=second` pairs labels that tools
    call differently, one for each side."""
    labels = [sorted(side.labels()) for side in sides]
    if "=" not in wanted or all(wanted in each for each in labels):
        return list(sides), wanted, []
    names = wanted.split("=")
    if len(names) != len(sides):
        raise UserError(
            f"{wanted!r} pairs {len(names)} labels",
            where="--label",
            fix=f"there are {len(sides)} sides: name a label for each, in their order",
        )
    own = [*zip(sides, names, strict=True)]
    renamed = [_with_label(side, name, wanted) for side, name in own]
    told = ", ".join(f"{name} of {side.name}" for side, name in own)
    return renamed, wanted, [f"the labels differ, and so may what they mean: {told}"]


def _with_label(side: Side, old: str, new: str) -> Side:
    if old not in side.labels(verdicts=False):
        check_name(old, side.labels(), f"{side.name!r} has no label", "--label")
    combinations = [
        row._replace(label=new) if row.label == old else row for row in side.columns.combinations
    ]
    return _with_columns(side, combinations=combinations)
