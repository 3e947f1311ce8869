"""MixEval's scores: exact, as the original rounds them, and with intervals that know repeated entries."""

import json
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.formats.mixeval.compat import letters
from assay.formats.mixeval.files import EntryRows, scores_of
from assay.formats.mixeval.metric import SCORE, ModelScores
from assay.stats.intervals import mean_interval, wilson
from assay.store.stores import MemoryStore

Row = dict[str, Any]


def item(
    number: int, kind: str, benchmark: str, content: int, target: int = 0, options: int = 4
) -> Row:
    return {
        "id": f"{kind}/{number}",
        "data": {"options": ["o"] * options} if kind == "multiple-choice" else {},
        "ground_truth": [target] if kind == "multiple-choice" else ["x"],
        "metadata": {
            "benchmark_name": benchmark,
            "problem_type": kind,
            "content": f"{content:016x}",
        },
    }


def verdict(id: str, score: float | None, outcome: str = "scored", **more: Any) -> Row:
    row = {
        "item_id": id,
        "model_name": "m",
        "label": "rule",
        "scorer": "rule",
        "score": score,
        "outcome": outcome,
    }
    return {**row, "scorer": more.get("label", "rule"), "responses": [id], **more}


def scores(
    items: Sequence[Row],
    verdicts: Sequence[Row],
    *,
    level: float = 0.95,
    file_order: Sequence[int] | None = None,
    parsers: dict[str, tuple[str, str]] | None = None,
) -> list[ModelScores]:
    """The scores that the engine's metric rows hold; the responses are in `file_order`."""
    store = MemoryStore()
    responses = [
        {"item_id": items[n]["id"], "key": items[n]["id"]} for n in file_order or range(len(items))
    ]
    for kind, rows in (("dataset", items), ("run", responses), ("evaluation", verdicts)):
        store.log(kind, "x").append(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    shown = parsers or {
        label: (label, label) for label in sorted({row["label"] for row in verdicts})
    }
    metrics: list[Any] = []
    for label, (first, second) in shown.items():
        params: dict[str, Any] = {"draw": label.endswith("rule-compat"), "order": "responses"}
        labels: dict[str, Any] = {"include": [label]}
        if first != second:
            labels = {"include": ["*"], "together": label}
            params |= {"free_form": first, "multiple_choice": second}
        metrics.append(
            bind_metric(type=SCORE, facets=["model_name"], params=params, level=level, **labels)
        )
    made = Aggregator(store).aggregate(["x"], metrics, runs=["x"], datasets=["x"])
    return scores_of(made, shown, EntryRows(store, "x", file_order=True), len(items))


def free(count: int, benchmark: str = "DROP", content: int = 0) -> list[Row]:
    return [item(n, "free-form", benchmark, content + n) for n in range(count)]


def multiple(count: int, benchmark: str = "MMLU", content: int = 10_000, **more: Any) -> list[Row]:
    return [item(n, "multiple-choice", benchmark, content + n, **more) for n in range(count)]


def one(items: Sequence[Row], values: Sequence[float], **options: Any) -> ModelScores:
    verdicts = [verdict(row["id"], value) for row, value in zip(items, values, strict=True)]
    (found,) = scores(items, verdicts, **options)
    return found


# ---- values


def test_the_original_rounds_before_it_weighs() -> None:
    """895 of 2000 and 1256 of 2000 are 0.53775; rounded means give 0.538 (both facts of the description)."""
    entries = [*free(2000), *multiple(2000)]
    found = one(entries, [1.0] * 895 + [0.0] * 1105 + [1.0] * 1256 + [0.0] * 744)
    assert found.cells["overall"].value == 0.53775
    assert found.compatible["overall"] == pytest.approx((0.448 + 0.628) / 2, abs=1e-15)
    assert round(found.compatible["overall"], 4) == 0.538


def test_unequal_files_are_weighed_by_their_entries() -> None:
    entries = [*free(3), *multiple(1)]
    found = one(entries, [1, 0, 0, 1])
    assert found.cells["overall"].value == 0.5
    assert found.compatible["overall"] == 0.333 * (3 / 4) + 1.0 * (1 / 4)


def test_a_benchmark_of_both_files_is_one() -> None:
    entries = [*free(2, "AGIEval"), *multiple(3, "AGIEval"), *multiple(2, "ARC", 20_000)]
    for number, row in enumerate(entries[2:]):
        row["id"] = f"multiple-choice/{number}"
    found = one(entries, [1, 0, 1, 1, 0, 0, 1])
    agi = found.cells["AGIEval"]
    assert (agi.value, agi.entries, agi.free_form, agi.multiple_choice) == (0.6, 5, 2, 3)
    assert found.compatible["AGIEval"] == 0.5 * (2 / 5) + 0.667 * (3 / 5)
    assert list(found.cells) == ["overall", "AGIEval", "ARC"]
    assert found.compatible["ARC"] == 0.5


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 10)),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None)
def test_against_the_description(rows: list[tuple[bool, str, int]]) -> None:
    entries = [
        item(n, "multiple-choice" if many else "free-form", name, n)
        for n, (many, name, _) in enumerate(rows)
    ]
    values = [tenths / 10 for _, _, tenths in rows]
    found = one(entries, values)
    means: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {False: [], True: []})
    for (many, name, _), value in zip(rows, values, strict=True):
        means["overall"][many].append(value)
        means[name][many].append(value)
    for name, parts in means.items():
        total = sum(map(len, parts.values()))
        rounded: list[tuple[float, int]] = []
        for part in filter(None, (parts[False], parts[True])):
            added = 0.0
            for value in part:
                added += value
            rounded.append((round(added / len(part), 3), len(part)))
        assert found.compatible[name] == sum(mean * (count / total) for mean, count in rounded)
        assert found.cells[name].value == pytest.approx(
            math.fsum([*parts[False], *parts[True]]) / total
        )
    assert set(found.compatible) == set(means)


