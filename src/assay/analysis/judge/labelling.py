"""Which answers people should label, and with what chance each of them was chosen.

Answers that tell most (judges disagree, the score is near the threshold, a verdict is missing) are a stratum of their
own: at most a quarter of all, fixed by the rows and the seed. One random order of all answers serves everything. The
`random` ones are its beginning, and so a plain sample of all answers. The `telling` ones are the next of the telling
stratum. Within each stratum the chosen answers are thus a plain sample of it, and the chance of each is the share of
its stratum that is chosen: `probability`. Both kinds are shown in turns, evenly, so a session that ends early has
labelled the same part of both strata, and weights of one over the probability still have the right proportions.
Estimates use these weights, or the random answers alone without any. A larger count continues in the same order; the
size of the stratum is kept with each label, so that the chance can be told again from how many labels there are by
then.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.matching import read_items
from assay.analysis.judge.label_frame import Address, Frame, Unit
from assay.engine.experiment.sources import Source
from assay.sdk import IntArray, Item, Mask, Response, canonical, digest
from assay.store.table.columns import ResponseRows
from assay.store.table.decode import row_decoder
from assay.text.answers import answer_of
from assay.text.expected import expectation
from assay.text.template import question, variables

MOST_TELLING = 0.25
BLOT = "[model]"  # stands for the names of models in answers
_NAMES = ("model_name", "metadata.model_id", "served_model")  # of a response's model
_SHORTEST_NAME = 3
_FAMILY = re.compile(r"(?=.*\d)[^\W\d_]{3,}")  # the first word of a name such as Qwen2.5-7B


class ChosenAnswer(msgspec.Struct, frozen=True):
    """An answer to be labelled, `random` or `telling`. `probability` is the share that is chosen of its `stratum`
    (telling or other), which has `size` answers."""

    unit: Unit
    kind: str
    probability: float
    stratum: str
    size: int


def choose(frame: Frame, count: int, *, random: float, seed: int = 0) -> list[ChosenAnswer]:
    """Return this many answers, in the order in which they are to be shown; at least `random` of
    them are random ones."""
    order, telling = _draw(frame, seed)
    count = min(count, len(order))
    sizes = np.bincount(telling, minlength=2)  # of the other stratum and of the telling one
    needed = count - int(sizes[1])  # so many of the other stratum must be among the first ones
    first = int((np.cumsum(~telling[order]) < needed).sum()) + (needed > 0)
    first = min(count, max(first, int(np.ceil(random * count))))
    rest = order[first:]
    kinds = {"random": order[:first], "telling": rest[telling[rest]][: count - first]}
    taken = np.bincount(telling[np.concatenate([*kinds.values()])], minlength=2)

    def choice(at: int, kind: str) -> ChosenAnswer:
        stratum = int(telling[at])
        size = int(sizes[stratum])
        name = "telling" if stratum else "other"
        return ChosenAnswer(frame.units[at], kind, int(taken[stratum]) / size, name, size)

    turns = [
        ((number + 0.5) / len(places), choice(int(at), kind))
        for kind, places in kinds.items()
        for number, at in enumerate(places)
    ]
    return [answer for _, answer in sorted(turns, key=lambda turn: turn[0])]


def _draw(frame: Frame, seed: int) -> tuple[IntArray, Mask]:
    """All answers in random order, and which of them are in the telling stratum. It is cut off by
    other random numbers than those of the order, which would else not be random within it."""
    if seed in frame.draws:
        return frame.draws[seed]
    draws = [digest("label", b"%d" % seed, canonical(unit.address)) for unit in frame.units]
    numbers = np.frombuffer(b"".join(draws), dtype=">u8").reshape(-1, 2)
    degree = np.array([unit.telling for unit in frame.units])
    most = int(np.ceil(MOST_TELLING * len(degree)))
    telling = np.zeros(len(degree), dtype=np.bool_)
    telling[np.lexsort((numbers[:, 1], -degree))[:most]] = True
    frame.draws[seed] = np.argsort(numbers[:, 0], kind="stable"), telling & (degree > 0)
    return frame.draws[seed]


def waiting(
    frame: Frame,
    labelled: Mapping[Address, set[str]],
    annotator: str,
    *,
    count: int,
    random: float,
    seed: int = 0,
) -> list[ChosenAnswer]:
    """Return what is left for an annotator who labels `count` answers in all, given who has
    labelled which: first, up to half of the count, answers that others have labelled, in their
    order, so that agreement can be told; then new ones."""
    addresses = {unit.address for unit in frame.units}
    mine = {
        address
        for address, people in labelled.items()
        if annotator in people and address in addresses
    }
    others = [
        address
        for address, people in labelled.items()
        if people - {annotator} and address in addresses
    ]
    shared = min(len(others), count // 2)
    planned = {
        answer.unit.address: answer
        for answer in choose(frame, count + len(others) - shared, random=random, seed=seed)
    }
    again = [address for address in others if address not in mine and address in planned]
    again = again[: max(0, shared - len(mine.intersection(others)))]
    anyone = mine.union(others)
    new = [address for address in planned if address not in anyone]
    return [planned[address] for address in (*again, *new)][: max(0, count - len(mine))]


# ---- what is shown of them


class AnswerView(msgspec.Struct, kw_only=True):
    """What is shown of an answer: nothing that tells who gave it. `answers` has one text, or two for a pair, in an
    order that is drawn anew for each; `swapped`: the second player's stands first."""

    question: str = ""
    reference: str | None = None
    answers: list[str]
    swapped: bool = False


