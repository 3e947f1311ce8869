"""Statistics of a field of the responses behind a group: each response counts once, however many rows it has. And a
quantile with its interval, of such a field or of the scores."""

from typing import Literal

import numpy as np

from assay.sdk import FloatArray, Group, IntArray, JsonObject, Values, is_number
from assay.stats.intervals import Interval, item_contributions, quantile_interval


def columns(*names: str) -> list[str]:
    return ["response", *(f"response.{name}" for name in names)]


def once(group: Group, name: str) -> tuple[IntArray, FloatArray]:
    """Return a row and the value of each response that has a number in this field."""
    given = group.columns[f"response.{name}"]
    rows = np.fromiter((at for at, value in enumerate(given) if is_number(value)), np.int64)
    numbers = group.columns["response"]
    # a row without a response is one of its own
    own = (-1 - at if numbers[at] is None else numbers[at] for at in rows)
    responses = np.fromiter(own, np.int64, len(rows))
    ordered = np.sort(responses)
    if (ordered[1:] == ordered[:-1]).any():
        rows = rows[np.sort(np.unique(responses, return_index=True)[1])]
    return rows, np.fromiter((given[at] for at in rows), np.float64, len(rows))


STREAM = "metadata.stream"
Statistic = Literal["mean", "median", "p95", "p99"]
_SHARES = {"median": 0.5, "p95": 0.95, "p99": 0.99}


def quantile(group: Group, share: float, fields: JsonObject) -> Values:
    """The quantile of the scores."""
    value = float(np.quantile(group.score, share))
    return with_interval(
        value, fields, quantile_interval(group.unit, group.score, share, group.level)
    )


def with_interval(value: float, fields: JsonObject, interval: Interval) -> Values:
    return Values(value=value, fields=fields, interval=interval)


def statistics(
    group: Group, name: str, fields: JsonObject, statistic: Statistic = "mean"
) -> Values:
    """A statistic of a field with its spread, and the intervals of its quantiles; null where no response has it."""
    rows, values = once(group, name)
    items = group.item[rows]
    if not len(rows):
        return Values(fields=fields, reason=f"no response behind these rows has {name!r}")
    intervals = {
        each: quantile_interval(group.unit[rows], values, share, group.level)
        for each, share in _SHARES.items()
    }
    ends = {each: interval[:2] for each, interval in intervals.items()}
    fields = {**_summary(values), "intervals": ends, **fields}
    if statistic == "mean":
        found = Values(value=float(values.mean()), fields=fields, items=items)
        found.per_item = item_contributions(items, values)
    else:
        found = with_interval(fields[statistic], fields, intervals[statistic])
    found.rows = rows
    return found


def _summary(values: FloatArray) -> JsonObject:
    low, median, p95, p99, high = np.percentile(values, (0, 50, 95, 99, 100)).tolist()
    return {
        "response_count": len(values),
        "sum": float(values.sum()),
        "min": low,
        "median": median,
        "p95": p95,
        "p99": p99,
        "max": high,
        "std": float(values.std(ddof=1)) if len(values) > 1 else None,
    }


def stream_statistics(group: Group, name: str, statistic: Statistic) -> Values:
    """The same of a time that only streamed answers have."""
    values = statistics(group, f"{STREAM}.{name}", {}, statistic)
    if values.value is None:
        needs = "`stream: true` and a server that streams" + (
            "" if name == "ttft" else ", more than one token"
        )
        values.reason = f"no response behind these rows has {name!r}: it needs {needs}"
    return values
