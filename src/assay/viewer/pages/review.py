"""Answers for a person to label without seeing who gave them, chosen as `assay judge label` does.

What the judge said is told only of answers that this person has labelled. In a pair, labels and verdicts are about the
order that is shown: 1 where the first answer is better, 0 where the second is, 0.5 for a tie.
"""

import threading
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Annotated, Any

import msgspec
import numpy as np

from assay.analysis.judge.label import Labelling
from assay.analysis.judge.label_frame import Address, Frame, Unit, labels_of
from assay.analysis.judge.labelling import ChosenAnswer, choose
from assay.engine.experiment.sources import Source
from assay.sdk import JsonObject, UserError, canonical, digest
from assay.stats.agreement import RaterAgreement, agreement
from assay.text.plain import plain
from assay.viewer.experiments import Experiments

RANDOM, SEED = 0.3, 0  # as of `assay judge label`
LONGEST_TEXT = 200_000  # characters that are shown
MOST_GRADES = 21
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Short = Annotated[str, msgspec.Meta(max_length=100)]


class Query(msgspec.Struct, kw_only=True):
    experiment: str
    label: str = ""
    annotator: Short = ""
    count: Count = 50


class NewLabel(msgspec.Struct, kw_only=True):
    """A label as the page sends it: null takes the last one back, or only leaves a note. `count` as of the query."""

    experiment: str
    label: str
    annotator: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    unit: str
    value: float | None = None
    note: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    tags: Annotated[list[Short], msgspec.Meta(max_length=50)] = []
    count: Count = 50


class _Desk:
    """What is read of an experiment once: its labels to choose from, and the answers of those that were asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.labels = labels_of(source)[1]
        if not self.labels:
            raise UserError(
                "no answer has a label", where=str(source.path), fix="score them: assay evaluate"
            )
        self.labellings: dict[str, Labelling] = {}

    def labelling(self, label: str, annotator: str) -> Labelling:
        if label not in self.labellings:
            self.labellings[label] = Labelling(self.source, label)
        # the frame and the views that were read are shared
        labelling = copy(self.labellings[label])
        labelling.annotator = annotator
        return labelling


_lock = threading.Lock()


def _desk(experiments: Experiments, id: str) -> _Desk:
    source = experiments.source(id)
    if "desk" not in source.facts:
        source.facts["desk"] = _Desk(source)
    return source.facts["desk"]


def page(experiments: Experiments, query: Query) -> JsonObject:
    annotator = query.annotator or experiments.annotator
    with _lock:
        desk = _desk(experiments, query.experiment)
        label = query.label or desk.labels[0]
        labelling = desk.labelling(label, annotator)
        if annotator:
            labelling.choose(query.count, RANDOM, SEED)
    frame = labelling.frame
    records = labelling.mine() if annotator else {}
    labelled: list[JsonObject] = []
    for answer in labelling.order:
        unit = answer.unit
        entry = records.get(unit.address)
        if entry is not None and entry.label is not None:
            swapped = labelling.views[unit.address].swapped
            labelled.append(
                {
                    "unit": _shown(labelling, unit),
                    "label": _turned(_number(entry.label), swapped),
                    "note": entry.note,
                    "tags": entry.tags,
                    "judge": _turned(_verdict(frame, unit), swapped),
                }
            )
    mine = {unit["unit"]["id"] for unit in labelled}
    shown = [
        _shown(labelling, answer.unit)
        for answer in labelling.waiting
        if answer.unit.address in labelling.views
    ]
    return {
        "label": label,
        "labels": desk.labels if label in desk.labels else [label, *desk.labels],
        "annotator": annotator,
        "scale": _grades(frame.scale),
        "pairwise": frame.match,
        "asked": frame.asked,
        "done": len(labelled),
        "waiting": [unit for unit in shown if unit["id"] not in mine],
        "labelled": labelled,
        "agreement": _agreement(labelling, labelled),
    }


def save(experiments: Experiments, content: bytes) -> JsonObject:
    """Store a label; what the judge said about the answer comes back, now that it is labelled."""
    try:
        new = msgspec.json.decode(content, type=NewLabel)
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not a label: {error}", fix="reload the page") from None
    with _lock:
        labelling = _desk(experiments, new.experiment).labelling(new.label, new.annotator.strip())
        if not _is_name(labelling.annotator):
            raise UserError("who labels?", fix="a name is made of letters, digits and spaces")
        labelling.choose(new.count, RANDOM, SEED)
        answer = _chosen(labelling, new.unit, new.count)
    frame = labelling.frame
    if answer is None:
        fix = "reload the page; what was labelled is stored"
        raise UserError(
            "this answer is no longer part of the experiment", where=frame.label, fix=fix
        )
    if new.value is not None and not _is_possible(frame, new.value):
        raise UserError(f"{new.value:g} is not a label of {frame.label!r}", fix=_possible(frame))
    swapped = _is_swapped(labelling, answer.unit)
    value = _turned(new.value, swapped)
    number = int(value) if value is not None and value.is_integer() else value
    labelling.save(
        answer, number, new.note, list(dict.fromkeys(filter(None, map(str.strip, new.tags))))
    )
    return {"judge": None if number is None else _turned(_verdict(frame, answer.unit), swapped)}


def _is_name(text: str) -> bool:
    return text != "" and plain(text) == text and not {"\n", "\t"} & {*text}


def _chosen(labelling: Labelling, id: str, count: int) -> ChosenAnswer | None:
    """The answer as it was chosen. Labels that others gave since then may have taken it off this person's list."""
    for answer in labelling.order:
        if unit_id(answer.unit.address) == id:
            return answer
    others = len({address for address, _ in labelling.file.latest(labelling.frame.label)})
    planned = choose(labelling.frame, count + others, random=RANDOM, seed=SEED)
    return next((answer for answer in planned if unit_id(answer.unit.address) == id), None)


