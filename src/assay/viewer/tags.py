"""Tags and notes that people gave to answers: those of `labels.jsonl`, beside the rows."""

from collections.abc import Collection
from typing import Any

import msgspec

from assay.datasets._labels import FILE
from assay.engine.experiment.sources import Source
from assay.store.log import FileLog
from assay.store.table.decode import read_rows
from assay.viewer.experiments import Experiments
from assay.viewer.index.index import Index

_MOST_KEPT = 10_000  # experiments


class Tagged(msgspec.Struct, kw_only=True):
    """What a record of a person's label says beside the label."""

    item: str
    sample: int = 0
    model: str = ""
    response: str = ""
    scorer: str = ""
    annotator: str = ""
    note: str = ""
    tags: list[str] = []


def tags_of(experiments: Experiments, id: str) -> list[Tagged]:
    """The last word of each person on each answer, where it has a tag or a note."""
    return experiments.cached(
        ("tags", id), [id], lambda: _tags_of(experiments.source(id)), _MOST_KEPT
    )


def _tags_of(source: Source) -> list[Tagged]:
    latest: dict[Any, Tagged] = {}
    for _, record in read_rows(FileLog((source.folder or source.path.parent) / FILE), Tagged):
        place = (
            record.item,
            record.sample,
            record.model,
            record.response,
            record.scorer,
            record.annotator,
        )
        latest[place] = record
    return [record for record in latest.values() if record.tags or record.note]


def tagged(
    experiments: Experiments, id: str, index: Index, tags: Collection[str] | None = None
) -> dict[int, list[str]]:
    """Return the tags of rows; of those that have one of these, if any are given."""
    found: dict[int, set[str]] = {}
    for record in tags_of(experiments, id):
        if record.tags and (tags is None or not set(tags).isdisjoint(record.tags)):
            for row in index.rows_at(record.item, record.sample, record.model, record.response):
                found.setdefault(row, set()).update(record.tags)
    return {row: sorted(own) for row, own in found.items()}
