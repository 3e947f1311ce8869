"""Objects in place of names: what a notebook has at hand is a config, without any file."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ConfigError, UserError
from assay.interfaces import Completion, Group, Request
from assay.records import Item, Response

ROWS = [
    {"id": "a", "data": {"question": "2 + 2"}, "ground_truth": "4"},
    {"id": "b", "data": {"question": "3 + 4"}, "ground_truth": "7"},
    {"id": "c", "data": {"question": "1 + 1"}, "ground_truth": "3"},
]
Counter = list[str]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def calculator(calls: Counter) -> Callable[..., Any]:
    def adds(prompt: str) -> str:
        calls.append(prompt)
        return str(sum(map(int, prompt.split(" + "))))

    return adds


def right(item: Item, response: Response) -> bool:
    return response.response == item.ground_truth


def share(group: Group) -> float:
    return float(group.passed.mean())


def notebook(source: str) -> dict[str, Any]:
    """The names that a cell of a notebook defines: functions that no file holds."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<cell>", "exec"), names)
    return names


def values(result: Any) -> dict[str, float]:
    return {f"{row['metric_name']} {row['label']}": row["value"] for row in result.metrics}


def test_rows_and_functions_are_an_experiment() -> None:
    calls: Counter = []
    given: dict[str, Any] = {
        "dataset": ROWS,
        "models": [calculator(calls)],
        "prompts": "{{question}}",
        "scorers": [right, "exact_match"],
        "metrics": ["pass@1", share, {"type": share, "name": "by model", "facets": ["model_name"]}],
        "samples": 2,
    }
    result = assay.run(**given)
    expected = {
        f"{metric} {label}"
        for metric in ("pass@1", "share", "by model")
        for label in ("right", "exact_match")
    }
    assert values(result) == dict.fromkeys(expected, pytest.approx(2 / 3))
    assert Path(result.folder) == Path("output/notebook").absolute()
    assert len(calls) == 6
    again = assay.run(**given)
    assert values(again) == values(result)
    assert len(calls) == 6, "the same objects resume"
    assert assay.plan(**given).missing == 0
    assert assay.validate(**given) == []


def test_every_form_of_a_model() -> None:
    class Fixed:
        name = "fixed"
        identity = {"type": "fixed"}

        async def complete(self, request: Request) -> Completion:
            return Completion(text="4")

        async def close(self) -> None: ...

    async def chat(messages: list[dict[str, Any]]) -> str:
        return "7" if "3" in messages[0]["content"] else "?"

    def power(prompt: str, *, base: int) -> str:
        return str(base)

    result = assay.run(
        dataset=ROWS,
        models=[
            chat,
            Fixed(),
            "demo:small",
            {"name": "three", "type": partial(power, base=3)},
            partial(power, base=7),
        ],
        prompts="{{question}}",
        scorers=["exact_match"],
        metrics=[{"name": "mean", "facets": ["model_name"]}],
        name="models",
        output_dir="elsewhere",
    )
    found = {row["model_name"]: round(row["value"], 2) for row in result.metrics}
    assert found.pop("small") >= 0
    assert found == {"chat": 0.33, "fixed": 0.33, "three": 0.33, "power": 0.33}
    assert Path(result.folder) == Path("elsewhere").absolute()


def test_it_works_while_a_loop_runs() -> None:
    async def cell() -> tuple[Any, Any]:
        given: dict[str, Any] = {
            "dataset": ROWS,
            "models": [lambda prompt: "4"],
            "scorers": [right],
            "metrics": [share],
        }
        blocking = assay.run(**given, output_dir="one")
        return blocking, await assay.run_async(**given, output_dir="two")

    one, two = asyncio.run(cell())
    assert values(one) == values(two) == {"share right": pytest.approx(1 / 3)}


def test_a_function_of_rows_is_a_dataset_and_settings_stand_beside_objects() -> None:
    def items(n: int = 2) -> list[dict[str, Any]]:
        return [dict(row) for row in ROWS[:n]]

    given: dict[str, Any] = {
        "models": [lambda prompt: "4"],
        "scorers": [right],
        "metrics": ["count"],
    }
    assert assay.run(dataset=items, **given, output_dir="a").metrics[0]["total_item_count"] == 2
    more = {"type": items, "params": {"n": 3}}
    assert assay.run(dataset=more, **given, output_dir="b").metrics[0]["total_item_count"] == 3
    some = {"type": ROWS, "filter": "id != 'b'"}
    assert assay.run(dataset=some, **given, output_dir="c").metrics[0]["total_item_count"] == 2


def test_other_code_is_another_identity() -> None:
    cell = "THRESHOLD = {0}\ndef longest(a): return {1}\ndef judged(item, response): return longest(4) > THRESHOLD"
    paid: Counter = []

    def scored(threshold: int, body: str) -> float:
        judged = notebook(cell.format(threshold, body))["judged"]
        given: dict[str, Any] = {
            "dataset": ROWS,
            "models": [calculator(paid)],
            "prompts": "{{question}}",
        }
        return values(assay.run(**given, scorers=[judged], metrics=["mean"]))["mean judged"]

    assert scored(3, "a") == 1.0
    assert scored(3, "a") == 1.0
    assert scored(5, "a") == 0.0, "a constant that it uses is part of it"
    assert scored(5, "a + 2") == 1.0, "so is a function that it calls"
    assert len(paid) == 3, "the answers are the same all the time"


