"""One metric over one group of rows: policy, the metric itself, counts, bounds and interval.

A metric computes a value and nothing else; whatever must be the same for all metrics, and right, is done here.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.engine.aggregate.bind import NEEDED, OWN_KEYS, BoundMetric, Policy, bind_metric
from assay.interfaces import Codes, FloatArray, Group, IntArray, Integers, Mask, Scale, Values
from assay.sdk import AssayError, JsonMapping, JsonObject, MetricRow, UserError, is_number
from assay.stats.intervals import Interval, cluster_fields, mean_interval, no_interval
from assay.stats.resampling import statistic_interval
from assay.store.table.facets import typed
from assay.store.table.labels import OUTCOMES, SKIPPED, VALUED
from assay.usercode import raised

__all__ = ["BoundMetric", "Policy", "Sample", "bind_metric", "measure"]

NO_VERDICT = (
    "is only a score: let its scorer say what passes (`threshold`, `passed`), or use `mean`"
)


class Sample(msgspec.Struct, kw_only=True):
    """All rows of one group before the policy, sorted by (item, sample). `load` reads them as dicts in that order,
    `take` gives the values of a declared column; `planned` is how many rows there should be, where that is known;
    `calibration` and `warning` are what is known about the judge that gave the label; `lower_is_better`: a lower score
    is the better one; `scale`: the ends of the scores, where the scorer declares them. `passed` is -1 where the label
    is only a score."""

    label: str
    facets: JsonObject = {}
    item: Codes
    sample: Codes
    passed: Mask | npt.NDArray[np.int8]
    score: FloatArray
    outcome: npt.NDArray[np.int8]
    load: Callable[[], list[JsonObject]]
    take: Callable[[str], list[Any]] = lambda name: []
    planned: int | None = None
    calibration: JsonObject | None = None
    warning: str | None = None
    lower_is_better: bool = False
    scale: Scale | None = None


class _Loaded(msgspec.Struct):
    """The rows of a group that count, and those left out although a verdict was due; what a metric asked for beside the
    usual columns, read once. `cluster` has that of each item."""

    used: Mask
    excluded: Mask
    rows: list[JsonObject]
    columns: dict[str, list[Any]]
    cluster: IntArray | None


def measure(bound: BoundMetric, sample: Sample) -> list[MetricRow]:
    """The row of this group; several where the function returned a list."""
    loaded = _Loaded(
        *_by_policy(bound, sample.outcome),
        sample.load() if bound.wants_rows else [],
        {name: sample.take(name) for name in bound.columns},
        _clusters(bound, sample) if bound.cluster_by else None,
    )
    found, error = _called(bound, sample, loaded, None)
    bounds = _bounds(bound, sample, loaded, found)
    made: list[MetricRow] = []
    for values in found:
        row = _number_fields(bound, sample, loaded, values)
        row.update(_counts(sample, loaded.used, values))
        row.setdefault("sample_count", row["used_sample_count"])
        row["policy"] = msgspec.to_builtins(bound.policy)
        row.update(bounds)
        if error is not None:
            row["error"] = error
        elif values.value is None and values.reason:
            row["reason"] = values.reason
        if sample.warning:
            row.setdefault("warning", sample.warning)
        made.append(row)
    return made


def _number_fields(
    bound: BoundMetric, sample: Sample, loaded: _Loaded, values: Values
) -> MetricRow:
    """Return the fields of what was measured, the value and its interval."""
    facets = [*bound.facets, *values.facets]
    row: MetricRow = {"metric_name": bound.name, "metric_type": bound.type, "facets": facets}
    row.update({**sample.facets, **values.facets})
    row.update(label=sample.label, value=values.value)
    row.setdefault(bound.type, values.value)
    for key, value in values.fields.items():
        if key not in OWN_KEYS:
            row.setdefault(key, value)
    low, high, method = _interval(bound, sample, loaded, values)
    row.update(ci_low=low, ci_high=high, ci_level=bound.level, ci_method=method)
    units = _units(sample, loaded, values)
    if units is not None:
        row.update(cluster_fields(bound.cluster_by, values.per_item, units))
    return row


# ---- policy, counts and bounds


def _by_policy(bound: BoundMetric, outcome: npt.NDArray[np.int8]) -> tuple[Mask, Mask]:
    """The rows that count, and those left out although a verdict was due; typed values count without one where the
    metric looks at them."""
    policy = bound.policy
    values = bool(bound.wants_rows or bound.columns or not bound.verdicts)
    treatment = {
        "errored": policy.on_error,
        "unparsed": policy.on_unparsed,
        "refused": policy.on_refused,
    }
    used = np.array(
        [*(name == "scored" or treatment.get(name) == "wrong" for name in OUTCOMES), values]
    )[outcome]
    excluded = ~used & (outcome != SKIPPED) & (outcome != VALUED)
    return (used, excluded) if bound.verdicts else (used | excluded, np.zeros_like(excluded))


def _counts(sample: Sample, used: Mask, values: Values) -> JsonObject:
    """Of the whole group, or, of a value with facets of its own, of the items that it is made of."""
    item = sample.item
    outcome = sample.outcome
    planned = sample.planned
    if values.rows is not None:
        rows = np.flatnonzero(used)[values.rows]
        used = np.zeros_like(used)
        used[rows] = True
    if values.facets and values.items is not None:
        own = np.isin(item, values.items)
        item = item[own]
        outcome = outcome[own]
        used = used[own]
        planned = None
    total = len(item)
    items = _distinct(item)
    counts = [int(np.count_nonzero(outcome == code)) for code in range(VALUED + 1)]
    counts[0] += counts.pop(VALUED)
    return {
        "planned_sample_count": planned,
        "total_sample_count": total,
        "total_item_count": items,
        "average_sample_count": total // items if total % items == 0 else total / items,
        "used_sample_count": int(used.sum()),
        **{f"{name}_count": count for name, count in zip(OUTCOMES, counts, strict=True)},
    }


def _distinct(ordered: Codes) -> int:
    return 1 + int(np.count_nonzero(np.diff(ordered))) if len(ordered) else 0


def _bounds(
    bound: BoundMetric, sample: Sample, loaded: _Loaded, found: list[Values]
) -> dict[str, float | None]:
    """The value if every excluded row were wrong, and if it were right; the value itself where none is excluded."""
    wrong = right = found
    if loaded.excluded.any() and len(found) == 1:
        (wrong, _), (right, _) = (_called(bound, sample, loaded, right) for right in (False, True))
    kept = loaded.used | loaded.excluded
    return {
        "value_if_missing_wrong": _value_of_all(sample, kept, wrong),
        "value_if_missing_right": _value_of_all(sample, kept, right),
    }


def _value_of_all(sample: Sample, kept: Mask, found: list[Values]) -> float | None:
    """Return the only value; None if a failed answer has no row among those that it is made of."""
    if len(found) != 1:
        return None
    rows = found[0].rows
    if rows is not None:
        answer = sample.item.astype(np.int64) << 32 | sample.sample
        failed = kept & (sample.outcome > 0) & (sample.outcome < SKIPPED)
        if failed.any() and not np.isin(answer[failed], answer[kept][rows]).all():
            return None
    return found[0].value


def item_clusters(values: Sequence[Any], item: Integers, name: str) -> dict[int, bytes]:
    """Return the cluster of each item that has one: of its rows those with a value must agree."""
    found: dict[int, bytes] = {}
    for at, value in zip(item.tolist(), values, strict=True):
        if value is not None and found.setdefault(at, typed(value)) != typed(value):
            what = f"rows of one item have different values of {name!r}, such as {value!r}"
            fix = "name something that items share, such as item.metadata.passage"
            raise UserError(what, where="cluster_by", fix=fix)
    return found


def _clusters(bound: BoundMetric, sample: Sample) -> IntArray:
    """Return the first item of the cluster of each item; one without a value is a cluster of its own."""
    clusters = np.arange(int(sample.item.max(initial=0)) + 1)
    first: dict[bytes, int] = {}
    values = sample.take(bound.cluster_by)
    for at, value in item_clusters(values, sample.item, bound.cluster_by).items():
        clusters[at] = first.setdefault(value, at)
    return clusters


def cluster_lines(rows: Sequence[MetricRow]) -> list[str]:
    """Return a line about the clusters of metric rows, and the most that they matter."""
    own = [row for row in rows if "cluster_by" in row]
    most = max(own, key=lambda row: row.get("design_effect") or 0.0, default={})
    line = f"clusters: {most.get('cluster_by')} ({most.get('cluster_count')})"
    if most.get("design_effect"):
        many = "up to " if len(own) > 1 else ""
        line += f"; ICC {many}{most['icc']:.2f}, design effect {many}{most['design_effect']:.1f}"
    return [line] if own else []


def _units(sample: Sample, loaded: _Loaded, values: Values) -> IntArray | None:
    """Return the cluster of each item that the value is made of; None without clusters."""
    if loaded.cluster is None or values.value is None:
        return None
    own = values.items
    if own is None:
        own = sample.item[loaded.used]
        own = own if values.rows is None else own[values.rows]
    return loaded.cluster[np.unique(own)]


def _interval(bound: BoundMetric, sample: Sample, loaded: _Loaded, values: Values) -> Interval:
    if values.value is None:
        return no_interval("there is no value")
    if values.interval is not None:
        return Interval(*values.interval)
    if values.resampled is not None:
        units = _units(sample, loaded, values)
        return statistic_interval(values.resampled, bound.level, clusters=units)
    if values.per_item is None:
        return no_interval(values.reason or "the value is not a mean over items")
    if len(values.per_item) < 2:
        return Interval(None, None, "none: an interval needs at least two items")
    return _interval_of_mean(bound, sample, loaded, values)


def _interval_of_mean(
    bound: BoundMetric, sample: Sample, loaded: _Loaded, values: Values
) -> Interval:
    assert values.per_item is not None
    scale, weak = _scale(bound, sample, loaded.used, values)
    lower = sample.lower_is_better if bound.lower_is_better is None else bound.lower_is_better
    own = values.rows if values.items is None else values.items
    found = mean_interval(
        values.per_item,
        weights=values.weights,
        samples=int(loaded.used.sum()) if own is None else len(own),
        scale=scale,
        lower_is_better=lower,
        clusters=_units(sample, loaded, values),
        level=bound.level,
        way=bound.interval,
    )
    if weak:
        found = found._replace(method=found.method.partition(";")[0] + weak)
    return found if values.transform is None else found.transformed(values.transform)


def _scale(
    bound: BoundMetric, sample: Sample, used: Mask, values: Values
) -> tuple[Scale | None, str]:
    """Return the declared ends, else 0 and 1, if all scores lie between, None if not: as the values
    are; and what is then weak about the interval."""
    declared = values.scale or bound.scale or (sample.scale if bound.verdicts else (None, None))
    if values.scale or bound.own_scale or not bound.verdicts:
        return declared, ""
    value = values.value or 0.0
    scored = used & (sample.outcome == 0)
    least = float(sample.score.min(where=scored, initial=value))
    most = float(sample.score.max(where=scored, initial=value))
    scale = declared or (0.0, 1.0)
    if _lies_within(scale, least, most):
        return scale, ""
    return None, "; weak: some scores lie outside the declared scale" if declared else ""


def _lies_within(scale: Scale, least: float, most: float) -> bool:
    low, high = scale
    return (low is None or low <= least) and (high is None or most <= high)


# ---- the call


def _called(
    bound: BoundMetric,
    sample: Sample,
    loaded: _Loaded,
    excluded_as: bool | None,
) -> tuple[list[Values], str | None]:
    """What the metric says and, should it raise, why; excluded rows are left out (None) or count as given."""
    kept = loaded.used
    excluded = loaded.excluded
    if excluded_as is not None:
        kept = kept | excluded
    if none := _no_value(bound, sample, kept):
        return none, None
    group = _group(bound, sample, loaded, kept, excluded & bool(excluded_as))
    out = excluded & ~kept
    group.left_out = sample.item[out]
    if out.any():
        group.left_out_columns = {
            name: list(compress(values, out)) for name, values in loaded.columns.items()
        }
    try:
        return _values(bound, bound.call(group)), None
    except (
        Exception
    ) as error:  # user code may raise anything: this group's row says it, the others stand
        text = error.what if isinstance(error, AssayError) else raised(error)
        return [Values(value=None)], text


def _no_value(bound: BoundMetric, sample: Sample, kept: Mask) -> list[Values]:
    """Return why the metric cannot be called, as its values, if that is so."""
    reason = ""
    if not kept.any():
        reason = f"none of {len(kept)} rows counts under this policy"
    elif bound.verdicts == NEEDED and (sample.passed < 0).any():
        reason = f"{sample.label} {NO_VERDICT}"
    return [Values(value=None, fields=dict(bound.params), reason=reason)] if reason else []


def _group(bound: BoundMetric, sample: Sample, loaded: _Loaded, kept: Mask, right: Mask) -> Group:
    """Return the rows that count."""
    chosen = slice(None) if kept.all() else kept
    passed, score = _with_failures(sample, chosen, right)
    columns = loaded.columns
    if not isinstance(chosen, slice):
        columns = {name: list(compress(values, kept)) for name, values in columns.items()}
    item = sample.item[chosen]
    return Group(
        item=item,
        sample=sample.sample[chosen],
        passed=passed > 0,
        score=score,
        columns=columns,
        rows=_with_verdicts(sample, compress(enumerate(loaded.rows), kept), passed, score),
        label=sample.label,
        facets=sample.facets,
        level=bound.level,
        calibration=sample.calibration,
        lower_is_better=sample.lower_is_better,
        scale=sample.scale,
        cluster=None if loaded.cluster is None else loaded.cluster[item],
        only_scores=bool((passed < 0).any()),
    )


def _with_verdicts(
    sample: Sample, rows: Iterable[tuple[int, JsonObject]], passed: Any, score: FloatArray
) -> list[JsonObject]:
    """Return rows, given with their places, with the label, verdict and score that they count with."""
    made: list[JsonObject] = []
    for (place, row), verdict, number in zip(rows, passed, score, strict=False):
        made.append({**row, "label": sample.label})
        if sample.outcome[place] != VALUED:
            made[-1] |= {
                "passed": None if verdict < 0 else bool(verdict),
                "score": float(number),
            }
    return made


def _with_failures(
    sample: Sample, chosen: Mask | slice, right: Mask
) -> tuple[npt.NDArray[Any], FloatArray]:
    """Return passed and score of the chosen rows; one without a verdict is wrong unless it is in `right`.

    Its score is then the worst or the best end of the scale, which is 0 to 1 unless the scorer
    declares another; or the lowest or highest score of the group where that lies further out.
    """
    passed = sample.passed[chosen]
    score = sample.score[chosen]
    failed = sample.outcome[chosen] != 0
    if failed.any():
        scored, (least, most) = sample.outcome == 0, sample.scale or (0.0, 1.0)
        low = float(sample.score.min(where=scored, initial=0.0 if least is None else least))
        high = float(sample.score.max(where=scored, initial=1.0 if most is None else most))
        right = right[chosen][failed]
        best, worst = (low, high) if sample.lower_is_better else (high, low)
        passed, score = passed.copy(), score.copy()
        passed[failed] = right
        score[failed] = np.where(right, best, worst)
    return passed, score


# ---- what metrics return


def _values(bound: BoundMetric, result: Any) -> list[Values]:
    if result == []:
        return []
    several: list[Any] = result if isinstance(result, list) else [result]
    if all(isinstance(each, Values) for each in several):
        return [
            msgspec.structs.replace(each, value=_number(each.value), fields=_plain(each.fields))
            for each in several
        ]
    if isinstance(result, Mapping) or (
        isinstance(result, list) and all(isinstance(each, dict) for each in several)
    ):
        return [_of_mapping(bound, each) for each in several]
    if result is None or isinstance(result, (int, float, np.number, np.bool_)):
        value = _number(result)
        return [
            Values(
                value=value,
                reason="the metric returned no finite number" if value is None else None,
            )
        ]
    raise TypeError(f"the metric returned {type(result).__name__}, not a number or a mapping")


def _of_mapping(bound: BoundMetric, result: JsonMapping) -> Values:
    """The value is `value`, or the field named like the metric, or the only number."""
    fields = cast("JsonObject", _plain(dict(result)))
    numbers = [key for key, value in fields.items() if is_number(value)]
    named = [key for key in ("value", bound.type, bound.name) if key in fields]
    key = named[0] if named else numbers[0] if len(numbers) == 1 else None
    if key is None:
        return Values(value=None, fields=fields, reason="which field is the value? name it `value`")
    value = _number(fields[key])
    given = fields.get("reason") or fields.get("error") or f"{key!r} is not a finite number"
    return Values(value=value, fields=fields, reason=str(given) if value is None else None)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_from_numpy)


def _from_numpy(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return cast("Any", value).tolist()
    raise TypeError(f"a metric's field holds {type(value).__name__}, which is not a JSON value")
