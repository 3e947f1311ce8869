"""SyGra's aggregators, and a user's own, as metrics of the engine: `sygra.accuracy`, `sygra.f1_score`, `sygra.pass@k` …

The value and the fields of a row are SyGra's; `sound` has the numbers beside them. Each is made from its class, so that
a formula stands in one place. The labels of a row are what `detailed_results` has as `predicted` and `expected`: an
object with the label under a key, or the label itself, whose key is then `text`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from assay.engine.aggregate.bind import BoundMetric, bind_metric
from assay.errors import UserError
from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    BadParameter,
    BaseAggregatorMetric,
    UnitMetricResult,
    error_text,
)
from assay.formats.sygra.metrics.counting import (
    METADATA,
    Counting,
    Key,
    Labelled,
    by_problem,
    quoted,
)
from assay.formats.sygra.types import Config, Row
from assay.interfaces import Group, Values
from assay.metrics.label_scores import ACTUAL, PREDICTED
from assay.metrics.pass_rate import pass_rate
from assay.registry import metric

PROBLEM = "detailed_results.problem"
SIDES = (PREDICTED, ACTUAL, METADATA)
_TEXT = "text"
OURS: dict[str, type[Counting]] = {
    name: AggregatorMetricRegistry.get_metric_class(name)
    for name in AggregatorMetricRegistry.list_metrics()
}


def _register(name: str, kind: type[Counting]) -> None:
    """In a config, the key of a label is `text` unless it says otherwise."""
    keys = {field.name: _TEXT for field in kind.fields if field.name.endswith("_key")}
    optional = msgspec.defstruct(
        name, [(key, Key, _TEXT) for key in keys], bases=(kind.parameters,), kw_only=True
    )
    optional.__doc__ = Labelled.__doc__ if keys else kind.__doc__

    def measure(group: Group, **params: Any) -> Values:
        return _counted(kind(**{**keys, **params}), group)

    def columns(params: Config) -> list[str]:
        return [*kind.reads, PROBLEM, *(params[key] for key in keys if "." in params.get(key, ""))]

    measure.__name__ = measure.__qualname__ = name.replace("@", "_at_").replace("^", "_power_")
    measure.__doc__ = (
        f"{kind.about.description}, by SyGra's formula; `sound` has the number to quote."
    )
    metric(name=f"sygra.{name}", columns=columns, params=optional, verdicts="needed", scale=(0, 1))(
        measure
    )


for _name, _kind in OURS.items():
    _register(_name, _kind)


@metric(name="sygra.aggregator", columns=(*SIDES, PROBLEM, "outcome"), verdicts="needed")
def aggregator(
    group: Group,
    *,
    metric: Annotated[str, Meta(min_length=1)],
    params: Config | None = None,
    module: str = "",
    base: str = "",
) -> Values:
    """An aggregator metric of the user's own. Its payload is the row's `payload`, its value the number of its name, or
    the only one.

    Parameters:
    metric: the name that it is registered under, or the dotted path of its class
    params: its parameters
    module: the module that registers it
    base: the folder that the module's name counts from
    """
    if "errored" in group.columns["outcome"]:
        return Values(
            value=None, reason="what a failed row would change is not asked of a user's metric"
        )
    if module and not AggregatorMetricRegistry.has_metric(metric):
        from assay.formats.sygra.modules import Loader

        Loader(Path(base))(module)
    try:
        made = AggregatorMetricRegistry.get_metric(metric, **(params or {}))
        payload: Any = msgspec.to_builtins(
            made.calculate(list(_results(group))), str_keys=True, enc_hook=_from_numpy
        )
    except Exception as error:  # user code may raise anything
        raise UserError(error_text(error)) from error
    shown: Row = payload if isinstance(payload, dict) else {metric: payload}
    numbers = {key: number for key, number in shown.items() if type(number) in (int, float)}
    value = numbers.get(metric, next(iter(numbers.values())) if len(numbers) == 1 else None)
    problems = by_problem(group, group.columns[PROBLEM])
    fields = {"payload": payload, "sound": {"accuracy": quoted(pass_rate(problems), problems)}}
    return Values(value=value, fields=fields, reason="a user's metric: see its payload")


def _from_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"the payload holds {type(value).__name__}, which is not a JSON value")


def _counted(made: Counting, group: Group) -> Values:
    payload = made.calculate(_results(group))
    problems = by_problem(group, group.columns[PROBLEM], made.attempts())
    sound = {"accuracy": quoted(pass_rate(problems), problems), **made.sound(problems)}
    value, reason = made.value(payload), made.reason
    if isinstance(made, Labelled) and not (made.counts.predicted or made.counts.actual):
        value, reason = (
            None,
            f"no row has a label under {' or '.join(map(repr, dict.fromkeys(made.keys)))}",
        )
    mean = made.mean(problems)
    per_item = mean.per_item if mean is not None and mean.value == value else None
    return Values(value=value, fields={**payload, "sound": sound}, per_item=per_item, reason=reason)


def _results(group: Group) -> Iterator[UnitMetricResult]:
    """The rows as a unit metric's results. Rows of other scorers count retries by their samples."""
    nothing: list[Any] = [None] * len(group.item)
    predicted, golden, metadata = (group.columns.get(name, nothing) for name in SIDES)
    paths = [name for name in group.columns if name not in (*SIDES, PROBLEM, "outcome")]
    for at, right in enumerate(group.passed.tolist()):
        more: Any = metadata[at]
        if not isinstance(more, dict):
            more = {
                "mission_id": int(group.item[at]),
                "step_id": "",
                "retry_number": int(group.sample[at]),
            }
        beside = {
            name: group.columns[name][at] for name in paths if group.columns[name][at] is not None
        }
        yield UnitMetricResult(
            right, _side(golden[at], beside), _side(predicted[at], beside), dict(more)
        )


