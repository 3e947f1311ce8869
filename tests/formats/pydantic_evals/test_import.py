"""Reports of pydantic-evals, really made by it (`make_logs.py`), and what can be wrong with one."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.pydantic_evals.averages import Averages
from assay.formats.pydantic_evals.reader import pydantic_evals
from assay.records import Evaluation, Response
from tests.formats.imports import bring, bring_one

LOGS = Path(__file__).parent / "logs"
AVERAGES = json.loads((LOGS / "averages.json").read_text())


def report(name: str) -> dict[str, Any]:
    return json.loads((LOGS / f"{name}.json").read_text())


def saved(folder: Path, content: Any) -> Path:
    file = folder / "report.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize(("model", "with_failures"), [("large", 7 / 12), ("tiny", 4 / 12)])
def test_the_share_of_assertions_is_the_tools_own_and_shows_what_it_hides(
    tmp_path: Path, model: str, with_failures: float
) -> None:
    brought = bring_one(LOGS / f"{model}.json", tmp_path / "out")
    headline = brought.headline("RightAnswer", "assertions")
    assert headline.theirs == headline.ours == AVERAGES[model]["assertions"]
    assert (headline.failed, headline.with_failures, headline.equal) == (
        2,
        pytest.approx(with_failures),
        True,
    )
    assert brought.result.agents == [model]


def test_every_field_lands(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "large.json", tmp_path / "out")
    item = brought.items["sum-9-9"]
    assert item["data"] == {"question": "What is 9 + 9?"}
    assert item["ground_truth"] == "18"
    (response,) = brought.responses_to("sum-9-9")
    case = next(case for case in report("large")["cases"] if case["name"] == "sum-9-9")
    assert response["response"] == "The answer is 0."
    assert response["inference_time"] == case["task_duration"]
    assert response["metadata"] == {
        "model_id": "large",
        "source": {"total_duration": case["total_duration"]},
    }
    label = brought.labels_of("sum-9-9")["RightAnswer"]
    assert (label["passed"], label["score"], label["scorer"]) == (False, 0.0, "RightAnswer")
    assert label["responses"] == [response["key"]]


def test_cases_that_raised_are_responses_with_an_error(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "large.json", tmp_path / "out")
    assert len(brought.items) == len(brought.responses) == 12
    for item in ("sum-33-9", "sum-40-2"):
        (response,) = brought.responses_to(item)
        assert response["outcome"] == "errored"
        assert "HTTP Error" in response["error"]
        label = brought.labels_of(item)["RightAnswer"]
        assert (label["outcome"], label["score"], label["responses"]) == (
            "errored",
            None,
            [response["key"]],
        )


def test_repeats_scores_labels_and_metrics(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "repeated.json", tmp_path / "out")
    averages = AVERAGES["repeated"]
    assert brought.unequal() == []
    assert brought.headline("brevity", "average").ours == pytest.approx(
        averages["scores"]["brevity"]
    )
    for style, share in averages["labels"]["style"].items():
        assert brought.headline("style", f"share of {style!r}").theirs == pytest.approx(share)
    for metric, value in averages["metrics"].items():
        assert brought.headline(metric, "average").theirs == pytest.approx(value)
    assert brought.headline("right", "assertions").theirs == pytest.approx(averages["assertions"])
    assert brought.headline("analyses", "answered").theirs == 21
    assert {(row["sample_index"], row["total_samples"]) for row in brought.responses} == {
        (0, 3),
        (1, 3),
        (2, 3),
    }
    assert len(brought.items) == 8
    first = next(row for row in brought.responses if row["prompt"] == "What is 9 + 9?")
    assert (first["prompt_tokens"], first["completion_tokens"], first["cost"]) == (5, 4, 0.001)
    assert first["output"] == {"said": "The answer is 0."}
    assert first["metadata"]["attributes"] == {"mood": "calm"}
    labels = brought.labels_of(first["item_id"])
    assert labels["brevity"]["detailed_results"]["explanation"] == "4 words"
    assert labels["style"]["value"] == "sentence"


def test_an_evaluator_that_failed_gave_none_of_its_labels(tmp_path: Path) -> None:
    brought = bring_one(LOGS / "repeated.json", tmp_path / "out")
    peru = next(row["id"] for row in brought.items.values() if "Peru" in row["data"]["text"])
    assert brought.responses_to(peru)[0]["outcome"] == "ok"
    labels = brought.labels_of(peru)
    assert {label: row["outcome"] for label, row in labels.items()} == dict.fromkeys(
        ["brevity", "style", "right"], "errored"
    )
    assert labels["style"]["error"] == "ValueError: planned failure of an evaluator"
    assert any("report evaluators that failed: 1" in note for note in brought.result.notes)


def test_cases_without_a_name_are_known_by_their_content(tmp_path: Path) -> None:
    content = report("repeated")
    ids = set(bring_one(LOGS / "repeated.json", tmp_path / "out").items)
    assert sum("~" in id for id in ids) == 1  # the ninth of nine plus nine is asked twice
    assert not any(id.startswith("Case") for id in ids)
    last = content["cases"][-3:]
    assert {case["source_case_name"] for case in last} == {"Case 8"}
    content["cases"] = [*last, *content["cases"][:-3]]
    assert set(bring_one(saved(tmp_path, content), tmp_path / "moved").items) == ids


def test_several_assertions_are_one_share(tmp_path: Path) -> None:
    content = report("large")
    for case in content["cases"]:
        case["assertions"]["IsText"] = {
            "name": "IsText",
            "value": True,
            "reason": None,
            "source": {"name": "IsText"},
        }
    headline = bring_one(saved(tmp_path, content), tmp_path / "out").headline(
        "assertions", "share that holds"
    )
    assert headline.theirs == headline.ours == pytest.approx(0.85)


def test_a_folder_has_an_experiment_for_each_report(tmp_path: Path) -> None:
    brought = bring(LOGS, tmp_path / "out")
    assert sorted(each.result.agents[0] for each in brought) == ["large", "mixed", "tiny"]


def test_unknown_fields_are_kept_and_named(tmp_path: Path) -> None:
    content = report("large")
    content["cases"][0]["weather"] = "fine"
    brought = bring_one(saved(tmp_path, content), tmp_path / "out")
    assert brought.responses_to("sum-2-3")[0]["metadata"]["source"]["weather"] == "fine"
    assert any("case.weather (1)" in note for note in brought.result.notes)


def test_secrets_in_settings_do_not_come_in(tmp_path: Path) -> None:
    content = report("large")
    content["experiment_metadata"] = {
        "model": "large",
        "api_key": "sk-hidden",
        "url": "http://me:pass@example.org/",
    }
    brought = bring_one(saved(tmp_path, content), tmp_path / "out")
    assert brought.result.agents == ["large"]
    assert not [
        file for file in (tmp_path / "out").rglob("*.json*") if b"sk-hidden" in file.read_bytes()
    ]
    assert not [
        file for file in (tmp_path / "out").rglob("*.json*") if b"pass@" in file.read_bytes()
    ]


def test_a_torn_report_gives_what_is_whole(tmp_path: Path) -> None:
    text = (LOGS / "large.json").read_text()
    file = saved(tmp_path, text[: text.index("capital-france")])
    brought = bring_one(file, tmp_path / "out")
    assert brought.result.rejected == 1
    assert 0 < len(brought.responses) < 12
    assert any("is not whole" in note for note in brought.result.notes)


@pytest.mark.parametrize("change", [{"cases": [1, None]}, {"failures": ["x"]}])
def test_entries_that_are_not_cases_are_counted(tmp_path: Path, change: dict[str, Any]) -> None:
    content = report("large")
    for name, entries in change.items():
        content[name] += entries
    brought = bring_one(saved(tmp_path, content), tmp_path / "out")
    assert brought.result.rejected == sum(map(len, change.values()))


def test_fields_in_another_order(tmp_path: Path) -> None:
    content = report("large")
    brought = bring_one(saved(tmp_path, dict(reversed(content.items()))), tmp_path / "out")
    assert brought.result.agents == ["large"]
    assert brought.headline("RightAnswer", "assertions").theirs == AVERAGES["large"]["assertions"]


@pytest.mark.parametrize(
    "content",
    [
        {
            "name": "d",
            "cases": [{"name": "a", "inputs": "x", "expected_output": "y", "evaluators": []}],
        },
        {"name": "d", "cases": []},
        {"cases": 3},
        [{"cases": [{"task_duration": 1}]}],
        '{"name": "cut", "cases": [{"task_duration": 1',
        "",
        "\x00\x01",
    ],
)
def test_what_is_not_a_report(tmp_path: Path, content: Any) -> None:
    assert pydantic_evals(saved(tmp_path, content)) == []
    with pytest.raises(UserError, match="nothing that can be imported"):
        bring(tmp_path, tmp_path / "out")


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=6))
def test_shares_are_averaged_over_cases(groups: list[list[bool]]) -> None:
    averages = Averages()
    for number, values in enumerate(groups):
        for value in values:
            row = {"assertions": {"holds": {"value": value}}, "task_duration": 1.0}
            made = Evaluation(
                item_id="1", label="holds", passed=value, detailed_results={"kind": "assertion"}
            )
            averages.add(str(number), row, Response(item_id="1", inference_time=1.0), [made])
    found = {headline.metric: headline.value for headline in averages.headlines()}
    assert found["assertions"] == pytest.approx(
        sum(sum(group) / len(group) for group in groups) / len(groups)
    )
    assert found["average"] == 1.0
