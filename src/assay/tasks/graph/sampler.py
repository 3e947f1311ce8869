"""The weighted sampler: draws attributes at random, from the row's seed, so that every run draws the same.

Rows of a source are drawn too: taking the next one would depend on which record came first.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import UserError
from assay.interfaces import Context
from assay.store.keys import canonical, digest
from assay.tasks.graph.nodes import State, Surroundings, output_keys


class SamplerNode:
    """Draws each attribute anew; the draws follow from the row's seed, the node and how often it was visited."""

    kind = "weighted_sampler"

    def __init__(self, name: str, config: Mapping[str, Any], around: Surroundings, where: str) -> None:
        attributes = config.get("attributes")
        if not isinstance(attributes, Mapping) or not attributes:
            raise UserError("a weighted_sampler needs `attributes`", where=where, fix="add `attributes: {name: …}`")
        self.name = name
        self.makes = [*map(str, attributes), *(key for key in output_keys(config, where) if key not in attributes)]
        self.reads: set[str] = set()
        self._draws = {
            str(key): _attribute(entry, around, f"{where}.attributes.{key}") for key, entry in attributes.items()
        }
        self.code = [digest("draws", canonical(draw)).hex() for draw in self._draws.values()]

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        seed = digest("sampler", b"%d" % context.seed, self.name.encode(), b"%d" % visit)
        generator = random.Random(seed)
        found: dict[str, Any] = {}
        for key, (columns, weights) in self._draws.items():
            values = columns[0] if len(columns) == 1 else generator.choice(columns)
            found[key] = generator.choices(values, weights)[0]
        return found


def _attribute(entry: Any, around: Surroundings, where: str) -> tuple[list[list[Any]], list[float] | None]:
    """The values to draw from, one list for each column, and their weights."""
    values: Any = entry.get("values") if isinstance(entry, Mapping) else None
    if isinstance(values, Mapping):
        columns = values.get("column")
        columns = [columns] if isinstance(columns, str) else columns
        source = values.get("source")
        if around.rows is None or not columns or not isinstance(source, Mapping):
            raise UserError("values from a source need `column` and `source`", where=where)
        rows = around.rows(source)
        missing = [name for name in columns if not rows or name not in rows[0]]
        if missing:
            known = ", ".join(map(str, rows[0])) if rows else "no rows"
            raise UserError(f"the source has no column {missing[0]!r}", where=where, fix=f"it has: {known}")
        return [[row.get(name) for row in rows] for name in columns], None
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UserError("an attribute needs a list of values", where=where, fix="write `values: [a, b]`")
    weights = entry.get("weights")
    if weights is not None and (len(weights) != len(values) or min(weights) < 0 or not sum(weights) > 0):
        raise UserError(
            f"{len(values)} values do not go with the weights {weights}", where=where, fix="one weight from 0 for each"
        )
    return [list(values)], weights
