"""Metrics made ready: what form a function has is recognised once, from its signature."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from assay import registry
from assay.engine.evaluate.directions import SCALE, checked_scale
from assay.sdk import Group, JsonMapping, JsonObject, Scale, UserError
from assay.usercode import identity

Treatment = Literal["wrong", "exclude"]
OWN_KEYS = {
    "metric_name",
    "metric_type",
    "facets",
    "value",
    "policy",
    "error",
    "reason",
    "ci_low",
    "ci_high",
    "ci_level",
    "ci_method",
    "value_if_missing_wrong",
    "value_if_missing_right",
    "total_sample_count",
    "total_item_count",
    "average_sample_count",
    "used_sample_count",
    "planned_sample_count",
    "scored_count",
    "unparsed_count",
    "refused_count",
    "errored_count",
    "skipped_count",
}
NEEDED = "needed"
_ROWS_NAMES = ("evaluation_results", "results")


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How rows without a verdict count: as wrong answers, or not at all."""

    on_error: Treatment = "exclude"
    on_unparsed: Treatment = "wrong"
    on_refused: Treatment = "wrong"


class BoundMetric(msgspec.Struct, kw_only=True):
    """A metric with its parameters, facets and label filter.

    `rows_name` is the parameter that takes a group as a list of dicts (EEN's form), None for functions of
    a Group. `together` is the label under which the rows of all included labels are one group. `columns` are further
    fields that a Group shall have. `ordered`: the order of samples matters to it. With `verdicts` false
    it is not about right and wrong: every row counts, and its values have no natural ends; where they are
    NEEDED, it has no value for a label that is only a score. `lower_is_better` and `scale`
    are None where the value is better as the label's scores are, and on their scale; `own_scale` is
    what the function declares, whatever a config says. `cluster_by` is the column of what
    items share that are drawn together. `strict` intervals keep the level on each side, whatever the values.
    """

    name: str
    type: str
    function: Callable[..., Any]
    params: JsonObject = {}
    facets: list[str] = []
    include: list[str] = []
    exclude: list[str] = []
    together: str = ""
    policy: Policy = Policy()
    rows_name: str | None = None
    wants_rows: bool = False
    columns: list[str] = []
    ordered: bool = True
    verdicts: bool | Literal["needed"] = True
    lower_is_better: bool | None = None
    scale: Scale | None = None
    own_scale: Scale | None = None
    cluster_by: str = ""
    level: float = 0.95
    interval: Literal["auto", "bootstrap", "strict"] = "auto"

    def call(self, group: Group) -> Any:
        """Call the function with a group, or with its rows, as its signature wants."""
        if self.rows_name is None:
            return self.function(group, **self.params)
        given: JsonObject = {self.rows_name: group.rows}
        if "facets" in inspect.signature(self.function).parameters:
            given["facets"] = list(self.facets)
        return self.function(**given, **self.params)

    def takes(self, label: str) -> bool:
        """Whether rows of this label count; patterns may hold `*`, `?` and `[…]`."""
        if self.include:
            return any(label == pattern or fnmatchcase(label, pattern) for pattern in self.include)
        return not any(label == pattern or fnmatchcase(label, pattern) for pattern in self.exclude)

    def plan(self) -> JsonObject:
        """What a manifest says about it."""
        return {
            "name": self.name,
            "type": self.type,
            "identity": identity(self.function),
            "params": self.params,
            "facets": self.facets,
            "labels": {
                "include": self.include,
                "exclude": self.exclude,
                **({"together": self.together} if self.together else {}),
            },
            "policy": msgspec.to_builtins(self.policy),
            "level": self.level,
            "interval": self.interval,
            **({"scale": self.scale} if self.scale != self.own_scale else {}),
            **({"cluster_by": self.cluster_by} if self.cluster_by else {}),
        }


