"""From a config's names to things that work, with all problems at once and each with its place."""

from pathlib import Path
from typing import Any

import pytest

from assay.config import load
from assay.engine.experiment import bind, models
from assay.errors import ConfigError, UserError


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "items.jsonl").write_text('{"id": "a", "question": "1 + 1", "answer": "2"}\n')
    (tmp_path / "mine.py").write_text(
        "def mine(item, response, *, limit: int = 3):\n    return True\n"
    )
    return {
        "dataset": str(tmp_path / "items.jsonl"),
        "models": [
            {"name": "one", "type": "demo"},
            {"name": "two", "type": "demo", "inference": {"temperature": 0}},
        ],
        "prompt_templates": {"p": "{{question}}", "q": "Q: {{question}}"},
        "sample_params": {"temperature": 1, "top_p": 0.5},
        "output_dir": str(tmp_path / "out"),
    }


def test_every_model_with_every_prompt(config: dict[str, Any]) -> None:
    parsed = load(config)
    tasks = bind.bind_tasks(parsed, models.bind_models(parsed))
    assert [task.name for task in tasks] == ["one/p", "one/q", "two/p", "two/q"]
    assert [task.facets["sampling"]["temperature"] for task in tasks] == [1, 1, 0, 0]
    assert tasks[2].facets["sampling"] == {"temperature": 0, "top_p": 0.5, "num_samples": 1}


def test_function_tasks(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(data, *, tone: str = ''):\n    return tone\n")
    config["tasks"] = [
        {
            "name": "agent",
            "path": str(tmp_path / "agent.py"),
            "function_name": "answer",
            "params": {"tone": "x"},
        }
    ]
    config["models"] = []
    parsed = load(config)
    (task,) = bind.bind_tasks(parsed, {})
    assert (task.name, task.identity["params"]) == ("agent", {"tone": "x"})


@pytest.mark.parametrize(
    ("own", "overall", "expected"),
    [(None, None, 64), (100, None, 100), (100, 8, 8), (4, 8, 4), (None, 8, 8)],
)
def test_limits(
    config: dict[str, Any], own: int | None, overall: int | None, expected: int
) -> None:
    if own is not None:
        config["models"][0]["max_concurrency"] = own
    config |= {"timeout": 9, "max_retries": 5}
    if overall is not None:
        config["max_concurrency"] = overall
    config["models"][1] |= {"timeout": 3, "max_retries": 0}
    limits = models.bind_limits(load(config))
    assert (limits["one"].max_concurrency, limits["one"].timeout, limits["one"].max_retries) == (
        expected,
        9,
        5,
    )
    assert (limits["two"].timeout, limits["two"].max_retries) == (3, 0)


def test_all_problems_of_the_scorers_at_once(config: dict[str, Any], tmp_path: Path) -> None:
    config["evaluation_methods"] = [
        {"name": "m", "path": str(tmp_path / "mine.py"), "function_name": "mien"},
        {
            "name": "n",
            "path": str(tmp_path / "mine.py"),
            "function_name": "mine",
            "params": {"limt": 1},
        },
        {"exact_match": {"case_sensitive": "maybe"}},
    ]
    parsed = load(config)
    with pytest.raises(ConfigError) as caught:
        bind.bind_scorers(parsed, {})
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    for part in ("did you mean 'mine'", "did you mean 'limit'", "case_sensitive"):
        assert part in text
    for number in range(3):
        assert f"evaluation_methods[{number}]" in text


def test_problems_of_the_metrics(config: dict[str, Any]) -> None:
    bad = {"aggregation": "middle"}
    config["metrics"] = [
        {"name": "a", "type": "mean", "params": {"x": 1}},
        {"name": "pass_at_k", "params": bad},
    ]
    parsed = load(config)
    with pytest.raises(ConfigError) as caught:
        bind.bind_metrics(parsed)
    assert len(caught.value.problems) == 2
    assert "mean has no parameter 'x'" in str(caught.value)
    assert "'middle'" in str(caught.value)


def test_unknown_model_parameters(config: dict[str, Any]) -> None:
    config["models"] = [
        {"name": "one", "type": "demo", "skil": 1},
        {"name": "two", "type": "demo", "skill": "high"},
    ]
    parsed = load(config)
    with pytest.raises(ConfigError) as caught:
        models.bind_models(parsed)
    assert len(caught.value.problems) == 2
    assert "did you mean 'skill'" in str(caught.value)
    assert "Expected `float`" in str(caught.value)


def test_a_dataset_that_is_a_function(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(
        "def rows(count: int):\n    return [{'id': i} for i in range(count)]\n"
    )
    source = {"type": "function", "path": str(tmp_path / "rows.py"), "function_name": "rows"}
    config["dataset"] = {**source, "params": {"count": 2}}
    parsed = load(config)
    assert parsed.dataset is not None
    rows = list(bind.open_dataset(parsed.dataset, Path(parsed.base)))
    assert rows == [("rows() row 0", {"id": 0}), ("rows() row 1", {"id": 1})]


def test_other_errors_are_not_swallowed(config: dict[str, Any]) -> None:
    problems = models.Problems(load(config))
    with pytest.raises(ZeroDivisionError), problems.at("models", 0):
        1 / 0  # noqa: B018
    with problems.at("models", 0):
        raise UserError("one")
    with problems.at():
        raise ConfigError([UserError("two", where="here"), UserError("three")])
    with pytest.raises(ConfigError, match="3 problems in"):
        problems.raise_any()
    assert [problem.where for problem in problems.found] == ["models[0]", "here", ""]
