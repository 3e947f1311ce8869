"""What responses took and cost, from the index, which has these numbers of every response already: the metrics
`latency` and `cost` would read all rows again to show them beside other numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from assay.errors import UserError
from assay.store.table.join import group_rows
from assay.viewer.experiments import Experiments
from assay.viewer.index.index import Index, Part
from assay.viewer.index.opening import open_index

IS_ANSWER = "r.outcome IN ('ok', 'refused')"  # what answers took and cost counts


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
        for values, rows in group_values(
            Part("", index, ""), facets, "r.latency", "r.cost", IS_ANSWER
        ).items():
            own = rows[rows["v2"] == 1]
            took = own["v0"][np.isfinite(own["v0"])]
            cost = float(own["v1"].sum())
            self._groups[values] = (
                float(np.median(took)) if len(took) else None,
                cost if len(own) and np.isfinite(cost) else None,
            )

    def of(self, values: Mapping[str, str]) -> tuple[float | None, float | None]:
        """Latency and cost of the responses with these values."""
        return self._groups.get(tuple(values[name] for name in self._facets), (None, None))


def group_values(
    part: Part, facets: Sequence[str], *expressions: str
) -> dict[tuple[str, ...], npt.NDArray[Any]]:
    """Return the values of expressions (`v0` and so on, infinity for none) by those of facets, as texts."""
    bound = list[Any]()
    places = [part.find_facet(name, bound) for name in facets]
    if "" in places:
        name = facets[places.index("")]
        raise UserError(
            f"the samples have no facet {name!r} with few values", fix="choose another facet"
        )
    columns = [f"coalesce({place}, 'null')" for place in places]
    columns += [f"coalesce({sql}, 9e999)" for sql in expressions]
    codes: dict[tuple[str, ...], int] = {}
    at = len(facets)
    fields = [("group", "i4"), *((f"v{number}", "f8") for number in range(len(expressions)))]
    coded = (
        (codes.setdefault(row[:at], len(codes)), *row[at:])
        for row in part.index.stream(f"SELECT {', '.join(columns)} FROM {part.samples}", bound)
    )
    rows = np.fromiter(coded, fields)
    own = group_rows(rows["group"]).rows() if len(rows) else []
    return {values: rows[each] for values, each in zip(codes, own, strict=True)}
