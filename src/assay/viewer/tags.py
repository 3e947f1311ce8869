"""Tags and notes that people gave to answers: those of `labels.jsonl`, beside the rows."""

from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np

from assay.datasets._labels import FILE
from assay.engine.experiment.sources import Source
from assay.interfaces import Mask
from assay.store.keys import short
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


def tagged(experiments: Experiments, id: str, index: Index, tags: Collection[str]) -> Mask:
    """The rows that have one of these tags."""
    mask = np.zeros(len(index), np.bool_)
    for record in tags_of(experiments, id):
        if not set(tags).isdisjoint(record.tags):
            mask |= rows_at(index, record)
    return mask


def rows_at(index: Index, record: Tagged) -> Mask:
    """The answer that a record is about: by its key, or, where there is none, by where it stands."""
    arrays, models = index.arrays, index.coded.models
    number = index.number(record.item)
    if record.response:
        return (arrays["response.key"] == np.uint64(short(record.response))) & (
            arrays["response.item"] == number
        )
    if record.model not in models:
        return np.zeros(len(index), np.bool_)
    same = (arrays["response.item"] == number) & (arrays["response.sample"] == record.sample)
    return same & (arrays["response.model"] == models.index(record.model))
