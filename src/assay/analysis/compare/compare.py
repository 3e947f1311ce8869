"""Do experiments, models or prompts differ? A standing for each side, and for each pair one word.

Pairs are matched by item. `better` and `worse` come from a test corrected for the number of pairs, `equivalent` from
two one-sided tests against a margin; everything else is `inconclusive`, with the number of items that would settle it.
Unfinished or damaged evidence is `incomplete`, unless the caller wants to compare what there is.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from assay.analysis.compare.matching import match_items, match_labels
from assay.analysis.compare.measured import (
    Matched,
    Measured,
    bound_metric,
    matched,
    measured,
    shared_policy,
)
from assay.analysis.compare.notes import Flip, find_flips, notes, unmatched
from assay.analysis.compare.paired import Side, checked_level, find_sides, shared_label
from assay.engine.aggregate.measure import BoundMetric, Policy
from assay.errors import UserError
from assay.shown import Shown
from assay.stats.paired import equivalent, interval, significance
from assay.stats.student import (
    holm,
    items_for_difference,
    items_for_equivalence,
    smallest_difference,
)

if TYPE_CHECKING:
    from assay.analysis.compare.across import Across
    from assay.analysis.compare.reference import Referenced

Word = Literal["better", "worse", "equivalent", "inconclusive", "incomplete"]


class SideStanding(msgspec.Struct, kw_only=True):
    """One side. `ranks` is the best and the worst place that the pairs leave open to it."""

    name: str
    value: float
    ci_low: float | None
    ci_high: float | None
    ci_method: str
    ranks: tuple[int, int]
    items: int
    samples: int
    counts: dict[str, int]
    partial: str = ""


class Pair(msgspec.Struct, kw_only=True):
    """A candidate against a baseline: the difference is candidate - baseline, over the items that both have."""

    candidate: str
    baseline: str
    items: int
    only_candidate: int
    only_baseline: int
    difference: float
    ci_low: float
    ci_high: float
    p: float
    p_corrected: float
    test: str
    p_equivalent: float | None
    smallest_difference: float
    verdict: Word = "inconclusive"
    items_needed: int | None = None
    gained: int = 0
    lost: int = 0
    partial: str = ""
    flips: list[Flip] = []


class Comparison(Shown, kw_only=True):
    """`standings` from the best to the worst; `pairs` in the order in which the sides were named."""

    metric: str
    label: str
    lower_is_better: bool = False
    level: float
    margin: float | None
    policy: Policy
    standings: list[SideStanding]
    pairs: list[Pair]
    notes: list[str]


class CompareOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How to compare. `where`: only rows with these facet values; `flips`: how many changed items to list for each
    pair, by default five if there is one pair and none otherwise; `partial`: judge unfinished evidence, too."""

    metric: str = "mean"
    label: str = ""
    where: Mapping[str, Any] = {}
    level: float = 0.95
    margin: float | None = None
    flips: int | None = None
    partial: bool = False


@overload
def compare(
    paths: Sequence[str | Path], *, reference: str | Path, **options: Any
) -> "Referenced": ...


@overload
def compare(
    paths: Sequence[str | Path], *, all_labels: Literal[False] = False, **options: Any
) -> Comparison: ...


@overload
def compare(
    paths: Sequence[str | Path], *, all_labels: Literal[True], **options: Any
) -> "Across": ...


def compare(
    paths: Sequence[str | Path],
    *,
    facet: str = "",
    values: Sequence[Any] = (),
    all_labels: bool = False,
    lower: Sequence[str] = (),
    label: str = "",
    reference: str | Path = "",
    **options: Any,
) -> "Comparison | Across | Referenced":
    """Tell whether experiments differ, or with `facet` the values of a facet within one; options as in CompareOptions.
    With `all_labels` it is one table of all labels. `lower` names labels under which less is better, beside those whose
    scorer or metric says so. With `reference`, a model or a file of published scores, each experiment is compared with
    those."""
    if reference:
        from assay.analysis.compare.reference import referenced  # it needs the options

        if facet or lower or all_labels:
            raise UserError(
                "a reference is compared row by row",
                fix="choose rows with --where, --metric and --label",
            )
        return referenced(paths, reference, label=label, **options)
    if all_labels:
        from assay.analysis.compare.across import across  # it is made of comparisons

        only = [label] if label else []
        return across(paths, facet=facet, values=values, labels=only, lower=lower, **options)
    chosen = checked(CompareOptions(label=label, **options))
    sides, by_text = match_items(find_sides(paths, facet, values, chosen.where, lower))
    sides, label, by_label = match_labels(sides, label)
    comparison = compare_sides(sides, msgspec.structs.replace(chosen, label=label))
    comparison.notes = [*by_text, *by_label, *comparison.notes]
    return comparison


def checked(chosen: CompareOptions) -> CompareOptions:
    """The options, if they make sense."""
    checked_level(chosen.level)
    if chosen.margin is not None and chosen.margin <= 0:
        raise UserError(f"a margin must be above 0, got {chosen.margin:g}", fix="--margin 0.02")
    return chosen


