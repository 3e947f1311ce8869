"""The rows of matches as columns: who played whom on which item, and the verdict in each order of the seats.

A row costs 41 bytes, however long its texts are. The same verdict in two folders counts once.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.analysis.compare.paired import read_side, rows_of
from assay.engine.evaluate.directions import Directions
from assay.engine.experiment.sources import Source
from assay.errors import UserError
from assay.interfaces import Codes, Hashes, Log, Mask
from assay.records import EvaluationOutcome
from assay.registry import nearest
from assay.stats.matches import Ints, Matches, reconciled
from assay.store.keys import id_hash, short
from assay.store.table.columns import Column, read_columns
from assay.store.table.decode import row_decoder
from assay.store.table.facets import text_of

Flags = Mask


class _MatchRow(msgspec.Struct, gc=False):
    """What is read of an evaluation, in the order of its fields, which decodes fastest."""

    item_id: str
    sample_index: int = 0
    label: str = ""
    passed: bool | None = None
    score: float | None = None
    key: str = ""
    responses: list[str] = []
    scorer: str = ""
    outcome: EvaluationOutcome = "scored"
    players: tuple[str, str] | None = None
    seat: int | None = None

    def half_points(self) -> int:
        """2 if the first player won, 1 for a tie, 0 if it lost, -1 for no verdict."""
        score = float(self.passed) if self.score is None and self.passed is not None else self.score
        if self.outcome != "scored" or score is None:
            return -1
        return 2 if score > 0.5 else 0 if score < 0.5 else 1


def _rows(log: Log) -> Iterator[_MatchRow]:
    """Every row of a match; lines that are not evaluations are skipped."""
    decode_lines = msgspec.json.Decoder(_MatchRow).decode_lines
    decode = row_decoder(_MatchRow)
    for block in log.blocks():
        try:
            rows = decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError):
            rows: list[_MatchRow] = []
            for line in block.splitlines():
                with suppress(ValueError, RecursionError):
                    rows.append(decode(line))
        for row in rows:
            if row.players is not None and row.outcome != "skipped":
                yield row


class Verdicts:
    """The rows of all sources; `names` are the players that the rows name, `kinds` pairs of label and scorer."""

    def __init__(self, *, responses: bool) -> None:
        self.names: dict[str, int] = {}
        self.kinds: dict[tuple[str, str], int] = {}
        self.scored: dict[str, str] = {}
        self._answers = responses
        self._numbers = array("i")
        self._hashes = array("Q")
        self._half_points = array("b")
        self._responses = array("Q")

    def add(self, source: Source, number: int) -> None:
        names = self.names
        kinds = self.kinds
        directions = Directions([source.manifest("evaluation")])
        for row in _rows(rows_of(source)):
            assert row.players is not None
            points = row.half_points()
            if points >= 0:
                self.scored[row.label] = row.scorer
                points = 2 - points if directions.lower([row.scorer]) else points
            first, second = row.players
            kind = kinds.setdefault((row.label, row.scorer), len(kinds))
            one = names.setdefault(first, len(names))
            other = names.setdefault(second, len(names))
            self._numbers.extend((number, kind, row.sample_index, one, other, row.seat or 0))
            self._hashes.extend((id_hash(row.item_id), short(row.key) if row.key else 0))
            self._half_points.append(points)
            if self._answers:
                keys = [short(key) for key in row.responses]
                self._responses.extend(
                    (keys[::-1] if row.seat else keys) if len(keys) == 2 else (0, 0)
                )

    def columns(self, label: str) -> "Rows":
        """The rows under a label. A call that failed before it could name one counts under all of its scorer's."""
        source, kind, sample, first, second, seat = (
            np.frombuffer(self._numbers, np.int32).reshape(-1, 6).T
        )
        item, keys = np.frombuffer(self._hashes, np.uint64).reshape(-1, 2).T
        answers = np.frombuffer(self._responses, np.uint64).reshape(-1, 2).T
        scorer = self.scored[label]
        named = [
            own == label or (own == by == scorer and own not in self.scored)
            for own, by in self.kinds
        ]
        at = np.flatnonzero(np.array(named)[kind])
        # a key may stand for several matches of responses that are scored together
        if source.max(initial=0) > 0:
            pair = (first.astype(np.uint64) << np.uint64(32)) + second.astype(np.uint64)
            at = at[_first_of_each(np.where(keys == 0, keys, keys + pair)[at])]
        turned = first[at] > second[at]
        points = np.frombuffer(self._half_points, np.int8)[at]
        return Rows(
            item=item[at],
            source=source[at],
            sample=sample[at],
            first=np.where(turned, second[at], first[at]),
            second=np.where(turned, first[at], second[at]),
            seat=seat[at],
            half_points=np.where(turned & (points >= 0), 2 - points, points).astype(np.int8),
            answers=np.where(turned, answers[::-1, at], answers[:, at]) if self._answers else None,
        )


class Rows(msgspec.Struct):
    """Verdicts as columns: `item` is a hash; `first` is the lower player number; `answers` the two responses' keys."""

    item: Hashes
    source: Codes
    sample: Codes
    first: Codes
    second: Codes
    seat: Codes
    half_points: npt.NDArray[np.int8]
    answers: Hashes | None


