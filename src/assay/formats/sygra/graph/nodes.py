"""What a node is, and the simple ones.

A node gets its own copy of the state and may change that as it likes; only what it returns reaches the graph.
"""

import asyncio
import random
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.graph.asking import State, Surroundings
from assay.formats.sygra.graph.messages import HISTORY, MESSAGES
from assay.interfaces import Context
from assay.store.keys import canonical, digest


class Node:
    """`kind` is its type in the graph; `makes` the variables that it declares, `reads` those of its prompt; `code` is
    what it is made of, a part of its rows' keys. One that is only a node is a connector: the entry or the exit of a
    subgraph, which does nothing and is not a step."""

    kind = "connector"

    def __init__(self, name: str, config: Mapping[str, Any], around: Surroundings, where: str) -> None:
        self.name = name
        self.makes = output_keys(config, where)
        self.reads: set[str] = set()
        self.code: Any = None

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        return {}


class LambdaNode(Node):
    kind = "lambda"

    def __init__(self, name: str, config: Mapping[str, Any], around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        function = around.function(config, "lambda", name, where)
        if function is None:
            raise UserError("a lambda node needs `lambda`", where=where, fix="name a function or a class")
        self.code = function.code
        self._config = dict(config)
        self._function = function

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        return updates(await self._function(context, self._config, state), self.name, "lambda")


def output_keys(config: Mapping[str, Any], where: str) -> list[str]:
    """The variables that a node declares."""
    keys = config.get("output_keys")
    if keys is None:
        return []
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise UserError(f"output_keys is {keys!r}", where=where, fix="write a name, or a list of names")
    if HISTORY in names or (MESSAGES in names and keys != MESSAGES):
        taken = HISTORY if HISTORY in names else MESSAGES
        raise UserError(f"{taken!r} belongs to every graph", where=f"{where}.output_keys", fix="rename the variable")
    return names


async def side_by_side(runs: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """The results of all; if one failed, its error, once none is at work any more."""
    results = await asyncio.gather(*runs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def updates(result: Any, node: str, key: str) -> dict[str, Any]:
    """What a helper returned, if it can be merged into the state."""
    if isinstance(result, dict):
        return result
    if result is None:
        return {}
    if not isinstance(result, Mapping):
        raise UserError(f"node {node!r}: {key} returned a {type(result).__name__}; it has to return a dict")
    return dict(result)


class SamplerNode(Node):
    """Draws each attribute anew; the draws follow from the row's seed, the node and how often it was visited."""

    kind = "weighted_sampler"

    def __init__(self, name: str, config: Mapping[str, Any], around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        attributes = config.get("attributes")
        if not isinstance(attributes, Mapping) or not attributes:
            raise UserError("a weighted_sampler needs `attributes`", where=where, fix="add `attributes: {name: …}`")
        self.makes = [*map(str, attributes), *(key for key in self.makes if key not in attributes)]
        self._draws = {
            str(key): _attribute(entry, around, f"{where}.attributes.{key}") for key, entry in attributes.items()
        }
        self.code = [digest("draws", canonical(draw)).hex() for draw in self._draws.values()]

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        seed = digest("sampler", b"%d" % context.seed, self.name.encode(), b"%d" % visit)
        generator = random.Random(seed)
        drawn: dict[str, Any] = {}
        for key, (columns, weights) in self._draws.items():
            values = columns[0] if len(columns) == 1 else generator.choice(columns)
            drawn[key] = generator.choices(values, weights)[0]
        return drawn


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
            names = ", ".join(map(str, rows[0])) if rows else "no rows"
            raise UserError(f"the source has no column {missing[0]!r}", where=where, fix=f"it has: {names}")
        return [[row.get(name) for row in rows] for name in columns], None
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UserError("an attribute needs a list of values", where=where, fix="write `values: [a, b]`")
    weights = entry.get("weights")
    if weights is not None and (len(weights) != len(values) or min(weights) < 0 or not sum(weights) > 0):
        raise UserError(
            f"{len(values)} values do not go with the weights {weights}", where=where, fix="one weight from 0 for each"
        )
    return [list(values)], weights