def _side(value: Any, beside: Row) -> Row:
    if not isinstance(value, dict):
        value = {} if value is None else {_TEXT: value}
    return {**beside, **value}


Dialect = Literal["name", "field"]
SUFFIX = "_result"


class Entry(msgspec.Struct):
    """One configured aggregator; `problem` says why it can have no result, `apart` what tells it from others of its
    name on its column."""

    name: str
    shown: str
    field: str
    key: str
    metric: BaseAggregatorMetric | None
    copied: dict[str, str]
    problem: str | None = None
    settings: Row = {}
    apart: str = ""

    @property
    def label(self) -> str:
        """Of the evaluation rows that it counts."""
        return f"{self.field} with {', '.join(self.copied)}" if self.copied else self.field

    def bound(self, name: str = "", base: str = "") -> BoundMetric:
        """As a metric of the engine; `base` is the folder that a user's module is found from."""
        made = self.metric
        assert made is not None
        if isinstance(made, Counting) and OURS.get(self.name) is type(made):
            type_ = f"sygra.{self.name}"
            params = {field: getattr(made, field) for field in made.parameters.__struct_fields__}
        else:
            type_ = "sygra.aggregator"
            params = {
                "metric": self.name,
                "params": made.config,
                "module": type(made).__module__,
                "base": base,
            }
        return bind_metric(name=name or self.key, type=type_, params=params, include=[self.label])


def dialect(fields: Iterable[str]) -> Dialect:
    """Return `name` if every column is `<unit metric>_result`, as the older version wrote them;
    else `field`."""
    return "name" if all(field.endswith(SUFFIX) for field in fields) else "field"


def column_of(configured: Config, default: str) -> str:
    """The column that an entry reads; of a list it is the first."""
    column: Any = configured.get("unit_metrics_results", default)
    if isinstance(column, list):
        column = cast("list[Any]", column)[0] if column else ""
    return str(column or "")


def entries(configured: Sequence[Config], default: str, style: Dialect) -> list[Entry]:
    """The configured aggregators with their report keys: the plain name, or `<column>-<name>`.

    Two of one name on different columns would hide one another under the plain name, so both get the long one. Two on
    one column say how they differ (`pass@k(k=1)`); what is written twice counts once.
    """
    made = [_entry(aggregator, column_of(aggregator, default)) for aggregator in configured]
    distinct: list[Entry] = []
    for entry in made:
        namesakes = [other for other in made if other.shown == entry.shown]
        is_alone = all(other.field == entry.field for other in namesakes)
        entry.key = entry.shown if style == "name" and is_alone else f"{entry.field}-{entry.shown}"
        others = [other.settings for other in namesakes if other.field == entry.field]
        settings = entry.settings.items()
        told = [
            f"{name}={value}"
            for name, value in settings
            if any(other.get(name) != value for other in others)
        ]
        entry.apart = f"({', '.join(told)})" if told else ""
        entry.key += entry.apart
        if not any(
            (other.key, other.settings) == (entry.key, entry.settings) for other in distinct
        ):
            distinct.append(entry)
    return distinct


def _entry(configured: Config, field: str) -> Entry:
    name, params = str(configured.get("name") or ""), configured.get("params", {})
    entry = Entry(name, name, field, "", None, {})
    try:
        if not isinstance(params, Mapping):
            shown = "null" if params is None else type(params).__name__
            raise BadParameter(
                f"`params` of the aggregator metric {name!r} is {shown}: leave it out or write {{}}"
            )
        entry.copied = msgspec.convert(configured.get("metadata") or {}, dict[str, str])
        entry.settings = {**params, **({"metadata": entry.copied} if entry.copied else {})}
        entry.metric = made = AggregatorMetricRegistry.get_metric(name, **params)
        entry.shown = AggregatorMetricRegistry.name_of(name, made)
    except (
        Exception
    ) as error:  # a user's constructor may raise anything: this entry says it, the others stand
        entry.problem = error_text(error)
    return entry
