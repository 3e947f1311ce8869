"""Two experiments side by side: their settings and data, what was served, their scores, what it took."""

from collections.abc import Iterator, Sequence
from typing import Any

from assay.analysis.diff.answers import ServedAs, SideUse, differing
from assay.analysis.diff.diff import Diff, FlippedItem, LabelDiff
from assay.analysis.diff.made_of import ChangedItem, ChangedValue
from assay.analysis.diff.text import text_diff
from assay.reports.compare import p_text, verdict_cell
from assay.reports.sheet import (
    Line,
    Parts,
    Row,
    Sheet,
    Style,
    Table,
    columns_of,
    cost_text,
    count,
    counts_text,
    figures,
    json_text,
    number_text,
    one_line,
    shorten,
)

_MOST_CHANGES = 20
_SHORT = 60  # of two values on one line
_SIDES: dict[str, Style] = {"A": "open", "B": "alike"}


def view(diff: Diff) -> Sheet:
    sides = [Line(f"{name}  {path}", wraps=False) for name, path in (("A", diff.a), ("B", diff.b))]
    title = "assay diff"
    if diff.same:
        return Sheet([*sides, Line("no difference", "good")], diff.notes, title=title)
    parts = [
        *sides,
        *_settings(diff),
        *_data(diff),
        *_answer_parts(diff),
        *_scores(diff),
        *_use(diff),
    ]
    texts = zip("AB", diff.partial, strict=True)
    partial = [Line(f"{name} is partial: {text}", "open") for name, text in texts if text]
    return Sheet([*parts, *partial], diff.notes, title=title)


def _head(text: str) -> Parts:
    yield Line("")
    yield Line(text, "head")


# ---- settings


def _settings(diff: Diff) -> Parts:
    if diff.config is None and diff.plan is None:
        return
    yield from _head("settings")
    for what, changes in (("config", diff.config), ("plan", diff.plan)):
        if changes is None:
            continue
        if not changes:
            yield Line(f"{what}: the same", "quiet")
            continue
        yield Line(f"{what}: {count(len(changes), 'key differs', 'keys differ')}")
        yield from _changes(changes)


def _changes(changes: Sequence[ChangedValue], depth: int = 1) -> Parts:
    for change in changes[:_MOST_CHANGES]:
        first, second = _value(change.a), _value(change.b)
        if len(first) + len(second) <= _SHORT and "\n" not in first + second:
            yield Line(f"{one_line(change.key)}: {first} → {second}", depth=depth)
            continue
        yield Line(f"{one_line(change.key)}:", depth=depth)
        yield from _texts(text_diff(first, second), depth + 1)
    if len(changes) > _MOST_CHANGES:
        yield Line(f"… and {len(changes) - _MOST_CHANGES:,} more: --json has them", "quiet", depth)


def _value(value: Any) -> str:
    return "–" if value is None else json_text(value)


def _texts(lines: Sequence[tuple[str, str]], depth: int) -> Parts:
    for mark, text in lines:
        yield Line(f"{mark}  {one_line(text)}", _SIDES.get(mark, "quiet"), depth, hang=3)


# ---- items


def _data(diff: Diff) -> Parts:
    items = diff.items
    if items is None:
        return
    yield from _head("data")
    if not (items.only_a or items.only_b or items.changed):
        yield Line(f"the same {count(items.a, 'item')}", "quiet")
        return
    apart = f"{items.only_a:,} only in A, {items.only_b:,} only in B, {items.changed:,} with other content"
    yield Line(f"{count(items.a, 'item')} in A, {items.b:,} in B: {apart}")
    for item in items.named:
        yield from _item(item)


def _item(item: ChangedItem) -> Parts:
    if item.where != "both":
        yield Line(f"only in {item.where.upper()}: {one_line(item.item_id)}", depth=1)
        return
    yield Line(f"{one_line(item.item_id)}:", depth=1)
    yield from _changes(item.fields, 2)


# ---- what was served


def _answer_parts(diff: Diff) -> Parts:
    answers = diff.answers
    if not diff.served and answers is None:
        return
    yield from _head("answers")
    if answers is not None:
        apart = [f"{answers.same:,} the same", f"{answers.changed:,} different"]
        only = (("A", answers.only_a), ("B", answers.only_b))
        apart += [f"{number:,} only in {name}" for name, number in only if number]
        yield Line(f"by {answers.paired_by}: {', '.join(apart)}")
    if not diff.served:
        return
    shown = [
        each
        for each in diff.served
        if each in differing(diff.served) or _is_shifted(each, *diff.use)
    ]
    if not shown:
        yield Line("served alike: models, fingerprints and finish reasons", "quiet")
        return
    rows = [
        [each.model_name, each.what, each.value, f"{each.a:,}", f"{each.b:,}"] for each in shown
    ]
    yield Table(columns_of("<model", "<reported", "<value", "A", "B"), rows)


