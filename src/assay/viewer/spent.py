"""What responses took and cost, from the index, which has these numbers of every response already: the metrics
`latency` and `cost` would read all rows again to show them beside other numbers."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from assay.sdk import IntArray, Mask, UserError
from assay.store.table.join import group_rows
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.index.view import View


def spent(
    experiments: Experiments, id: str, facets: Sequence[str], *, wait: bool = False
) -> "Spent | None":
    """The costs of an experiment by facets; None while the index is being made, unless the caller waits for it."""
    index, share = open_index(experiments, id, wait=wait)
    if share is not None:
        return None
    key = ("spent", id, index.made, *facets)
    return experiments.cached(key, [id], lambda: Spent(index, facets))


class Spent:
    """Median latency and whole cost of the answers, by values of facets."""

    def __init__(self, index: Index, facets: Sequence[str]) -> None:
        self._facets = facets
        self._groups: dict[tuple[str, ...], tuple[float | None, float | None]] = {}
        samples = View([("", index)])
        latency, cost = (samples.numbers(column_of(name)) for name in ("latency", "cost"))
        answered = are_answers(samples)
        for values, rows in group_rows_by(samples, facets):
            own = rows[answered[rows]]
            took = latency[own][~np.isnan(latency[own])]
            whole = float(cost[own].sum())
            self._groups[values] = (
                float(np.median(took)) if len(took) else None,
                whole if len(own) and not np.isnan(whole) else None,
            )

    def of(self, values: Mapping[str, str]) -> tuple[float | None, float | None]:
        """Return latency and cost of the responses with these values."""
        return self._groups.get(tuple(values[name] for name in self._facets), (None, None))


def are_answers(samples: View) -> Mask:
    """Return which rows are answers: what they took and cost counts."""
    codes, texts = samples.texts(column_of("outcome"))
    return np.array([text in ("ok", "refused") for text in [*texts, ""]])[codes]


def group_rows_by(
    samples: View, facets: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield values of facets, as texts, with the rows that have them."""
    found = {name: samples.facet(name) for name in facets}
    for name, values in found.items():
        if values is None:
            raise UserError(
                f"the samples have no facet {name!r} with few values", fix="choose another facet"
            )
    columns = [(codes, [*texts, "null"]) for codes, texts in filter(None, found.values())]
    groups = group_rows(np.zeros(len(samples)), *(codes for codes, _ in columns))
    for rows in groups.rows() if len(samples) else ():
        yield tuple(texts[codes[rows[0]]] for codes, texts in columns), rows
