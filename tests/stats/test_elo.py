"""Elo: the numbers of the original, its defects mended, intervals that hold."""

import numpy as np
import pytest
from scipy import stats

from assay.stats.elo import Elo, elo, expected, k_factor, shuffled
from assay.stats.matches import Matches


def played(payoffs: list[float]) -> tuple[float, float]:
    calculator = Elo(["a", "b"])
    for payoff in payoffs:
        calculator.play("a", "b", payoff)
    return calculator.ratings["a"], calculator.ratings["b"]


def test_the_constants() -> None:
    assert k_factor(0) == 20
    assert k_factor(1) == 19.99500124979169
    assert k_factor(10**6) == pytest.approx(10)
    assert expected(1900, 1500) == pytest.approx(10 / 11)
    assert expected(1500, 1500) == 0.5


@pytest.mark.parametrize(
    ("payoffs", "ratings"),
    [
        ([], (1500.0, 1500.0)),
        ([1.0], (1510.0, 1490.0)),
        ([0.5], (1500.0, 1500.0)),
        ([1.0] * 2, (1519.4226330639376, 1480.5773669360624)),
        ([1.0] * 10, (1578.281121893458, 1421.718878106542)),
        ([1.0] * 10 + [0.0] * 10, (1466.2147976704962, 1533.7852023295038)),
    ],
)
def test_the_numbers_of_the_original(payoffs: list[float], ratings: tuple[float, float]) -> None:
    assert played(payoffs) == pytest.approx(ratings, rel=1e-14)


def test_a_round_robin_of_ten() -> None:
    calculator = Elo(map(str, range(10)))
    for better in range(10):
        for worse in range(better + 1, 10):
            calculator.play(str(better), str(worse), 1.0)
    assert calculator.ratings["0"] == pytest.approx(1580.3102888421104, rel=1e-14)
    assert calculator.ratings["9"] == pytest.approx(1418.8952676314775, rel=1e-14)


def test_players_of_different_experience_move_differently() -> None:
    calculator = Elo("abc", k_start=30, k_floor=10, decay=1.0)
    calculator.play("a", "b", 1.0)
    before = dict(calculator.ratings)
    calculator.play("a", "c", 0.5)
    gain, loss = calculator.ratings["a"] - before["a"], calculator.ratings["c"] - before["c"]
    assert loss == pytest.approx(-gain * 30 / (20 * np.exp(-1) + 10))


def test_an_unknown_player_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Elo("ab").play("a", "z", 1.0)


def matches(first: list[int], second: list[int], half_points: list[int], players: int) -> Matches:
    return Matches(
        np.arange(len(first)), np.array(first), np.array(second), np.array(half_points), players
    )


def test_all_shuffles_at_once_are_the_plain_calculator() -> None:
    """If all matches are alike, every order is the same one."""
    found = shuffled(matches([0] * 10, [1] * 10, [2] * 10, 2), shuffles=7)
    assert found.mean.tolist() == pytest.approx([1578.281121893458, 1421.718878106542], rel=1e-14)


def test_the_mean_over_shuffles_is_that_of_plain_calculators() -> None:
    random = np.random.default_rng(5)
    rows = list(
        zip([0, 0, 1, 2] * 6, [1, 2, 3, 3] * 6, random.integers(0, 3, 24).tolist(), strict=True)
    )
    finals = []
    for _ in range(3000):
        calculator = Elo("0123")
        for at in random.permutation(len(rows)):
            first, second, half = rows[at]
            calculator.play(str(first), str(second), half / 2)
        finals.append([calculator.ratings[name] for name in "0123"])
    first, second, half_points = (list(column) for column in zip(*rows, strict=True))
    found = shuffled(matches(first, second, half_points, 4), shuffles=3000)
    error = np.std(finals, axis=0) / 3000**0.5
    assert (np.abs(found.mean - np.mean(finals, axis=0)) < 6 * error).all()
    assert found.standard_error == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize("count", range(1, 40))
def test_the_standard_error_is_never_nan(count: int) -> None:
    found = shuffled(matches([0] * count, [1] * count, [2] * count, 2), shuffles=20)
    assert found.standard_error.tolist() == [0.0, 0.0]


def test_equal_seeds_and_any_order_give_equal_ratings() -> None:
    random = np.random.default_rng(2)
    one = Matches(
        np.repeat(np.arange(20), 3),
        np.tile([0, 0, 1], 20),
        np.tile([1, 2, 2], 20),
        random.integers(0, 3, 60),
        3,
    )
    order = random.permutation(60)
    other = Matches._make([*(column[order] for column in one[:4]), 3])
    assert shuffled(one, seed=4).mean.tolist() == shuffled(other, seed=4).mean.tolist()
    assert shuffled(one, seed=5).mean.tolist() != shuffled(one, seed=4).mean.tolist()
    assert elo(one, rounds=100)[1].low.tolist() == elo(other, rounds=100)[1].low.tolist()


def simulated(random: np.random.Generator, items: int) -> Matches:
    chances = {(0, 1): 0.75, (0, 2): 0.85, (1, 2): 0.65}
    first, second = np.array(list(chances)).T
    won = random.random((items, 3)) < np.array(list(chances.values()))
    return Matches(
        np.repeat(np.arange(items), 3),
        np.tile(first, items),
        np.tile(second, items),
        2 * won.ravel(),
        3,
    )


def test_intervals_hold_the_expected_rating() -> None:
    random = np.random.default_rng(11)
    found = [elo(simulated(random, 40), rounds=300)[1] for _ in range(60)]
    truth = np.mean([one.value for one in found], axis=0)
    assert (truth[:-1] > truth[1:]).all()
    for player in range(3):
        missed = sum(not one.low[player] <= truth[player] <= one.high[player] for one in found)
        assert missed <= stats.binom.ppf(0.9995, 60, 0.05)
        assert np.mean([one.high[player] - one.low[player] for one in found]) < 120
    assert sum(one.best[0] == 1 and one.worst[0] == 1 for one in found) > 30


def test_a_winner_of_all_has_an_interval_all_the_same() -> None:
    _, ranked = elo(matches([0] * 3, [1] * 3, [2] * 3, 2), rounds=300)
    assert ranked.high[0] - ranked.low[0] > 5
    assert (ranked.best.tolist(), ranked.worst.tolist()) == ([1, 1], [2, 2])


def test_no_interval_says_why() -> None:
    one_item = Matches(
        np.zeros(3, np.int64), np.zeros(3, np.int64), np.ones(3, np.int64), np.array([2, 2, 0]), 2
    )
    assert elo(one_item)[1].method == "none: an interval needs at least two items"
    many = np.arange(20_001)
    ranked = elo(Matches(many, 0 * many, 0 * many + 1, many % 3, 2))[1]
    assert ranked.method == "none: Elo does not resample more than 20,000 matches"
    assert np.isnan(ranked.low).all()
