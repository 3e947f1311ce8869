"""Metrics about judges: panels, matches in both seats, and calibrated pass rates, through the engine."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import cohen_kappa_score

import assay
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.interfaces import Score, Store
from assay.metrics.position_bias import position_bias
from assay.metrics.seat_consistency import seat_consistency
from assay.metrics.win_rate import win_rate
from assay.records import Manifest
from assay.stats.correction import Confusion, prediction_powered, rogan_gladen
from assay.stats.elo import elo
from assay.stats.intervals import wilson
from assay.stats.matches import Matches
from assay.store.stores import MemoryStore

from .rows import Row


def measured(
    rows: Sequence[Row], type: str, *, calibrations: Mapping[str, Any] | None = None, **more: Any
) -> Row:
    """The only metric row of these evaluations."""
    store = MemoryStore()
    store.log("evaluation", "e").append(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    if calibrations:
        store.put_manifest(
            Manifest(kind="evaluation", id="e", metadata={"calibrations": dict(calibrations)})
        )
    facets = more.pop("facets", [])
    policy = more.pop("policy", None)
    bound = bind_metric(type=type, params=more, facets=facets, policy=policy)
    (found,) = Aggregator(store).aggregate(["e"], [bound])
    return found


# ---- panels


def panel(votes: Sequence[Mapping[str, Any]], **more: Any) -> list[Row]:
    return [
        {
            "item_id": f"i{at}",
            "label": "panel",
            "passed": True,
            "score": 1.0,
            "detailed_results": {"votes": dict(each), "rule": "majority"},
            **more,
        }
        for at, each in enumerate(votes)
    ]


def test_a_panels_agreement_is_scikit_learns() -> None:
    random = np.random.default_rng(0)
    one = random.integers(0, 2, 80).astype(float)
    other = np.where(random.random(80) < 0.8, one, 1 - one)
    rows = panel(
        [{"a": x, "b": y, "c": 1.0} for x, y in zip(one.tolist(), other.tolist(), strict=True)]
    )
    found = measured(rows, "agreement", coefficient="cohen_kappa", members=["a", "b"])
    assert found["value"] == pytest.approx(cohen_kappa_score(one, other))
    assert (found["raters"], found["members"], found["pairs"], found["missing_votes"]) == (
        2,
        ["a", "b"],
        80,
        0,
    )
    assert found["ci_low"] < found["value"] < found["ci_high"]
    assert found["ci_method"] == "jackknife"
    assert found["value_if_missing_wrong"] == found["value_if_missing_right"] == found["value"]
    percent = measured(rows, "agreement", coefficient="percent", members=["a", "b"])
    assert percent["value"] == (one == other).mean()
    assert percent["ci_method"] == "wilson"


def test_missing_votes_and_failed_rows() -> None:
    rows = panel(
        [
            {"a": 1.0, "b": None, "c": 1.0},
            {"a": 0.0, "b": 0.0, "c": None},
            {"a": 1.0, "b": 0.0, "c": 1.0},
        ]
    )
    rows[1] |= {"outcome": "unparsed", "passed": None, "score": None}
    rows.append({"item_id": "z", "label": "panel", "outcome": "errored", "error": "no answer"})
    found = measured(rows, "agreement", coefficient="percent")
    assert found["value"] == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert (found["pairs"], found["missing_votes"], found["raters"]) == (5, 2, 3)


def test_one_judge_with_itself() -> None:
    rows = panel([{"gpt-4.1": 1.0, "gpt-4.2": 1.0, "gpt-4.1.1": 0.0, "gpt-4.1.2": 1.0}] * 3)
    assert measured(rows, "agreement", coefficient="percent", of="gpt-4")["members"] == [
        "gpt-4.1",
        "gpt-4.2",
    ]
    assert measured(rows, "agreement", coefficient="percent", of="gpt-4")["value"] == 1.0
    assert measured(rows, "agreement", coefficient="percent", of="gpt-4.1")["value"] == 0.0


def test_agreement_without_votes_says_so() -> None:
    found = measured([{"item_id": "a", "label": "l", "score": 1.0}], "agreement")
    assert (found["value"], found["ci_low"]) == (None, None)
    assert found["reason"] == "agreement needs the votes of two raters, found none"
    same = measured(panel([{"a": 1.0, "b": 1.0}] * 4), "agreement")
    assert "all votes are the same" in same["reason"]
    perfect = measured(panel([{"a": 1.0, "b": 1.0}, {"a": 0.0, "b": 0.0}]), "agreement")
    assert (perfect["value"], perfect["ci_high"]) == (1.0, 1.0)
    assert -1 < perfect["ci_low"] < 0.5


def test_votes_on_a_match_are_about_the_players() -> None:
    """Both judges always prefer x, whichever seat it has: its payoffs do not vary, so nothing is above chance."""
    ahead, behind = {"a": 1.0, "b": 1.0}, {"a": 0.0, "b": 0.0}
    rows = panel([ahead, ahead], seat=0, players=["x", "y"]) + panel(
        [behind, behind], seat=1, players=["x", "y"]
    )
    assert "all votes are the same" in measured(rows, "agreement")["reason"]
    assert measured(rows, "agreement", coefficient="percent")["value"] == 1.0


# ---- matches


def duel(
    seats: Sequence[float | None], item: str = "i", players: Sequence[str] = ("x", "y"), **more: Any
) -> list[Row]:
    """The rows of one pair: x's payoff in each seat; None could not be read."""
    return [
        {
            "item_id": item,
            "label": "duel",
            "players": list(players),
            "model_name": " vs ".join(players),
            "seat": seat,
            "score": payoff,
            "passed": None if payoff is None else payoff > 0.5,
            "outcome": "unparsed" if payoff is None else "scored",
            **more,
        }
        for seat, payoff in enumerate(seats)
    ]


