"""Which scorer calls a set of runs asks for: one per response, or one per pair of players and seat for a match."""

import json
from array import array
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from assay.errors import UserError
from assay.interfaces import Log
from assay.records import Item, Response
from assay.steps.scoring import BoundScorer, Case
from assay.store.index import ItemIndex
from assay.store.keys import canonical, digest, evaluation_key


class Call(msgspec.Struct, gc=False):
    """One scorer call: its case, the key of its rows, and, for a match, players in canonical order and the seat.

    `problem` says why there is nothing to call: the item is missing.
    """

    scorer: BoundScorer
    case: Case
    key: bytes
    players: tuple[str, str] | None = None
    seat: int | None = None
    problem: str | None = None


def calls_of(
    scorers: Sequence[BoundScorer],
    runs: Sequence[tuple[str, Log]],
    items: ItemIndex,
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[Call]:
    """Every call, in the order of the responses; matches afterwards, in the order of the items."""
    single = [scorer for scorer in scorers if scorer.form != "match"]
    decode = response_decoder()
    seen = _Seen()
    for _, log in runs if single else ():
        known, problem, expected = Item(id=""), None, list[bytes]()
        for _, line, response in readable(log, decode, note):
            if response.item_id != known.id or not expected:  # the samples of one item are mostly neighbours
                item = items.get(response.item_id)
                known = item or Item(id=response.item_id)
                problem = None if item is not None else f"the item {response.item_id!r} is not in the dataset"
                expected = [seen.of(known, scorer) for scorer in single]
            answers = [(response.key, content_of(response))]
            case = Case(known, [response], [line])
            for scorer, wanted in zip(single, expected, strict=True):
                yield Call(scorer, case, evaluation_key(scorer.identity, wanted, answers, None), problem=problem)
    for scorer in scorers:
        if scorer.form == "match":
            yield from _matches(scorer, runs, items, seen)


def response_decoder() -> Callable[[bytes], Response]:
    """Strict and fast for our rows, tolerant (NaN, Infinity, missing keys) for foreign ones."""
    strict = msgspec.json.Decoder(Response).decode

    def decode(line: bytes) -> Response:
        try:
            row = strict(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            row = msgspec.convert(json.loads(line), Response, strict=False)
        if not row.key:
            row.key = digest("line", line).hex()
            if row.error and row.outcome == "ok":
                row.outcome = "errored"
        return row

    return decode


def readable(
    log: Log, decode: Callable[[bytes], Response], note: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[int, bytes, Response]]:
    """(position, line, response) of every line that holds one; the run that owns the file sets the others aside."""
    unreadable = 0
    for position, line in log.scan():
        try:
            response = decode(line)
        except (ValueError, RecursionError):
            unreadable += bool(line.strip())
            continue
        yield position, line, response
    if unreadable:
        note(f"{unreadable} lines of the responses cannot be read and are not scored: run inference again")


def content_of(response: Response) -> bytes:
    """What a scorer can see of a response's answer: rows that differ in it are scored anew."""
    output = b"" if response.output is None else canonical(response.output)
    return digest("content", response.response.encode(), output, response.outcome.encode())


class _Seen:
    """What scorers see of an item, as a digest; neighbouring calls mostly ask for the same item."""

    def __init__(self) -> None:
        self._item: Item | None = None
        self._known: dict[str, bytes] = {}

    def of(self, item: Item, scorer: BoundScorer) -> bytes:
        if item is not self._item:
            self._item = item
            self._known = {}
        known = self._known.get(scorer.reads)
        if known is None:
            seen = item.ground_truth
            if scorer.reads == "item":
                seen = (item.ground_truth, item.data, item.metadata, item.extra)
            known = self._known[scorer.reads] = digest("seen", canonical(seen))
        return known


# ---- matches


def _matches(scorer: BoundScorer, runs: Sequence[tuple[str, Log]], items: ItemIndex, seen: _Seen) -> Iterator[Call]:
    """Each pair of players on one item and sample, once per seat order."""
    decode = response_decoder()
    order, sample, player, log_number, position = array("q"), array("q"), array("q"), array("q"), array("q")
    numbers: dict[str, int] = {}
    for number, (run, log) in enumerate(runs):
        for place, _, response in readable(log, decode):
            where = items.position(response.item_id)
            if where is None:
                continue
            order.append(where)
            sample.append(response.sample_index)
            player.append(numbers.setdefault(player_of(response, scorer.player, run), len(numbers)))
            log_number.append(number)
            position.append(place)
    names = sorted(numbers)
    if len(names) < 2:
        found = ", ".join(map(repr, names)) or "none"
        raise UserError(f"the match scorer {scorer.name!r} needs two players, found {found}")
    rank = np.array([names.index(name) for name in numbers], np.int64)
    columns = [np.array(column, np.int64) for column in (order, sample, player, log_number, position)]
    columns[2] = rank[columns[2]]
    sorting = np.lexsort((columns[2], columns[1], columns[0]))
    table = np.stack([column[sorting] for column in columns], axis=1)
    starts = np.flatnonzero(np.any(np.diff(table[:, :2], axis=0, prepend=-1) != 0, axis=1))
    for begin, end in zip(starts, [*starts[1:], len(table)], strict=True):
        sides = [(names[int(row[2])], runs[int(row[3])][1], int(row[4])) for row in table[begin:end]]
        yield from _pairs(scorer, [(name, log.read(place)) for name, log, place in sides], items, seen, decode)


def _pairs(
    scorer: BoundScorer,
    sides: list[tuple[str, bytes]],
    items: ItemIndex,
    seen: _Seen,
    decode: Callable[[bytes], Response],
) -> Iterator[Call]:
    rows = [(name, line, decode(line)) for name, line in sides]
    item = items.get(rows[0][2].item_id)
    assert item is not None  # its position was found above
    expected = seen.of(item, scorer)
    for i, first in enumerate(rows):
        for second in rows[i + 1 :]:
            if first[0] == second[0]:
                raise UserError(
                    f"two responses to item {item.id!r} belong to one player {first[0]!r}",
                    where=f"scorer {scorer.name}",
                    fix="name a field that tells them apart: @scorer(player='task') or player='run'",
                )
            for seat in (0, 1) if scorer.both_seats else (0,):
                seated = [first, second] if seat == 0 else [second, first]
                contents = [(row.key, content_of(row)) for _, _, row in seated]
                key = evaluation_key(scorer.identity, expected, contents, seat)
                case = Case(item, [row for _, _, row in seated], [line for _, line, _ in seated])
                yield Call(scorer, case, key, (first[0], second[0]), seat)


def player_of(response: Response, field: str, run: str) -> str:
    """The player that a response belongs to: a field of the row, of its metadata, or the run itself."""
    if field == "run":
        return run
    value = getattr(response, field, None)
    if value is None:
        value = response.metadata.get(field.removeprefix("metadata."))
    if value is None:
        raise UserError(f"the responses have no field {field!r} to name players by")
    return str(value)