class Played(msgspec.Struct):
    """What the rows come to. `items` has the hash of each item, by its number. `failed` has the
    verdicts that are missing, by player; `same` counts matches of a player against itself, which are
    left out."""

    names: list[str]
    items: Hashes
    matches: Matches
    verdicts: int
    failed: Ints
    disagreements: int
    one_sided: int
    unread: int
    same: int


def read_verdicts(sources: Sequence[Source], *, responses: bool = False) -> Verdicts:
    """All matches of the sources; `responses`: with the keys of the answers."""
    verdicts = Verdicts(responses=responses)
    for number, source in enumerate(sources):
        verdicts.add(source, number)
    if not verdicts.kinds:
        raise UserError(
            "these rows are not matches: they have no `players`",
            where=", ".join(str(source.path) for source in sources),
            fix="judge pairs of answers first, with an evaluation method such as `judge_pairwise`",
        )
    return verdicts


def label_of(verdicts: Verdicts, wanted: str) -> str:
    """The label to look at: the one wanted, or the only one."""
    if wanted and wanted not in verdicts.scored:
        raise UserError(f"no match has the label {wanted!r}", fix=nearest(wanted, verdicts.scored))
    if not verdicts.scored:
        raise UserError(
            "no match has a verdict: all calls failed", fix="assay run --retry-errors tries again"
        )
    if not wanted and len(verdicts.scored) > 1:
        raise UserError(
            "the matches have several labels",
            fix=f"add --label, one of {', '.join(sorted(verdicts.scored))}",
        )
    return wanted or next(iter(verdicts.scored))


def played(verdicts: Verdicts, label: str, sources: Sequence[Source], by: str = "") -> Played:
    """The matches under a label, one for each pair of answers; players are those of the rows, or with `by` the values
    that this field has in the responses."""
    rows = verdicts.columns(label)
    order = np.lexsort((rows.seat, rows.second, rows.first, rows.sample, rows.item, rows.source))
    rows = _taken(rows, order)
    names = list(verdicts.names)
    first = rows.first
    second = rows.second
    if by:
        names, (first, second) = _players_by(by, rows, sources)
    alphabetical = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(alphabetical).astype(np.int32)
    first = rank[first]
    second = rank[second]
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for column in (rows.source, rows.item, rows.sample, rows.first, rows.second):
        begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    swapped = np.bincount(rows.source, rows.seat == 1) > 0
    matches = reconciled(starts, rows.half_points, 1 + swapped[rows.source])
    same = first[starts] == second[starts]
    unread = matches.half_points < 0
    kept = ~same & ~unread
    at = starts[kept]
    items, numbered = np.unique(rows.item[at], return_inverse=True)
    missing = rows.half_points < 0
    return Played(
        names=[names[number] for number in alphabetical],
        items=items,
        matches=Matches(
            numbered.astype(np.int32), first[at], second[at], matches.half_points[kept], len(names)
        ),
        verdicts=len(order),
        failed=np.bincount(np.concatenate([first[missing], second[missing]]), minlength=len(names)),
        disagreements=int(matches.disagreed[kept].sum()),
        one_sided=int(matches.one_sided[kept].sum()),
        unread=int(unread.sum()),
        same=int(same.sum()),
    )


def drawn_together(played: Played, sources: Sequence[Source], name: str) -> Matches:
    """Return the matches with the number of the cluster for that of the item."""
    cluster = played.items
    for source in sources:
        cluster = read_side(source, {}).cluster_of(cluster, name)
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first)).astype(np.int32)[inverse]  # in the order of the items
    return played.matches._replace(item=numbers[played.matches.item])


def _taken(rows: Rows, order: Ints) -> Rows:
    columns: dict[str, Any] = {name: getattr(rows, name) for name in rows.__struct_fields__}
    answers = columns.pop("answers")
    taken = {name: column[order] for name, column in columns.items()}
    return Rows(**taken, answers=None if answers is None else answers[:, order])


def _first_of_each(keys: Hashes) -> Flags:
    """Where each key stands first; 0 is none."""
    chosen = keys == 0
    chosen[np.unique(keys, return_index=True)[1]] = True
    return chosen


def _players_by(field: str, rows: Rows, sources: Sequence[Source]) -> tuple[list[str], Codes]:
    """Names of players, and their numbers on both sides of each row."""
    assert rows.answers is not None
    keys = array("Q")
    column = Column(numbers=False)
    logs = [log for source in sources for log in source.logs("run")]
    for (given,), (values,), *_ in read_columns(logs, "responses", ("key",), (field,)):
        keys.extend([short(str(key)) if key else 0 for key in given])
        column.extend(values)
    response_keys = np.frombuffer(keys, np.uint64)
    order = np.argsort(response_keys, kind="stable")
    at = np.searchsorted(response_keys[order], rows.answers).clip(
        max=max(len(response_keys) - 1, 0)
    )
    if not len(response_keys) or (response_keys[order][at] != rows.answers).any():
        where = ", ".join(str(source.path) for source in sources)
        raise UserError(
            f"players by {field!r} need the responses of all matches",
            where=where,
            fix="leave --by out",
        )
    numbers = column.codes[order][at]
    if (numbers < 0).any():
        raise UserError(
            f"there are responses without {field!r}", fix="--by takes a field of all responses"
        )
    names = [text_of(None if value is UNSET else value) for value in column.values]
    return names, numbers.astype(np.int32)