def test_both_seats_are_one_match() -> None:
    cases: list[list[float | None]] = [
        [1, 1],
        [1, 1],
        [0, 0],
        [1, 0],
        [0.5, 0.5],
        [1, None],
        [None, None],
    ]
    rows = [row for at, seats in enumerate(cases) for row in duel(seats, f"i{at}")]
    found = measured(rows, "win_rate")
    assert found["value"] == pytest.approx((2 + 3 / 2) / 6)
    counts = {
        name: found[name]
        for name in ("player", "wins", "ties", "losses", "disagreements", "unread")
    }
    assert counts == {
        "player": "x",
        "wins": 2,
        "ties": 3,
        "losses": 1,
        "disagreements": 1,
        "unread": 3,
    }
    assert found["ci_low"] < found["value"] < found["ci_high"]
    assert measured(rows, "win_rate", player="y")["value"] == pytest.approx(1 - found["value"])
    same = measured(rows, "seat_consistency")
    assert (same["value"], same["consistent"], same["pairs"], same["unread"]) == (0.8, 4, 5, 3)
    bias = measured(rows, "position_bias")
    assert (bias["value"], bias["first_seat_rate"], bias["decided"], bias["ties"]) == (
        0.125,
        0.625,
        8,
        2,
    )


def test_elo_has_a_row_for_each_player_as_the_ranking_has() -> None:
    cases = [("x", "y", 1), ("x", "z", 1), ("y", "z", 1), ("x", "y", 0.5), ("y", "z", 0)]
    rows = [
        row
        for at, (one, other, payoff) in enumerate(cases)
        for row in duel([payoff], f"i{at}", (one, other))
    ]
    store = MemoryStore()
    store.log("evaluation", "e").append(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    found = Aggregator(store).aggregate(["e"], [bind_metric(type="elo")])
    assert [(row["player"], row["facets"], row["num_matches"]) for row in found] == [
        ("x", ["player"], 3),
        ("y", ["player"], 4),
        ("z", ["player"], 3),
    ]
    item, first, second, points = np.arange(5), [0, 0, 1, 0, 1], [1, 2, 2, 1, 2], [2, 2, 2, 1, 0]
    matches = Matches(item, np.array(first), np.array(second), np.array(points), 3)
    shuffled, ranked = elo(matches)
    assert [row["value"] for row in found] == shuffled.mean.tolist()
    assert [(row["ci_low"], row["ci_high"]) for row in found] == [
        *zip(ranked.low, ranked.high, strict=True)
    ]
    assert measured(rows, "elo", player="y")["value"] == found[1]["value"]
    assert "'w' is none of the players: x, y, z" in measured(rows, "elo", player="w")["reason"]
    apart = duel([1], "i0", ("a", "b")) + duel([1], "i1", ("c", "d"))
    assert "2 groups that never met" in measured(apart, "elo")["reason"]
    assert (
        "not matches" in measured([{"item_id": "i", "label": "l", "score": 1.0}], "elo")["reason"]
    )


def test_a_judge_without_swapped_seats_has_wins_but_no_consistency() -> None:
    rows = [
        row for at, payoff in enumerate((1.0, 1.0, 0.0, 0.5)) for row in duel([payoff], f"i{at}")
    ]
    assert measured(rows, "win_rate")["value"] == 0.625
    for name in ("seat_consistency", "position_bias"):
        assert measured(rows, name)["reason"] == "no pair has a verdict in both orders of the seats"
    ties = [row for at in range(3) for row in duel([0.5, 0.5], f"i{at}")]
    assert measured(ties, "position_bias")["reason"] == "all verdicts are ties"


def test_what_is_no_match_and_what_are_several() -> None:
    plain: Row = {"item_id": "a", "label": "l", "score": 1.0}
    for name in ("win_rate", "seat_consistency", "position_bias"):
        assert "not matches" in measured([plain], name)["reason"]
    rows = duel([1, 1]) + duel([0, 0], players=("x", "z")) + duel([1, 1], players=("y", "z"))
    assert "several pairs" in measured(rows, "win_rate")["reason"]
    assert measured(rows, "win_rate", player="x")["value"] == 0.5
    assert measured(rows, "win_rate", player="z")["value"] == 0.5
    assert "'w' is none of the players: x, y, z" in measured(rows, "win_rate", player="w")["reason"]
    unread = measured(duel([None, None]), "win_rate")
    assert (unread["value"], unread["reason"]) == (None, "no verdict could be read on 'x'")


def test_errored_verdicts_widen_the_bounds() -> None:
    rows = duel([1, 1], "a") + duel([1, 1], "b") + duel([0, 0], "c")
    rows[3] |= {"outcome": "errored", "score": None, "passed": None, "error": "timeout"}
    found = measured(rows, "win_rate")
    assert found["value"] == 0.5
    assert (found["value_if_missing_wrong"], found["value_if_missing_right"]) == (
        0.5,
        pytest.approx(2 / 3),
    )


payoffs = st.sampled_from([0.0, 0.5, 1.0])


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 3), payoffs, payoffs), min_size=1, max_size=12), st.randoms()
)
def test_the_order_of_rows_and_the_names_of_players_do_not_matter(
    given_pairs: list[tuple[int, float, float]], random: Any
) -> None:
    rows, mirrored = [], []
    for sample, (item, one, other) in enumerate(given_pairs):
        rows += duel([one, other], f"i{item}", sample_index=sample)
        # the other player comes first
        mirrored += duel([1 - other, 1 - one], f"i{item}", sample_index=sample)
    shuffled = random.sample(rows, len(rows))
    for metric in (win_rate, seat_consistency, position_bias):
        assert metric(shuffled) == metric(rows)
    assert win_rate(mirrored)["value"] == pytest.approx(1 - win_rate(rows)["value"])
    assert seat_consistency(mirrored)["value"] == seat_consistency(rows)["value"]
    if position_bias(rows)["value"] is not None:
        assert position_bias(mirrored)["value"] == pytest.approx(position_bias(rows)["value"])