def bind_metric(
    *,
    name: str = "",
    type: str = "",
    params: JsonMapping | None = None,
    facets: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    together: str = "",
    policy: Policy | Mapping[str, str] | None = None,
    path: str = "",
    module: str = "",
    function_name: str = "",
    function: Callable[..., Any] | None = None,
    base: Path | None = None,
    level: float = 0.95,
    interval: Literal["auto", "bootstrap"] = "auto",
    scale: Scale | None = None,
    cluster_by: str = "",
    where: str = "",
) -> BoundMetric:
    """A metric from a config's words (`type`, or `path` or `module` with `function_name`), or from a function."""
    _check(include, exclude, level, facets, where)
    own = type if type not in ("", "built_in", "custom") else function_name or name
    found = function or _load(own, path, module, function_name, base, where)
    marks: JsonObject = getattr(found, "__assay__", {})
    rows_name = _rows_name(found, where)
    own = own or _name(found)
    schema = found if rows_name is None else registry.by_keyword(found, rows_name, "facets")
    checked = registry.check_params(schema, params or {}, where=where)
    own_scale = checked_scale(_mark(marks.get(SCALE), checked))
    ordered = marks.get("ordered", not str(found.__module__).startswith("assay."))
    return BoundMetric(
        name=name or own,
        type=own,
        function=found,
        params=checked,
        facets=list(dict.fromkeys(facets)),
        include=list(include),
        exclude=list(exclude),
        together=together,
        policy=_policy(policy, where),
        rows_name=rows_name,
        wants_rows=rows_name is not None or bool(marks.get("rows")),
        columns=list(_mark(marks.get("columns", ()), checked)),
        ordered=bool(_mark(ordered, checked)),
        verdicts=marks.get("verdicts", True),
        lower_is_better=marks.get("lower_is_better"),
        scale=scale or own_scale,
        own_scale=own_scale,
        cluster_by=cluster_by,
        level=level,
        interval=interval,
    )


def _mark(mark: Any, params: JsonMapping) -> Any:
    """Return what a function is marked with, which may depend on its parameters."""
    return mark(params) if callable(mark) else mark


def _check(
    include: Sequence[str], exclude: Sequence[str], level: float, facets: Sequence[str], where: str
) -> None:
    if include and exclude:
        raise UserError(
            "labels: include and exclude exclude each other",
            where=f"{where}.labels".lstrip("."),
            fix="keep one of them",
        )
    if not 0 < level < 1:
        raise UserError(
            f"a confidence level lies between 0 and 1, got {level!r}",
            where=where,
            fix="0.95 is usual",
        )
    for facet in facets:
        if facet in OWN_KEYS:
            raise UserError(
                f"every metric row has a field {facet!r}, so no facet can have this name",
                where=f"{where}.facets".lstrip("."),
                fix="copy the value into `metadata` under another name",
            )


def _rows_name(function: Callable[..., Any], where: str) -> str | None:
    """The parameter that takes rows as dicts (EEN's form); None for a function of a Group."""
    called = inspect.signature(function).parameters
    name = next((name for name in _ROWS_NAMES if name in called), None)
    if name is None and "group" not in called and not getattr(function, "__assay__", {}):
        raise UserError(
            f"{_name(function)} is not a metric: {inspect.signature(function)}",
            where=where,
            fix="use (group, *, …) or (evaluation_results, facets, **params)",
        )
    return name


def _load(
    own: str,
    path: str,
    module: str,
    function_name: str,
    base: Path | None,
    where: str,
) -> Callable[..., Any]:
    if path:
        return registry.load_function(
            path, function_name or "calculate_metric", base=base, where=where
        )
    if module:
        return registry.metric.get(
            f"{module}.{function_name or 'calculate_metric'}", base=base, where=where
        )
    if not own:
        raise UserError(
            "a metric needs a type", where=where, fix=registry.nearest("", registry.metric.names())
        )
    return registry.metric.get(own, base=base, where=where)


def _policy(policy: Policy | Mapping[str, str] | None, where: str) -> Policy:
    try:
        return policy if isinstance(policy, Policy) else msgspec.convert(dict(policy or {}), Policy)
    except msgspec.ValidationError as error:
        raise UserError(
            f"policy: {error}",
            where=where,
            fix="each of on_error, on_unparsed, on_refused is wrong or exclude",
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return cast("str", getattr(function, "__name__", function.__class__.__name__))