def original(free: list[float], multiple: list[float]) -> float:
    """How the original adds up and weighs: a kind that is not there counts 0 of 0 rows."""
    total = len(free) + len(multiple)
    means = [round(sum(values) / len(values), 3) if values else 0 for values in (free, multiple)]
    return means[0] * (len(free) / total) + means[1] * (len(multiple) / total)


def test_equal_to_the_last_bit_for_every_combination_of_counts() -> None:
    chance = random.Random(14)
    benchmarks = [f"b{number}" for number in range(400)]
    free_values: dict[str, list[float]] = {}
    multiple_values: dict[str, list[float]] = {}
    entries: list[Row] = []
    values: list[float] = []
    for number, name in enumerate(benchmarks):
        for kind, of in (("free-form", free_values), ("multiple-choice", multiple_values)):
            count = chance.randrange(40) + (kind == "free-form" and number % 2)
            of[name] = [float(chance.random() < 0.6) for _ in range(count)]
            entries += [item(len(entries) + n, kind, name, len(entries) + n) for n in range(count)]
            values += of[name]
    found = one(entries, values).compatible
    cells = {name: (free_values[name], multiple_values[name]) for name in benchmarks}
    cells["overall"] = [*chain(*free_values.values())], [*chain(*multiple_values.values())]
    for name, (first, second) in cells.items():
        if first or second:
            assert found[name] == original(first, second), (name, len(first), len(second))


def test_fractional_scores_count_as_fractions() -> None:
    assert one(free(4), [0.5, 0.1, 1.0, 0.0]).cells["overall"].value == pytest.approx(0.4)


# ---- outcomes


def test_unparsed_and_refused_are_wrong_errored_and_missing_are_left_out() -> None:
    entries = free(6)
    outcomes = ["scored", "unparsed", "refused", "errored", "skipped"]
    verdicts = [
        verdict(row["id"], 1.0, outcome) for row, outcome in zip(entries, outcomes, strict=False)
    ]
    (found,) = scores(entries, verdicts)
    cell = found.cells["overall"]
    assert (cell.value, cell.entries) == (pytest.approx(1 / 3), 3)
    assert (cell.unparsed, cell.refused, cell.errored, cell.missing) == (1, 1, 1, 1)
    assert found.compatible["overall"] == 0.333


def test_verdicts_on_unknown_entries_and_calls_without_labels_do_not_count() -> None:
    entries = free(2)
    verdicts = [
        verdict("free-form/0", 1.0),
        verdict("free-form/9", 1.0),
        verdict("free-form/1", None, "skipped", part=[0, 0]),
    ]
    (found,) = scores(entries, verdicts)
    assert (found.cells["overall"].entries, found.cells["overall"].missing) == (1, 1)