def simulated(random: Any, items: int, better: float, bias: float) -> list[Row]:
    """A judge that decides by quality, except with the chance |bias|, when it names the first seat (or the second)."""
    rows: list[Row] = []
    for at in range(items):
        quality = float(random.random() < better)
        swayed = random.random(2) < abs(bias)
        seated = [float(bias > 0), float(bias < 0)]
        rows += duel([seated[seat] if swayed[seat] else quality for seat in (0, 1)], f"i{at}")
    return rows


@pytest.mark.parametrize("bias", [0.4, -0.3, 0.0])
def test_the_bias_that_was_put_in_is_found(bias: float) -> None:
    random = np.random.default_rng(7)
    found = measured(simulated(random, 3000, 0.7, bias), "position_bias")
    assert found["value"] == pytest.approx(bias / 2, abs=0.02)
    hits = 0
    for _ in range(100):
        one = measured(simulated(random, 40, 0.7, bias), "position_bias")
        hits += one["ci_low"] <= bias / 2 <= one["ci_high"]
    assert hits >= 90


def test_a_judge_that_always_says_first() -> None:
    rows = [row for at in range(20) for row in duel([1, 0], f"i{at}")]
    bias, same, wins = (
        measured(rows, name) for name in ("position_bias", "seat_consistency", "win_rate")
    )
    assert (bias["value"], same["value"], wins["value"], wins["disagreements"]) == (
        0.5,
        0.0,
        0.5,
        20,
    )
    assert 0.3 < bias["ci_low"] < bias["ci_high"] == 0.5


