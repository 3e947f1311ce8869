"""Which pairs to play next: against random pairs in simulation, and against the model's own mathematics."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from assay.stats.davidson import PRIOR_VARIANCE, choose_pairs, posterior


def payoffs(players: int, games: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = np.zeros((players, players))
    for _ in range(games):
        i, j = random.choice(players, 2, replace=False)
        won = random.choice([0.0, 0.5, 1.0])
        found[i, j] += won
        found[j, i] += 1 - won
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_strengths_are_the_most_probable_ones(seed: int) -> None:
    found = payoffs(5, 40, seed)

    def surprise(strengths: np.ndarray) -> float:
        gap = strengths[:, None] - strengths[None, :]
        return float(
            (found * np.logaddexp(0, -gap)).sum() + (strengths**2).sum() / (2 * PRIOR_VARIANCE)
        )

    best = minimize(surprise, np.zeros(5), method="BFGS", options={"gtol": 1e-10})
    strengths, covariance = posterior(found)
    assert strengths == pytest.approx(best.x, abs=1e-5)
    step = 1e-4 * np.eye(5)
    at = [[surprise(strengths + a + b) for b in (*step, *-step)] for a in (*step, *-step)]
    curvature = (
        np.array(at)[:5, :5] - np.array(at)[:5, 5:] - np.array(at)[5:, :5] + np.array(at)[5:, 5:]
    ) / 4e-8
    assert covariance == pytest.approx(np.linalg.inv(curvature), rel=1e-3, abs=1e-4)


def test_one_sided_results_have_finite_strengths() -> None:
    found = np.zeros((3, 3))
    found[0, 1] = found[1, 2] = 1000
    strengths, covariance = posterior(found)
    assert np.isfinite(covariance).all()
    assert strengths[0] > strengths[1] > strengths[2]


def test_pairs_are_those_available_and_each_as_often_as_it_is() -> None:
    available = np.triu(np.array([[9, 1, 0], [9, 9, 2], [9, 9, 9]]), 1)
    chosen = choose_pairs(np.zeros((3, 3)), available, 10, np.random.default_rng(0))
    assert sorted(chosen) == [(0, 1), (1, 2), (1, 2)]
    assert available.tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]], "what was given stays as it is"


def test_a_first_round_lets_everybody_play_and_the_seed_decides() -> None:
    everything = np.triu(np.full((8, 8), 100), 1)
    first, again, other = (
        choose_pairs(np.zeros((8, 8)), everything, 8, np.random.default_rng(n)) for n in (1, 1, 2)
    )
    assert first == again != other
    assert {player for pair in first for player in pair} == set(range(8))


def test_a_pair_whose_order_is_open_comes_before_pairs_that_are_clear() -> None:
    found = np.zeros((3, 3))
    found[0, 1], found[1, 0] = 50, 50
    found[0, 2], found[2, 0] = 98, 2
    found[1, 2], found[2, 1] = 98, 2
    chosen = choose_pairs(found, np.triu(np.full((3, 3), 100), 1), 10, np.random.default_rng(0))
    assert set(chosen) == {(0, 1)}


@pytest.mark.parametrize(
    ("players", "budget", "spread"), [(10, 300, 1.0), (10, 300, 2.0), (20, 600, 1.0)]
)
def test_fewer_pairs_are_in_the_wrong_order_than_with_random_pairs(
    players: int, budget: int, spread: float
) -> None:
    wrong = {
        active: np.mean(
            [_wrong(players, budget, spread, seed, active=active) for seed in range(30)]
        )
        for active in (True, False)
    }
    assert wrong[True] < 0.9 * wrong[False], wrong


def _wrong(players: int, budget: int, spread: float, seed: int, *, active: bool) -> float:
    """The share of pairs that a budget of matches leaves in the wrong order."""
    random = np.random.default_rng(seed)
    true = random.normal(0, spread, players)
    pairs = list(combinations(range(players), 2))
    found, everything = (
        np.zeros((players, players)),
        np.triu(np.full((players, players), budget), 1),
    )
    left = budget
    while left:
        count = min(left, players)
        chosen = [pairs[n] for n in random.integers(len(pairs), size=count)]
        if active:
            chosen = choose_pairs(found, everything, count, random)
        for i, j in chosen:
            won = float(random.random() < 1 / (1 + np.exp(true[j] - true[i])))
            found[i, j] += won
            found[j, i] += 1 - won
        left -= count
    strengths, _ = posterior(found)
    return float(np.mean([(strengths[i] > strengths[j]) != (true[i] > true[j]) for i, j in pairs]))
