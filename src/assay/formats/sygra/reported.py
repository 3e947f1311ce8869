"""The numbers of a report, and the same from the records that it is about."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from assay.engine.experiment.imports.foreign import Headline
from assay.formats.sygra.exchange import Roles, attempts_in
from assay.formats.sygra.metrics import AggregatorMetricRegistry, UnitMetricResult

Row = dict[str, Any]
_POOLED = ("pass@k", "pass^k")
_ELSEWHERE = "it was computed from what a post-processor made of the records"
_UNKNOWN = "the report does not say which column and parameters it is about"


def headlines_of(
    report: Any, roles: Roles, records: Callable[[], Iterable[Row]]
) -> Iterator[Headline]:
    """Each number of the report's results. Numbers of single classes stay in the report."""
    found = cast("list[Any]", report)[0] if isinstance(report, list) and report else report
    results = cast("Row", found).get("results") if isinstance(found, dict) else None
    for key, payload in cast("Row", results).items() if isinstance(results, dict) else ():
        label, name = _about(str(key), roles)
        numbers = _numbers(payload)
        ours = {} if name == "accuracy" and label else _computed(name, label, numbers, records)
        for part, value in numbers.items():
            metric = str(key) if part == name else f"{key}.{part}"
            if name == "accuracy" and part == "accuracy" and label:
                yield Headline(label=label, metric=metric, value=value, of="passed", reduce="none")
            else:
                reason = "" if part in ours else _ELSEWHERE if label else _UNKNOWN
                yield Headline(
                    label=label, metric=metric, value=value, ours=ours.get(part), reason=reason
                )


def _about(key: str, roles: Roles) -> tuple[str, str]:
    """The label and the aggregator that a key of the results names: `<column>-<aggregator>`, or only the latter."""
    for column in roles.columns:
        if key.startswith(f"{column}-"):
            return column, key.removeprefix(f"{column}-")
    return roles.columns[0] if len(roles.columns) == 1 else "", key


def _numbers(payload: Any) -> dict[str, float]:
    fields = cast("Row", payload) if isinstance(payload, dict) else {"": payload}
    return {
        str(name): float(value)
        for name, value in fields.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


# a user's metric of this name may raise anything, and its number stays unchecked
def _computed(
    name: str, column: str, numbers: Mapping[str, float], records: Callable[[], Iterable[Row]]
) -> dict[str, float]:
    """What the aggregator of this name gives for the column; empty where that cannot be told."""
    if not column or not AggregatorMetricRegistry.has_metric(name):
        return {}
    first = next(
        (results[0] for record in records() if (results := attempts_in(record.get(column)))), None
    )
    if first is None or any(len(attempts_in(record.get(column))) > 1 for record in records()):
        return {}
    params = _params(name, first, numbers)
    if params is None:
        return {}
    try:
        made: Any = AggregatorMetricRegistry.get_metric(name, **params)
        rows = (
            UnitMetricResult.from_dict(each)
            for record in records()
            for each in attempts_in(record.get(column))
        )
        return _numbers(made.calculate(rows))
    except Exception:
        return {}


def _params(name: str, first: Row, numbers: Mapping[str, float]) -> Row | None:
    """Return the aggregator's parameters, as a result and its numbers tell them."""
    if name not in _POOLED:
        return {f"{side}_key": next(iter(first[side]), "text") for side in ("golden", "predicted")}
    largest = [int(part[5:]) for part in numbers if part[:5] == name[:5] and part[5:].isdecimal()]
    return {"k": max(largest)} if largest else None