@pytest.fixture
def played() -> Store:
    """Two tasks of one dataset, compared by a judge that likes long answers, ties excepted."""

    def longer(item: Any, first: Any, second: Any) -> Score:
        one, other = len(first.response), len(second.response)
        return Score(score=0.5 if one == other else float(one > other))

    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(
        [{"id": f"q{i}", "data": str(i)} for i in range(4)], name="d", id="d"
    )
    tasks = [
        assay.function_task(lambda data: "x" * 2, name="brief"),
        assay.function_task(lambda data: "x" * int(data), name="growing"),
    ]
    assay.Runner(store).run("d", tasks, id="r")
    scorer = assay.bind_scorer(longer)
    scorer.player = "task"
    assay.Evaluator(store).evaluate(["r"], [scorer], id="e")
    return store


def test_matches_of_the_engine_reach_the_metrics(played: Store) -> None:
    names = ("win_rate", "seat_consistency", "position_bias")
    metrics = [bind_metric(type=name, facets=["players"]) for name in names]
    wins, same, bias = Aggregator(played).aggregate(["e"], metrics)
    assert wins["players"] == ["brief", "growing"]
    assert (wins["player"], wins["wins"], wins["ties"], wins["losses"]) == ("brief", 2, 1, 1)
    assert (wins["value"], same["value"], bias["value"]) == (0.625, 1.0, 0.0)


# ---- calibrated pass rates

CALIBRATION: dict[str, Any] = {
    "judge": "0123456789abcdef",
    "labels": 100,
    "confusion": {"tp": 45, "fp": 10, "fn": 5, "tn": 40},
}


def judged(passes: int, n: int, judge: Any = None) -> list[Row]:
    identity = (
        {"model": "j", "id": CALIBRATION["judge"], "prompt": "0" * 12} if judge is None else judge
    )
    return [
        {
            "item_id": f"i{at}",
            "label": "judge",
            "passed": at < passes,
            "detailed_results": {"judge": identity},
        }
        for at in range(n)
    ]


def corrected(rows: Sequence[Row], **calibration: Any) -> Row:
    return measured(
        rows, "corrected_pass_rate", calibrations={"judge": {**CALIBRATION, **calibration}}
    )


def test_the_corrected_rate_stands_beside_the_raw_one() -> None:
    found = corrected(judged(120, 200))
    expected = rogan_gladen(0.6, 200, Confusion(tp=45, fp=10, fn=5, tn=40))
    assert found["value"] == pytest.approx((0.6 - 0.2) / 0.7)
    assert (found["ci_low"], found["ci_high"], found["ci_method"]) == (
        expected.low,
        expected.high,
        "rogan_gladen",
    )
    assert (found["raw_pass_rate"], found["sensitivity"], found["specificity"]) == (0.6, 0.9, 0.8)
    assert found["calibration_labels"] == 100


def test_samples_of_an_item_do_not_sharpen_it() -> None:
    rows = judged(20, 40)
    repeated = [{**row, "sample_index": sample} for row in rows for sample in range(5)]
    one, five = corrected(rows), corrected(repeated)
    assert five["value"] == one["value"]
    assert five["ci_high"] - five["ci_low"] == pytest.approx(
        one["ci_high"] - one["ci_low"], rel=0.05
    )


