"""Comparisons of experiments and of facet values: numbers, words, notes, flips, order and bad input."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.analysis.compare.compare import Comparison, Pair, compare
from assay.errors import UserError
from assay.stats.intervals import wilson
from assay.stats.paired import Differences, significance
from tests.analysis.rows import counted, evaluation, rows_of, save
from tests.support import Lab


def pair_of(tmp_path: Path, baseline: Any, candidate: Any, **options: Any) -> Pair:
    (pair,) = compare(
        [save(tmp_path / "old", baseline), save(tmp_path / "new", candidate)], **options
    ).pairs
    return pair


def p_of(gained: int, lost: int, n: int) -> float:
    return significance(Differences(np.repeat([1.0, -1.0, 0.0], [gained, lost, n - gained - lost])))


def test_two_experiments_of_one_sample_an_item(tmp_path: Path) -> None:
    found = compare(
        [save(tmp_path / "old", counted(60, 100)), save(tmp_path / "new", counted(80, 100))]
    )
    assert [(one.name, one.value, one.ranks) for one in found.standings] == [
        ("new", 0.8, (1, 1)),
        ("old", 0.6, (2, 2)),
    ]
    assert (found.standings[0].ci_low, found.standings[0].ci_high) == wilson(80, 100)
    (pair,) = found.pairs
    assert (pair.candidate, pair.baseline, pair.items) == ("new", "old", 100)
    assert pair.difference == pytest.approx(0.2)
    assert (pair.gained, pair.lost, pair.test) == (20, 0, "interval")
    assert pair.p == pair.p_corrected == pair.p_missing == p_of(20, 0, 100)
    assert 0.1 < pair.ci_low < 0.2 < pair.ci_high < 0.32
    assert pair.verdict == "better"
    assert pair.items_needed is None


def test_the_other_way_round_it_is_worse(tmp_path: Path) -> None:
    pair = pair_of(tmp_path, counted(80, 100), counted(60, 100))
    assert (pair.verdict, pair.gained, pair.lost) == ("worse", 0, 20)
    assert pair.difference == pytest.approx(-0.2)


def test_a_small_difference_is_inconclusive_and_says_what_would_settle_it(tmp_path: Path) -> None:
    pair = pair_of(tmp_path, counted(60, 100), counted(63, 100))
    assert pair.verdict == "inconclusive"
    assert pair.smallest_difference > 0.03
    assert pair.items_needed is not None
    fewest, most = pair.items_needed
    assert 100 < fewest < 200
    assert (
        most is None
    )  # the interval holds 0, which no number of items would tell from no difference
    larger = pair_of(tmp_path, counted(600, 1000), counted(630, 1000))
    assert larger.verdict == "better"


def test_equal_sides_are_equivalent_within_a_margin(tmp_path: Path) -> None:
    assert pair_of(tmp_path, counted(600, 1000), counted(601, 1000)).verdict == "inconclusive"
    pair = pair_of(tmp_path, counted(600, 1000), counted(601, 1000), margin=0.02)
    assert pair.verdict == "equivalent"
    assert pair.p_equivalent is not None
    assert pair.p_equivalent < 0.001
    few = pair_of(tmp_path, counted(6, 10), counted(6, 10), margin=0.02)  # ten items cannot tell
    assert few.verdict == "inconclusive"
    assert few.items_needed is not None
    fewest, most = few.items_needed
    assert most is not None
    assert 100 < fewest < most


def test_several_samples_are_one_difference_an_item(tmp_path: Path) -> None:
    number = np.random.default_rng(2)
    old = {f"q{i}": [bool(v) for v in number.random(5) < 0.4] for i in range(80)}
    new = {f"q{i}": [bool(v) for v in number.random(5) < 0.7] for i in range(80)}
    pair = pair_of(tmp_path, rows_of(old), rows_of(new))
    means = [np.mean(new[item]) - np.mean(old[item]) for item in old]
    assert pair.difference == pytest.approx(np.mean(means))
    assert (pair.test, pair.verdict) == ("interval", "better")
    assert pair.gained == sum(mean > 1e-9 for mean in means)
    assert pair.lost == sum(mean < -1e-9 for mean in means)


def test_graded_scores_and_metrics(tmp_path: Path) -> None:
    old, new = rows_of({"a": 0.2, "b": 0.9, "c": 0.4}), rows_of({"a": 0.4, "b": 0.8, "c": 0.7})
    assert pair_of(tmp_path, old, new).difference == pytest.approx(0.4 / 3)
    assert pair_of(tmp_path, old, new, metric="pass_rate").difference == pytest.approx(1 / 3)
    assert pair_of(tmp_path, old, new, metric="pass@1").difference == pytest.approx(1 / 3)


def test_holm_corrects_over_all_pairs_and_ranks_overlap(tmp_path: Path) -> None:
    sides = {"a": 500, "b": 504, "c": 600}
    found = compare(
        [save(tmp_path / name, counted(passes, 1000)) for name, passes in sides.items()]
    )
    assert [(one.name, one.ranks) for one in found.standings] == [
        ("c", (1, 1)),
        ("b", (2, 3)),
        ("a", (2, 3)),
    ]
    by_name = {(pair.candidate, pair.baseline): pair for pair in found.pairs}
    alone = by_name["b", "a"]
    # the largest of three is not multiplied
    assert alone.p_corrected == alone.p == p_of(4, 0, 1000) > 0.05
    assert by_name["c", "a"].p_corrected == pytest.approx(3 * p_of(100, 0, 1000))
    assert by_name["c", "b"].p_corrected == pytest.approx(2 * p_of(96, 0, 1000))


def test_values_of_a_facet_within_one_experiment(tmp_path: Path) -> None:
    rows = counted(30, 50, metadata={"model_id": "small"}) + counted(
        45, 50, metadata={"model_id": "large", "t": 0}
    )
    folder = save(tmp_path / "one", rows)
    assert [one.name for one in compare([folder], facet="metadata.model_id").standings] == [
        "large",
        "small",
    ]
    (pair,) = compare([folder], facet="model_id", values=["small", "large"]).pairs
    assert (pair.candidate, pair.verdict) == ("large", "better")
    by_type = compare([folder], facet="t", values=["0", "null"])
    assert [one.name for one in by_type.standings] == ["0", "null"]


def test_where_narrows_the_rows(tmp_path: Path) -> None:
    rows = counted(10, 50, metadata={"p": "x", "m": 1}) + counted(
        20, 50, metadata={"p": "x", "m": 2}
    )
    folder = save(tmp_path / "one", rows + counted(50, 50, metadata={"p": "y", "m": 1}))
    values = [one.value for one in compare([folder], facet="m", where={"p": "x"}).standings]
    assert values == [0.4, 0.2]


def test_only_common_items_count_and_the_rest_is_said(tmp_path: Path) -> None:
    old = rows_of({"a": True, "b": False, "c": True, "only": True})
    new = rows_of({"a": True, "b": True, "c": True, "x": False, "y": False})
    found = compare([save(tmp_path / "old", old), save(tmp_path / "new", new)])
    (pair,) = found.pairs
    assert (pair.items, pair.only_candidate, pair.only_baseline) == (3, 2, 1)
    assert pair.difference == pytest.approx(1 / 3)
    assert found.notes == [
        "new and old share 3 items; 0 failed or were skipped on one side; 2 are only in new, 1 only in old",
        "the standings are over the items that all sides share, if there are any",
    ]
    assert {one.name: (one.value, one.items) for one in found.standings} == {
        "new": (1.0, 3),
        "old": (pytest.approx(2 / 3), 3),
    }


def test_failures_follow_the_policy_and_are_counted(tmp_path: Path) -> None:
    old = rows_of({"a": True, "b": False, "c": True})
    new = rows_of({"a": True, "b": "unparsed", "c": "errored"})
    found = compare([save(tmp_path / "old", old), save(tmp_path / "new", new)])
    standing = next(one for one in found.standings if one.name == "new")
    assert standing.value == 0.5
    assert standing.counts == {"errored": 1, "unparsed": 1, "refused": 0, "skipped": 0}
    assert found.pairs[0].items == 2


def test_a_missing_sample_flips_no_item(tmp_path: Path) -> None:
    """Unequal numbers of samples weigh items differently, but an item that is always right has not changed."""
    old = rows_of({"a": [True, True], "b": [False, False], "c": [True, False]})
    new = rows_of({"a": [True, "errored"], "b": [False, True], "c": [True, False]})
    pair = pair_of(tmp_path, old, new)
    assert (pair.gained, pair.lost) == (1, 0)
    assert [flip.item_id for flip in pair.flips] == ["b"]
    assert pair.difference == pytest.approx(3 / 5 - 3 / 6)


def test_order_of_rows_changes_no_number(tmp_path: Path) -> None:
    number = np.random.default_rng(8)
    old, new = (
        {f"q{i}": [float(v) for v in number.random(3).round(1)] for i in range(40)} for _ in "ab"
    )
    first, second = rows_of(old), rows_of(new)
    made: list[Comparison] = []
    for turn in range(3):
        random.Random(turn).shuffle(first)
        random.Random(turn).shuffle(second)
        paths = [save(tmp_path / "old", first), save(tmp_path / "new", second)]
        made.append(compare(paths, margin=0.1, flips=7))
    assert made[0] == made[1] == made[2]


def test_a_run_shows_flips_with_both_answers_and_what_differs(tmp_path: Path) -> None:
    folders: list[Path] = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        lab = Lab(tmp_path / name)
        lab.config["evaluation_methods"] = ["exact_match"]
        if name == "new":
            lab.rows[1]["data"]["question"] = "1 + 5"
            lab.config["evaluation_methods"] = [{"exact_match": {"case_sensitive": False}}]
        lab.run()
        folders.append(tmp_path / name / "out")
    found = compare(folders)
    (flip,) = found.pairs[0].flips
    assert (flip.item_id, flip.baseline, flip.candidate) == ("q1", 1.0, 0.0)
    assert (flip.baseline_answer, flip.candidate_answer) == ("2", "6")
    assert any("the datasets differ" in note for note in found.notes)
    assert any("the scorer 'exact_match' differs" in note for note in found.notes)
    assert not any("served" in note for note in found.notes)
    assert compare(folders, flips=0).pairs[0].flips == []


def test_a_model_that_was_served_differently_is_named(tmp_path: Path) -> None:
    for name, served in (("old", "gpt-05"), ("new", "gpt-08")):
        save(tmp_path / name, counted(3, 5))
        row = {"item_id": "q00000", "model_name": "m", "response": "x", "served_model": served}
        (tmp_path / name / "responses.jsonl").write_bytes(msgspec.json.encode(row) + b"\n")
    notes = compare([tmp_path / "old", tmp_path / "new"]).notes
    assert notes == ["the model 'm' was served as gpt-05, gpt-08"]


def test_the_experiments_own_policy_is_used(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.write(
        "score.py", "def score(response, ground_truth):\n    return 1 / (int(response) - 2) > 0\n"
    )
    lab.config |= {
        "evaluation_methods": [f"{tmp_path}/score.py:score"],
        "policy": {"on_error": "wrong"},
    }
    lab.config["models"] = [lab.model("a"), lab.model("b")]
    lab.run()
    found = compare([tmp_path / "out"], facet="model_name")
    assert found.policy.on_error == "wrong"
    assert found.standings[0].value == pytest.approx(2 / 4)
    assert found.standings[0].counts["errored"] == 2


@pytest.mark.slow
def test_false_alarms_stay_below_alpha(tmp_path: Path) -> None:
    """Three equal models of 60 items: any `better` or `worse` among the three pairs is a false alarm."""
    number = np.random.default_rng(9)
    alarms, repeats = 0, 40
    for _ in range(repeats):
        chance = number.beta(2, 2, 60)
        rows: list[dict[str, Any]] = []
        for model in "abc":
            rows += [
                evaluation(
                    f"q{item}", bool(number.random() < chance[item]), sample, model_name=model
                )
                for item in range(60)
                for sample in range(2)
            ]
        found = compare([save(tmp_path / "e", rows)], facet="model_name")
        alarms += any(pair.verdict != "inconclusive" for pair in found.pairs)
    assert alarms / repeats <= 0.05 + 3 * (0.05 * 0.95 / repeats) ** 0.5


# ---- the verdict and the interval are one thing


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(30, 60), min_size=2, max_size=6), st.sampled_from([0.8, 0.95, 0.99]))
def test_rejected_is_zero_outside_the_printed_interval(passes: list[int], level: float) -> None:
    with TemporaryDirectory() as folder:
        paths = [
            save(Path(folder) / f"s{at}", counted(number, 60)) for at, number in enumerate(passes)
        ]
        found = compare(paths, level=level, flips=0)
    rejected = 0
    for pair in found.pairs:
        outside = pair.ci_low > 0 or pair.ci_high < 0
        assert (pair.verdict in ("better", "worse")) == outside == (pair.p_corrected < 1 - level)
        assert (pair.items_needed is None) == (outside or pair.gained == pair.lost == 0)
        rejected += outside
    left = max(len(found.pairs) - rejected, 1)
    assert found.pairs_level == pytest.approx(1 - (1 - level) / left)


# ---- missing rows


def missing_of(
    tmp_path: Path, gained: int, failed: int, lost: int = 0, **options: Any
) -> Comparison:
    """90 items that both sides answered, and more on which the candidate failed and the baseline was right."""
    old = {f"q{i:03}": i >= gained for i in range(90)} | {f"x{i:03}": True for i in range(failed)}
    new = {f"q{i:03}": i < 90 - lost for i in range(90)}
    new |= {f"x{i:03}": "errored" for i in range(failed)}
    paths = [save(tmp_path / "old", rows_of(old)), save(tmp_path / "new", rows_of(new))]
    return compare(paths, **options)


@pytest.mark.parametrize(("gained", "failed"), [(20, 30), (20, 11), (40, 200)])
def test_a_verdict_that_missing_rows_could_reverse_is_not_given(
    tmp_path: Path, gained: int, failed: int
) -> None:
    found = missing_of(tmp_path, gained, failed)
    (pair,) = found.pairs
    assert pair.p == p_of(gained, 0, 90) < 0.001
    assert pair.ci_low > 0
    assert (pair.verdict, pair.items_needed) == ("inconclusive", None)
    # each missing row is a loss at worst
    would = next(lost for lost in range(200) if p_of(gained, lost, 90 + lost) >= 0.05)
    assert pair.reason == f"{failed} missing rows could reverse it; {would} would"
    assert [one.ranks for one in found.standings] == [(1, 2), (1, 2)]
    assert {one.name: (one.items, one.counts["errored"]) for one in found.standings} == {
        "new": (90, failed),
        "old": (90, 0),
    }
    assert found.notes == [
        f"new and old share 90 items; {failed} failed or were skipped on one side; "
        "0 are only in new, 0 only in old",
        "the standings are over the items that all sides share, if there are any",
    ]


def test_a_verdict_that_survives_the_missing_rows_is_given(tmp_path: Path) -> None:
    (pair,) = missing_of(tmp_path, 20, 5).pairs
    assert (pair.verdict, pair.reason) == ("better", "")
    assert pair.p < pair.p_missing == p_of(20, 5, 95) < 0.05
    (pair,) = missing_of(
        tmp_path, 0, 60, lost=20
    ).pairs  # the worse side failed: as right, it wins nothing
    assert (pair.verdict, pair.reason) == ("worse", "")


def test_equal_sides_with_missing_rows_are_not_equivalent(tmp_path: Path) -> None:
    (pair,) = missing_of(tmp_path, 0, 0, margin=0.1).pairs
    assert pair.verdict == "equivalent"
    (pair,) = missing_of(tmp_path, 0, 40, margin=0.1).pairs
    assert pair.verdict == "inconclusive"
    assert pair.reason.startswith("40 missing rows could reverse it; ")


def test_the_first_rows_to_be_missed_are_the_most_damaging(tmp_path: Path) -> None:
    """Where the baseline was wrong, too, a missing row does no harm; so it takes those where it was right."""
    old = {f"q{i:03}": i >= 20 for i in range(90)} | {f"x{i:03}": i < 15 for i in range(60)}
    new = {f"q{i:03}": True for i in range(90)} | {f"x{i:03}": "errored" for i in range(60)}
    paths = [save(tmp_path / "old", rows_of(old)), save(tmp_path / "new", rows_of(new))]
    would = next(lost for lost in range(60) if p_of(20, lost, 90 + lost) >= 0.05)
    assert compare(paths).pairs[0].reason == f"60 missing rows could reverse it; {would} would"


def test_missing_samples_of_answered_items(tmp_path: Path) -> None:
    """Four samples an item: the candidate is better by half on what it answered, and failed on most."""
    old = {f"q{i:02}": [True, True, False, False] for i in range(40)}
    new = {f"q{i:02}": [True, "errored", "errored", "errored"] for i in range(40)}
    (pair,) = compare(
        [save(tmp_path / "old", rows_of(old)), save(tmp_path / "new", rows_of(new))]
    ).pairs
    assert pair.difference == pytest.approx(0.5)
    assert pair.verdict == "inconclusive"
    assert pair.reason.startswith("120 missing rows could reverse it; ")
    by_policy = rows_of({item: [True, False, False, False] for item in new})
    (pair,) = compare([tmp_path / "old", save(tmp_path / "wrong", by_policy)]).pairs
    assert (pair.difference, pair.verdict) == (pytest.approx(-0.25), "worse")


def test_missing_rows_where_less_is_better(tmp_path: Path) -> None:
    old = {f"q{i:03}": 0.6 if i < 40 else 0.1 for i in range(90)} | {"x": 0.1}
    new = {f"q{i:03}": 0.1 for i in range(90)} | {"x": "errored"}
    paths = [save(tmp_path / "old", rows_of(old)), save(tmp_path / "new", rows_of(new))]
    assert compare(paths, lower=["match"]).pairs[0].verdict == "better"
    more = {f"y{i:03}": 0.1 for i in range(60)}
    paths = [
        save(tmp_path / "old", rows_of(old | more)),
        save(tmp_path / "new", rows_of(new | dict.fromkeys(more, "errored"))),
    ]
    (pair,) = compare(paths, lower=["match"]).pairs
    assert pair.verdict == "inconclusive"
    assert pair.reason.startswith("61 missing rows could reverse it; ")
    assert pair.difference < 0 < 0.05 < pair.p_missing


# ---- bad input


def refused(match: str, *paths: Path, **options: Any) -> UserError:
    with pytest.raises(UserError, match=match) as error:
        compare(paths, **options)
    return error.value


def test_one_experiment_only(tmp_path: Path) -> None:
    error = refused("only one side", save(tmp_path / "one", counted(1, 3)))
    assert "--facet" in error.fix


def test_no_common_items(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / "old", rows_of({"a": True})),
        save(tmp_path / "new", rows_of({"b": True})),
    ]
    refused("have no item in common", *paths)


def test_a_facet_or_value_that_does_not_exist(tmp_path: Path) -> None:
    folder = save(tmp_path / "one", counted(1, 3, metadata={"model_id": "demo-small"}))
    assert (
        "did you mean 'metadata.model_id'"
        in refused("exists in no row", folder, facet="metadata.modelid").fix
    )
    error = refused(
        "no row has metadata.model_id = 'demo-smal'",
        folder,
        facet="metadata.model_id",
        values=["demo-smal"],
    )
    assert "did you mean 'demo-small'" in error.fix


def test_labels_that_differ(tmp_path: Path) -> None:
    old, new = (
        save(tmp_path / "old", counted(1, 3)),
        save(tmp_path / "new", counted(1, 3, label="C++")),
    )
    refused(r"no label is common to all: old has match; new has C\+\+", old, new)
    assert "match" in refused("'new' has no label 'match'", old, new, label="match").what
    both = save(tmp_path / "both", counted(1, 3) + counted(2, 3, label="C++"))
    also = save(tmp_path / "also", counted(1, 3) + counted(2, 3, label="C++"))
    assert refused("several labels", both, also).fix == "add --label, one of C++, match"
    assert compare([old, both]).label == "match"
    assert compare([both, also], label="C++").standings[0].value == pytest.approx(2 / 3)


def test_all_rows_errored(tmp_path: Path) -> None:
    good = save(tmp_path / "good", counted(2, 3))
    bad = save(tmp_path / "bad", rows_of({f"q{i:05}": "errored" for i in range(3)}))
    assert "3 errored" in refused("mean of 'bad' cannot be computed", good, bad).fix
    refused("no row has a verdict", bad, save(tmp_path / "worse", rows_of({"q00000": "errored"})))


def test_a_side_without_a_value_does_not_stop_the_others(tmp_path: Path) -> None:
    paths = [save(tmp_path / name, counted(number, 40)) for name, number in (("a", 20), ("b", 39))]
    bad = save(tmp_path / "bad", rows_of({f"q{i:05}": "errored" for i in range(40)}))
    found = compare([*paths, bad])
    assert [one.name for one in found.standings] == ["b", "a"]
    assert [(pair.candidate, pair.verdict) for pair in found.pairs] == [("b", "better")]
    (note,) = found.notes
    assert note.startswith("left out: mean of 'bad' cannot be computed: none of 40 rows counts")
    assert note.endswith("its rows: 0 scored, 40 errored, 0 unparsed, 0 refused")


def test_a_metric_that_is_no_mean_over_items(tmp_path: Path) -> None:
    paths = [save(tmp_path / "old", counted(1, 3)), save(tmp_path / "new", counted(1, 3))]
    assert "pass_rate" in refused("unknown metric 'pass_rat'", *paths, metric="pass_rat").fix
    refused("k = 2", *paths, metric="pass@2")
    refused("between 0 and 1", *paths, level=95)
    refused("above 0", *paths, margin=0)


def test_a_facet_may_have_any_number_of_values(tmp_path: Path) -> None:
    rows = [row for n in range(120) for row in counted(n % 7, 6, model_name=f"m{n:03}")]
    folder = save(tmp_path / "one", rows)
    found = compare([folder], facet="model_name")
    assert [one.name for one in found.standings[:3]] == ["m006", "m013", "m020"]
    assert (len(found.standings), len(found.pairs)) == (120, 7140)
    two = compare([folder], facet="model_name", values=["m001", "m006"]).pairs[0]
    among = {(pair.candidate, pair.baseline): pair for pair in found.pairs}["m006", "m001"]
    assert (among.difference, among.p, among.items) == (two.difference, two.p, two.items)


def test_values_that_share_no_item(tmp_path: Path) -> None:
    folder = save(tmp_path / "one", counted(50, 200))
    refused("have no item in common", folder, facet="item_id")
    refused("have no item in common", folder, facet="item_id", values=["q00001", "q00002"])


def test_paths_that_hold_nothing(tmp_path: Path) -> None:
    good = save(tmp_path / "good", counted(2, 3))
    refused("there is no file or folder", good, tmp_path / "godo")
    (tmp_path / "empty").mkdir()
    refused("there are no evaluations", good, tmp_path / "empty")
    refused("is given twice", good, good)


def test_very_many_values_of_a_facet_are_each_compared_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for n in range(8) for row in counted(3 + n % 5, 9, model_name=f"m{n}")]
    folder = save(tmp_path / "e", rows)
    all_pairs = compare([folder], facet="model_name")
    monkeypatch.setattr("assay.analysis.compare.compare.MOST_PAIRED", 7)
    found = compare([folder], facet="model_name")
    assert len(found.standings) == 8
    assert [(pair.baseline, pair.candidate) for pair in found.pairs] == [
        ("m0", f"m{n}") for n in range(1, 8)
    ]
    note = found.notes[0]
    assert note.startswith("there are 8 sides: each is compared with 'm0' alone")
    table = compare([folder], facet="model_name", all_labels=True)
    assert (table.tests, table.notes) == (7, found.notes)
    named = compare([folder], facet="model_name", values=[f"m{n}" for n in range(8)])
    assert (named.pairs, named.notes) == (all_pairs.pairs, all_pairs.notes)
