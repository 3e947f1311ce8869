"""The rows of matches as columns: who played whom on which item, and the verdict in each order of the seats.

A row costs about 120 bytes, however long its texts are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.compare.paired import only_label, read_side, rows_of
from assay.engine.evaluate.directions import Directions
from assay.engine.experiment.sources import Source
from assay.sdk import Codes, Hashes, IntArray, Mask, UserError, check_name
from assay.stats.matches import Ints, Matches, reconciled
from assay.store.table.columns import How, Table, read_columns
from assay.store.table.facets import text_of
from assay.store.table.join import Lookup, group_rows, response_key
from assay.store.table.labels import in_fewer_bytes

_FIELDS: dict[str, How] = {
    "item_id": "id",
    "sample_index": "int",
    "label": "code",
    "passed": "float",
    "score": "float",
    "key": "key",
    "scorer": "code",
    "outcome": "code",
    "players": "code",
    "seat": "int",
}


class MatchRows(msgspec.Struct, kw_only=True):
    """The rows of matches, which are `at` these places of the `table` of all rows. `kind` has the place of each row's
    label and scorer in `kinds`, `players` those of both players in `names`, `half_points` 2 if the first player won, 1
    for a tie, 0 if it lost, -1 for no verdict. `scored` has the scorer of each label with a verdict."""

    table: Table
    at: Ints
    kinds: list[tuple[str, str]]
    kind: Ints
    names: list[str]
    players: npt.NDArray[Any]
    half_points: npt.NDArray[np.int8]
    scored: dict[str, str]


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


def _no_matches(sources: Sequence[Source]) -> UserError:
    return UserError(
        "these rows are not matches: they have no `players`",
        where=", ".join(str(source.path) for source in sources),
        fix="judge pairs of answers first, with an evaluation method such as `judge_pairwise`",
    )


def read_matches(sources: Sequence[Source]) -> MatchRows:
    """All matches of the sources."""
    table = Table([rows_of(source) for source in sources], _FIELDS, what="evaluation rows")
    at = np.flatnonzero(
        _each(table, "players", _is_pair) & _each(table, "outcome", lambda one: one != "skipped")
    )
    if not len(at):
        raise _no_matches(sources)
    groups = group_rows(_codes(table, "label")[at], _codes(table, "scorer")[at])
    kinds = _kinds(table, at[groups.first])
    points = _half_points(table)[at]
    table.forget("passed", "score")
    turned = _lower(sources, kinds)[table.log[at], groups.of_row] & (points >= 0)
    points[turned] = 2 - points[turned]
    names, players = _players(table)
    return MatchRows(
        table=table,
        at=at,
        kinds=kinds,
        kind=in_fewer_bytes(groups.of_row),
        names=names,
        players=players[:, at],
        half_points=points,
        scored=dict(kinds[kind] for kind in np.unique(groups.of_row[points >= 0])),
    )


def _lower(sources: Sequence[Source], kinds: Sequence[tuple[str, str]]) -> Mask:
    """Return whether less is better, by source and kind."""
    scorers = [[scorer] for _, scorer in kinds]
    directions = (Directions([source.manifest("evaluation")]) for source in sources)
    return np.array([[*map(each.lower, scorers)] for each in directions])


def _kinds(table: Table, at: Ints) -> list[tuple[str, str]]:
    """Return label and scorer of some rows."""
    label, scorer = ([*map(str, table.values[name]), ""] for name in ("label", "scorer"))
    codes = zip(*(_codes(table, name)[at].tolist() for name in ("label", "scorer")), strict=True)
    return [(label[one], scorer[other]) for one, other in codes]


def _players(table: Table) -> tuple[list[str], npt.NDArray[Any]]:
    """Return the names of all players, and those of each row by number; of a row that is no match they say nothing."""
    names: dict[str, int] = {}
    numbers = [[0, 0] for _ in range(len(table.values["players"]) + 1)]
    for at, pair in enumerate(table.values["players"]):
        if _is_pair(pair):
            numbers[at] = [names.setdefault(name, len(names)) for name in pair]
    return list(names), in_fewer_bytes(np.array(numbers, np.int32))[_codes(table, "players")].T


def _codes(table: Table, name: str) -> Codes:
    """Return the codes of a field, of which the table keeps no copy."""
    return table.coded[name].codes


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [*map(type, value)] == [str, str]


def _each(table: Table, name: str, test: Callable[[Any], bool]) -> Mask:
    """Return what a test says of the field of each row; one without it has None."""
    return np.array([*map(test, table.values[name]), test(None)])[_codes(table, name)]


def _half_points(table: Table) -> npt.NDArray[np.int8]:
    score = np.where(np.isnan(table["score"]), table["passed"], table["score"])
    points = (1 + (score > 0.5) - (score < 0.5)).astype(np.int8)
    scored = _each(table, "outcome", lambda one: one in (None, "scored"))
    points[np.isnan(score) | ~scored] = -1
    return points


def label_of(verdicts: MatchRows, wanted: str) -> str:
    """The label to look at: the one wanted, or the only one."""
    if wanted:
        check_name(wanted, verdicts.scored, "no match has the label")
    if not verdicts.scored:
        raise UserError(
            "no match has a verdict: all calls failed", fix="assay run --retry-errors tries again"
        )
    return wanted or only_label(sorted(verdicts.scored), "matches")


def _failures(ranks: Codes, names: Sequence[str]) -> IntArray:
    """Count the failed matches of each player."""
    return np.bincount(ranks.ravel(), minlength=len(names))


def played(verdicts: MatchRows, label: str, sources: Sequence[Source], by: str = "") -> Played:
    """The matches under a label, one for each pair of answers; players are those of the rows, or with `by` the values
    that this field has in the responses."""
    own = _under(verdicts, label)
    players = verdicts.players[:, own]
    turned = players[0] > players[1]
    order, place, seat = _in_order(verdicts, own)
    points = verdicts.half_points[own]
    points = np.where(turned & (points >= 0), 2 - points, points).astype(np.int8)[order]
    names = verdicts.names
    if by:
        names, players = _players_by(by, verdicts, verdicts.at[own], sources)
    alphabetical = sorted(range(len(names)), key=names.__getitem__)
    rank = in_fewer_bytes(np.argsort(alphabetical))
    first, second = ranks = rank[np.where(turned, players[::-1], players)[:, order]]
    source, item = place[:2]
    starts = _starts(place)
    swapped = np.bincount(source, seat == 1) > 0
    matches = reconciled(starts, points, (1 + swapped.astype(np.int8))[source])
    same = first[starts] == second[starts]
    unread = matches.half_points < 0
    kept = ~(same | unread)
    at = starts[kept]
    items, numbered = np.unique(item[at], return_inverse=True)
    first, second = ranks[:, at].astype(np.int32)
    return Played(
        names=sorted(names),
        items=items,
        matches=Matches(
            numbered.astype(np.int32),
            first,
            second,
            matches.half_points[kept],
            len(names),
        ),
        verdicts=len(order),
        failed=_failures(ranks[:, points < 0], names),
        disagreements=int(matches.disagreed[kept].sum()),
        one_sided=int(matches.one_sided[kept].sum()),
        unread=int(unread.sum()),
        same=int(same.sum()),
    )


def _in_order(verdicts: MatchRows, own: Ints) -> tuple[Ints, list[npt.NDArray[Any]], Ints]:
    """Return the order of rows by match and seat; and so ordered what tells matches apart, and the seats."""
    table, at, players = verdicts.table, verdicts.at[own], verdicts.players[:, own]
    log, sample, seat = (
        in_fewer_bytes(column)[at] for column in (table.log, table["sample_index"], table["seat"])
    )
    place = [log, table["item_id"][at], sample, players.min(0), players.max(0)]
    order = np.lexsort((seat, *place[::-1]))
    for number, column in enumerate(place):
        place[number] = column[order]
    return order, place, seat[order]


def _starts(place: list[npt.NDArray[Any]]) -> Ints:
    """Return where the matches begin among rows in their order."""
    changes = [column[1:] != column[:-1] for column in place]
    return np.flatnonzero(np.append(True, np.any(changes, axis=0)))


def _under(verdicts: MatchRows, label: str) -> Ints:
    """Return the rows under a label: a call that failed before it could name one counts under all of its scorer's. The
    same verdict in two folders counts once."""
    scorer = verdicts.scored[label]
    named = [
        own == label or (own == by == scorer and own not in verdicts.scored)
        for own, by in verdicts.kinds
    ]
    own = np.flatnonzero(np.array(named)[verdicts.kind])
    at = verdicts.at[own]
    if not verdicts.table.log[at].any():
        return own
    # a key may stand for several matches of responses that are scored together
    first, second = verdicts.players[:, own]
    groups = group_rows(verdicts.table["key"][at], first, second)
    has_key = verdicts.table["key"][at] != 0
    return own[~has_key | (groups.first[groups.of_row] == np.arange(len(own)))]


def drawn_together(played: Played, sources: Sequence[Source], name: str) -> Matches:
    """Return the matches with the number of the cluster for that of the item."""
    cluster = played.items
    for source in sources:
        cluster = read_side(source, {}).cluster_of(cluster, name)
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first)).astype(np.int32)[inverse]  # in the order of the items
    return played.matches._replace(item=numbers[played.matches.item])


def _players_by(
    field: str, verdicts: MatchRows, at: Ints, sources: Sequence[Source]
) -> tuple[list[str], npt.NDArray[Any]]:
    """Names of players, and their numbers on both sides of each row."""
    table = Table(
        [log for source in sources for log in source.logs("run")], {field: "code"}, key="key"
    )
    found = Lookup(table.responses).first(_answers(verdicts.table)[:, at])
    if (found < 0).any():
        where = ", ".join(str(source.path) for source in sources)
        raise UserError(
            f"players by {field!r} need the responses of all matches",
            where=where,
            fix="leave --by out",
        )
    numbers = table[field][found]
    if (numbers < 0).any():
        raise UserError(
            f"there are responses without {field!r}", fix="--by takes a field of all responses"
        )
    return [*map(text_of, table.values[field])], numbers


def _answers(table: Table) -> Hashes:
    """Return the keys of the two responses of each row, in the order of its players."""
    blocks = read_columns(table.logs, "evaluation rows", ("responses",), strict=False)
    keys = [np.array([*map(_keys, block.base[0])], np.uint64) for block in blocks]
    first, second = np.concatenate(keys).T
    swapped = table["seat"] > 0
    return np.stack([np.where(swapped, second, first), np.where(swapped, first, second)])


def _keys(responses: Any) -> tuple[int, int]:
    first, second = responses if isinstance(responses, list) and len(responses) == 2 else ("", "")
    return response_key(first or "-", ()), response_key(second or "-", ())