def test_models_and_parsers_are_apart() -> None:
    entries = free(1)
    verdicts = [
        verdict("free-form/0", float(n % 2), model_name=m, label=s)
        for n, (m, s) in enumerate(
            [("b", "rule"), ("a", "rule"), ("b", "rule-compat"), ("a", "rule-compat")]
        )
    ]
    found = scores(entries, verdicts)
    assert [(one.model, one.label, one.cells["overall"].value) for one in found] == [
        ("a", "rule", 1.0),
        ("a", "rule-compat", 1.0),
        ("b", "rule", 0.0),
        ("b", "rule-compat", 0.0),
    ]


def bounds(entries: Sequence[Row], verdicts: Sequence[Row], **options: Any) -> tuple[Any, ...]:
    """The value, how many rows it rests on, and its bounds."""
    store = MemoryStore()
    for kind, rows in (("dataset", entries), ("evaluation", verdicts)):
        store.log(kind, "x").append(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    bound = bind_metric(type=SCORE, **options)
    (row,) = Aggregator(store).aggregate(["x"], [bound], runs=[], datasets=["x"])
    names = ("value", "used_sample_count", "value_if_missing_wrong", "value_if_missing_right")
    return tuple(row[name] for name in names)


def test_bounds_say_what_failed_entries_might_change() -> None:
    """Ten entries, two errored, six right of eight: 6/8, between 6/10 and 8/10."""
    entries = free(10)
    verdicts = [verdict(row["id"], float(n < 6)) for n, row in enumerate(entries[:8])]
    verdicts += [verdict(row["id"], None, "errored") for row in entries[8:]]
    assert bounds(entries, verdicts) == (0.75, 8, 0.6, 0.8)
    assert bounds(entries, verdicts, policy={"on_error": "wrong"}) == (0.6, 10, 0.6, 0.6)
    assert bounds(entries[:8], verdicts[:8]) == (0.75, 8, 0.75, 0.75)


def test_bounds_where_two_scorers_share_the_entries() -> None:
    """An answer that failed has a row of each, and one of the two counts; refused ones are wrong."""
    entries = [*free(5), *multiple(5)]
    verdicts: list[Row] = []
    for n, row in enumerate(entries):
        own, other = ("f", "m") if n < 5 else ("m", "f")
        outcome = {4: "errored", 9: "refused"}.get(n, "scored")
        score = float(n % 2) if outcome == "scored" else None
        verdicts.append(verdict(row["id"], score, outcome, label=own))
        verdicts.append(
            verdict(row["id"], None, "skipped" if score is not None else outcome, label=other)
        )
    params = {"free_form": "f", "multiple_choice": "m"}
    found = bounds(entries, verdicts, params=params, include=["*"], together="judge")
    assert found == (4 / 9, 9, 0.4, 0.5)


@given(
    st.lists(st.sampled_from(["right", "wrong", "unparsed", "errored"]), min_size=1, max_size=20)
)
@settings(max_examples=60, deadline=None)
def test_bounds_are_the_scores_of_both_ends(outcomes: list[str]) -> None:
    entries = free(len(outcomes))
    verdicts = [
        verdict(row["id"], float(said == "right"), "scored" if said in ("right", "wrong") else said)
        for row, said in zip(entries, outcomes, strict=True)
    ]
    value, used, low, high = bounds(entries, verdicts)
    right, errors, count = outcomes.count("right"), outcomes.count("errored"), len(outcomes)
    assert used == count - errors
    assert value == (pytest.approx(right / used) if used else None)
    assert (low, high) == (pytest.approx(right / count), pytest.approx((right + errors) / count))


# ---- letters drawn at random


@given(
    st.lists(
        st.tuples(st.sampled_from(["scored", "unparsed"]), st.integers(2, 10)),
        min_size=1,
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_letters_are_drawn_in_the_order_of_the_file(
    rows: list[tuple[str, int]], shuffler: random.Random
) -> None:
    entries = [
        item(n, "multiple-choice", "MMLU", n, target=n % k, options=k)
        for n, (_, k) in enumerate(rows)
    ]
    entries += free(2)
    verdicts = [
        verdict(row["id"], 1.0, rows[n][0], label="rule-compat")
        for n, row in enumerate(entries[:-2])
    ]
    verdicts += [verdict(row["id"], 0.0, "unparsed", label="rule-compat") for row in entries[-2:]]
    order = list(range(len(entries)))
    shuffler.shuffle(order)
    (found,) = scores(entries, verdicts, file_order=order)
    chance = random.Random(42)
    right = guessed = 0
    for number in order:
        if number >= len(rows):
            continue
        outcome, count = rows[number]
        if outcome == "unparsed":
            guessed += 1
            right += (
                chance.choice([letters(26)[n] for n in range(count)]) == letters(26)[number % count]
            )
        else:
            right += 1
    cell = found.cells["overall"]
    assert cell.value == pytest.approx(right / len(entries))
    assert (cell.guessed, cell.unparsed, cell.entries) == (guessed, 2, len(entries))


def test_our_own_parser_never_guesses() -> None:
    entries = multiple(200)
    (found,) = scores(entries, [verdict(row["id"], None, "unparsed") for row in entries])
    cell = found.cells["overall"]
    assert (cell.value, cell.guessed, cell.unparsed) == (0.0, 0, 200)


# ---- intervals


def test_entries_that_are_all_different_have_wilson_s_interval() -> None:
    cell = one(free(40), [1.0] * 30 + [0.0] * 10).cells["overall"]
    assert (cell.low, cell.high) == pytest.approx(wilson(30, 40))
    assert (cell.entries, cell.unique) == (40, 40)


def test_repeated_entries_are_one_cluster() -> None:
    """Five entries, each eight times, answered alike: as much evidence as five entries."""
    entries = [item(n, "free-form", "DROP", n % 5) for n in range(40)]
    values = [float(n % 5 < 3) for n in range(40)]
    cell = one(entries, values).cells["overall"]
    assert (cell.value, cell.entries, cell.unique) == (0.6, 40, 5)
    by_hand = mean_interval(np.array([1.0, 1.0, 1.0, 0.0, 0.0]), samples=40, scale=(0.0, 1.0))
    assert (cell.low, cell.high) == (by_hand.low, by_hand.high)
    assert cell.high is not None
    assert cell.low is not None
    assert cell.high - cell.low > 2 * (wilson(24, 40)[1] - wilson(24, 40)[0])


def test_clusters_of_unequal_size_by_hand() -> None:
    """The linearised ratio: each cluster's sum less its share of the mean, over the mean size of a cluster."""
    sizes = [1, 2, 3, 6]
    answers = [[1.0], [0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]]
    entries = [
        item(n, "free-form", "DROP", cluster)
        for n, cluster in enumerate(c for c, k in enumerate(sizes) for _ in range(k))
    ]
    values = [value for cluster in answers for value in cluster]
    cell = one(entries, values).cells["overall"]
    mean = sum(values) / 12
    contributions = [mean + sum(v - mean for v in cluster) / (12 / 4) for cluster in answers]
    weights = np.array(sizes) * 4 / 12
    by_hand = mean_interval(np.array(contributions), samples=12, scale=(0.0, 1.0), weights=weights)
    assert (cell.low, cell.high) == pytest.approx((by_hand.low, by_hand.high))


def test_one_entry_alone_has_no_interval_and_none_has_no_value() -> None:
    entries = [*free(1), *free(2, "BBH", 50)[1:]]
    (found,) = scores(entries, [verdict("free-form/0", 1.0)])
    assert (found.cells["overall"].low, found.cells["overall"].high) == (None, None)
    assert (found.cells["BBH"].value, found.cells["BBH"].missing) == (None, 1)
    assert "BBH" not in found.compatible


def test_a_wider_level_is_a_wider_interval() -> None:
    values = [1.0] * 30 + [0.0] * 10
    narrow, wide = (one(free(40), values, level=level).cells["overall"] for level in (0.8, 0.99))
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low


def test_parsers_of_two_scorers() -> None:
    """Free-form entries by one scorer, multiple choice by another: one score."""
    entries = [*free(2), *multiple(2)]
    verdicts = [verdict(row["id"], 1.0, scorer="first") for row in entries]
    verdicts += [verdict(row["id"], 0.0, scorer="second") for row in entries]
    (found,) = scores(entries, verdicts, parsers={"first+second": ("first", "second")})
    assert (found.label, found.cells["overall"].value) == ("first+second", 0.5)
    assert (found.cells["DROP"].value, found.cells["MMLU"].value) == (1.0, 0.0)
