"""Samples of experiments: searched, filtered, sorted, a part at a time."""

from typing import Any

from assay.records import JsonObject
from assay.viewer.experiments import Experiments
from assay.viewer.query import SamplesQuery, about, chosen, page_of, view
from assay.viewer.rows import sample_rows

Query = SamplesQuery


def page(experiments: Experiments, query: Any) -> JsonObject:
    part = page_of(query)
    samples, share = view(experiments, query.experiment, query.label)
    rows = chosen(experiments, samples, query)
    shown = sample_rows(samples, rows[part])
    return {"total": len(rows), **about(experiments, samples, share), "rows": shown}
