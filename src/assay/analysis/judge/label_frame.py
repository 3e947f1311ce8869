"""The answers that can be labelled, and how much a label of each would tell about its judge.

It tells most where judges disagree, or one judge with itself, where the two seats of a pair contradict each other,
where the score is near the threshold, and where the judge gave no verdict.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from assay.analysis.compare.paired import only_label, planned_scorers, rows_of
from assay.analysis.judge.judged import JudgedRow
from assay.engine.evaluate.people import WAITING
from assay.engine.experiment.sources import Source
from assay.sdk import JsonObject, ResponseOutcome, UserError, as_object, check_name
from assay.store.table.decode import read_rows

_FAILED = ("unparsed", "errored", "refused")


class Address(NamedTuple):
    """What a label is about. `response` is the key of the answer, in a match that of the first player."""

    item: str
    sample: int
    model: str
    response: str


class Unit(msgspec.Struct, gc=False):
    """An answer, or in a match a pair of answers, with the keys of its responses in the order of the players.
    `telling` says how much a label of it would tell: from 0, nothing in particular, to 1. `graded`: the score is more
    than a count of votes for and against, so that it may be near a threshold."""

    address: Address
    responses: tuple[str, ...]
    telling: float = 0.0
    score: float | None = None
    passed: bool | None = None
    graded: bool = True


class Frame(msgspec.Struct, kw_only=True):
    """All answers that have one label and can be labelled. `scale` has the ends of the judge's scale, if it has one;
    `asked` is what the judge was asked, as far as that is known."""

    label: str
    units: list[Unit]
    match: bool = False
    scale: tuple[float, float] | None = None
    asked: str = ""
    draws: dict[int, Any] = {}  # by seed, see `labelling`


# ---- rows


class _LabelledRow(JudgedRow, gc=False):
    def unit(self) -> Unit:
        keys = tuple(self.responses[::-1] if self.seat else self.responses)
        address = Address(self.item_id, self.sample_index, self.model_name, keys[0] if keys else "")
        votes = self.votes
        graded = not votes or any(0 < vote < 1 for vote in votes if vote is not None)
        return Unit(address, keys, score=self.score, passed=self.passed, graded=graded)

    @property
    def votes(self) -> list[float | None]:
        """The verdicts of a panel's members, or of one judge that was asked repeatedly; None for no
        verdict."""
        votes = self.details.get("votes")
        members = cast("JsonObject", votes).values() if isinstance(votes, dict) else ()
        return [float(vote) if isinstance(vote, (int, float)) else None for vote in members]


class _AnsweredRow(msgspec.Struct, gc=False):
    """What is read of a response."""

    item_id: str
    sample_index: int = 0
    model_name: str = ""
    key: str = ""
    outcome: ResponseOutcome = "ok"
    error: str | None = None


def read_frame(source: Source, label: str = "") -> Frame:
    """The answers with a label; without one, the only label of a judge, or else the only one there
    is."""
    scorers, choice = labels_of(source)
    if label:
        check_name(label, scorers, "no row has the label", str(source.path))
    label = label or only_label(choice)
    scorer = scorers[label]
    unanswered = _empty_responses(source)
    units: dict[Address, Unit] = {}
    grades: dict[float, float] = {}
    match = False
    for _, row in read_rows(rows_of(source), _LabelledRow):
        failed = row.outcome in _FAILED
        if row.label != label and not (failed and row.label == row.scorer == scorer):
            continue
        unit = row.unit()
        skipped = row.outcome == "skipped" and not row.details.get(WAITING)
        if skipped or (failed and not unanswered.isdisjoint(unit.responses or (unit.address[:3],))):
            continue
        first = units.setdefault(unit.address, unit)
        first.telling = max(first.telling, _division(row), _contradiction(first, unit))
        match = match or row.players is not None
        if isinstance(grade := row.details.get("grade"), (int, float)) and row.score is not None:
            grades[float(grade)] = row.score
    if not units:
        raise UserError(
            f"no response with the label {label!r} holds an answer",
            where=str(source.path),
            fix="look at the responses' `error` fields; assay run --retry-errors tries again",
        )
    asked, scale = _judge_question(source, label, scorer)
    frame = Frame(label=label, units=list(units.values()), match=match, asked=asked)
    frame.scale = scale or _scale(grades) if grades else None
    if not match:
        _mark_near_threshold(frame.units)
    return frame


def labels_of(source: Source) -> tuple[dict[str, str], list[str]]:
    """The scorer of each label, and the labels to choose from: the judges', or else all. The
    members of a panel are not a choice: the panel's label is."""
    scorers: dict[str, str] = {}
    judged: dict[str, None] = {}
    members: set[str] = set()
    for _, row in read_rows(rows_of(source), _LabelledRow):
        scorers.setdefault(row.label, row.scorer)
        if row.details.get("judge"):
            judged[row.label] = None
        votes = row.details.get("votes")
        if isinstance(votes, dict):
            members.update(f"{row.label}.{vote}" for vote in votes)
    return scorers, [name for name in sorted(judged or scorers) if name not in members]