def views(source: Source, units: Sequence[Unit], seed: int = 0) -> dict[Address, AnswerView]:
    """Return the views of some answers: one pass over the responses and one over the items."""
    found = ResponseRows(source.logs("run"), dict.fromkeys(_NAMES, "code"))
    table = found.table
    blotted = _blotter(
        _names({str(name) for each in table.values.values() for name in each if name})
    )
    items = _items(source, {unit.address.item for unit in units})
    decode = row_decoder(Response)
    shown: dict[Address, AnswerView] = {}
    for unit, at in zip(units, _response_places(found, units), strict=True):
        if min(at) >= 0:  # none was set aside since it was judged
            rows = [decode(table.line(place)) for place in at]
            view = _view(rows, items.get(unit.address.item), blotted)
            if len(rows) == 2 and digest("seat", b"%d" % seed, canonical(unit.address))[0] & 1:
                view.swapped = True
                view.answers.reverse()
            shown[unit.address] = view
    return shown


def _response_places(found: ResponseRows, units: Sequence[Unit]) -> Iterator[list[int]]:
    """Yield where the responses of each answer stand, -1 for one that is not there."""
    keys = [(key, *unit.address[:3]) for unit in units for key in unit.responses or ("",)]
    own, *places = zip(*keys, strict=True) if keys else [()] * 4
    at = iter(found.find(own, places))
    return (list(islice(at, len(unit.responses) or 1)) for unit in units)


def _view(rows: Sequence[Response], item: Item | None, blotted: Any) -> AnswerView:
    return AnswerView(
        question=question(variables(item)) if item else rows[0].prompt,
        reference=_reference(item) if item else None,
        answers=[blotted(_answer(row)) for row in rows],
    )


def _items(source: Source, wanted: Collection[str]) -> dict[str, Item]:
    items = (item for log in source.logs("dataset") for _, item in read_items(log))
    return {item.id: item for item in items if item.id in wanted}


def _answer(row: Response) -> str:
    """Return what a judge is given as well: without reasoning."""
    return (
        answer_of(row, strip_reasoning=True)
        if row.response or row.output is None
        else _text(row.output)
    )


def _reference(item: Item) -> str | None:
    try:
        return _text(expectation(item, None))
    except LookupError:
        separate = item.ground_truth is not None and item.ground_truth is not item.data
        return _text(item.ground_truth) if separate else None


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return " | ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ---- names


def _names(names: set[str]) -> set[str]:
    """Everything that the answering models are called, and the family that a name begins with."""
    families: set[str] = set()
    for name in names:
        if family := _FAMILY.match(name.rpartition("/")[2]):
            families.add(family.group())
    return {name for name in names | families if len(name) >= _SHORTEST_NAME}


def _blotter(names: Collection[str]) -> Any:
    """A function that blots names out of a text, longer ones first, wherever they are whole
    words."""
    if not names:
        return lambda text: text
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    pattern = re.compile(
        rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?![^\W\d_])", re.IGNORECASE
    )
    return lambda text: pattern.sub(BLOT, text)
