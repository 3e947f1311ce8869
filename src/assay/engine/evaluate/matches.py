"""Responses that are scored together: those of several players to one item and sample.

A first pass over the responses keeps some 30 bytes of each: its item, sample, player and place. The second reads the
answers to one item at a time. In matches, players are in sorted order whatever the order of the runs, and each pair
that has answers to the same item and sample meets: once, or once per seat. A scorer of the form `(item, *responses)`
gets all answers in one call, where every player has one.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, repeat
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.calls.progress import Note
from assay.engine.evaluate.bind import BoundScorer, Case
from assay.engine.evaluate.cases import (
    Call,
    ItemDigests,
    content_of,
    failure_label,
    response_decoder,
)
from assay.sdk import Evaluation, EvaluationOutcome, Item, Log, Mask, Response, Score, UserError
from assay.stats.davidson import choose_pairs
from assay.store.index import ItemIndex, id_number
from assay.store.keys import canonical, digest, evaluation_key
from assay.store.table.columns import read_columns
from assay.store.table.decode import read_rows
from assay.store.table.join import group_rows

MOST_NAMED = 12
SHARED = ("item_id", "sample_index", "sample_id")  # what two answers that meet have in common
_PLACE = [("item", "u8"), ("sample", "i4"), ("player", "i4"), ("log", "i4"), ("position", "i8")]


class _Side(NamedTuple):
    """One side of a match. `seen` is the response's key and content."""

    player: int
    line: bytes
    row: Response
    seen: tuple[str, bytes]


