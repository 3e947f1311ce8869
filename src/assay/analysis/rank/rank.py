"""Who is best? Players in the order of their strength, with intervals and the ranks that the data leave open.

Players are what the rows of matches name, or the values of a field of their responses. Both orders of the seats of a
pair of answers are one match. A ranking of players who are not linked by matches is refused.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from assay.analysis.compare.paired import checked_level, left_out, rows_of, shared_cluster_by
from assay.analysis.rank.match_rows import (
    Played,
    drawn_together,
    label_of,
    played,
    read_matches,
)
from assay.engine.experiment.resolve import find_sources
from assay.sdk import JsonObject, UserError, check_name
from assay.shown import Shown
from assay.stats.elo import START, elo
from assay.stats.matches import Counted, Matches, bounded, counted, pieces, rungs
from assay.stats.ranking import Ranked, bradley_terry, win_rates

Method = Literal["bradley-terry", "elo", "win-rate"]
METHODS: tuple[str, ...] = get_args(Method)
POINTS = 400 / float(np.log(10))  # Elo points in one unit of log odds
ROUNDS = 1000
_MOST_NAMED = 6


class PlayerStanding(msgspec.Struct, kw_only=True):
    """One player. `value` is a rating around 1500, or a win rate; `ranks` the best and the worst place that the matches
    leave open. `failed` counts verdicts that are missing, `standard_error` Elo's noise of shuffling."""

    player: str
    ranks: tuple[int, int]
    value: float
    ci_low: float | None
    ci_high: float | None
    win_rate: float
    wins: int
    ties: int
    losses: int
    matches: int
    failed: int
    standard_error: float | None = None


class WinMatrix(msgspec.Struct):
    """How often the player of a row won against that of a column, and how often they tied."""

    players: list[str]
    wins: list[list[int]]
    ties: list[list[int]]


class Ranking(Shown, kw_only=True):
    """`standings` from the best to the worst. `verdicts` are rows, `matches` pairs of answers with a verdict:
    `disagreements` of them are ties because the two orders of the seats disagree, `one_sided` because only one order
    has a verdict; `unread` pairs have none. `tie_parameter` is Davidson's ν, `prior` the weight of virtual matches;
    `partial` says what is present of unfinished matches."""

    method: str
    label: str
    level: float
    seed: int
    rounds: int
    ci_method: str
    items: int
    matches: int
    verdicts: int
    disagreements: int
    one_sided: int
    unread: int
    tie_parameter: float | None
    prior: float | None
    standings: list[PlayerStanding]
    win_matrix: WinMatrix
    notes: list[str]
    partial: str = ""


class RankOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How to rank. `by`: the field of the responses that names the players; `prior`: virtual matches of each player,
    by default none unless somebody won or lost everything; `cluster_by`: what items share that are
    drawn together."""

    method: Method = "bradley-terry"
    label: str = ""
    by: str = ""
    level: float = 0.95
    rounds: int = ROUNDS
    seed: int = 0
    prior: float | None = None
    cluster_by: str = ""


def rank(paths: Sequence[str | Path], **options: Any) -> Ranking:
    """The ranking of the players in the matches of these experiments; options as in RankOptions."""
    chosen = RankOptions(**options)
    _check(chosen)
    sources = find_sources(paths, "evaluation")
    verdicts = read_matches(sources)
    label = label_of(verdicts, chosen.label)
    cluster_by = chosen.cluster_by or shared_cluster_by(sources)
    found = played(verdicts, label, sources, chosen.by)
    if cluster_by:
        found.matches = drawn_together(found, sources, cluster_by)
    unreadable = verdicts.table.unreadable
    del verdicts  # which would double the memory of what follows
    ranking = ranking_of(found, label, chosen)
    partial = {source.name: text for source in sources if (text := source.partial())}
    named = [text if len(sources) == 1 else f"{name}: {text}" for name, text in partial.items()]
    ranking.partial = "; ".join(named)
    logs = [*map(rows_of, sources)]
    ranking.notes += left_out([(logs[at], line) for at, line in unreadable])
    if cluster_by:
        ranking.notes.append(f"clusters: {cluster_by} ({ranking.items:,})")
        ranking.items = len(found.items)
    return ranking


def ranking_of(played: Played, label: str, options: RankOptions) -> Ranking:
    """Rank the players of matches that were read before."""
    names, failed, matches = _with_matches(played)
    notes = _notes(played, names)
    table = counted(matches)
    _check_pieces(names, table, options.method, notes)
    settings: JsonObject = {
        "level": options.level,
        "rounds": options.rounds,
        "seed": options.seed,
    }
    tie = prior = errors = None
    if options.method == "bradley-terry":
        if not bounded(table.wins, table.ties):
            notes.append(_prior_note(names, table, options.prior))
        fitted = bradley_terry(matches, prior=options.prior, **settings)
        tie = fitted.tie
        prior = fitted.prior
        ranked = _on_elo_scale(fitted.ranked)
    elif options.method == "elo":
        shuffled, ranked = elo(matches, **settings)
        errors = shuffled.standard_error
    else:
        ranked = win_rates(matches, **settings)
    order = sorted(
        range(len(names)),
        key=lambda number: (-round(float(ranked.value[number]), 9), names[number]),
    )
    return Ranking(
        method=options.method,
        label=label,
        level=options.level,
        seed=options.seed,
        rounds=options.rounds,
        ci_method=ranked.method,
        items=matches.items,
        matches=len(matches.item),
        verdicts=played.verdicts,
        disagreements=played.disagreements,
        one_sided=played.one_sided,
        unread=played.unread,
        tie_parameter=tie,
        prior=prior,
        standings=[_standing(at, names, ranked, table, failed, errors) for at in order],
        win_matrix=_matrix(order, names, table),
        notes=notes,
    )


def _check(options: RankOptions) -> None:
    check_name(options.method, METHODS, "there is no method")
    checked_level(options.level)
    if options.rounds < 100:
        raise UserError(
            f"{options.rounds} rounds are too few for an interval",
            fix=f"at least 100; {ROUNDS} is usual",
        )
    if options.prior is not None and not 0 <= options.prior < float("inf"):
        raise UserError(f"a prior is a number of matches, got {options.prior:g}", fix="--prior 1")


def _with_matches(played: Played) -> tuple[list[str], list[int], Matches]:
    """Names, failures and matches without the players who have none."""
    matches = played.matches
    sides = np.concatenate([matches.first, matches.second])
    there = np.flatnonzero(np.bincount(sides, minlength=matches.players))
    if len(there) < 2:
        raise UserError(
            "there is no match with a verdict between two players",
            fix=f"of {played.verdicts:,} verdicts {played.unread:,} pairs have none that can be read",
        )
    number = np.zeros(matches.players, np.int32)
    number[there] = np.arange(len(there))
    kept = matches._replace(
        first=number[matches.first], second=number[matches.second], players=len(there)
    )
    return [played.names[at] for at in there], played.failed[there].tolist(), kept


def _notes(played: Played, names: Sequence[str]) -> list[str]:
    notes: list[str] = []
    unranked = sorted(set(played.names) - set(names))
    if unranked:
        notes.append(
            f"not ranked, because no match of theirs has a verdict: {_names_text(unranked)}"
        )
    if played.same:
        notes.append(f"{played.same:,} matches of a player against itself are left out")
    return notes


def _check_pieces(names: Sequence[str], table: Counted, method: str, notes: list[str]) -> None:
    groups = pieces(table.played > 0)
    if len(groups) < 2:
        return
    shown = " | ".join(_names_text([names[at] for at in group]) for group in groups[:_MOST_NAMED])
    more = f" | and {len(groups) - _MOST_NAMED} more" if len(groups) > _MOST_NAMED else ""
    what = f"the players fall into {len(groups)} groups that never met: {shown}{more}"
    if method != "win-rate":
        raise UserError(
            what, fix="play matches between the groups, or count with --method win-rate"
        )
    notes.append(f"{what}; rates of different groups say nothing about each other")


def _prior_note(names: Sequence[str], table: Counted, prior: float | None) -> str:
    """Return what to say where no finite strengths are the most likely ones; an error where a prior
    is ruled out."""
    ordered = rungs(table.wins, table.ties)
    groups = [_names_text([*map(names.__getitem__, group)]) for group in ordered]
    if len(groups) > 1:
        what = f"nobody ever won or tied against a better group: {' > '.join(groups[:_MOST_NAMED])}"
        what += " > …" if len(groups) > _MOST_NAMED else ""
    elif table.wins.any():
        what = "wins go one way only: between no two players, nor round any circle, are there more wins than ties"
    else:
        what = "every match is a tie"
    if prior == 0:
        fix = "leave --prior out, or count with --method win-rate"
        raise UserError(f"no finite strengths are the most likely ones: {what}", fix=fix)
    weight = 1 if prior is None else prior
    return f"{what}; so each player is given {weight:g} virtual match{'' if weight == 1 else 'es'}, half won, half lost"


def _on_elo_scale(ranked: Ranked) -> Ranked:
    value, low, high = (START + POINTS * strength for strength in ranked[:3])
    return ranked._replace(value=value, low=low, high=high)


def _standing(
    at: int,
    names: Sequence[str],
    ranked: Ranked,
    table: Counted,
    failed: Sequence[int],
    errors: Any,
) -> PlayerStanding:
    counts = table.wins[at].sum(), table.ties[at].sum(), table.wins[:, at].sum()
    wins, ties, losses = map(int, counts)
    value, low, high = (float(column[at]) for column in ranked[:3])
    return PlayerStanding(
        player=names[at],
        ranks=(int(ranked.best[at]), int(ranked.worst[at])),
        value=value,
        ci_low=None if np.isnan(low) else low,
        ci_high=None if np.isnan(high) else high,
        win_rate=(wins + ties / 2) / (wins + ties + losses),
        wins=wins,
        ties=ties,
        losses=losses,
        matches=wins + ties + losses,
        failed=failed[at],
        standard_error=None if errors is None else float(errors[at]),
    )


def _matrix(order: Sequence[int], names: Sequence[str], table: Counted) -> WinMatrix:
    wins, ties = (counts[np.ix_(order, order)].tolist() for counts in (table.wins, table.ties))
    return WinMatrix([names[at] for at in order], wins, ties)


def _names_text(names: Sequence[str]) -> str:
    """A few names; of more, how many there are."""
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown}, … ({len(names)} in all)" if len(names) > _MOST_NAMED else shown
