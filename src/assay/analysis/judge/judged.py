"""The judges' verdicts on each answer, and people's on the same one.

A judge's label is one whose rows name the judge in their details. In a match the two seats of a pair are one answer.
An unparsed or refused verdict is a fail, an errored one is none: that is how metrics count by default.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from assay.analysis.compare.paired import Lost, left_out, read_noting, rows_of
from assay.datasets._labels import Label, Labels, majority, verdict
from assay.engine.experiment.sources import Source
from assay.sdk import EvaluationOutcome, JsonObject, UserError, nearest, short, values_by_key


class _Judge(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    models: list[str] = []


class JudgedRow(msgspec.Struct, gc=False):
    """What is read of an evaluation."""

    item_id: str
    label: str = ""
    sample_index: int = 0
    model_name: str = ""
    passed: bool | None = None
    score: float | None = None
    scorer: str = ""
    outcome: EvaluationOutcome = "scored"
    responses: list[str] = []
    seat: int | None = None
    players: tuple[str, str] | None = None
    detailed_results: Any = None

    @property
    def details(self) -> JsonObject:
        return self.detailed_results if isinstance(self.detailed_results, dict) else {}

    def judge(self) -> _Judge | None:
        """Who gave the label; details of other scorers may hold anything under that name."""
        named = self.details.get("judge")
        try:
            return None if named is None else msgspec.convert(named, _Judge)
        except msgspec.ValidationError:
            return None


class JudgedAnswer(msgspec.Struct, gc=False):
    """A judged answer, or in a match a pair of them. `judge` and `truth` are 1 for a pass (the first player) and 0 for
    a fail; 0.5 is a tie, None no verdict; `score` is the judge's own number. `responses` has the beginnings of their
    keys, in the order of the players, `seats` the judge's verdict in each seat, `votes` that of each annotator."""

    item: str
    sample: int
    model: str
    players: tuple[str, ...]
    responses: tuple[int, ...]
    judge: float | None = None
    truth: float | None = None
    weight: float = 1.0
    seats: dict[int, float] = {}
    votes: dict[str, float] = {}
    score: float | None = None


class JudgedLabel(msgspec.Struct):
    """All answers that a judge gave one label to."""

    label: str
    scorer: str
    answers: list[JudgedAnswer]
    ids: dict[str, None]
    models: dict[str, None]
    match: bool = False

    def labelled_answers(self) -> list[JudgedAnswer]:
        return [answer for answer in self.answers if answer.truth is not None]


def read_judged(source: Source) -> tuple[dict[str, JudgedLabel], list[str]]:
    """Return all verdicts of judges by label, in alphabetical order, and a note about lines that
    are no rows."""
    lost: Lost = []
    found: dict[str, JudgedLabel] = {}
    places: dict[Any, JudgedAnswer] = {}
    shared: dict[
        Any, Any
    ] = {}  # one object for equal strings: a row costs little more than its numbers
    for _, row in read_noting(rows_of(source), JudgedRow, lost):
        judged = found.get(row.label)
        if judged is None:
            judged = found[row.label] = JudgedLabel(
                row.label, row.scorer, [], {}, {}, row.players is not None
            )
        if (named := row.judge()) and named.id:
            judged.ids[named.id] = None
            judged.models.update(dict.fromkeys([named.model] if named.model else named.models))
        _add(row, judged, places, shared)
    for (
        judged
    ) in found.values():  # sums must not depend on the order of rows, not even in their last bit
        judged.answers.sort(key=attrgetter("item", "sample", "model", "responses"))
    return {label: one for label, one in sorted(found.items()) if one.ids}, left_out(lost)


def _add(
    row: JudgedRow, judged: JudgedLabel, places: dict[Any, JudgedAnswer], shared: dict[Any, Any]
) -> None:
    responses = tuple(short(key) for key in row.responses)
    if row.seat:
        responses = responses[::-1]
    place = row.label, row.item_id, row.sample_index, row.model_name, responses
    answer = places.get(place) if judged.match else None
    if answer is None:
        item, model, players = (
            shared.setdefault(name, name)
            for name in (row.item_id, row.model_name, row.players or ())
        )
        answer = JudgedAnswer(item, row.sample_index, model, players, responses)
        judged.answers.append(answer)
        if judged.match:
            places[place] = answer
    if row.outcome == "scored":
        verdict = float(row.passed if row.passed is not None else (row.score or 0) > 0)
        if judged.match:
            answer.seats = {
                **answer.seats,
                row.seat or 0: verdict if row.score is None else row.score,
            }
            mean = sum(answer.seats.values()) / len(answer.seats)
            verdict = 1.0 if mean > 0.5 else 0.0 if mean < 0.5 else 0.5
        answer.judge = verdict
        answer.score = row.score
    elif row.outcome in ("unparsed", "refused") and not judged.match:
        answer.judge = 0.0


