"""Do experiments, models or prompts differ? A standing for each side, and for each pair one word.

Pairs are matched by item. `better` and `worse` say that the interval of the difference excludes
zero, at a level corrected for the number of pairs; `equivalent` comes from two one-sided tests against
a margin. Each is said only if missing rows could not undo it. Everything else is `inconclusive`, with
the number of items that would settle it. Unfinished or damaged evidence is `incomplete`, unless the
caller wants to compare what there is.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec
import numpy as np

from assay.analysis.compare.matching import match_items, match_labels
from assay.analysis.compare.measured import (
    Matched,
    MeasuredSide,
    bound_metric,
    failure_counts,
    match_sides,
    measured,
    shared_policy,
)
from assay.analysis.compare.notes import Flip, find_flips, notes, unmatched_notes
from assay.analysis.compare.paired import (
    Hashes,
    Side,
    checked_level,
    find_sides,
    shared_cluster_by,
    shared_label,
    sources_of,
)
from assay.engine.aggregate.measure import BoundMetric, Policy
from assay.errors import UserError
from assay.shown import Shown
from assay.stats.paired import (
    Differences,
    detectable_difference,
    equivalent,
    interval,
    significance,
)
from assay.stats.student import alpha_left, holm, items_for_difference

if TYPE_CHECKING:
    from assay.analysis.compare.across import Across
    from assay.analysis.compare.reference import Referenced

MOST_PAIRED = 200  # values of a facet: each is compared with each
Word = Literal["better", "worse", "equivalent", "inconclusive", "incomplete"]


class SideStanding(msgspec.Struct, kw_only=True):
    """One side, over the items that all sides share; `counts` are of all its rows. `ranks` is the
    best and the worst place that the pairs leave open to it."""

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

    @property
    def failed(self) -> int:
        return sum(self.counts.values()) - self.counts["skipped"]


class Pair(msgspec.Struct, kw_only=True):
    """A candidate against a baseline: the difference is candidate - baseline, over the items that
    both have. Others have rows on one side only, or no value on one side (`failed`).
    `p_missing` is the p-value if missing rows were those that speak most against the difference;
    `reason` says how they leave it open."""

    candidate: str
    baseline: str
    items: int
    only_candidate: int = 0
    only_baseline: int = 0
    failed: int = 0
    difference: float
    ci_low: float = 0.0
    ci_high: float = 0.0
    p: float
    p_corrected: float
    p_missing: float
    test: str
    p_equivalent: float | None
    smallest_difference: float
    verdict: Word = "inconclusive"
    items_needed: tuple[int, int | None] | None = None
    reason: str = ""
    gained: int = 0
    lost: int = 0
    partial: str = ""
    flips: list[Flip] = []


class Comparison(Shown, kw_only=True):
    """`standings` from the best to the worst; `pairs` in the order in which the sides were named.
    `pairs_level` is the level of their intervals: `level`, corrected for their number."""

    metric: str
    label: str
    lower_is_better: bool = False
    level: float
    pairs_level: float
    margin: float | None
    policy: Policy
    standings: list[SideStanding]
    pairs: list[Pair]
    notes: list[str]


class CompareOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How to compare. `where`: only rows with these facet values; `flips`: how many changed items to list for each
    pair, by default five if there is one pair and none otherwise; `partial`: judge unfinished evidence, too;
    `cluster_by`: what items share that belong together, by default that of their own metrics."""

    metric: str = "mean"
    label: str = ""
    where: Mapping[str, Any] = {}
    level: float = 0.95
    margin: float | None = None
    flips: int | None = None
    partial: bool = False
    cluster_by: str = ""


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
        if facet or lower or all_labels:
            raise UserError(
                "a reference is compared row by row",
                fix="choose rows with --where, --metric and --label",
            )
        from assay.analysis.compare.reference import referenced  # needs the options

        return referenced(paths, reference, label=label, **options)
    if all_labels:
        from assay.analysis.compare.across import across  # it is made of comparisons

        only = [label] if label else []
        return across(paths, facet=facet, values=values, labels=only, lower=lower, **options)
    chosen = valid_options(CompareOptions(label=label, **options))
    sides, by_text = match_items(find_sides(paths, facet, values, chosen.where, lower))
    sides, label, by_label = match_labels(sides, label)
    comparison = Comparing(sides, chosen, every_pair=bool(values or not facet)).under(label)
    comparison.notes = [*by_text, *by_label, *comparison.notes]
    return comparison


def valid_options(chosen: CompareOptions) -> CompareOptions:
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
    """Compare sides that were read before."""
    return Comparing(sides, chosen, bound, noting=noting).under(chosen.label)