def _is_shifted(each: ServedAs, first: SideUse, second: SideUse) -> bool:
    """Return whether a share of the responses ended otherwise."""
    return each.what == "finish reason" and each.a * second.responses != each.b * first.responses


# ---- scores


def _scores(diff: Diff) -> Parts:
    if not (diff.labels or diff.labels_only_a or diff.labels_only_b):
        return
    yield from _head("scores")
    compared = [label for label in diff.labels if label.pair is not None]
    if compared:
        columns = columns_of(
            "<label", "A", "B", "B − A", f"{diff.level:.0%} interval", "?p", "?items", "<verdict"
        )
        names = ["difference", "ci_low", "ci_high", "p", "items", "verdict"]
        exact = [
            [label.label, label.a, label.b, *(getattr(label.pair, name) for name in names)]
            for label in compared
        ]
        yield Table(
            columns,
            [_score(label) for label in compared],
            data=(["label", "a", "b", *names], exact),
        )
    for label in diff.labels:
        if label.reason:
            yield Line(f"{one_line(label.label)} is not compared: {one_line(label.reason)}", "open")
    for name, labels in (("A", diff.labels_only_a), ("B", diff.labels_only_b)):
        if labels:
            yield Line(f"only in {name}: {', '.join(map(one_line, labels))}", "open")
    seen: set[tuple[str, str | None, str | None]] = set()
    for label in compared:
        yield from _flips(label, seen)


def _score(label: LabelDiff) -> Row:
    pair = label.pair
    assert pair is not None
    return [
        f"{label.label}{' (less is better)' if label.lower_is_better else ''}",
        number_text(label.a),
        number_text(label.b),
        *figures(pair.difference, pair.ci_low, pair.ci_high, pair.test, "+", " … "),
        p_text(pair.p),
        f"{pair.items:,}",
        verdict_cell(pair, "no difference seen"),
    ]


def _flips(label: LabelDiff, seen: set[tuple[str, str | None, str | None]]) -> Parts:
    if not (label.gained or label.lost):
        return
    more = len(label.flips) < label.gained + label.lost
    shown = f"; the largest {count(len(label.flips), 'change')}" if more and label.flips else ""
    changed = f"{label.gained:,} better in B, {label.lost:,} worse"
    yield Line(f"{one_line(label.label)}: {changed}{shown}")
    for flip in label.flips:
        same = (flip.item_id, flip.a_answer, flip.b_answer)
        above = " (as above)" if same in seen else ""
        yield Line(f"{one_line(flip.item_id)}: {flip.a:.2g} → {flip.b:.2g}{above}", depth=1)
        if not above:
            seen.add(same)
            yield from _answers(flip)


def _answers(flip: FlippedItem) -> Parts:
    if flip.text:
        yield from _texts(flip.text, 2)
    elif flip.a_answer is None or flip.b_answer is None:
        yield Line("a response is not stored", "quiet", 2)
    else:
        yield Line(f"both answered: {shorten(flip.a_answer, _SHORT)}", "quiet", 2)


# ---- what it took


def _use(diff: Diff) -> Parts:
    first, second = diff.use
    if not (first.responses or second.responses):
        return
    yield from _head("what it took")
    rows = [[name, *texts] for name, *texts in _use_rows(first, second)]
    yield Table(columns_of("<of the responses", "A", "B"), rows)


def _use_rows(*sides: SideUse) -> Iterator[list[str]]:
    yield ["responses", *(f"{side.responses:,}" for side in sides)]
    yield ["outcomes", *(counts_text(side.outcomes, "–") for side in sides)]
    yield ["tokens in", *(f"{side.prompt_tokens:,}" for side in sides)]
    yield ["tokens out", *(f"{side.completion_tokens:,}" for side in sides)]
    yield ["cost", *(cost_text(side.cost, side.unpriced) for side in sides)]
    if any(side.judging for side in sides):
        yield ["cost of judges and calls inside", *(cost_text(side.judging, 0) for side in sides)]
    for name, at in (("time of an answer, median", 0), ("time, 95 of 100 below", 1)):
        yield [name, *("–" if side.seconds is None else _time(side.seconds[at]) for side in sides)]


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
