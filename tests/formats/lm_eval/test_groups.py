"""Numbers of groups against the harness's own, in results/groups.jsonl (made by results/make_groups.py)."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.errors import UserError
from assay.formats.lm_eval.metric import _evidence, _from_stderr, _Task
from assay.formats.lm_eval.scoring import aggregations
from assay.formats.lm_eval.scoring.groups import Key, TaskNumbers, group_numbers, groups
from assay.formats.lm_eval.tasks.definition import Definition, TaskMember, leaves
from assay.interfaces import Group
from assay.stats.intervals import Interval, mean_interval, wilson

FILE = Path(__file__).parent / "results" / "groups.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def member(tree: Any) -> TaskMember:
    if isinstance(tree, str):
        return TaskMember(name=tree, definition=Definition(task=tree))
    return TaskMember(
        name=tree["name"],
        members=[member(inner) for inner in tree["members"]],
        aggregate=tree["aggregate"],
    )


def numbers(result: dict[str, Any]) -> TaskNumbers:
    made = TaskNumbers(size=result.get("sample_len", 0))
    for text, value in result.items():
        metric, _, pipeline = text.partition(",")
        key: Key = (metric.removesuffix("_stderr"), pipeline)
        if metric.endswith("_stderr"):
            made.stderrs[key] = None if value == "N/A" else value
        elif pipeline:
            made.values[key] = value
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["tree"]["name"])
def test_equal_to_the_harness(case: dict[str, Any]) -> None:
    tasks = {name: numbers(result) for name, result in case["tasks"].items()}
    made = {group.name: group_numbers(group, tasks) for group in groups([member(case["tree"])])}
    assert made.keys() == case["groups"].keys()
    for name, result in case["groups"].items():
        theirs = numbers(result)
        assert made[name].size == theirs.size
        assert made[name].values == pytest.approx(theirs.values, rel=1e-13)
        assert made[name].stderrs.keys() == theirs.stderrs.keys()
        for key, error in theirs.stderrs.items():
            assert made[name].stderrs[key] == (
                None if error is None else pytest.approx(error, rel=1e-13)
            )


@pytest.mark.parametrize(("entry", "weights"), [({}, [2, 6]), ({"weight_by_size": False}, [1, 1])])
def test_the_weights_of_tasks_are_those_of_the_value(
    entry: dict[str, Any], weights: list[int]
) -> None:
    inner = {"name": "h", "members": ["c"], "aggregate": []}
    group = member(
        {"name": "g", "members": ["a", "b", inner], "aggregate": [{"metric": "acc", **entry}]}
    )
    assert [leaf.name for leaf in leaves(group)] == ["a", "b", "c"]
    key = ("acc", "none")
    tasks = {
        "a": TaskNumbers(size=2, values={key: 1.0}),
        "b": TaskNumbers(size=9, values={("f1", "none"): 1.0}),
        "c": TaskNumbers(size=6, values={key: 0.0}),
    }
    made = group_numbers(group, tasks)
    assert made.weights == {key: dict(zip("ac", weights, strict=True))}
    assert made.values == {key: weights[0] / sum(weights)}


def test_another_aggregation_is_refused() -> None:
    group = member(
        {"name": "g", "members": ["a"], "aggregate": [{"metric": "acc", "aggregation": "median"}]}
    )
    with pytest.raises(UserError, match="can only be mean, not 'median'"):
        group_numbers(group, {"a": TaskNumbers(size=1)})


# ---- intervals


class Part(_Task):
    """Values of a task by an aggregation; `rows` are their places in the group."""

    def __init__(self, values: Any, rows: Any = (), aggregation: Any = aggregations.mean) -> None:
        self.values, self.aggregation = list(values), aggregation
        self.rows = list(rows) or list(range(len(self.values)))
        self.value = float(aggregation(self.values))


def pooled(tasks: list[Any], weights: list[int], item: Any = None) -> tuple[float, Interval]:
    """The value of a group of means, and its interval."""
    ends = np.cumsum([len(values) for values in tasks])
    score = np.concatenate(tasks)
    item = np.arange(len(score)) if item is None else item
    group = Group(item=item, sample=item * 0, passed=score > 0, score=score)
    parts = [
        Part(values, range(end - len(values), end))
        for values, end in zip(tasks, ends.tolist(), strict=True)
    ]
    shares = np.array(weights) / sum(weights)
    value = float(shares @ [part.value for part in parts])
    found = _evidence(group, value, 0.1, dict(zip(parts, weights, strict=True)))
    assert found["per_item"].mean() == pytest.approx(value)
    assert len(found["per_item"]) == len(np.unique(item))
    if found["weights"] is not None:
        assert found["weights"].mean() == pytest.approx(1)
    return value, mean_interval(
        found["per_item"], samples=len(score), weights=found["weights"], scale=(0.0, 1.0)
    )


def test_a_group_that_is_all_right_is_not_certain() -> None:
    tasks = [np.ones(50), np.ones(50)]
    assert pooled(tasks, [50, 50])[1][:2] == pytest.approx((wilson(100, 100)), abs=0.002)
    low, high, _ = pooled([np.ones(10), np.ones(1000)], [1, 1])[1]
    assert high == 1
    assert low is not None
    # the ten have half of the weight: the whole tells as much as 4 / (1/10 + 1/1000) documents
    assert low == pytest.approx(wilson(39.6, 39.6)[0], abs=0.01)
    tasks[0][0] = 0
    low, high, _ = pooled(tasks, [50, 50])[1]
    assert (low, high) == pytest.approx(wilson(99, 100), abs=0.025)


def test_the_interval_is_that_of_the_harness_where_both_hold() -> None:
    """Far from the ends and with many documents; what sets tasks apart is no uncertainty."""
    tasks = [np.arange(n) % 10 < right for n, right in ((800, 2), (1200, 5), (500, 9))]
    values = [task.astype(float) for task in tasks]
    for weights in ([800, 1200, 500], [1, 1, 1]):
        value, (low, high, _) = pooled(values, weights)
        shares = np.array(weights) / sum(weights)
        errors = [task.std(ddof=1) / len(task) ** 0.5 for task in values]
        reach = 1.96 * math.hypot(*(shares * errors))
        assert (low, high) == pytest.approx((value - reach, value + reach), abs=0.002)


def test_samples_of_a_document_are_one_cluster() -> None:
    random = np.random.default_rng(1)
    tasks = [(random.random(40) < 0.6).astype(float) for _ in range(3)]
    four = [np.repeat(task, 4) for task in tasks]
    low, high, _ = pooled(tasks, [1, 1, 1])[1]
    assert pooled(four, [1, 1, 1], np.repeat(np.arange(120), 4))[1][:2] == pytest.approx(
        (low, high), abs=0.01
    )


@pytest.mark.parametrize("tasks", [3, 10, 57])
@pytest.mark.parametrize("by_size", [True, False])
@pytest.mark.parametrize("rates", [(0.5, 0.99), (0.9, 0.99), (0.99, 0.99)])
def test_groups_hold_the_truth(tasks: int, by_size: bool, rates: tuple[float, float]) -> None:
    random = np.random.default_rng(100 + tasks)
    sizes = np.linspace(20, 100, tasks).astype(int).tolist()
    chances = np.linspace(*rates, tasks)
    weights = sizes if by_size else [1] * tasks
    truth = float(np.array(weights) @ chances / sum(weights))
    hits: list[bool] = []
    for _ in range(300):
        values = [
            (random.random(size) < p).astype(float) for size, p in zip(sizes, chances, strict=True)
        ]
        value, (low, high, _) = pooled(values, weights)
        assert low is not None
        assert high is not None
        assert 0 <= low <= value <= high <= 1
        assert low < high
        hits.append(low <= truth <= high)
    assert np.mean(hits) > 0.91


PAIRS = [(at % 2, at % 2 if at % 10 else 1 - at % 2) for at in range(100)]


@pytest.mark.parametrize(
    ("aggregation", "values", "least", "most"),
    [
        (aggregations.f1_score, PAIRS, 0, 1),
        (aggregations.f1_score, [(1, 1), (0, 0)] * 20, 0, 1),
        (aggregations.matthews_corrcoef, [(1, 1), (0, 0)] * 20, -1, 1),
        (aggregations.matthews_corrcoef, [(1, 0), (0, 1)] * 20, -1, 1),
        (aggregations.bleu, [("the cat sat on the mat", "the cat sat on the mat")] * 9, 0, 100),
        (aggregations.brier_score, [(0, [1.0, 0.0])] * 9, 0, 2),
        (aggregations.median, [0.0] + [1.0] * 9, 0, 1),
        (aggregations.nanmean, [0.98, 1.0, {"float": "nan"}], 0, 1),
        (aggregations.perplexity, [-0.01, -3.0], 0, math.inf),
        (aggregations.ter, [("a b c d", "a b c x"), ("e f g h", "x y z w")], 0, math.inf),
    ],
)
@pytest.mark.parametrize("error", [0.0, 0.03, 0.5])
def test_other_aggregations_stay_within_their_range(
    aggregation: Any, values: list[Any], least: float, most: float, error: float
) -> None:
    part = Part(aggregations.restored_values(values), aggregation=aggregation)
    part.values = values
    assert part.scale == (least, most)
    found = _from_stderr(part.value, error, [part], 0.95)
    if most == math.inf and not error:
        assert "no standard error" in found["reason"]
        return
    low, high, method = found["interval"]
    assert least <= low < high <= most
    assert low - 1e-9 <= part.value <= high + 1e-9
    assert "harness's standard error" in method


def test_far_from_the_ends_the_standard_error_is_as_it_was() -> None:
    part = Part(PAIRS, aggregation=aggregations.f1_score)
    low, high, _ = _from_stderr(0.5, 0.01, [part], 0.95)["interval"]
    assert (low, high) == pytest.approx((0.4804, 0.5196), abs=1e-4)
    own = Part([7.0, 9.0], aggregation=max)
    assert _from_stderr(9.0, 1.0, [own], 0.95)["interval"][:2] == pytest.approx(
        (7.04, 10.96), abs=0.001
    )
    assert "reason" in _from_stderr(9.0, 0.0, [own], 0.95)
    assert "reason" in _from_stderr(9.0, None, [own], 0.95)


def test_a_task_of_one_document_has_no_interval() -> None:
    score = np.ones(3)
    group = Group(item=np.arange(3), sample=np.zeros(3), passed=score > 0, score=score)
    parts = {Part([1.0], [0]): 1, Part([1.0, 1.0], [1, 2]): 2}
    assert "reason" in _evidence(group, 1.0, None, parts)
