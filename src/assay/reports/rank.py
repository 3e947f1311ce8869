"""A ranking: the standings, and who won against whom."""

import msgspec

from assay.analysis.rank.rank import PlayerStanding, Ranking
from assay.reports.sheet import (
    Column,
    Line,
    Part,
    Row,
    Sheet,
    Table,
    columns_of,
    count,
    figures,
    number_text,
    ranks_text,
)


def view(ranking: Ranking) -> Sheet:
    by_wins = ranking.method == "win-rate"
    rating = ("win rate" if by_wins else "rating", f"{ranking.level:.0%} interval")
    columns = columns_of(
        "rank", "<player", *rating, "?win rate", "?matches", "won/tied/lost", "failed"
    )
    rows = [_standing(standing, ranking) for standing in ranking.standings]
    if by_wins:  # the rating is the win rate: once is enough
        columns, rows = columns[:4] + columns[5:], [[*row[:4], *row[5:]] for row in rows]
    standings = Table(columns, rows, data=_exact(ranking))
    parts: list[Part] = [Line(_explanation(ranking), "quiet"), standings, _matrix(ranking)]
    return Sheet(parts, ranking.notes)


def _exact(ranking: Ranking) -> tuple[list[str], list[list[object]]]:
    rows = [
        {**msgspec.structs.asdict(standing), "partial": ranking.partial}
        for standing in ranking.standings
    ]
    for row in rows:
        row["rank_low"], row["rank_high"] = row.pop("ranks")
    return list(rows[0]), [list(row.values()) for row in rows]


def _standing(standing: PlayerStanding, ranking: Ranking) -> Row:
    return [
        ranks_text(standing.ranks),
        standing.player,
        *figures(standing.value, standing.ci_low, standing.ci_high, ranking.ci_method),
        number_text(standing.win_rate),
        f"{standing.matches:,}",
        f"{standing.wins:,}/{standing.ties:,}/{standing.losses:,}",
        f"{standing.failed:,}",
    ]


def _matrix(ranking: Ranking) -> Table:
    """Players in the order of the standings."""
    matrix = ranking.win_matrix
    rows = [
        [name, *("–" if at == other else _met(won, ties[other]) for other, won in enumerate(wins))]
        for at, (name, wins, ties) in enumerate(
            zip(matrix.players, matrix.wins, matrix.ties, strict=True)
        )
    ]
    return Table(
        title="wins of the row against the column (and ties)",
        columns=[Column("", text=True), *(Column(name) for name in matrix.players)],
        rows=rows,
        extra=True,
    )


def _met(wins: int, ties: int) -> str:
    return f"{wins:,}" + (f" ({ties:,})" if ties else "")


def _explanation(ranking: Ranking) -> str:
    """Say where the numbers come from, in one line."""
    over = f"{count(ranking.matches, 'match', 'matches')} of {count(ranking.items, 'item')}"
    parts = [f"label {ranking.label}", f"{ranking.method} over {over}"]
    counted = (
        (ranking.disagreements, "tie", "because the seats disagree"),
        (ranking.one_sided, "tie", "because only one order has a verdict"),
        (ranking.unread, "pair", "without a verdict"),
    )
    parts += [f"partial: {ranking.partial}"] if ranking.partial else []
    parts += [f"{count(number, noun)} {why}" for number, noun, why in counted if number]
    if ranking.ci_method.startswith("none: "):
        parts.append(f"no interval: {ranking.ci_method.removeprefix('none: ')}")
    return "; ".join(parts)
