"""Scorers of the form (item, *responses): one call for all responses that belong together."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.errors import UserError
from assay.interfaces import Score
from assay.records import Item, Response

CALLS: list[tuple[str, list[str]]] = []


def spread(item: Item, *responses: Response, least: int = 0) -> Score:
    """The longest answer is this much longer than the shortest."""
    CALLS.append((item.id, [response.response for response in responses]))
    lengths = [len(response.response) for response in responses]
    return Score(
        score=float(max(lengths) - min(lengths)), passed=max(lengths) - min(lengths) > least
    )


def tournament(item: Item, *responses: Response) -> list[Score]:
    """Every answer meets the next one."""
    pairs = pairwise(responses)
    return [
        Score(score=1.0, players=(first.model_name, second.model_name)) for first, second in pairs
    ]


@pytest.fixture
def store() -> assay.MemoryStore:
    CALLS.clear()
    store = assay.MemoryStore()
    rows = [{"id": f"q{number}", "data": {"n": number}} for number in range(4)]
    assay.DatasetRepository(store).create(rows, name="d", id="d")
    return store


def answers(
    store: assay.MemoryStore, run: str, text: str, *, fails_at: int = -1, only: int = 4
) -> None:
    def task(data: dict[str, Any]) -> str:
        if data["n"] == fails_at:
            raise ValueError("no answer")
        return f"{text}{data['n']}"

    made = assay.function_task(task, name=run)
    assay.Runner(store).run("d", [made], id=run, selection=_first(only))


def _first(items: int) -> Any:
    from assay.engine.run.plan import Selection

    return Selection(items=items)


def bound(function: Any = spread, **more: Any) -> Any:
    return msgspec.structs.replace(assay.bind_scorer(function), player="run", **more)


def rows(store: assay.MemoryStore, id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for _, line in store.log("evaluation", id).scan()]


def test_one_call_gets_the_answers_of_all_runs_in_their_order(store: assay.MemoryStore) -> None:
    for run, text in (("b", "bb"), ("a", "a"), ("c", "cccc")):
        answers(store, run, text)
    manifest = assay.Evaluator(store).evaluate(["b", "a", "c"], [bound()], id="e")
    assert sorted(CALLS) == [(f"q{n}", [f"bb{n}", f"a{n}", f"cccc{n}"]) for n in range(4)]
    made = rows(store, "e")
    assert [row["score"] for row in made] == [3.0] * 4
    assert {row["model_name"] for row in made} == {"b vs a vs c"}
    assert all(len(row["responses"]) == 3 and row["players"] is None for row in made)
    assert (manifest.planned, manifest.complete) == (4, True)


def test_without_run_as_the_player_sides_are_sorted(store: assay.MemoryStore) -> None:
    answers(store, "b", "bb")
    answers(store, "a", "a")
    assay.Evaluator(store).evaluate(
        ["b", "a"], [msgspec.structs.replace(bound(), player="task")], id="e"
    )
    assert CALLS[0] == ("q0", ["a0", "bb0"])


def test_a_call_is_not_made_again_and_a_new_run_is_a_new_call(store: assay.MemoryStore) -> None:
    answers(store, "a", "a")
    answers(store, "b", "bb")
    for _ in range(2):
        assay.Evaluator(store).evaluate(["a", "b"], [bound()], id="e")
    assert len(CALLS) == 4
    answers(store, "c", "ccc")
    assay.Evaluator(store).evaluate(["a", "b", "c"], [bound()], id="e")
    assert len(CALLS) == 8
    assert len(rows(store, "e")) == 4


@pytest.mark.parametrize("skip", [True, False])
def test_a_failed_response_is_left_out_or_skips_its_item(
    store: assay.MemoryStore, skip: bool
) -> None:
    answers(store, "a", "a")
    answers(store, "b", "bb", fails_at=2)
    assay.Evaluator(store).evaluate(["a", "b"], [bound(skip_failures=skip)], id="e")
    called = dict(CALLS)
    outcomes = {row["item_id"]: row["outcome"] for row in rows(store, "e")}
    assert called.get("q2") == (None if skip else ["a2"])
    assert outcomes == {
        "q0": "scored",
        "q1": "scored",
        "q2": "skipped" if skip else "scored",
        "q3": "scored",
    }


def test_a_scorer_that_takes_sides_knows_whose_the_answers_are_also_where_there_is_none(
    store: assay.MemoryStore,
) -> None:
    seen: dict[str, tuple[str, ...]] = {}

    def whose(item: Item, *responses: Response, sides: tuple[str, ...] = ()) -> Score:
        assert len(responses) == len(sides)
        seen[item.id] = sides
        return Score(score=float(len(sides)))

    for run, fails in (("b", 0), ("a", 0), ("c", 0)):
        answers(store, run, run, fails_at=fails)
    answers(store, "d", "d", fails_at=2)
    assay.Evaluator(store).evaluate(["b", "a", "c"], [bound(whose, takes_sides=True)], id="e")
    assert seen == {"q0": (), "q1": ("b", "a", "c"), "q2": ("b", "a", "c"), "q3": ("b", "a", "c")}
    assert [len(row["responses"]) for row in rows(store, "e")] == [3, 3, 3, 3]
    assay.Evaluator(store).evaluate(["b", "d", "c"], [bound(whose, takes_sides=True)], id="f")
    assert (seen["q0"], seen["q2"]) == (("d",), ("b", "c"))


def test_items_that_not_all_have_are_left_out_or_refused(store: assay.MemoryStore) -> None:
    answers(store, "a", "a")
    answers(store, "b", "bb", only=2)
    assay.Evaluator(store).evaluate(["a", "b"], [bound()], id="e")
    assert [item for item, _ in CALLS] == ["q0", "q1"]
    with pytest.raises(UserError, match="answer different items"):
        assay.Evaluator(store).evaluate(["a", "b"], [bound(same_items=True)], id="f")


def test_a_limit_counts_what_is_scored(store: assay.MemoryStore) -> None:
    answers(store, "a", "a", fails_at=0)
    answers(store, "b", "bb")
    assay.Evaluator(store).evaluate(["a", "b"], [bound(limit=2, skip_failures=True)], id="e")
    assert [item for item, _ in CALLS] == ["q1", "q2"]
    assert [row["outcome"] for row in rows(store, "e")] == ["skipped", "scored", "scored"]


def test_one_run_alone_is_scored_too(store: assay.MemoryStore) -> None:
    answers(store, "a", "a")
    assay.Evaluator(store).evaluate(["a"], [bound()], id="e")
    assert [row["model_name"] for row in rows(store, "e")] == ["a"] * 4


def test_matches_inside_a_call_are_rows_with_players_in_order(store: assay.MemoryStore) -> None:
    for run in ("z", "m", "a"):
        answers(store, run, run)
    scorer = bound(tournament)
    assay.Evaluator(store).evaluate(["z", "m", "a"], [scorer], id="e")
    first = [row for row in rows(store, "e") if row["item_id"] == "q0"]
    assert [(row["players"], row["score"], row["passed"]) for row in first] == [
        (["m", "z"], 0.0, False),
        (["a", "m"], 0.0, False),
    ]
    keys = {run: store.log("run", run).read(next(store.log("run", run).scan())[0]) for run in "zma"}
    assert first[0]["responses"] == [json.loads(keys["m"])["key"], json.loads(keys["z"])["key"]]
    assert [row["part"] for row in first] == [[0, 2], [1, 2]]
    assert first[0]["model_name"] == "m vs z"


def test_a_config_uses_the_form_by_its_signature(tmp_path: Path) -> None:
    (tmp_path / "agree.py").write_text(
        "def agree(item, *responses):\n    return len({response.response for response in responses}) == 1\n"
    )
    config = {
        "name": "agreement",
        "dataset": [{"id": "1", "data": {"question": "What is 2 + 2?"}, "ground_truth": "4"}],
        "models": [{"name": name, "type": "demo", "skill": 1.0} for name in ("x", "y")],
        "prompt_templates": {"p": "{{question}}"},
        "evaluation_methods": [
            {"name": "agree", "path": str(tmp_path / "agree.py"), "function_name": "agree"}
        ],
        "metrics": [{"name": "pass_rate"}],
        "output_dir": str(tmp_path / "out"),
    }
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(row) + "\n" for row in config.pop("dataset")))  # type: ignore[arg-type]
    result = assay.run({**config, "dataset": str(items)})
    assert [row["value"] for row in result.metrics] == [1.0]
    assert result.metrics[0]["planned_sample_count"] is None
