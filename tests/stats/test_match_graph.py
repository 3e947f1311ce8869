"""Who met whom: pieces, rungs, and whether finite strengths exist, against linear programming."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from assay.stats.matches import bounded, pieces, rungs


def tables(
    players: int, wins: dict[tuple[int, int], int], ties: dict[tuple[int, int], int]
) -> tuple[np.ndarray, ...]:
    won, tied = np.zeros((2, players, players), np.int64)
    for pair, count in wins.items():
        won[pair] = count
    for (i, j), count in ties.items():
        tied[i, j] = tied[j, i] = count
    return won, tied


def test_pieces_are_groups_linked_by_matches() -> None:
    met = np.zeros((6, 6), np.bool_)
    for i, j in ((0, 2), (2, 4), (1, 5)):
        met[i, j] = met[j, i] = True
    assert pieces(met) == [[0, 2, 4], [1, 5], [3]]


def test_rungs_from_the_best_to_the_worst() -> None:
    wins, ties = tables(4, {(2, 0): 3, (2, 3): 1, (0, 1): 2, (3, 1): 1}, {(0, 3): 1})
    assert rungs(wins, ties) == [[2], [0, 3], [1]]


@pytest.mark.parametrize(
    ("wins", "ties", "finite"),
    [
        ({(0, 1): 1, (1, 0): 1}, {}, True),
        ({(0, 1): 5}, {}, False),
        ({(0, 1): 5}, {(0, 1): 3}, False),  # ever more strength with ever more ties
        ({}, {(0, 1): 3}, False),
    ],
)
def test_two_players(
    wins: dict[tuple[int, int], int], ties: dict[tuple[int, int], int], finite: bool
) -> None:
    assert bounded(*tables(2, wins, ties)) is finite


def test_a_circle_of_wins_closed_by_a_tie_is_enough() -> None:
    assert bounded(*tables(3, {(0, 1): 1, (1, 2): 1}, {(0, 2): 1}))
    assert not bounded(*tables(3, {(0, 1): 1}, {(1, 2): 1, (0, 2): 1}))


def climbs_for_ever(wins: np.ndarray, ties: np.ndarray) -> bool:
    """Whether the likelihood has a direction along which it never falls (strengths, log ν), by linear programming."""
    players = len(wins)
    rows: list[np.ndarray] = []
    for i in range(players):
        for j in range(players):
            ahead = np.zeros(players + 1)
            ahead[i] += 1
            ahead[j] -= 1
            more_ties = np.eye(players + 1)[players]
            if wins[i, j]:
                rows += [-ahead, 2 * more_ties - ahead]
            if ties[i, j]:
                rows += [ahead - 2 * more_ties]
    bounds = [(0, 0)] + [(-1, 1)] * (players - 1) + [(-1, 1) if ties.any() else (0, 0)]
    for at in range(players + 1):
        for sign in (1, -1):
            found = linprog(
                sign * np.eye(players + 1)[at],
                A_ub=np.array(rows),
                b_ub=np.zeros(len(rows)),
                bounds=bounds,
            )
            if found.fun < -1e-9:
                return True
    return False


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.data())
def test_bounded_is_what_linear_programming_says(players: int, data: st.DataObject) -> None:
    kinds = st.sampled_from(
        [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 0)]
    )
    wins, ties = np.zeros((2, players, players), np.int64)
    for i in range(players):
        for j in range(i):
            wins[i, j], wins[j, i], ties[i, j] = data.draw(kinds)
            ties[j, i] = ties[i, j]
    if wins.any() or ties.any():
        assert bounded(wins, ties) is not climbs_for_ever(wins, ties)