def test_unread_verdicts_are_fails_and_errors_widen_the_bounds() -> None:
    rows = judged(120, 200)
    rows[0] |= {"outcome": "unparsed", "passed": None}
    rows[1] |= {"outcome": "errored", "passed": None, "error": "x", "detailed_results": {}}
    found = corrected(rows)
    assert found["raw_pass_rate"] == pytest.approx(118 / 199)
    assert found["value_if_missing_wrong"] < found["value"] < found["value_if_missing_right"]


def test_no_correction_without_a_fitting_calibration() -> None:
    rows = judged(6, 9)
    missing = measured(rows, "corrected_pass_rate")
    assert (missing["value"], missing["raw_pass_rate"]) == (None, pytest.approx(2 / 3))
    assert "assay judge calibrate" in missing["reason"]
    other = corrected(judged(6, 9, {"models": ["j", "k"], "id": "ffff"}))
    assert other["value"] is None
    assert "another judge" in other["reason"]
    assert "another judge" in corrected(judged(6, 9) + judged(6, 9, {"id": "ffff"}))["reason"]
    assert "another judge" in corrected(judged(6, 9, "text"))["reason"]
    useless = corrected(rows, confusion={"tp": 5, "fp": 6, "fn": 5, "tn": 4})
    assert "no better than chance" in useless["reason"]
    assert useless["sensitivity"] == 0.5
    lone = corrected(rows, confusion={"tp": 5, "fp": 0, "fn": 5, "tn": 0})
    assert "people failed none" in lone["reason"]
    assert lone["specificity"] is None
    match = measured(duel([1, 1]), "corrected_pass_rate", calibrations={"duel": CALIBRATION})
    assert "win_rate" in match["reason"]


def with_keys(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "responses": [f"{at:016x}{0:016x}"]} for at, row in enumerate(rows)]


def labelled(rows: Sequence[Row], truth: Mapping[int, int], weight: float = 1.0) -> Row:
    """The labels of rows as a calibration stores them."""
    return {rows[at]["responses"][0][:16]: (verdict, weight) for at, verdict in truth.items()}


def test_labels_of_the_very_answers_are_used_themselves() -> None:
    rows = with_keys(judged(120, 200))
    truth = {at: int(at < 120 or at % 3 == 0) for at in range(0, 200, 2)}
    found = corrected(rows, labelled=labelled(rows, truth))
    known = np.array([truth.get(at, np.nan) for at in range(200)])
    said = (np.arange(200) < 120).astype(float)
    expected = prediction_powered(said, known, np.arange(200), np.ones(200))
    assert (found["value"], found["ci_method"]) == (pytest.approx(expected.value), "ppi")
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((expected.low, expected.high))
    by_errors = corrected(rows)
    assert by_errors["ci_method"] == "rogan_gladen"
    assert found["ci_high"] - found["ci_low"] < by_errors["ci_high"] - by_errors["ci_low"]
    assert set(found) == set(by_errors)


def test_labels_of_other_answers_leave_what_was_known_before() -> None:
    rows = with_keys(judged(120, 200))
    others = with_keys(judged(150, 500))[300:]
    before = corrected(rows)
    assert corrected(rows, labelled=labelled(others, {at: at % 2 for at in range(200)})) == before
    assert corrected(judged(120, 200), labelled=labelled(rows, {0: 1, 1: 0})) == before
    assert corrected(rows, labelled=labelled(rows, {0: 1})) == before


def test_a_useless_judge_and_complete_labels() -> None:
    rows = with_keys(judged(20, 40))
    useless = {"tp": 5, "fp": 6, "fn": 5, "tn": 4}
    some = corrected(rows, confusion=useless, labelled=labelled(rows, dict.fromkeys(range(30), 1)))
    assert some["value"] == 1.0
    assert 0.8 < some["ci_low"] < some["ci_high"] == 1.0
    every = corrected(
        rows, confusion=useless, labelled=labelled(rows, {at: int(at % 4 > 0) for at in range(40)})
    )
    assert (every["value"], every["ci_method"]) == (0.75, "labels_wilson")
    assert (every["ci_low"], every["ci_high"]) == pytest.approx(wilson(30, 40))