class Comparing:
    """Sides that were read before, and how to compare them under any label: by the metric of the options or one that is
    `bound` already; without `noting` what they were made of is not looked at. More sides than `MOST_PAIRED` are
    compared with the first alone, unless `every_pair` is wanted."""

    def __init__(
        self,
        sides: Sequence[Side],
        options: CompareOptions,
        bound: BoundMetric | None = None,
        *,
        noting: bool = True,
        every_pair: bool = True,
    ) -> None:
        self.sides = sides
        self._starred = len(sides) > MOST_PAIRED and not every_pair
        self.options = options
        sources = sources_of(sides)
        policy, self.differing = shared_policy(sources)
        bound = bound or bound_metric(options.metric, policy, options.level)
        cluster_by = options.cluster_by or bound.cluster_by or shared_cluster_by(sources)
        self.bound = msgspec.structs.replace(bound, cluster_by=cluster_by)
        self._noting = noting

    def under(self, label: str) -> Comparison:
        """Compare them under a label, or the only one that they share."""
        label, scorer = shared_label(self.sides, label, self.bound)
        values, left_out = self._measures(label, scorer)
        alone = (
            f"there are {len(values):,} sides: each is compared with {values[0].side.name!r} alone; "
            "name values for comparisons of each with each"
        )
        both = [(values[0], later) for later in values[1:]]
        if not self._starred:
            both = [*combinations(values, 2)]
        pairs, alpha = _pairs(both, self.options)
        return Comparison(
            metric=self.options.metric,
            label=label,
            lower_is_better=values[0].lower_is_better,
            level=self.options.level,
            pairs_level=1 - alpha,
            margin=self.options.margin,
            policy=self.bound.policy,
            standings=_standings(values, pairs, alpha),
            pairs=pairs,
            notes=[
                *self.differing,
                *[alone] * self._starred,
                *(notes(self.sides, scorer, values) if self._noting else ()),
                *left_out,
                *unmatched_notes(pairs),
            ],
        )

    def _measures(self, label: str, scorer: str) -> tuple[list[MeasuredSide], list[str]]:
        """Return at least two sides with a value, and a note about each that has none."""
        values: list[MeasuredSide] = []
        errors: list[UserError] = []
        for side in self.sides:
            try:
                values.append(_with_value(measured(self.bound, side, label, scorer)))
            except UserError as error:
                errors.append(error)
        if len(values) < 2:
            raise errors[0]
        return values, [f"left out: {error.what}; {error.fix}" for error in errors]


def _with_value(measure: MeasuredSide) -> MeasuredSide:
    row = measure.row
    side = measure.side
    name = measure.bound.name
    if row["value"] is None:
        outcomes = "scored", "errored", "unparsed", "refused"
        counts = ", ".join(f"{row[f'{outcome}_count']} {outcome}" for outcome in outcomes)
        raise UserError(
            f"{name} of {side.name!r} cannot be computed: {measure.no_value or 'there is no value'}",
            where=str(side.source.path),
            fix=f"its rows: {counts}",
        )
    if measure.values is None:
        raise UserError(
            f"{name!r} is not a mean over items, so pairs of items tell nothing about it",
            fix="use mean, pass_rate or pass@k",
        )
    return measure


def _pairs(
    both: Sequence[tuple[MeasuredSide, MeasuredSide]], options: CompareOptions
) -> tuple[list[Pair], float]:
    """Return each pair with its verdict, and the alpha of the interval that says the same."""
    matches = [match_sides(later, earlier) for earlier, later in both]
    count = 5 * (len(both) == 1) if options.flips is None else options.flips
    pairs: list[Pair] = []
    for (earlier, later), match in zip(both, matches, strict=True):
        pair = _pair(match, options, len(both))
        alone = later.without(earlier), earlier.without(later)
        pair.only_candidate, pair.only_baseline = alone
        pair.failed = len(later.items) + len(earlier.items) - 2 * pair.items - sum(alone)
        pair.flips = find_flips(match, count) if count else []
        pairs.append(pair)
    return pairs, _judge(pairs, matches, options)


def _pair(match: Matched, options: CompareOptions, pairs: int) -> Pair:
    differences = match.differences
    p = significance(differences)
    sides = (match.candidate.side, match.baseline.side)
    against = [_significance_beside(differences, each) for each in match.bounds or ()]
    return Pair(
        candidate=sides[0].name,
        baseline=sides[1].name,
        items=differences.n,
        difference=differences.mean,
        p=p,
        p_corrected=p,
        p_missing=max([p, *against]),
        test=f"interval{differences.weakness}",
        p_equivalent=None if options.margin is None else equivalent(differences, options.margin),
        smallest_difference=detectable_difference(differences, (1 - options.level) / pairs),
        gained=int((match.gains > 0).sum()),
        lost=int((match.gains < 0).sum()),
        partial="; ".join(f"{side.name}: {side.partial}" for side in sides if side.partial),
    )


