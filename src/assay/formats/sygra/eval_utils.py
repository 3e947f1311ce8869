"""What evaluation graphs name in their YAML as `tasks.eval.utils.…`: a lambda node for unit metrics, and the report."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from assay.formats.sygra.graph.called import code_of
from assay.formats.sygra.helpers import GraphPostProcessor, LambdaFunction
from assay.formats.sygra.metric import (
    SUFFIX,
    Dialect,
    Entry,
    column_of,
    dialect,
    entries,
    report_over,
)
from assay.formats.sygra.metrics import BadParameter, UnitMetricRegistry, UnknownName, error_text
from assay.formats.sygra.types import Config, Row
from assay.sdk import AssayError, UserError

# what evaluation graphs name, whether a file of the user's defines it or we do
UNIT_METRICS = "tasks.eval.utils.UnitMetrics"
COLLATOR = "tasks.eval.utils.MetricCollatorPostProcessor"
_MOST_NODES = 256


def parse_response_as_json(s: Any) -> Row | None:
    """The object that an answer is, or the first one in braces in it; another JSON value as `{"value": …}`.

    Braces are matched as they stand, also within strings, and nothing after the first pair is tried.
    """
    if s is None:
        return None
    text = s if isinstance(s, str) else str(s)
    for candidate in (text, _in_braces(text)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {"value": value}
    return None


def _in_braces(text: str) -> str:
    """The leftmost `{` that is closed, up to its `}`."""
    opened: list[int] = []
    best: tuple[int, int] | None = None
    for at, letter in enumerate(text):
        if letter == "{":
            opened.append(at)
        elif letter == "}" and opened:
            start = opened.pop()
            if best is None or start < best[0]:
                best = start, at
            if not opened:
                break
    return text[best[0] : best[1] + 1] if best else ""


class UnitMetrics(LambdaFunction):
    """Compares `golden_key` with `predicted_key` of the state by each metric of `unit_metrics_map`.

    A result is stored as `<metric>_result` where the node declares that name among its `output_keys`, as `<metric>`
    where it declares that; under both names if it declares neither.
    """

    @staticmethod
    def apply(lambda_node_dict: Config, state: Any) -> Any:
        golden = {"text": _value(lambda_node_dict, state, "golden_key")}
        predicted = {"text": _value(lambda_node_dict, state, "predicted_key")}
        for metric, make, names in _metrics_of_node(lambda_node_dict):
            results = (metric or make()).evaluate([golden], [predicted])
            if results:
                result = results[0].to_dict()
                for name in names:
                    state[name] = result
        return state


_nodes: dict[int, tuple[Config, list[tuple[Any, Callable[[], Any], list[str]]]]] = {}


def _metrics_of_node(node: Config) -> list[tuple[Any, Callable[[], Any], list[str]]]:
    """The metrics of a node, what makes them, and the names of their results. Our own hold no state: they are made
    once for a node; instead of a user's, which is made anew for each record, there is None."""
    compiled = _nodes.get(id(node))
    if compiled is not None and compiled[0] is node:
        return compiled[1]
    made: list[tuple[Any, Callable[[], Any], list[str]]] = []
    declared = node.get("output_keys") or ()
    declared = [declared] if isinstance(declared, str) else declared
    for name, params in _unit_metrics(node):
        make = partial(UnitMetricRegistry.get_metric, name, **params)
        metric = make()
        is_ours = type(metric).__module__.startswith("assay.")
        column = UnitMetricRegistry.name_of(name, metric)
        both = [f"{column}{SUFFIX}", column]
        names = [each for each in both if each in declared] or both
        made.append((metric if is_ours else None, make, names))
    if len(_nodes) >= _MOST_NODES:
        _nodes.clear()
    _nodes[id(node)] = node, made
    return made


def result_columns(node: Config, where: str = "") -> dict[str, str]:
    """The variables that the results of a lambda node's unit metrics are stored as, and the code of those that are the
    user's own; UserError if one of them cannot be made."""
    try:
        made = _metrics_of_node(node)
    except AssayError as error:
        raise UserError(error.what, where=where, fix=error.fix) from None
    except Exception as error:  # a user's constructor may raise anything
        raise UserError(
            f"a unit metric cannot be made: {error_text(error)}", where=where
        ) from error
    return {
        name: "" if metric else code_of(type(make()))
        for metric, make, names in made
        for name in names
    }


def _unit_metrics(node: Config) -> list[tuple[str, Config]]:
    metrics: dict[str, Config] = {}
    for entry in node.get("unit_metrics_map") or ():
        configured = entry if isinstance(entry, Mapping) else {"name": entry}
        name, params = str(configured.get("name") or ""), configured.get("params", {})
        if not isinstance(params, Mapping):
            shown = "null" if params is None else type(params).__name__
            raise BadParameter(
                f"`params` of the unit metric {name!r} is {shown}: leave it out or write {{}}"
            )
        if name in metrics:
            what = f"two unit metrics are called {name!r}: one would hide the other"
            raise BadParameter(what, fix="keep one of them")
        metrics[name] = params
    return list(metrics.items())


def _value(node: Config, state: Config, key: str) -> Any:
    if key not in node:
        raise BadParameter(f"the unit metrics need `{key}`: the name of a variable of the graph")
    if node[key] not in state:
        raise UnknownName(
            f"{key}: the state has no {node[key]!r}",
            fix=f"it has {', '.join(sorted(map(str, state)))}",
        )
    return state[node[key]]


class MetricCollatorPostProcessor(GraphPostProcessor):
    """Computes the aggregator metrics of a run and reports them, in a list of one.

    `report_keys` is `name` (results under the aggregator's name; also called `seed`) or `field`
    (`<column>-<aggregator>`); by default the names of the columns tell which. Other parameters are not used.
    """

    def __init__(
        self,
        aggregator_metrics_map: Sequence[Config | str] | None = None,
        unit_metrics_results: str = "text",
        report_keys: Dialect | Literal["seed"] | None = None,
        **others: Any,
    ) -> None:
        configured = aggregator_metrics_map or ()
        self.aggregator_metrics_map = [
            entry if isinstance(entry, Mapping) else {"name": entry} for entry in configured
        ]
        self.unit_metrics_results = unit_metrics_results
        self.report_keys: Dialect | None = "name" if report_keys == "seed" else report_keys

    def entries(self) -> tuple[list[Entry], Dialect]:
        """The aggregators, made anew, and how the report names them."""
        configured, default = self.aggregator_metrics_map, self.unit_metrics_results
        style = self.report_keys or dialect(column_of(entry, default) for entry in configured)
        return entries(configured, default, style), style

    def process(self, data: Iterable[Config], metadata: Config) -> list[Row]:
        return [report_over(*self.entries(), data)]
