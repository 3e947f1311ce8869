"""Bradley and Terry with ties: the maximum against scipy and by hand, coverage by simulation, order, blocks, steps."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.optimize import minimize

from assay.stats import ranking
from assay.stats.davidson import even, fit
from assay.stats.intervals import wilson
from assay.stats.matches import Matches, bounded, counted, reconciled
from assay.stats.ranking import Ranked, bradley_terry, win_rates

REPEATS = 100


def most(share: float, repeats: int = REPEATS) -> int:
    """The most events of this chance: only one simulation in ten thousand has more."""
    return int(stats.binom.ppf(0.9999, repeats, share))


def simulated(
    random: np.random.Generator, strengths: list[float], tie: float, items: int, copies: int = 1
) -> tuple[Matches, np.ndarray]:
    """Every pair meets once an item, or `copies` times with one and the same outcome; and the centred truth."""
    truth = np.array(strengths) - np.mean(strengths)
    first, second = np.triu_indices(len(truth), 1)
    rise = np.exp((truth[first] - truth[second]) / 2)
    whole = rise + 1 / rise + tie
    drawn = random.random((items, len(first)))
    half_points = np.where(drawn < rise / whole, 2, np.where(drawn < (rise + tie) / whole, 1, 0))
    columns = (
        np.repeat(np.arange(items), len(first)),
        np.tile(first, items),
        np.tile(second, items),
    )
    repeated = [np.repeat(column, copies) for column in (*columns, half_points.ravel())]
    return Matches._make([*repeated, len(truth)]), truth


def likelihood(place: np.ndarray, wins: np.ndarray, ties: np.ndarray, prior: float) -> float:
    """Negative; written from the definition, pair by pair."""
    players = len(wins)
    strength, tie = np.exp(place[:players]), np.exp(place[players])
    total = 0.0
    for i in range(players):
        for j in range(players):
            both = strength[i] + strength[j] + tie * np.sqrt(strength[i] * strength[j])
            total += wins[i, j] * np.log(strength[i] / both)
            if i < j and ties[i, j]:
                total += ties[i, j] * np.log(tie * np.sqrt(strength[i] * strength[j]) / both)
        if prior:
            lead = place[i] - (place[:players].sum() - place[i]) / (players - 1)
            total -= prior / 2 * (np.log1p(np.exp(lead)) + np.log1p(np.exp(-lead)))
    if prior:
        total += prior * (np.log(tie / (2 + tie)) + np.log(2 / (2 + tie)))
    return -total


@pytest.mark.parametrize("prior", [0.0, 1.0, 3.5])
@pytest.mark.parametrize(("players", "seed"), [(2, 1), (3, 2), (5, 3), (8, 4)])
def test_the_maximum_is_scipys(players: int, seed: int, prior: float) -> None:
    random = np.random.default_rng(seed)
    matches, _ = simulated(random, random.normal(0, 1, players).tolist(), 0.7, 30)
    table = counted(matches)
    assert bounded(table.wins, table.ties)
    found = bradley_terry(matches, rounds=100, prior=prior)
    best = minimize(
        likelihood, np.zeros(players + 1), (table.wins, table.ties, prior), method="BFGS", tol=1e-9
    )
    strengths = best.x[:players] - best.x[:players].mean()
    assert found.ranked.value == pytest.approx(strengths, abs=1e-5)
    assert found.tie == pytest.approx(np.exp(best.x[players]), rel=1e-4)
    assert found.prior == prior


def test_two_players_by_hand() -> None:
    """The log odds of decided matches; ν from the share of ties."""
    found = bradley_terry(two(12, 6, 3), rounds=100)
    assert np.diff(found.ranked.value)[0] == pytest.approx(-np.log(12 / 3))
    assert found.tie == pytest.approx(6 / np.sqrt(12 * 3))
    without = bradley_terry(two(12, 0, 3), rounds=100)
    assert (np.diff(without.ranked.value)[0], without.tie) == (pytest.approx(-np.log(4)), 0.0)


def two(wins: int, ties: int, losses: int) -> Matches:
    half_points = np.array([2] * wins + [1] * ties + [0] * losses)
    items = np.arange(len(half_points))
    return Matches(items, 0 * items, 0 * items + 1, half_points, 2)


def test_a_grid_has_nothing_better() -> None:
    matches, _ = simulated(np.random.default_rng(9), [0.4, 0, -0.4], 0.5, 12)
    table = counted(matches)
    found = bradley_terry(matches, rounds=100)
    at = [*found.ranked.value, np.log(found.tie)]
    best = likelihood(np.array(at), table.wins, table.ties, 0)
    for step in np.random.default_rng(1).normal(0, 0.05, (500, 4)):
        assert likelihood(at + step, table.wins, table.ties, 0) >= best - 1e-9


@pytest.mark.parametrize("table", [(20, 0, 0), (15, 5, 0), (0, 20, 0), (1, 0, 0)])
def test_whoever_won_everything_stays_finite(table: tuple[int, int, int]) -> None:
    matches = two(*table)
    with pytest.raises(ValueError, match="finite"):
        bradley_terry(matches, prior=0)
    found = bradley_terry(matches)
    assert found.prior == 1
    assert np.isfinite(found.ranked.value).all()
    if table == (20, 0, 0):  # two virtual matches, one each: Laplace's rule
        assert -np.diff(found.ranked.value)[0] == pytest.approx(np.log(21))


@pytest.mark.parametrize(("wins", "losses"), [(20, 0), (19, 1), (15, 5), (10, 10)])
def test_the_interval_of_two_players_is_near_wilsons(wins: int, losses: int) -> None:
    ranked = bradley_terry(two(wins, 0, losses), rounds=4000).ranked
    low, high = wilson(wins, wins + losses)
    assert 2 * ranked.low[0] == pytest.approx(np.log(low / (1 - low)), abs=0.2)
    if losses:
        assert 2 * ranked.high[0] > np.log(high / (1 - high)) - 0.1


def test_a_few_wins_do_not_make_a_winner() -> None:
    for wins in (1, 2, 3, 4):
        ranked = bradley_terry(two(wins, 0, 0)).ranked
        assert (ranked.best.tolist(), ranked.worst.tolist()) == ([1, 1], [2, 2])
    ranked = bradley_terry(two(20, 0, 0)).ranked
    assert (ranked.best.tolist(), ranked.worst.tolist()) == ([1, 2], [1, 2])


@pytest.mark.parametrize(
    ("strengths", "tie", "items", "copies"),
    [
        ([0.5, -0.5], 0.0, 20, 1),
        ([1.5, -1.5], 0.5, 20, 1),
        ([1.0, 0.3, -0.2, -1.1], 0.5, 15, 4),  # the copies of a match tell nothing new
        ([2.0, 0.3, -0.2, -2.1], 0.5, 60, 1),
        ([1.0, 0.0, -1.0], 0.3, 300, 1),  # in blocks
    ],
)
def test_strengths_are_found_and_intervals_hold_them(
    strengths: list[float], tie: float, items: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_MOST_BLOCKS", 150)
    random = np.random.default_rng(17)
    missed = np.zeros(len(strengths))
    errors: list[np.ndarray] = []
    wrong = 0
    for _ in range(REPEATS):
        matches, truth = simulated(random, strengths, tie, items, copies)
        ranked = bradley_terry(matches, rounds=400).ranked
        missed += (ranked.low > truth) | (ranked.high < truth)
        errors.append(ranked.value - truth)
        rank = 1 + (truth[:, None] < truth[None, :]).sum(axis=1)
        wrong += ((ranked.best > rank) | (ranked.worst < rank)).any()
    assert missed.max() <= most(0.05)
    assert wrong <= most(0.05 * len(strengths) * (len(strengths) - 1) / 2)
    if items > 20:
        assert np.abs(np.mean(errors, axis=0)).max() < 0.1


def test_intervals_are_as_narrow_as_theory_has_them() -> None:
    matches, _ = simulated(np.random.default_rng(3), [0.6, -0.6], 0.0, 400)
    table = counted(matches)
    error = np.sqrt(1 / table.wins[0, 1] + 1 / table.wins[1, 0]) / 2
    ranked = bradley_terry(matches, rounds=4000).ranked
    assert ranked.high - ranked.low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_blocks_of_items_give_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    matches, _ = simulated(np.random.default_rng(4), [0.8, 0.1, -0.9], 0.4, 3000)
    monkeypatch.setattr(ranking, "_MOST_BLOCKS", 5000)
    by_item = bradley_terry(matches, rounds=2000).ranked
    monkeypatch.setattr(ranking, "_MOST_BLOCKS", 300)
    in_blocks = bradley_terry(matches, rounds=2000).ranked
    assert in_blocks.value == pytest.approx(by_item.value, abs=1e-9)
    assert in_blocks.high - in_blocks.low == pytest.approx(by_item.high - by_item.low, rel=0.12)


def test_a_step_is_as_good_as_a_fit_where_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    matches, _ = simulated(np.random.default_rng(5), [0.8, 0.1, 0.0, -0.9], 0.4, 400)
    fits: list[int] = []
    plain = ranking._fits
    monkeypatch.setattr(
        ranking, "_fits", lambda *given: fits.append(len(given[1])) or plain(*given)
    )
    stepped = bradley_terry(matches).ranked
    assert fits == [10]
    monkeypatch.setattr(ranking, "_NEAR", 0.0)
    fitted = bradley_terry(matches).ranked
    assert fits == [10, 10, 990]
    width = fitted.high - fitted.low
    assert (np.abs(stepped.low - fitted.low) < 0.03 * width).all()
    assert (np.abs(stepped.high - fitted.high) < 0.03 * width).all()


def test_nothing_depends_on_the_order_of_rows_or_on_who_is_named_first() -> None:
    random = np.random.default_rng(6)
    one, _ = simulated(random, [0.5, 0.0, -0.5], 0.4, 30)
    order, turned = random.permutation(90), random.random(90) < 0.5
    item, first, second, half_points = (column[order] for column in one[:4])
    other = Matches(
        item,
        np.where(turned, second, first),
        np.where(turned, first, second),
        np.where(turned, 2 - half_points, half_points),
        3,
    )
    for rank in (
        lambda matches: bradley_terry(matches, rounds=200).ranked,
        lambda matches: win_rates(matches, rounds=200),
    ):
        expected, found = rank(one), rank(other)
        for column, again in zip(expected[:5], found[:5], strict=True):
            assert column.tolist() == again.tolist()
    assert bradley_terry(one, seed=1).ranked.low.tolist() != bradley_terry(one).ranked.low.tolist()


def test_many_players_and_few_links() -> None:
    """A ring of 60, each of whom met only two: the fit is exact, and sums to 0."""
    random = np.random.default_rng(7)
    first = np.tile(np.arange(60), 40)
    matches = Matches(
        np.repeat(np.arange(40), 60), first, (first + 1) % 60, random.integers(0, 3, 2400), 60
    )
    found = bradley_terry(matches, rounds=100)
    table = counted(matches)
    whole = np.exp((found.ranked.value[:, None] - found.ranked.value[None, :]) / 2)
    chance = (whole + found.tie / 2) / (whole + 1 / whole + found.tie)
    points = (table.wins + table.ties / 2).sum(axis=1)
    assert (table.played * chance).sum(axis=1) == pytest.approx(points, abs=1e-6)
    assert found.ranked.value.sum() == pytest.approx(0, abs=1e-9)


def test_many_sets_are_fitted_as_one_is() -> None:
    random = np.random.default_rng(8)
    tallies = [
        ranking._Blocks(simulated(random, [1, 0, -1], 0.5, 25)[0], random).tally(
            np.ones((1, 25), np.float32)
        )
        for _ in range(6)
    ]
    together = ranking.Tally(*(np.concatenate(column) for column in zip(*tallies, strict=True)))
    virtual = even(1.0, 3)
    many = fit(together, ranking.Virtual(*(np.repeat(one, 6, axis=0) for one in virtual)))
    for at, tally in enumerate(tallies):
        assert many.strengths[at] == pytest.approx(fit(tally, virtual).strengths[0], abs=1e-8)


def test_win_rates_are_points_per_match() -> None:
    matches, _ = simulated(np.random.default_rng(10), [0.5, 0.0, -0.5], 0.4, 30)
    ranked = win_rates(matches)
    for player in range(3):
        points = [
            h / 2 for f, h in zip(matches.first, matches.half_points, strict=True) if f == player
        ]
        points += [
            1 - h / 2
            for s, h in zip(matches.second, matches.half_points, strict=True)
            if s == player
        ]
        assert ranked.value[player] == pytest.approx(np.mean(points))
        assert ranked.low[player] < ranked.value[player] < ranked.high[player]
    low, high = wilson(20, 20)
    winner = win_rates(two(20, 0, 0))
    assert (winner.low[0], winner.high[0]) == (pytest.approx(low), high)
    assert winner.worst.tolist() == [1, 2]
    assert win_rates(two(3, 0, 0)).worst.tolist() == [2, 2]


def test_one_item_has_no_interval() -> None:
    one_item = two(5, 1, 2)._replace(item=np.zeros(8, np.int64))
    for ranked in (bradley_terry(one_item).ranked, win_rates(one_item)):
        assert isinstance(ranked, Ranked)
        assert ranked.method == "none: an interval needs at least two items"
        assert np.isnan(ranked.low).all()
        assert ranked.worst.tolist() == [2, 2]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=2), st.integers(1, 2)
        ),
        min_size=1,
    )
)
def test_seats_are_reconciled(pairs: list[tuple[list[int], int]]) -> None:
    starts = np.cumsum([0] + [len(said) for said, _ in pairs[:-1]])
    rows = np.array([one for said, _ in pairs for one in said], np.int8)
    seats = np.array([seats for said, seats in pairs for _ in said])
    found = reconciled(starts, rows, seats)
    for at, (said, wanted) in enumerate(pairs):
        read = [one for one in said if one >= 0]
        same = len(set(read)) == 1 and len(read) >= wanted
        assert found.half_points[at] == (-1 if not read else read[0] if same else 1)
        assert found.disagreed[at] == (len(set(read)) > 1)
        assert found.one_sided[at] == (0 < len(read) < wanted)


@pytest.mark.parametrize(
    "rank", [lambda m: bradley_terry(m, rounds=300).ranked, lambda m: win_rates(m, rounds=300)]
)
def test_players_who_are_alike_are_rarely_separated(rank: Callable[[Matches], Ranked]) -> None:
    """Separation is corrected for all pairs: six tests of four players at 5 % would be wrong in 10.7 % of rankings."""
    random = np.random.default_rng(4)
    first, second = np.triu_indices(4, 1)
    item = np.repeat(np.arange(60), 6).astype(np.int32)
    wrong = 0
    for _ in range(200):
        points = (2 * (random.random(360) < 0.5)).astype(np.int8)
        sides = np.tile(first, 60).astype(np.int32), np.tile(second, 60).astype(np.int32)
        wrong += bool((rank(Matches(item, *sides, points, 4)).best > 1).any())
    assert wrong <= stats.binom.ppf(0.999, 200, 0.05)
