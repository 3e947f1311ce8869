"""A graph as the task of an ordinary config: models, samples, scorers, facets and metrics come from there."""

from typing import Any

import pytest

import assay
from assay.errors import ConfigError
from assay.server import stats
from tests.formats.sygra.folder import Folder


def config(folder: Folder, **params: Any) -> dict[str, Any]:
    folder.save()
    return {
        "name": "mine",
        "models": [{"name": "mock", "endpoint": folder.url, "inference": {"temperature": 0.3}}],
        "tasks": [
            {
                "name": "qa",
                "graph": str(folder.base / "tasks/qa/graph_config.yaml"),
                "params": params,
            }
        ],
        "dataset": str(folder.base / "tasks/qa/data.json"),
        "prompt_template": "{{question}}",
        "num_samples": 2,
        "evaluation_methods": ["exact_match"],
        "metrics": [{"name": "pass@1", "facets": ["task"]}],
        "output_dir": str(folder.out),
    }


def test_a_graph_is_run_scored_and_measured_like_any_task(folder: Folder) -> None:
    before = stats(folder.url)["requests"]
    result = assay.run(config(folder, answer="predicted_answer", use={"eval_model": "mock"}))
    assert stats(folder.url)["requests"] - before == 2 * 4 * 2  # the plain prompt is asked as well
    values = {row["task"]: row["value"] for row in result.metrics}
    assert values["qa"] == 1.0
    assert len(values) == 2
    again = assay.run(config(folder, answer="predicted_answer", use={"eval_model": "mock"}))
    assert stats(folder.url)["requests"] - before == 2 * 4 * 2
    assert again.metrics == result.metrics


def test_the_record_is_the_response_and_parameters_of_the_config_hold(folder: Folder) -> None:
    import json

    assay.run(config(folder), mode="inference")
    rows = [json.loads(line) for line in (folder.out / "responses.jsonl").read_text().splitlines()]
    own = [row for row in rows if row["task"] == "qa"]
    assert {row["output"]["id"] for row in own} == {"q0", "q1", "q2", "q3"}
    assert json.loads(own[0]["response"]) == own[0]["output"]
    calls = [json.loads(line) for line in (folder.out / "calls.jsonl").read_text().splitlines()]
    # the node's own wins over the config's
    assert {call["params"]["temperature"] for call in calls} == {0.1}
    del folder.nodes["ask"]["model"]["parameters"]
    assay.run(config(folder), mode="inference")
    calls = [json.loads(line) for line in (folder.out / "calls.jsonl").read_text().splitlines()]
    assert {call["params"]["temperature"] for call in calls} == {0.1, 0.3}


def test_a_name_without_a_model_is_a_problem_of_the_config(folder: Folder) -> None:
    wrong = config(folder, use={"eval_model": "mok"})
    with pytest.raises(ConfigError, match="1 problem") as caught:
        assay.validate(wrong)
    assert "did you mean 'mock'" in str(caught.value)
    assert "tasks" in str(caught.value)


def test_an_unknown_parameter_and_a_missing_file_are_problems(folder: Folder) -> None:
    with pytest.raises(ConfigError) as caught:
        assay.validate(config(folder, answr="predicted_answer"))
    assert "did you mean 'answer'" in str(caught.value)
    missing = config(folder)
    missing["tasks"][0]["graph"] = str(folder.base / "tasks/qa/graph_confg.yaml")
    with pytest.raises(ConfigError) as caught:
        assay.validate(missing)
    assert "graph_confg.yaml" in str(caught.value)


def test_a_field_that_the_record_lacks_is_said_in_the_row(folder: Folder) -> None:
    result = assay.run(config(folder, answer="predicted"), mode="inference")
    assert result.run is not None
    assert result.run.counts["errored"] == 8
