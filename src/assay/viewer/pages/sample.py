"""One item in one or several experiments: what `assay trace` follows, found by the index."""

from functools import partial
from itertools import islice

import msgspec

from assay.analysis.look.trace import follow, metrics_by_label, unknown_item
from assay.sdk import AssayError, JsonObject
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
        self.of = index.lines_of
        self.labels = index.labels_of_scorers()
        self._index = index

    @property
    def ids(self) -> list[str]:
        return list(islice(self._index.item_ids(), _MOST_IDS))


def page(experiments: Experiments, query: Query) -> JsonObject:
    traces: list[JsonObject] = []
    item = None
    ids = list[str]()
    for id in query.experiment or experiments.list():
        try:
            index, _ = open_index(experiments, id, wait=True)
        except AssayError:
            if query.experiment:
                raise
            continue
        if not index.has(query.item):
            ids += islice(index.item_ids(), _MOST_IDS)
            continue
        folder = experiments.folder(id)
        store = open_store(folder)
        metrics = experiments.cached(
            ("metrics of samples", id), [id], partial(metrics_by_label, store)
        )
        traced = follow(store, folder, query.item, _Indexed(index), metrics=metrics)
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
