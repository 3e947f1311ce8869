"""Playing only some of the matches, those that tell most: in rounds, as each choice needs the results before it.

A match is one pair on one item and sample, in all its seats. The budget counts existing matches, so that the same
command resumes where an earlier one was stopped, and a larger budget adds to a smaller one.
"""

import msgspec
import numpy as np

from assay.engine.evaluate.cases import Call
from assay.engine.evaluate.matches import Matches
from assay.interfaces import Log
from assay.records import Evaluation, EvaluationOutcome
from assay.stats.davidson import choose_pairs
from assay.store.table.decode import read_rows

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

    def __init__(self, matches: Matches, log: Log, budget: int, seed: int) -> None:
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
