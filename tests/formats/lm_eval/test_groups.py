"""Numbers of groups against the harness's own, in results/groups.jsonl (made by results/make_groups.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.lm_eval.scoring.groups import Key, Numbers, group_numbers, groups, leaves
from assay.formats.lm_eval.tasks.definition import Definition, Member

FILE = Path(__file__).parent / "results" / "groups.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def member(tree: Any) -> Member:
    if isinstance(tree, str):
        return Member(name=tree, definition=Definition(task=tree))
    return Member(
        name=tree["name"],
        members=[member(inner) for inner in tree["members"]],
        aggregate=tree["aggregate"],
    )


def numbers(result: dict[str, Any]) -> Numbers:
    made = Numbers(size=result.get("sample_len", 0))
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


def test_directions_need_agreement() -> None:
    tree = {
        "name": "g",
        "members": ["a", "b", {"name": "h", "members": ["c"], "aggregate": []}],
        "aggregate": [],
    }
    group = member({**tree, "aggregate": [{"metric": "acc"}]})
    assert [leaf.name for leaf in leaves(group)] == ["a", "b", "c"]
    one = Numbers(size=2, values={("acc", "none"): 0.5}, higher_is_better={"acc": True})
    other = Numbers(size=2, values={("acc", "none"): 0.5}, higher_is_better={"acc": False})
    assert group_numbers(group, {"a": one, "b": one}).higher_is_better == {"acc": True}
    made = group_numbers(group, {"a": one, "b": other})
    assert made.higher_is_better == {"acc": None}
    assert made.absent == {("acc", "none"): ["c"]}


def test_another_aggregation_is_refused() -> None:
    group = member(
        {"name": "g", "members": ["a"], "aggregate": [{"metric": "acc", "aggregation": "median"}]}
    )
    with pytest.raises(UserError, match="can only be mean, not 'median'"):
        group_numbers(group, {"a": Numbers(size=1)})