class MatchCalls:
    """What one scorer of several responses is called with. Players, and groups of answers to one item and sample, go by
    their numbers."""

    def __init__(
        self,
        scorer: BoundScorer,
        runs: Sequence[tuple[str, Log]],
        items: ItemIndex,
        note: Note = lambda text: None,
    ) -> None:
        self.scorer = scorer
        self._runs, self._logs = [run for run, _ in runs], [log for _, log in runs]
        self._items = items
        self._seen = ItemDigests()
        self._decode = response_decoder()
        self._note = note
        self._read_places()
        self._names_of: dict[tuple[int, int], tuple[tuple[str, str], bytes]] = {}
        self._check()

    # -- the first pass

    @property
    def _in_order(self) -> bool:
        return self.scorer.form == "together" and self.scorer.player == "run"

    def _read_places(self) -> None:
        numbers = dict[str, int]()
        rows = np.fromiter(self._places(numbers), _PLACE)
        self.players = list(numbers) if self._in_order else sorted(numbers)
        place = self._items.positions(rows["item"])
        if missing := np.count_nonzero(place < 0):
            self._note(
                f"{missing} responses belong to items that are not in the dataset: they meet nobody"
            )
        rank = {name: number for number, name in enumerate(self.players)}
        player = np.array([rank[name] for name in numbers], np.int32)[rows["player"]]
        # those without a place come first
        order = np.lexsort((player, rows["sample"], place))[missing:]
        self._player, self._log = player[order], rows["log"][order]
        self._position = rows["position"][order]
        place, sample = place[order], rows["sample"][order]
        first = group_rows(place, sample).first
        self.places, self.samples = place[first], sample[first]
        self._bounds = np.append(first, len(place))

    def _places(self, numbers: dict[str, int]) -> Iterator[tuple[int, ...]]:
        """Yield item, sample, player, log and position of each response; `numbers` gets the players."""
        field, unreadable = self.scorer.player, 0
        if field in SHARED:
            raise UserError(
                f"{field!r} cannot tell players apart: they meet where it is equal",
                fix="players: model_name",
            )
        named = () if field == "run" else (field,)
        base = ("item_id", "sample_index")
        for block in read_columns(self._logs, "responses", base, named, strict=False):
            unreadable += len(block.unreadable)
            players = block.found[0] if named else repeat(self._runs[block.log])
            for item, sample, player, position in zip(
                *block.base, players, block.positions.tolist(), strict=False
            ):
                if not isinstance(item, str) or not isinstance(sample or 0, int):
                    unreadable += 1
                    continue
                if player in (None, UNSET):
                    raise UserError(
                        f"the responses have no field {field!r} to name players by",
                        fix="players: model_name",
                    )
                number = numbers.setdefault(str(player), len(numbers))
                yield id_number(item), sample or 0, number, block.log, position
        if unreadable:
            self._note(
                f"{unreadable} lines of the responses cannot be read and are not scored: run inference again"
            )

    def presence(self) -> Mask:
        """Return which player (rows) has an answer in which group (columns)."""
        found = np.zeros((len(self.players), len(self.places)), np.bool_)
        found[self._player, np.repeat(np.arange(len(self.places)), np.diff(self._bounds))] = True
        return found

    def group_of(self, item_id: str, sample: int) -> int:
        """The group of the answers to an item and sample, which must be there."""
        place = self._items.position(item_id)
        return int(np.flatnonzero((self.places == place) & (self.samples == sample))[0])

    def _check(self) -> None:
        if len(self.players) < 2 and self.scorer.form == "match":
            found = ", ".join(map(repr, self.players)) or "none"
            raise UserError(
                f"the match scorer {self.scorer.name!r} needs two players, found {found}",
                fix="add a model, or evaluate several runs together: assay evaluate RUN1 RUN2 -c CONFIG -o FOLDER",
            )
        is_new = np.ones(len(self._player), np.bool_)  # not an answer that another run has as well
        is_new[1:] = self._player[1:] != self._player[:-1]
        is_new[self._bounds[:-1]] = True
        answers = np.bincount(self._player[is_new], minlength=len(self.players)).tolist()
        if set(answers) == {len(self.places)}:
            return
        counts = dict(zip(self.players, answers, strict=True))
        shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:MOST_NAMED])
        more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
        what = f"the players of {self.scorer.name!r} answer different items: of {len(self.places):,} {shown}{more}"
        if self.scorer.same_items:
            fix = "complete the runs, or compare on what they share with `items: intersection`"
            raise UserError(what, fix=fix)
        together = self.scorer.form == "together"
        self._note(
            f"{what}; {'what all have is scored' if together else 'each pair meets where both have an answer'}"
        )

    # -- the second pass

    @property
    def count(self) -> int:
        """Return how many calls there are, unless two runs have the same answers."""
        sizes = np.diff(self._bounds)
        if self.scorer.form == "together":
            return int(self._wholes().sum())
        return int((sizes * (sizes - 1) // 2).sum()) * (2 if self.scorer.both_seats else 1)

    def calls(self) -> Iterator[Call]:
        """Every call, in the order of the items."""
        if self.scorer.form == "together":
            yield from self._together()
            return
        for group in np.flatnonzero(np.diff(self._bounds) > 1).tolist():
            for first, second in combinations(self._answers(group), 2):
                yield from self._meeting(first, second)

    def _wholes(self) -> Mask:
        """Return which groups have an answer of every player."""
        return np.logical_and.reduce(self.presence(), axis=0)

    def _together(self) -> Iterator[Call]:
        scored = 0
        for group in np.flatnonzero(self._wholes()).tolist():
            answers = self._answers(group)
            item = self._items.get(answers[0].row.item_id)
            if item is None or len(answers) > len(self.players):
                continue  # ids that differ share a group if their hashes are equal
            call = self._all_of(item, answers)
            yield call
            scored += call.settled is None
            if scored == self.scorer.limit:
                return

    def _all_of(self, item: Item, answers: list[_Side]) -> Call:
        settled = self._settle(answers)
        if settled is None and any(answer.row.outcome == "ok" for answer in answers):
            answers = [answer for answer in answers if answer.row.outcome == "ok"]
        sides = tuple(self.players[answer.player] for answer in answers)
        about = digest(
            "together", self._seen.of(item, self.scorer), canonical(sides), *_parts(settled)
        )
        key = evaluation_key(self.scorer.identity, about, [answer.seen for answer in answers], None)
        case = Case(
            item, [answer.row for answer in answers], [answer.line for answer in answers], sides
        )
        return Call(self.scorer, case, key, settled=settled, sides=sides)

    def _settle(self, answers: list[_Side]) -> Score | None:
        """Return the label of answers that cannot be scored together, as failures are among them."""
        failures = [failure_label(each.row) for each in answers if each.row.outcome != "ok"]
        all_failed, skips = len(failures) == len(answers), self.scorer.skip_failures
        if not failures or not (skips or all_failed):
            return None
        if self.scorer.takes_sides and not skips:
            return None  # called without responses: the row still names those that failed
        if skips:
            failures[0].outcome = "skipped"
        return failures[0]

    def calls_between(self, group: int, players: tuple[int, int]) -> list[Call]:
        """The calls of one pair on one item and sample."""
        answers = [answer for answer in self._answers(group) if answer.player in players]
        return [call for pair in combinations(answers, 2) for call in self._meeting(*pair)]

    def _answers(self, group: int) -> list[_Side]:
        """The answers in a group, by player; an answer that two runs have alike is one."""
        begin, end = int(self._bounds[group]), int(self._bounds[group + 1])
        found: list[_Side] = []
        for at in range(begin, end):
            player = int(self._player[at])
            line = self._logs[self._log[at]].read(int(self._position[at]))
            try:
                row = self._decode(line)
            except ValueError:  # a field of a wrong type, which the first pass does not look at
                continue
            answer = _Side(player, line, row, (row.key, content_of(row)))
            last = found[-1] if found else None
            if last is None or last.player != player or last.row.item_id != row.item_id:
                found.append(answer)
            elif last.seen != answer.seen:
                raise self._alike(answer)
        return found

    def _alike(self, answer: _Side) -> UserError:
        return UserError(
            f"two responses to item {answer.row.item_id!r} belong to one player {self.players[answer.player]!r}",
            where=f"scorer {self.scorer.name}",
            fix="name a field that tells them apart: `players: task`, or for several runs of one model `players: run`, "
            "and `assay rank --by model_name`",
        )

    def _meeting(self, first: _Side, second: _Side) -> Iterator[Call]:
        item = self._items.get(first.row.item_id)
        if first.row.item_id != second.row.item_id or item is None:
            return  # ids that differ share a group if their hashes are equal
        scorer = self.scorer
        players, encoded = self._names(first.player, second.player)
        settled = self._settled_label(players, first.row, second.row)
        about = digest("match", self._seen.of(item, scorer), encoded, *_parts(settled))
        for seat in (0, 1) if scorer.both_seats else (0,):
            one, other = (second, first) if seat else (first, second)
            key = evaluation_key(scorer.identity, about, (one.seen, other.seen), seat)
            yield Call(
                scorer,
                Case(item, [one.row, other.row], [one.line, other.line]),
                key,
                players,
                seat,
                settled,
            )

    def _names(self, first: int, second: int) -> tuple[tuple[str, str], bytes]:
        known = self._names_of.get((first, second))
        if known is None:
            names = self.players[first], self.players[second]
            known = self._names_of[first, second] = names, canonical(names)
        return known

    def _settled_label(
        self, players: tuple[str, str], first: Response, second: Response
    ) -> Score | None:
        """The label of a match that nobody has to be asked about."""
        for row in (first, second):
            if row.outcome != "ok":
                found = failure_label(row)
                if self.scorer.skip_failures:
                    found.outcome = "skipped"
                return found
        if self.scorer.people is None:
            return None
        return self.scorer.people.of(first.item_id, first.sample_index, players, first.key)


def _parts(settled: Score | None) -> list[bytes]:
    """Return what a label that is settled adds to the key of its row: it is another row when the
    label is another one."""
    return [] if settled is None else [canonical((settled.outcome, settled.score, settled.details))]


SMALLEST_SHARE = 20  # a round is this part of the budget, but lets every player play


class _PlayedRow(msgspec.Struct, gc=False):
    """What is read of existing rows."""

    item_id: str
    scorer: str = ""
    sample_index: int = 0
    score: float | None = None
    outcome: EvaluationOutcome = "scored"
    part: tuple[int, int] = (0, 1)
    players: tuple[str, str] | None = None


class Rounds:
    """The rounds of one scorer's matches."""

    def __init__(self, matches: MatchCalls, log: Log, budget: int, seed: int) -> None:
        self.matches = matches
        self.budget = budget
        self.seed = seed
        players = len(matches.players)
        self._number = {name: number for number, name in enumerate(matches.players)}
        self._seats = 2 if matches.scorer.both_seats else 1
        self._present = matches.presence()
        together = self._present.astype(np.float32)
        self._left = np.triu(together @ together.T, 1).astype(np.int64)
        self._payoffs = np.zeros((players, players))
        self._played: dict[tuple[int, int], set[int]] = {}
        self._counted: set[tuple[int, int, int]] = set()
        for _, row in read_rows(log, _PlayedRow):
            if row.part[0] == 0:
                self.record(row)

    def record(self, row: "_PlayedRow | Evaluation") -> None:
        """A match was played in one of its seats. Skipped ones are not played, and cost nothing."""
        if row.scorer != self.matches.scorer.name or row.players is None:
            return
        first, second = (self._number[name] for name in row.players)
        group = self.matches.group_of(row.item_id, row.sample_index)
        self._take(group, (first, second))
        if row.outcome == "skipped":
            return
        self._counted.add((group, first, second))
        if row.score is not None:
            self._payoffs[first, second] += row.score / self._seats
            self._payoffs[second, first] += (1 - row.score) / self._seats

    def next(self) -> list[Call]:
        """The calls of the next round; none when the budget is used up or everything is played."""
        wanted = min(
            self.budget - len(self._counted), max(len(self._number), self.budget // SMALLEST_SHARE)
        )
        if wanted <= 0:
            return []
        random = np.random.default_rng([self.seed, sum(map(len, self._played.values()))])
        calls: list[Call] = []
        for pair in choose_pairs(self._payoffs, self._left, wanted, random):
            shared = np.flatnonzero(self._present[pair[0]] & self._present[pair[1]])
            free = np.setdiff1d(shared, list(self._played.get(pair, ())), assume_unique=True)
            group = int(random.choice(free))
            self._take(group, pair)
            calls += self.matches.calls_between(group, pair)
        return calls

    def _take(self, group: int, pair: tuple[int, int]) -> None:
        played = self._played.setdefault(pair, set())
        self._left[pair] -= group not in played
        played.add(group)