def _is_swapped(labelling: Labelling, unit: Unit) -> bool:
    if unit.address not in labelling.views:
        labelling.look([unit], SEED)
    return labelling.views[unit.address].swapped


def unit_id(address: Address) -> str:
    """Stands for an answer, and tells nothing of who gave it."""
    return digest("unit", canonical(address)).hex()


def _shown(labelling: Labelling, unit: Unit) -> JsonObject:
    view = labelling.views[unit.address]
    return {
        "id": unit_id(unit.address),
        "question": _cut(view.question),
        "reference": None if view.reference is None else _cut(view.reference),
        "answers": [_cut(answer) for answer in view.answers],
    }


def _cut(text: str) -> str:
    more = len(text) - LONGEST_TEXT
    return (
        text if more <= 0 else f"{text[:LONGEST_TEXT]}\n… [{more:,} more characters are not shown]"
    )


# ---- labels and verdicts


def _turned(value: float | None, swapped: bool) -> float | None:
    """Between the order of the players and the order that is shown; only pairs are ever swapped."""
    return 1 - value if swapped and value is not None else value


def _number(label: Any) -> float | None:
    return float(label) if isinstance(label, (int, float)) else None


def _verdict(frame: Frame, unit: Unit) -> float | None:
    """What the judge said, in the words of a label; None where it said nothing."""
    if frame.scale is not None and unit.score is not None:
        low, high = frame.scale
        return round(low + unit.score * (high - low), 6)
    if not frame.match and unit.passed is not None:
        return float(unit.passed)
    return unit.score


def _is_possible(frame: Frame, value: float) -> bool:
    if frame.scale is not None:
        return frame.scale[0] <= value <= frame.scale[1]
    return value in ((0, 0.5, 1) if frame.match else (0, 1))


def _possible(frame: Frame) -> str:
    if frame.scale is not None:
        return f"a grade from {frame.scale[0]:g} to {frame.scale[1]:g}"
    return "1, 0 or 0.5 for a tie" if frame.match else "1 for pass, 0 for fail"


def _grades(scale: tuple[float, float] | None) -> list[float] | None:
    """All whole grades, or if they are too many, some from one end to the other."""
    if scale is None:
        return None
    low, high = scale
    steps = high - low
    if not (low.is_integer() and high.is_integer() and steps < MOST_GRADES):
        steps = 10
    return [round(low + (high - low) * number / steps, 6) for number in range(int(steps) + 1)]


# ---- how far people agree, with each other and with the judge


def _agreement(labelling: Labelling, labelled: Sequence[JsonObject]) -> list[tuple[str, str, str]]:
    lines = [("labels of yours", f"{len(labelled):,}", "")] if labelled else []
    pairs = [
        (entry["label"], entry["judge"])
        for entry in labelled
        if None not in (entry["label"], entry["judge"])
    ]
    if pairs:
        ids = {unit_id(answer.unit.address): answer.unit.address.item for answer in labelling.order}
        items = np.unique(
            [ids[entry["unit"]["id"]] for entry in labelled if entry["judge"] is not None],
            False,
            True,
        )
        votes = np.array(pairs, dtype=float)
        level = "ordinal" if labelling.frame.scale else "nominal"
        percent = agreement(votes, items[1], coefficient="percent")
        kappa = agreement(votes, items[1], coefficient="cohen_kappa", level=level)
        lines += _lines("you and the judge", {"percent": percent, "cohen_kappa": kappa})
    return [*lines, *_lines("all annotators", labelling.agreement())]


def _lines(who: str, agreements: dict[str, RaterAgreement]) -> Iterable[tuple[str, str, str]]:
    for name, result in agreements.items():
        what = f"{who}, {name.replace('_', ' ')} (n = {result.answers:,})"
        if result.value is None:
            yield what, "–", result.reason or ""
            continue
        interval = result.interval()
        sure = (
            interval.method
            if interval.low is None
            else f"{interval.low:.2f} to {interval.high:.2f}"
        )
        yield what, f"{result.value:.2f}", sure
