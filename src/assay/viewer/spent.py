"""What responses took and cost, from the index, which has these numbers of every response already: the metrics
`latency` and `cost` would read all rows again to show them beside other numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.query import layers_of

ANSWERED = 2  # outcomes below it, ok and refused, are answers: what they took and cost counts


def spent(
    experiments: Experiments, id: str, facets: Sequence[str], *, wait: bool = False
) -> "Spent | None":
    """The costs of an experiment by facets; None while the index is being made, unless the caller waits for it."""
    index, share = open_index(experiments, id, wait=wait)
    return Spent(index, facets) if share is None else None


class Spent:
    """Median latency and whole cost of the answers, by values of facets."""

    def __init__(self, index: Index, facets: Sequence[str]) -> None:
        self._facets = facets
        answered = index.arrays["response.outcome"] < ANSWERED
        self._groups: dict[tuple[str, ...], tuple[float | None, float | None]] = {}
        for values, rows in grouped(index, facets):
            own = rows[answered[rows]]
            latency, cost = (
                index.arrays["response.latency"][own],
                index.arrays["response.cost"][own],
            )
            took = latency[~np.isnan(latency)]
            whole = None if np.isnan(cost).any() else float(cost.sum())
            self._groups[values] = (
                float(np.median(took)) if len(took) else None,
                whole if len(own) else None,
            )

    def of(self, values: Mapping[str, str]) -> tuple[float | None, float | None]:
        """Latency and cost of the responses with these values."""
        return self._groups.get(tuple(values[name] for name in self._facets), (None, None))


def grouped(index: Index, facets: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The rows of an index by the values of facets, as texts."""
    columns = [_column(index, name) for name in facets]
    codes = np.zeros(len(index), np.int64)
    for own, texts in columns:
        codes = codes * len(texts) + own
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        yield tuple(texts[int(own[rows[0]])] for own, texts in columns), rows


def _column(index: Index, name: str) -> tuple[Any, list[str]]:
    """A facet's value for every row, as a place in a list of texts; rows without one have `null`."""
    texts = ["null"]
    codes = np.zeros(len(index), np.int64)
    layers = layers_of(index, name) or layers_of(index, name.removeprefix("metadata."))
    if not layers:
        raise UserError(
            f"the samples have no facet {name!r} with few values", fix="choose another facet"
        )
    for own, names in layers:
        texts += [text for text in names if text not in texts]
        places = np.array([*(texts.index(text) for text in names), 0], np.int64)
        codes = np.where(codes == 0, places[own], codes)
    return codes, texts
