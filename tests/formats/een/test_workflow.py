"""Programs with een-eval's names: a workflow is an ordinary experiment."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ConfigError
from assay.formats.een import (
    EvaluationMethod,
    EvalWorkflow,
    Metric,
    Model,
    ModelConfig,
    ModelType,
)

ROWS = [{"id": f"q{n}", "task": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(3)]


def compare(
    response: str,
    ground_truth: dict[str, Any],
    inference_result: dict[str, Any] | None = None,
    **params: Any,
) -> dict[str, Any]:
    right = response.strip() == ground_truth["answer"]
    result = {"passed": right, "score": params.get("points", 1.0) * right}
    return {"labels": [{"label": {"name": "right"}, "result": result}]}


def average(results: list[dict[str, Any]], **params: Any) -> list[dict[str, Any]]:
    return [{"value": sum(row["score"] for row in results) / len(results)}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def small(url: str) -> Any:
    return Model.from_config(ModelConfig(name="small", type=ModelType.OPENAI, endpoint=url))


def first_row(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text().partition("\n")[0])


def values(result: assay.Result) -> dict[tuple[str, str], float]:
    return {(row["metric_name"], row["label"]): row["value"] for row in result.metrics}


def test_two_modes_of_one_workflow(folder: Path, url: str) -> None:
    workflow = EvalWorkflow(
        dataset="sums.jsonl",
        sample_params={"temperature": 0.0},
        eval_prompt_template="{{ task }}",
        evaluation_methods=[EvaluationMethod.from_function("c", compare, params={"points": 2.0})],
        metrics=[Metric.from_function("average", average, facets=["model_name"])],
        output_dir="results/sums",
        mode="inference",
    )
    assert workflow.status.mode == "inference"
    assert not workflow.is_complete()
    assert workflow.get_results() is None
    asked = workflow.add_models([small(url)]).run()
    assert asked.run is not None
    assert (asked.run.present, asked.metrics) == (3, [])
    assert workflow.is_complete()
    measured = workflow.set_mode("evaluation").run()
    assert values(measured) == {("average", "right"): 2.0}
    results = workflow.get_results()
    assert results is not None
    assert [row["passed"] for row in results["evaluation"]] == [True] * 3
    assert results["metrics"][0]["model_name"] == "small"
    assert results["status"]["total_samples"] == workflow.status.total_samples
    # in a program that has no model at all
    later = EvalWorkflow(
        evaluation_methods=["exact_match"],
        metrics=["pass_rate"],
        output_dir="results/sums",
        mode="evaluation",
    )
    assert values(later.run()) == {("pass_rate", "exact_match"): 1.0}


def test_the_chain_of_setters(folder: Path, url: str) -> None:
    (folder / "own.py").write_text(
        "def half(response, ground_truth, share): return share\n"
        "def most(evaluation_results, facets): return max(r['score'] for r in evaluation_results)\n"
    )
    workflow = (
        EvalWorkflow()
        .add_models([small(url)])
        .load_dataset(ROWS)
        .add_evaluation_method("exact_match")
        .add_evaluation_method("half", "own.py", share=0.25)
        .add_metric("pass_rate")
        .add_metric("most", "own.py")
        .add_metric(Metric.built_in("middle", "median"))
        .set_sample_params(temperature=0.5)
        .set_sample_params(num_samples=2)
        .set_prompt_template("{{ task }}")
        .set_output_dir("there")
        .set_mode("full")
    )
    result = workflow.run()
    assert result.run is not None
    assert result.run.present == 6
    assert values(result)["most", "half"] == 0.25
    assert values(result)["middle", "exact_match"] == 1.0
    assert values(result)["pass_rate", "half"] == 1.0  # a bare number above 0 passes
    row = first_row(folder / "there/responses.jsonl")
    assert row["metadata"]["sampling"] == {"temperature": 0.5, "num_samples": 2}


def test_a_config_file_below_what_the_program_says(folder: Path, url: str) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/score.py").write_text("def own(response, ground_truth): return True\n")
    (folder / "sub/config.yaml").write_text(
        "models: [{name: nobody, config: {model: x}}]\n"
        f"dataset: {folder}/sums.jsonl\n"
        "evaluation_methods: [{name: own, type: custom, path: score.py, function_name: own}]\n"
        "metrics: [pass_rate]\nprompt_template: '{{ task }}'\n"
        "sample_params: {temperature: 0.5, max_tokens: 64}\noutput_dir: ignored\n"
    )
    workflow = EvalWorkflow.from_config("sub/config.yaml", {"output_dir": "there"})
    workflow.add_models([{"name": "small", "config": {"model": "a", "endpoint": url}}])
    workflow.add_evaluation_method(EvaluationMethod.from_function("c", compare))
    result = workflow.set_sample_params(temperature=0.25).run()
    assert values(result) == {("pass_rate", "own"): 1.0, ("pass_rate", "right"): 1.0}
    assert Path(result.folder) == folder / "there"
    row = first_row(folder / "there/responses.jsonl")
    assert (row["model_name"], row["metadata"]["sampling"]) == (
        "small",
        {"temperature": 0.25, "max_tokens": 64, "num_samples": 1},
    )


def test_a_loader_and_functions_without_names(folder: Path, url: str) -> None:
    workflow = EvalWorkflow(
        models=[small(url)],
        dataset={"type": lambda count: ROWS[:count], "params": {"count": 2}},
        evaluation_methods=[
            EvaluationMethod.from_function("any", lambda response, ground_truth: 1)
        ],
        metrics=["count"],
        eval_prompt_template="{{ task }}",
    )
    assert values(workflow.run()) == {("count", "any"): 2}


def test_the_second_run_pays_nothing(folder: Path, url: str) -> None:
    def workflow() -> EvalWorkflow:
        return EvalWorkflow(
            [small(url)], "sums.jsonl", prompt_template="{{ task }}", output_dir="o"
        )

    workflow().run()
    first = (folder / "o/responses.jsonl").read_bytes()
    workflow().run()
    assert (folder / "o/responses.jsonl").read_bytes() == first


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "both"}, "mode: 'both' is not possible"),
        ({"bathc_size": 1}, "unknown key 'bathc_size'"),
        ({"inference_engine": int}, "inference_engine class cannot be used"),
        ({"dataset": "nothing.jsonl"}, "there is no file 'nothing.jsonl'"),
        ({"evaluation_methods": [lambda a: 1]}, "is not a scorer"),
        ({"evaluation_methods": ["exact"]}, "exact"),
        ({"models": [{"name": "m", "config": {"modle": "x"}}]}, "no parameter 'modle'"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(
    folder: Path, settings: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = {
        "models": ["m"],
        "dataset": "sums.jsonl",
        "eval_prompt_template": "{{ task }}",
    }
    with pytest.raises(ConfigError, match=said):
        EvalWorkflow(**{**given, **settings}).run()
    assert not (folder / "output").exists()
