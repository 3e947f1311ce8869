"""What two experiments were made of: their configs, plans and items, key by key."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from assay.analysis.compare.matching import read_items
from assay.config.differences import by_name, comparable, unequal
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG
from assay.sdk import JsonObject, Log, UserError, canonical, digest, id_hash, short
from assay.store.items import decode_item

_NOT_COMPARED = ("output_dir", "name")


class ChangedValue(msgspec.Struct):
    """A key whose value is not the same; null where there is none."""

    key: str
    a: Any
    b: Any


class ChangedItem(msgspec.Struct, kw_only=True):
    """An item that only one side has, or that has other fields there."""

    item_id: str
    where: Literal["a", "b", "both"]
    fields: list[ChangedValue] = []


class ItemsDiff(msgspec.Struct, kw_only=True):
    """How many items each side has and how many differ; some of those by name, the `changed` ones first."""

    a: int
    b: int
    only_a: int = 0
    only_b: int = 0
    changed: int = 0
    named: list[ChangedItem] = []


def config_diff(first: Source, second: Source) -> tuple[list[ChangedValue] | None, list[str]]:
    """The keys of the configs that differ, without secrets; None, and a note which side has no config, if one has."""
    data = [
        comparable(source.folder / CONFIG) if source.folder else {} for source in (first, second)
    ]
    lacking = [
        source.name
        for source, config in zip((first, second), data, strict=True)
        if not any(map(config.get, ("models", "dataset")))  # that of an import only has metrics
    ]
    if lacking:
        return None, [f"{name} has no config" for name in lacking] if len(lacking) == 1 else []
    kept = [
        {key: value for key, value in config.items() if key not in _NOT_COMPARED} for config in data
    ]
    return [ChangedValue(*change) for change in unequal("", *kept)], []


def plan_diff(first: Source, second: Source) -> list[ChangedValue] | None:
    """Tasks and scorers that differ in what they are: prompts, models, parameters, code. None if no side has a plan."""
    plans = [_plan(first), _plan(second)]
    if not any(plan["task"] or plan["scorer"] for plan in plans):  # imported, or files of rows
        return None
    return [*_named_apart(*plans)]


def _plan(source: Source) -> JsonObject:
    run, evaluation = source.manifest("run"), source.manifest("evaluation")
    tasks = by_name(run.plan.get("tasks") if run else [])
    return {
        "samples": run.plan.get("samples") if run else None,
        "task": {name: task.get("identity") for name, task in tasks.items()},
        "scorer": by_name(evaluation.plan.get("scorers") if evaluation else []),
    }


def _named_apart(first: JsonObject, second: JsonObject) -> Iterator[ChangedValue]:
    """Entries that only one side has are said to be there, and not written out."""
    for part in first:
        a, b = first[part], second[part]
        if not isinstance(a, dict) or not isinstance(b, dict):
            yield from (ChangedValue(*change) for change in unequal(part, a, b))
            continue
        for name in dict.fromkeys([*a, *b]):
            if name in a and name in b:
                yield from (
                    ChangedValue(*change) for change in unequal(f"{part} {name}", a[name], b[name])
                )
            else:
                sides = ["planned" if name in side else None for side in (a, b)]
                yield ChangedValue(f"{part} {name}", *sides)


# ---- items


_COLUMNS = [("id", np.uint64), ("content", np.uint64), ("position", np.int64)]


class _Items:
    """The items of a log by the hash of their ids: 24 bytes each."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._log = logs[0]
        rows = np.sort(np.fromiter(self._rows(), _COLUMNS), order=["id", "position"])
        self.ids, self.contents, self._positions = (rows[name] for name, _ in _COLUMNS)

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        for position, item in read_items(self._log):
            content = digest("item", canonical(msgspec.to_builtins(item)))
            yield id_hash(item.id), short(content), position

    def item(self, at: int) -> JsonObject:
        return msgspec.to_builtins(decode_item(self._log.read(int(self._positions[at]))))


def items_diff(first: Source, second: Source, most: int) -> tuple[ItemsDiff | None, list[str]]:
    """None, and a note, where a side has no items."""
    lacking = [source.name for source in (first, second) if "dataset" not in source.files]
    if lacking:
        return None, [
            f"{' and '.join(lacking)} {'have' if len(lacking) > 1 else 'has'} no items to compare"
        ]
    try:
        a, b = (_Items(source.logs("dataset")) for source in (first, second))
    except UserError as error:
        return None, [f"the items cannot be compared: {error.what}"]
    _, of_a, of_b = np.intersect1d(a.ids, b.ids, return_indices=True)
    unlike = a.contents[of_a] != b.contents[of_b]
    changed = list(zip(of_a[unlike].tolist(), of_b[unlike].tolist(), strict=True))
    named = [_item_change(a.item(i), b.item(j)) for i, j in changed[:most]]
    result = ItemsDiff(a=len(a.ids), b=len(b.ids), changed=len(changed))
    for side, own, other in (("a", a, b), ("b", b, a)):
        only = np.flatnonzero(~np.isin(own.ids, other.ids)).tolist()
        setattr(result, f"only_{side}", len(only))
        named += [ChangedItem(item_id=own.item(at)["id"], where=side) for at in only[:most]]  # type: ignore[arg-type]
    result.named = named
    return result, []


def _item_change(a: JsonObject, b: JsonObject) -> ChangedItem:
    # it is the row itself, said once
    if a["ground_truth"] == a["data"] and b["ground_truth"] == b["data"]:
        a, b = ({**item, "ground_truth": None} for item in (a, b))
    return ChangedItem(
        item_id=a["id"],
        where="both",
        fields=[ChangedValue(*change) for change in unequal("", a, b)],
    )