def test_what_a_closure_captured_is_part_of_it() -> None:
    def above(least: int) -> Callable[..., bool]:
        return lambda item, response: int(response.response) > least

    given: dict[str, Any] = {"dataset": ROWS, "models": [lambda prompt: "4"], "metrics": ["mean"]}
    found = [
        values(assay.run(**given, scorers=[above(least)]))["mean scorer"] for least in (3, 5, 3)
    ]
    assert found == [1.0, 0.0, 1.0]


def test_the_resolved_config_shows_the_objects_and_says_what_to_do_without_them() -> None:
    given: dict[str, Any] = {
        "models": [calculator([])],
        "prompts": "{{question}}",
        "metrics": ["mean"],
    }
    assay.run(dataset=ROWS, **given, scorers=[right])
    written = Path("output/notebook/config.yaml").read_text()
    for name in (".rows", "name: 3 rows", ".adds", "function_name: right", "module: inline:"):
        assert name in written
    Path("copy.yaml").write_text(written.replace("inline:", "inline:0"))
    with pytest.raises(ConfigError) as caught:
        assay.run("copy.yaml")
    (problem,) = caught.value.problems
    assert "'adds' was an object of the Python session" in problem.what
    assert "pass 'adds'" in problem.fix
    assert "copy.yaml:" in problem.where
    with pytest.raises(ConfigError, match="'right' was an object"):
        assay.run("copy.yaml", models=given["models"], dataset=ROWS)
    assert values(
        assay.run("copy.yaml", models=given["models"], dataset=ROWS, scorers=[right])
    ) == {"mean right": pytest.approx(2 / 3)}


def test_arguments_replace_what_a_config_says() -> None:
    config: dict[str, Any] = {
        "dataset": "nowhere.jsonl",
        "models": ["demo:small", "demo:big"],
        "evaluation_methods": ["exact_match"],
        "metrics": [{"name": "mean", "facets": ["model_name"]}],
    }
    chosen = assay.run(
        config,
        dataset=ROWS,
        models=["small"],
        scorers=[right],
        prompts="{{question}}",
        name="chosen",
    )
    assert [(row["model_name"], row["label"]) for row in chosen.metrics] == [("small", "right")]
    assert Path(chosen.folder).name == "chosen"
    replaced = assay.run(config, dataset=ROWS, models=[lambda prompt: "4"], scorers=[right])
    assert [row["model_name"] for row in replaced.metrics] == ["model"]
    with pytest.raises(UserError, match="a Config is finished: 'dataset'"):
        assay.run(assay.experiment(config, dataset=ROWS).config, dataset=ROWS)


def test_evaluate_and_aggregate_take_objects() -> None:
    first = assay.run(
        dataset=ROWS, models=[lambda prompt: "4"], scorers=["exact_match"], metrics=["mean"]
    )
    config = {"evaluation_methods": [right], "metrics": [share]}
    for arguments in (
        {"config": config},
        {"scorers": [right], "metrics": [share]},
        {"overrides": config},
    ):
        scored = assay.evaluate(first.folder, **arguments, output_dir="scored")  # type: ignore[arg-type]
        assert values(scored) == {"share right": pytest.approx(1 / 3)}
    assert values(assay.aggregate(first.folder, metrics=[share, "count"])) == {
        "share exact_match": pytest.approx(1 / 3),
        "count exact_match": 3.0,
    }


def test_functions_of_een_are_scorers_and_metrics() -> None:
    def method(response: str, ground_truth: Any, **params: Any) -> dict[str, Any]:
        return {"labels": [{"label": "same", "passed": response == ground_truth, "score": 1.0}]}

    def total(evaluation_results: list[dict[str, Any]], facets: list[str]) -> dict[str, Any]:
        return {"value": len(evaluation_results)}

    result = assay.run(dataset=ROWS, models=[lambda prompt: "4"], scorers=[method], metrics=[total])
    assert values(result) == {"total same": 3.0}


def test_built_ins_are_known_by_their_names() -> None:
    exact = assay.scorer.get("exact_match")
    result = assay.run(
        dataset=ROWS,
        models=[lambda prompt: "4"],
        scorers=[{"type": exact, "name": "em"}],
        metrics=[],
    )
    rows = Path(result.folder, "evaluation_results.jsonl").read_text().splitlines()
    assert {json.loads(row)["scorer"] for row in rows} == {"em"}
    assert "type: exact_match" in Path(result.folder, "config.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "what", "where"),
    [
        ({"dataset": [*ROWS, 3]}, "a dataset row is a mapping, found int", "dataset[3]"),
        ({"dataset": []}, "dataset must be a mapping, got a list", "the argument `dataset`"),
        ({"models": [3]}, "models[0] must be a mapping, got 3", "the argument `models`"),
        ({"scorers": ["exact_mach"]}, "unknown scorer 'exact_mach'", "the argument `scorers`"),
        (
            {"scorers": [right, right]},
            "evaluation_methods[0] and evaluation_methods[1] are called 'right'",
            "the arg",
        ),
        ({"models": None}, "there is no model", "models"),
    ],
)
def test_what_is_wrong_is_said(arguments: dict[str, Any], what: str, where: str) -> None:
    given: dict[str, Any] = {
        "dataset": ROWS,
        "models": [lambda prompt: "4"],
        "scorers": [right],
        **arguments,
    }
    with pytest.raises(UserError) as caught:
        assay.run(**given)
    problem = caught.value.problems[0] if isinstance(caught.value, ConfigError) else caught.value
    assert what in problem.what
    assert where in problem.where


def test_objects_live_as_long_as_their_config() -> None:
    made = assay.experiment(dataset=ROWS, models=[lambda prompt: "4"], scorers=[right])
    name = made.config.models[0].type
    assert assay.model.get(name)
    del made
    with pytest.raises(UserError, match="was an object"):
        assay.model.get(name)
