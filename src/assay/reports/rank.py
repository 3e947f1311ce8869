"""A ranking: the standings, and who won against whom."""

import msgspec

from assay.analysis.rank.rank import PlayerStanding, Ranking
from assay.reports.sheet import Column, Line, Sheet, Table, count


def view(ranking: Ranking) -> Sheet:
    by_wins = ranking.method == "win-rate"
    columns = [
        *(Column("rank"), Column("player", text=True), Column("win rate" if by_wins else "rating")),
        *(Column(f"{ranking.level:.0%} interval"), Column("win rate"), Column("matches")),
        *(Column("won/tied/lost"), Column("failed")),
    ]
    rows = [_standing(standing, ranking) for standing in ranking.standings]
    if by_wins:  # the rating is the win rate: once is enough
        columns, rows = columns[:4] + columns[5:], [row[:4] + row[5:] for row in rows]
    standings = Table(columns=columns, rows=rows, data=_exact(ranking))
    parts: list[Line | Table] = [Line(_explained(ranking), "quiet"), standings, _matrix(ranking)]
    return Sheet(parts=parts, notes=ranking.notes)


def _exact(ranking: Ranking) -> tuple[list[str], list[list[object]]]:
    rows = [msgspec.structs.asdict(standing) for standing in ranking.standings]
    for row in rows:
        row["rank_low"], row["rank_high"] = row.pop("ranks")
    return list(rows[0]), [list(row.values()) for row in rows]


def _standing(standing: PlayerStanding, ranking: Ranking) -> list[str]:
    low, high = standing.ranks
    form = ".3f" if ranking.method == "win-rate" else ".0f"
    span = "–"
    if standing.ci_low is not None and standing.ci_high is not None:
        span = f"{standing.ci_low:{form}}–{standing.ci_high:{form}}"
    return [
        f"{low}" if low == high else f"{low}–{high}",
        standing.player,
        f"{standing.value:{form}}",
        span,
        f"{standing.win_rate:.3f}",
        f"{standing.matches:,}",
        f"{standing.wins:,}/{standing.ties:,}/{standing.losses:,}",
        f"{standing.failed:,}",
    ]


def _matrix(ranking: Ranking) -> Table:
    """Players in the order of the standings."""
    matrix = ranking.win_matrix
    rows: list[list[str]] = []
    for at, name in enumerate(matrix.players):
        met = zip(matrix.wins[at], matrix.ties[at], strict=True)
        rows.append([name, *("–" if at == other else _met(*counts) for other, counts in enumerate(met))])
    return Table(
        title="wins of the row against the column (and ties)",
        columns=[Column("", text=True), *(Column(name) for name in matrix.players)],
        rows=rows,
        extra=True,
    )


def _met(wins: int, ties: int) -> str:
    return f"{wins:,}" + (f" ({ties:,})" if ties else "")


def _explained(ranking: Ranking) -> str:
    """Where the numbers come from, in one line."""
    parts = [f"label {ranking.label}", f"{ranking.method} over {count(ranking.matches, 'match', 'matches')}"]
    parts[-1] += f" of {count(ranking.items, 'item')}"
    if ranking.disagreements:
        parts.append(f"{count(ranking.disagreements, 'tie')} because the seats disagree")
    if ranking.one_sided:
        parts.append(f"{count(ranking.one_sided, 'tie')} because only one order has a verdict")
    if ranking.unread:
        parts.append(f"{count(ranking.unread, 'pair')} without a verdict")
    if ranking.ci_method.startswith("none: "):
        parts.append(f"no interval: {ranking.ci_method.removeprefix('none: ')}")
    return "; ".join(parts)
