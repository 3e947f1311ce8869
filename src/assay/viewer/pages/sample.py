"""One item in one or several experiments: what `assay trace` follows, found by the index."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from assay.analysis.look.trace import follow, unknown_item
from assay.errors import AssayError
from assay.records import Kind
from assay.store.stores import open_store
from assay.viewer.experiments import Experiments
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.tags import tags_of

_MOST_IDS = 10_000  # that a wrong one is compared with


class Query(msgspec.Struct, kw_only=True):
    item: str
    experiment: list[str] = []


class _Indexed:
    """The lines of an item, by their positions."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.labels = index.labels_of_scorers()

    @property
    def ids(self) -> list[str]:
        return list(islice(self.index.item_ids(), _MOST_IDS))

    def of(self, kind: Kind, item_id: str) -> Iterator[bytes]:
        index, number = self.index, self.index.number(item_id)
        if kind == "dataset":
            rows, table = (
                [number] if number >= 0 and index.arrays["item.position"][number] >= 0 else [],
                "item",
            )
        else:
            table = "response" if kind == "run" else "evaluation"
            rows = (
                []
                if kind == "run" and index.judged
                else np.flatnonzero(index.arrays[f"{table}.item"] == number)
            )
        places = [
            (int(index.arrays[f"{table}.log"][row]), int(index.arrays[f"{table}.position"][row]))
            for row in rows
        ]
        return (index.read(kind, *place) for place in dict.fromkeys(places))


def page(experiments: Experiments, query: Query) -> dict[str, Any]:
    traces: list[dict[str, Any]] = []
    item: dict[str, Any] | None = None
    ids: list[str] = []
    for id in query.experiment or experiments.list():
        try:
            index, _ = open_index(experiments, id, wait=True)
        except AssayError:
            if query.experiment:
                raise
            continue
        if index.number(query.item) < 0:
            ids += islice(index.item_ids(), _MOST_IDS)
            continue
        folder = experiments.folder(id)
        traced = follow(open_store(folder), folder, query.item, _Indexed(index))
        item = item or traced.item
        shown = {name: getattr(traced, name) for name in ("samples", "matches", "calls")}
        traces.append({"experiment": id, **shown, "tags": _tags(experiments, id, query.item)})
    if not traces:
        raise unknown_item(query.item, ids, ", ".join(experiments.names))
    return {"item_id": query.item, "item": item, "experiments": traces}


def _tags(experiments: Experiments, id: str, item: str) -> list[dict[str, str]]:
    return [
        {"annotator": record.annotator, "tag": tag, "note": record.note}
        for record in tags_of(experiments, id)
        if record.item == item
        for tag in record.tags or [""]
    ]