def correct(tests: Sequence[Any], alpha: float) -> tuple[float, float]:
    """Correct the p-values of pairs or agreements for their number, by Holm's method; return what
    plain ones of differences and of equivalence are below if they are rejected."""
    differs = holm([test.p for test in tests])
    alike = holm([1.0 if test.p_equivalent is None else test.p_equivalent for test in tests])
    for test, p, same in zip(tests, differs, alike, strict=True):
        test.p_corrected = p
        test.p_equivalent = test.p_equivalent and same
    return alpha_left(differs, alpha), alpha_left(alike, alpha)


def words(test: Any, alpha: float, *, lower: bool) -> Iterator[Word]:
    """Yield what the corrected p-values of a pair or an agreement say of its difference, the first word first."""
    if test.p_equivalent is not None and test.p_equivalent < alpha:
        yield "equivalent"
    if test.p_corrected < alpha:
        yield "better" if (test.difference > 0) is not lower else "worse"


def _judge(pairs: Sequence[Pair], matches: Sequence[Matched], options: CompareOptions) -> float:
    """Set one word for each pair, and the interval that says the same; return the alpha of that."""
    alpha = 1 - options.level
    margin = options.margin or 0.0
    left, alike_left = correct(pairs, alpha)
    for pair, match in zip(pairs, matches, strict=True):
        pair.ci_low, pair.ci_high = interval(match.differences, 1 - left)
        if pair.partial and not options.partial:
            pair.verdict = "incomplete"
            continue
        differs = partial(_significance_beside, match.differences), left
        alike = partial(equivalent, margin=margin), alike_left
        for word in words(pair, alpha, lower=match.candidate.lower_is_better):
            pair.reason = _undone(match, *(alike if word == "equivalent" else differs))
            if not pair.reason:
                pair.verdict = word
                break
        if pair.verdict == "inconclusive" and not pair.reason:
            pair.items_needed = _items_needed(pair, match.differences, margin, alpha / len(pairs))
    return left


def _undone(match: Matched, test: Callable[[Differences], float], alpha: float) -> str:
    """Return how missing rows could undo what a test says, if they could."""
    return match.missing_text(lambda differences: test(differences) < alpha)


def _significance_beside(differences: Differences, others: Differences) -> float:
    """Return the p-value of others, 1 if they do not lie on the same side of zero."""
    return significance(others) if others.mean * differences.mean > 0 else 1.0


def _items_needed(
    pair: Pair, differences: Differences, margin: float, alpha: float
) -> tuple[int, int | None] | None:
    """Return the fewest items, which find the largest difference that the interval leaves possible,
    and with a margin the most: they find half of it, or show that the difference is smaller. Those
    that there are did not settle it."""
    farthest = max(-pair.ci_low, pair.ci_high) if differences.changed else 0.0
    sizes = max(farthest, margin), margin / 2
    more = differences.n + 1
    fewest, most = (items_for_difference(differences.deviation, size, alpha) for size in sizes)
    return None if fewest is None else (max(fewest, more), most and max(most, more))


def _standings(
    values: Sequence[MeasuredSide], pairs: Sequence[Pair], alpha: float
) -> list[SideStanding]:
    """Return the sides over the items that they share, best first."""
    sign = -1 if values[0].lower_is_better else 1
    decided = [
        (pair.candidate, pair.baseline)[:: 1 if sign * pair.difference > 0 else -1]
        for pair in pairs
        if pair.p_missing < alpha and pair.verdict != "incomplete"
    ]
    below, above = (Counter(sides[at] for sides in decided) for at in (0, 1))
    shared = reduce(
        partial(np.intersect1d, assume_unique=True), [measure.items for measure in values]
    )
    standings: list[SideStanding] = []
    for measure in values:
        name = measure.side.name
        ranks = 1 + above[name], len(values) - below[name]
        standings.append(_standing(measure, shared, ranks))
    return sorted(standings, key=lambda standing: (-sign * standing.value, standing.name))


def _standing(whole: MeasuredSide, shared: Hashes, ranks: tuple[int, int]) -> SideStanding:
    measure = whole.among(shared)
    row = measure.row
    return SideStanding(
        name=whole.side.name,
        value=row["value"],
        ci_low=row["ci_low"],
        ci_high=row["ci_high"],
        ci_method=row["ci_method"],
        ranks=ranks,
        items=len(measure.items),
        samples=row["used_sample_count"],
        counts=failure_counts(whole.row),
        partial=whole.side.partial,
    )
