"""Two experiments, and everything in which they differ. A is the baseline: differences are B − A.

Scores, intervals, verdicts and changed items are those of `compare`, label by label.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.analysis.compare.compare import CompareOptions, Pair, compare_sides, valid_options
from assay.analysis.compare.matching import match_items, match_labels
from assay.analysis.compare.notes import Flip
from assay.analysis.compare.paired import Side, read_side
from assay.analysis.diff.answers import (
    AnswersDiff,
    ServedAs,
    SideAnswers,
    SideUse,
    answers_diff,
    answers_notes,
    differing,
    served_diff,
)
from assay.analysis.diff.made_of import ChangedValue, ItemsDiff, config_diff, items_diff, plan_diff
from assay.analysis.diff.text import MarkedLine, text_diff
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.sources import Source
from assay.sdk import UserError, nearest
from assay.shown import Shown

FLIPS = 5
_LONGEST_ANSWER = 2000  # of what JSON has; what differs is looked for in all of it


class FlippedItem(msgspec.Struct, kw_only=True):
    """An item whose value is not the same on both sides; `text` is what differs between two answers that show it."""

    item_id: str
    a: float
    b: float
    a_answer: str | None = None
    b_answer: str | None = None
    text: list[MarkedLine] = []


class LabelDiff(msgspec.Struct, kw_only=True):
    """A label that both sides have. `pair` is what `compare` says of it, null where `reason` says why there is none."""

    label: str
    a: float | None = None
    b: float | None = None
    pair: Pair | None = None
    lower_is_better: bool = False
    gained: int = 0
    lost: int = 0
    flips: list[FlippedItem] = []
    reason: str = ""


class Diff(Shown, kw_only=True):
    """`same` says that nothing of it differs but times: settings, plans, items, what was served, answers and scores.
    `config`, `plan`, `items` and `answers` are null where there is nothing to compare."""

    a: str
    b: str
    same: bool = False
    metric: str
    level: float
    config: list[ChangedValue] | None
    plan: list[ChangedValue] | None
    items: ItemsDiff | None
    served: list[ServedAs]
    answers: AnswersDiff | None
    use: tuple[SideUse, SideUse]
    labels: list[LabelDiff]
    labels_only_a: list[str] = []
    labels_only_b: list[str] = []
    partial: tuple[str, str] = ("", "")
    notes: list[str] = []


def diff(
    a: str | Path, b: str | Path, *, label: str = "", limit: int = FLIPS, **options: Any
) -> Diff:
    """Return what differs between two experiments: folders, or files of rows. `limit` is how many
    changed items are shown under each label, and in the data; further options as in
    CompareOptions."""
    chosen = valid_options(CompareOptions(label=label, flips=limit, **options))
    first, second = find_each([a, b])
    config, notes = config_diff(first, second)
    items, more = items_diff(first, second, limit)
    answers = [SideAnswers(source, chosen.where) for source in (first, second)]
    result = Diff(
        a=str(a),
        b=str(b),
        metric=chosen.metric,
        level=chosen.level,
        config=config,
        plan=plan_diff(first, second),
        items=items,
        served=served_diff(*answers),
        answers=answers_diff(*answers),
        use=(answers[0].use, answers[1].use),
        labels=[],
        partial=(first.partial(), second.partial()),
        notes=[*notes, *more],
    )
    result.notes += answers_notes(result.answers, *answers)
    _scores(result, (first, second), chosen)
    result.same = not notes and _is_same(result)
    return result


def _scores(result: Diff, sources: tuple[Source, Source], chosen: CompareOptions) -> None:
    """The labels of both sides, compared one by one."""
    lacking = [source.name for source in sources if "evaluation" not in source.files]
    if lacking:
        result.notes.append(
            f"there are no scores to compare: {' and '.join(lacking)} {_have(lacking)} no evaluations"
        )
        return
    sides, by_text = match_items([read_side(source, chosen.where) for source in sources])
    sides, label, by_label = match_labels(sides, chosen.label)
    first, second = (side.labels() for side in sides)
    shared = [name for name in first if name in second]
    if label and label not in shared:
        fix = (
            nearest(label, shared) or "pair labels that are called differently: --label exact=match"
        )
        raise UserError(f"not both have the label {label!r}", where="--label", fix=fix)
    if not label:
        result.labels_only_a = sorted(set(first) - set(second))
        result.labels_only_b = sorted(set(second) - set(first))
    notes = dict.fromkeys([*by_text, *by_label])
    for name in [label] if label else sorted(shared):
        result.labels.append(_label(sides, replace(chosen, label=name), notes))
    result.notes += notes


def _have(names: Sequence[str]) -> str:
    return "have" if len(names) > 1 else "has"


def _label(sides: Sequence[Side], chosen: CompareOptions, notes: dict[str, None]) -> LabelDiff:
    try:
        comparison = compare_sides(sides, chosen, noting=False)
    except UserError as error:
        return LabelDiff(label=chosen.label, reason=error.what)
    notes.update(dict.fromkeys(comparison.notes))
    (pair,) = comparison.pairs
    values = {standing.name: standing.value for standing in comparison.standings}
    return LabelDiff(
        label=chosen.label,
        a=values[sides[0].name],
        b=values[sides[1].name],
        lower_is_better=comparison.lower_is_better,
        gained=pair.gained,
        lost=pair.lost,
        flips=[_flipped_item(flip) for flip in pair.flips],
        pair=replace(pair, flips=[]),
    )


def _flipped_item(flip: Flip) -> FlippedItem:
    answers = flip.baseline_answer, flip.candidate_answer
    text = [] if None in answers else text_diff(answers[0] or "", answers[1] or "")
    a_answer, b_answer = (
        None if answer is None else answer[:_LONGEST_ANSWER] for answer in answers
    )
    return FlippedItem(
        item_id=flip.item_id,
        a=flip.baseline,
        b=flip.candidate,
        a_answer=a_answer,
        b_answer=b_answer,
        text=text,
    )


def _is_same(result: Diff) -> bool:
    items, answers, (first, second) = result.items, result.answers, result.use
    labels = result.labels
    differences: list[Any] = [
        *(result.config or ()),
        *(result.plan or ()),
        items and (items.only_a or items.only_b or items.changed),
        *differing(result.served),
        answers and (answers.changed or answers.only_a or answers.only_b),
        (first.responses, first.outcomes) != (second.responses, second.outcomes),
        *(one.reason or one.gained or one.lost or one.a != one.b for one in labels),
        *result.labels_only_a,
        *result.labels_only_b,
        len(set(result.partial)) > 1,
    ]
    return not any(differences)
