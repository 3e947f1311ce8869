"""Stored datasets: a line for each, or one with its origin, its duplicates and its first items."""

from collections.abc import Sequence
from typing import Any

import msgspec

from assay.analysis.look.dataset import StoredDataset
from assay.reports.sheet import Line, Sheet, Table, columns_of, fields_of

_FACTS = ("name", "id", "items", "hash", "labels", "stored", "origin")


def view(datasets: StoredDataset | Sequence[StoredDataset]) -> Sheet:
    if not isinstance(datasets, StoredDataset):
        return _list(datasets)
    if not isinstance(datasets.new, msgspec.UnsetType):
        return Sheet(parts=[_added(datasets, datasets.new), *_duplicates(datasets)])
    width = 1 + max(map(len, _FACTS))
    facts = [Line(f"{name + ':':<{width}} {_text(getattr(datasets, name))}".rstrip(), wraps=False) for name in _FACTS]
    head = [] if isinstance(datasets.head, msgspec.UnsetType) else datasets.head
    items = [Line(msgspec.json.encode(item).decode(), wraps=False) for item in head]
    return Sheet(parts=[*facts, *_duplicates(datasets), *items])


def _added(dataset: StoredDataset, new: bool) -> Line:
    items = f"{dataset.items:,} items, hash {dataset.hash}"
    stored = f"{dataset.name} is there already with the same {items}"
    return Line(f"stored {dataset.name}: {items}" if new else stored, wraps=False)


def _list(datasets: Sequence[StoredDataset]) -> Sheet:
    table = Table(
        columns=columns_of("<name", "items", "<hash", "<labels"),
        rows=[
            [dataset.name, f"{dataset.items:,} items", dataset.hash, " ".join(dataset.labels)] for dataset in datasets
        ],
        compact=True,
        heads=False,
        data=fields_of(datasets, _FACTS),
    )
    return Sheet(parts=[table])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return f"{value:,}" if isinstance(value, int) else str(value)


def _duplicates(dataset: StoredDataset) -> list[Line]:
    """How many items are alike, and which."""
    duplicates = dataset.duplicates
    if isinstance(duplicates, msgspec.UnsetType):
        return []
    if not duplicates.exact and not duplicates.near:
        return [Line(f"duplicates: none among {duplicates.items:,} items")]
    alike = f"(at least {duplicates.threshold:.0%} of three-word sequences in common)"
    return [
        Line(f"duplicates: {duplicates.exact:,} exact, {duplicates.near:,} near {alike}", wraps=False),
        *(Line(f"exactly: {', '.join(group)}", depth=1, wraps=False) for group in duplicates.exact_groups),
        *(Line(f"nearly:  {', '.join(group)}", depth=1, wraps=False) for group in duplicates.near_groups),
    ]