def _empty_responses(source: Source) -> set[Any]:
    """Responses that hold no answer: there is nothing to label. Each by its key and by where it
    stands."""
    keys: set[Any] = set()
    logs = source.logs("run")
    if not logs:
        raise UserError(
            "the answers are not there: only their evaluations",
            where=str(source.path),
            fix="name the folder of a run",
        )
    for log in logs:
        for _, row in read_rows(log, _AnsweredRow):
            if row.outcome != "ok" or (row.error and not row.key):
                keys |= {row.key, (row.item_id, row.sample_index, row.model_name)}
    return keys - {""}


# ---- how much an answer tells


def _division(row: _LabelledRow) -> float:
    """Return how far the votes lie apart, compared with half for and half against; a missing vote
    counts as a half. Nothing is learnt about a judge that failed for other reasons than the
    answer."""
    if row.outcome != "scored":
        return float(row.outcome not in ("errored", "skipped"))
    votes = row.votes
    scores = [vote for vote in votes if vote is not None]
    if not scores:
        return float(bool(votes))
    mean = sum(scores) / len(scores)
    spread = 4 * sum((score - mean) ** 2 for score in scores) / len(scores)
    return min(1.0, max(spread, 0.5 if len(scores) < len(votes) else 0.0))


def _contradiction(first: Unit, seat: Unit) -> float:
    """Return how far the verdicts of the two seats of a pair lie apart; a tie alone counts as a
    half."""
    if len(seat.responses) < 2 or first.score is None or seat.score is None:
        return 0.0
    return max(abs(first.score - seat.score), 0.5 if seat.score == 0.5 else 0.0)


def _mark_near_threshold(units: Sequence[Unit]) -> None:
    """Scores nearest to where passes begin tell most, those furthest away nothing; two scores alone
    are not a scale."""
    graded = [unit for unit in units if unit.graded and unit.passed is not None]
    scored = [(unit, unit.score) for unit in graded if unit.score is not None]
    if not scored:
        return
    below = [score for unit, score in scored if not unit.passed]
    above = [score for unit, score in scored if unit.passed]
    threshold = (max(below or [min(above)]) + min(above or [max(below)])) / 2
    furthest = max(abs(score - threshold) for _, score in scored)
    for unit, score in scored if furthest else ():
        unit.telling = max(unit.telling, 1 - abs(score - threshold) / furthest)


def _scale(grades: Mapping[float, float]) -> tuple[float, float] | None:
    """The ends of the scale, from two grades and their scores: a score is (grade - low) / (high -
    low). Grades from 0 to 1 are not a scale for people, who then say pass or fail."""
    (least, first), (most, last) = min(grades.items()), max(grades.items())
    if last <= first:
        return None
    step = (most - least) / (last - first)
    ends = round(least - first * step, 6), round(least + (1 - first) * step, 6)
    return None if ends == (0, 1) else ends


def _ends(scale: Any) -> tuple[float, float] | None:
    try:
        return msgspec.convert(scale, tuple[float, float])
    except msgspec.ValidationError:
        return None


def _judge_question(
    source: Source, label: str, scorer: str
) -> tuple[str, tuple[float, float] | None]:
    """Return what the judge was asked about this label, and the scale that it was given, as far as
    the plan tells."""
    params: JsonObject = planned_scorers(source).get(scorer, {}).get("params") or {}
    criterion = _criteria(params.get("criteria")).get(label.removeprefix(f"{scorer}."))
    parts: JsonObject = criterion if isinstance(criterion, dict) else {"description": criterion}
    asked = parts.get("description") or params.get("criterion")
    return asked if isinstance(asked, str) else "", _ends(parts.get("scale") or params.get("scale"))


def _criteria(value: Any) -> JsonObject:
    """The criteria of a rubric by name, however they are written."""
    if not isinstance(value, list):
        return as_object(value)
    criteria: JsonObject = {}
    for entry in cast("list[Any]", value):
        if isinstance(entry, dict):
            criteria |= {entry["name"]: entry} if "name" in entry else entry
    return criteria