def compare_sides(
    sides: Sequence[Side],
    chosen: CompareOptions,
    bound: BoundMetric | None = None,
    *,
    noting: bool = True,
) -> Comparison:
    """Compare sides that were read before, by the metric of this name or one that is `bound` already; without `noting`
    what they were made of is not looked at."""
    policy, differing = shared_policy([side.source for side in sides])
    if bound is None:
        bound = bound_metric(chosen.metric, policy, chosen.level)
    label, scorer = shared_label(sides, chosen.label, bound)
    values = [_with_value(measured(bound, side, label, scorer)) for side in sides]
    pairs = _pairs(values, chosen)
    return Comparison(
        metric=chosen.metric,
        label=label,
        lower_is_better=values[0].lower_is_better,
        level=chosen.level,
        margin=chosen.margin,
        policy=bound.policy,
        standings=_standings(values, pairs, 1 - chosen.level),
        pairs=pairs,
        notes=[*differing, *(notes(sides, scorer) if noting else ()), *unmatched(pairs)],
    )


def _with_value(measure: Measured) -> Measured:
    row, side, name = measure.row, measure.side, measure.bound.name
    if row["value"] is None:
        why = row.get("error") or row.get("reason") or "there is no value"
        failed = ", ".join(
            f"{row[f'{outcome}_count']} {outcome}" for outcome in ("errored", "unparsed", "refused")
        )
        fix = f"its rows: {row['scored_count']} scored, {failed}"
        raise UserError(
            f"{name} of {side.name!r} cannot be computed: {why}",
            where=str(side.source.path),
            fix=fix,
        )
    if measure.values is None:
        fix = "use mean, pass_rate or pass@k"
        raise UserError(
            f"{name!r} is not a mean over items, so pairs of items tell nothing about it", fix=fix
        )
    return measure


def _pairs(values: Sequence[Measured], options: CompareOptions) -> list[Pair]:
    both = list(combinations(values, 2))
    matches = [matched(later, earlier) for earlier, later in both]
    pairs: list[Pair] = []
    count = options.flips if options.flips is not None else 5 if len(both) == 1 else 0
    for (earlier, later), match in zip(both, matches, strict=True):
        pair = _pair(match, options, len(both))
        pair.only_candidate = len(later.items) - len(match.items)
        pair.only_baseline = len(earlier.items) - len(match.items)
        if count:
            pair.flips = find_flips(match, count)
        pairs.append(pair)
    _judge(pairs, matches, options)
    return pairs


def _pair(match: Matched, options: CompareOptions, pairs: int) -> Pair:
    differences = match.differences
    alpha = 1 - options.level
    low, high = interval(differences, options.level)
    p, test = significance(differences, binary=match.binary)
    margin = options.margin
    same = None if margin is None else equivalent(differences, margin)
    return Pair(
        candidate=match.candidate.side.name,
        baseline=match.baseline.side.name,
        items=differences.n,
        only_candidate=0,
        only_baseline=0,
        difference=differences.mean,
        ci_low=low,
        ci_high=high,
        p=p,
        p_corrected=p,
        test=test,
        p_equivalent=same,
        smallest_difference=smallest_difference(
            differences.deviation, differences.n, alpha / pairs
        ),
        gained=int((match.gains > 0).sum()),
        lost=int((match.gains < 0).sum()),
    )


def _judge(pairs: Sequence[Pair], matches: Sequence[Matched], options: CompareOptions) -> None:
    """One word for each pair, after Holm's correction over all of them."""
    alpha, margin = 1 - options.level, options.margin
    alike = holm([1.0 if pair.p_equivalent is None else pair.p_equivalent for pair in pairs])
    for pair, match, p, same in zip(
        pairs, matches, holm([pair.p for pair in pairs]), alike, strict=True
    ):
        pair.p_corrected = p
        if margin is not None:
            pair.p_equivalent = same
        sides = (match.candidate.side, match.baseline.side)
        pair.partial = "; ".join(f"{side.name}: {side.partial}" for side in sides if side.partial)
        if pair.partial and not options.partial:
            pair.verdict = "incomplete"
        elif margin is not None and same < alpha:
            pair.verdict = "equivalent"
        elif p < alpha:
            pair.verdict = (
                "better"
                if (pair.difference > 0) is not match.candidate.lower_is_better
                else "worse"
            )
        else:
            spread, mean = match.differences.deviation, match.differences.mean
            needed = [items_for_difference(spread, mean, alpha / len(pairs))]
            if margin is not None:
                needed.append(items_for_equivalence(spread, mean, margin, alpha / len(pairs)))
            pair.items_needed = min((n for n in needed if n is not None), default=None)


def _standings(
    values: Sequence[Measured], pairs: Sequence[Pair], alpha: float
) -> list[SideStanding]:
    above = dict.fromkeys((measure.side.name for measure in values), 0)
    below = dict(above)
    sign = -1 if values[0].lower_is_better else 1
    for pair in pairs:
        if pair.p_corrected < alpha and pair.difference and pair.verdict != "incomplete":
            sides = (pair.candidate, pair.baseline)
            winner, loser = sides if sign * pair.difference > 0 else sides[::-1]
            above[loser] += 1
            below[winner] += 1
    standings = [
        SideStanding(
            name=measure.side.name,
            value=measure.row["value"],
            ci_low=measure.row["ci_low"],
            ci_high=measure.row["ci_high"],
            ci_method=measure.row["ci_method"],
            ranks=(1 + above[measure.side.name], len(values) - below[measure.side.name]),
            items=measure.row["total_item_count"],
            samples=measure.row["total_sample_count"],
            counts={
                name: measure.row[f"{name}_count"]
                for name in ("errored", "unparsed", "refused", "skipped")
            },
            partial=measure.side.partial,
        )
        for measure in values
    ]
    return sorted(standings, key=lambda standing: (-sign * standing.value, standing.name))