def judge_ids(source: Source, label: str) -> set[str]:
    """The identities of the judges that gave a label."""
    judged = read_judged(source)[0].get(label)
    return set(judged.ids) if judged else set()


# ---- labels and answers


def give_labels(
    judged: JudgedLabel, labels: Labels, threshold: float | None, *, chosen: bool
) -> list[Label]:
    """Put people's verdicts on the answers that they are about, and return the labels that were
    used.

    `chosen`: the judge was asked for by name, so that labels without a model may be about its matches, and the
    threshold is meant for it. Else labels that are all 0 and 1 are verdicts: another judge's are on a scale.
    """
    find = _finder(judged)
    pairs: list[tuple[Label, JudgedAnswer]] = []
    for label in labels.rows:
        if label.scorer and not _about(judged, label.scorer):
            continue
        if judged.match and not (chosen or label.model or label.scorer or label.response):
            continue
        answer = find(label)
        if answer is not None:
            pairs.append((label, answer))
    if not chosen and all(label.value in (0, 1) for label, _ in pairs):
        threshold = None
    for label, answer in pairs:
        answer.votes = {
            **answer.votes,
            label.annotator: verdict(label, threshold, match=judged.match),
        }
        answer.truth = majority(answer.votes.values())
        answer.weight = 1 / label.probability
    return [label for label, _ in pairs]


def _about(judged: JudgedLabel, scorer: str) -> bool:
    """Return whether labels for `scorer` are about this judge: it gives that very label, or is one
    of the panel that does."""
    own, _, repeat = judged.label.rpartition(".")
    names = [judged.label, own] if repeat.isdecimal() else [judged.label]
    return judged.label == scorer or any(f"{scorer}.{model}" in names for model in judged.models)


def _finder(judged: JudgedLabel) -> Callable[[Label], JudgedAnswer | None]:
    answers = values_by_key(
        (key, answer)
        for answer in judged.answers
        for key in ((answer.item, answer.sample), *answer.responses)
    )

    def find(label: Label) -> JudgedAnswer | None:
        place = label.item, label.sample
        found = answers.get(short(label.response) if label.response else place, [])
        about = [
            one
            for one in found
            if (one.item, one.sample) == place and label.model in ("", one.model)
        ]
        if len(about) > 1:
            raise _ambiguous(label, judged, about)
        return about[0] if about else None

    return find


def _ambiguous(label: Label, judged: JudgedLabel, about: Sequence[JudgedAnswer]) -> UserError:
    models = sorted({answer.model for answer in about})
    which = f"{len(about)} answers to item {label.item!r}, sample {label.sample}, have the label {judged.label!r}"
    if len(models) > 1:
        fix = f"add `model` to the labels, one of {', '.join(models)}"
    else:
        fix = "add `response` to the labels: the answer's `key` in responses.jsonl"
    return UserError(f"which answer is meant? {which}", where=label.place, fix=fix)


def unused(labels: Sequence[Label], judged: Iterable[JudgedLabel], items: set[str]) -> list[str]:
    """Why these labels are about no judged answer: a sentence for each reason. `items`: those of
    the dataset."""
    places: dict[str, set[tuple[str, int]]] = {}
    for answer in (answer for one in judged for answer in one.answers):
        places.setdefault(answer.model, set()).add((answer.item, answer.sample))
    judged_places = set[tuple[str, int]]().union(*places.values())
    judged_items = {item for item, _ in judged_places}
    reasons: dict[str, list[Label]] = {}
    for label in labels:
        place = label.item, label.sample
        if label.item not in judged_items:
            why = f"items that {'were not judged' if label.item in items else 'do not exist'}"
        elif place not in judged_places:
            why = "samples that the item does not have"
        elif label.model and label.model not in places:
            why = f"models that were not judged ({nearest(label.model, places)})"
        elif label.model and place not in places[label.model]:
            why = "answers that were not judged"
        else:
            continue  # it is about a judge that was not asked for
        reasons.setdefault(why, []).append(label)
    return [
        f"{len(found):,} label{'' if len(found) == 1 else 's'} for {why}: {_first(found)}"
        for why, found in reasons.items()
    ]


def _first(labels: Sequence[Label]) -> str:
    shown = [f"{label.item!r} sample {label.sample} ({label.place})" for label in labels[:3]]
    return ", ".join(shown) + (", …" if len(labels) > 3 else "")
