"""deepeval's own test runs, field by field, and its own numbers from our rows."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.experiment.imports.results import import_results
from assay.formats.deepeval.reader import deepeval
from tests.formats import peers
from tests.formats.deepeval.folder import LOGS, Log, edited, log, read, stored


def test_items_have_the_names_that_people_gave() -> None:
    items = stored("large").items()
    assert [(item["id"], item["data"]["input"], item["ground_truth"]) for item in items] == [
        (row["id"], row["question"], row["answer"]) for row in peers.QUESTIONS
    ]


def test_a_number_is_not_a_name(tmp_path: Path) -> None:
    """`test_case_0` is a position: such cases are known by their content."""

    def unnamed(content: Log) -> None:
        for number, case in enumerate(content["testCases"]):
            case["name"] = f"test_case_{number}"

    def turned(content: Log) -> None:
        content["testCases"].reverse()
        unnamed(content)

    ids = {item["id"] for item in edited(tmp_path, "large", unnamed).items()}
    assert len(ids) == 12
    assert {item["id"] for item in edited(tmp_path, "large", turned).items()} == ids


def test_one_name_for_several_questions(tmp_path: Path) -> None:
    """As pytest's parameters make them: the first keeps the name, wherever else its question comes again."""

    def alike(content: Log) -> None:
        for case in content["testCases"]:
            case["name"] = "test_sums"
        content["testCases"] += [dict(content["testCases"][0]), dict(content["testCases"][1])]

    result = edited(tmp_path, "large", alike)
    ids = [row.item_id for row in result.responses()]
    assert ids[0] == ids[12] == "test_sums"
    assert ids[1] == ids[13]
    assert ids[1].startswith("test_sums~")
    assert len(set(ids)) == len(result.items()) == 12
    assert [row.sample_index for row in result.responses()] == [0] * 12 + [1, 1]


def test_every_field_of_an_answer() -> None:
    result = stored("every_field")
    first, second, _ = result.responses()
    assert (first.response, first.cost, first.inference_time) == ("5", 0.0015, 0.25)
    assert (first.prompt_tokens, first.completion_tokens, first.total_tokens) == (7, 1, 8)
    assert first.metadata["retrieved_docs"] == ["2 + 3 = 5", "3 + 2 = 5"]
    assert first.metadata["source"]["comments"] == "looked at by hand"
    assert first.tool_calls == [
        {
            "type": "function",
            "function": {"name": "add", "arguments": {"first": 2, "second": 3}},
            "description": "adds",
            "output": "5",
        }
    ]
    assert (second.tool_calls, first.messages) == ([], None)
    item = result.items()[0]
    assert item["data"] == {"input": "What is 2 + 3?", "context": ["Sums of small numbers."]}
    assert item["metadata"] == {
        "kind": "sum",
        "tags": ["sums", "easy"],
        "expected_tools": [{"name": "add", "type": "FUNCTION"}],
    }
    assert result.foreign.facts["identifier"] == "tools and passages"


def test_metrics() -> None:
    found = {row.label: row for row in stored("every_field").cases[0].evaluations}
    assert list(found) == [
        *(
            "pass",
            "Exact Match",
            "Correct [GEval]",
            "Correct [GEval]_2",
            "Tool Correctness",
            "Faithfulness",
        )
    ]
    correct = found["Correct [GEval]"]
    assert (correct.score, correct.passed, correct.scorer) == (
        0.8,
        True,
        "deepeval.Correct [GEval]",
    )
    assert correct.detailed_results["explanation"] == "It says what was expected."
    assert correct.detailed_results["threshold"] == 0.7
    assert correct.detailed_results["evaluationModel"] == "planned-judge"
    assert found["Correct [GEval]_2"].detailed_results["flaky"] is True
    assert (found["pass"].passed, found["pass"].score, found["pass"].scorer) == (
        False,
        0.0,
        "deepeval",
    )


def test_a_metric_that_failed_has_no_score() -> None:
    """deepeval says `success: false` for it."""
    (failed,) = [
        row for row in log("every_field")["testCases"][0]["metricsData"] if row.get("error")
    ]
    assert failed["success"] is False
    row = stored("every_field").labels("Faithfulness")[0]
    assert (row.outcome, row.passed, row.score, row.error) == (
        "errored",
        None,
        None,
        failed["error"],
    )
    assert row.detailed_results["counted_as_passed"] is False


def test_a_case_without_an_answer_is_an_error() -> None:
    result = stored("large")
    outcomes = {row.item_id: row.outcome for row in result.responses() if row.outcome != "ok"}
    assert outcomes == {"sum-33-9": "errored", "sum-40-2": "errored"}
    assert "2 test cases have no answer" in " ".join(result.foreign.notes())
    assert Counter(row.outcome for row in result.labels("Contains")) == {"scored": 9, "errored": 3}


def test_conversations() -> None:
    result = stored("conversations")
    first, second = result.responses()
    assert result.items()[0]["data"] == {
        "input": "A traveller wants to know a capital.",
        "user_description": "in a hurry",
    }
    assert result.items()[0]["ground_truth"] == "The capital is named."
    assert first.response == "Lima."
    assert [(message["role"], message["content"]) for message in first.messages or ()] == [
        ("user", "What is the capital of France?"),
        ("assistant", "Paris."),
        ("user", "Thanks. And of Peru?"),
    ]
    assert first.tool_calls == [
        {"type": "function", "function": {"name": "look_up", "arguments": {}}}
    ]
    assert first.metadata["retrieved_docs"] == ["Paris is the capital of France."]
    assert (second.outcome, second.response) == ("errored", "")
    assert result.items()[1]["data"] == {"input": "Hello?"}
    assert [row.score for row in result.labels("Helpful [Conversational GEval]")] == [0.8, 0.8]


def test_the_model_is_the_hyperparameter() -> None:
    assert {row.model_name for row in stored("tiny").responses()} == {"tiny"}
    assert {row.model_name for row in stored("conversations").responses()} == {"unnamed"}
    assert "does not name a model" in " ".join(stored("conversations").foreign.notes())


@pytest.mark.parametrize("name", ["large", "tiny", "every_field", "conversations"])
def test_the_numbers_are_deepevals(name: str, tmp_path: Path) -> None:
    (imported,) = import_results(LOGS / f"test_run_{name}.json", tmp_path / "rows")
    content = log(name)
    numbers = {(number.label, number.metric): number for number in imported.headlines}
    assert {number.equal for number in numbers.values()} == {True}
    rate = content["testPassed"] / (content["testPassed"] + content["testFailed"])
    assert numbers["pass", "pass_rate"].ours == rate
    for entry in content["metricsScores"]:
        total = entry["passes"] + entry["fails"] + entry["errors"]
        assert numbers[entry["metric"], "pass_rate"].ours == pytest.approx(entry["passes"] / total)
        if entry["scores"]:
            mean = sum(entry["scores"]) / len(entry["scores"])
            assert numbers[entry["metric"], "mean"].ours == pytest.approx(mean)


def test_what_a_mean_of_theirs_hides(tmp_path: Path) -> None:
    """7 of 12 answers hold the expected text; deepeval's average is over the 9 that could be scored."""
    (imported,) = import_results(LOGS / "test_run_large.json", tmp_path / "rows")
    mean = next(
        number
        for number in imported.headlines
        if (number.label, number.metric) == ("Contains", "mean")
    )
    assert (mean.theirs, mean.with_failures, mean.failed) == (
        pytest.approx(7 / 9),
        pytest.approx(7 / 12),
        3,
    )


def test_where_deepeval_leaves_its_last_run(tmp_path: Path) -> None:
    (tmp_path / ".deepeval").mkdir()
    last = tmp_path / ".deepeval/.latest_run_full.json"
    last.write_text((LOGS / "test_run_large.json").read_text())
    assert (
        read(tmp_path).cases
        == read(tmp_path / ".deepeval").cases
        == read(last).cases
        == stored("large").cases
    )
    (tmp_path / "test_run_1.json").write_text((LOGS / "test_run_tiny.json").read_text())
    assert [foreign.dataset for foreign in deepeval(tmp_path)] == ["test_run_1"]


def test_a_run_inside_of_its_upload(tmp_path: Path) -> None:
    """`.latest_test_run.json` has a link beside the run."""
    file = tmp_path / "latest.json"
    file.write_text(json.dumps({"testRunData": log("large"), "testRunLink": None}))
    assert read(file).cases == stored("large").cases
    assert len(read(file).foreign.headlines()) == 5


def test_a_folder_has_every_run() -> None:
    assert [foreign.dataset for foreign in deepeval(LOGS)] == [
        f"test_run_{name}" for name in ("conversations", "every_field", "large", "tiny")
    ]


def test_unknown_fields_are_kept_and_named(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        content["news"] = [1, 2]
        content["testCases"][0]["mood"] = "good"
        content["testCases"][0]["metricsData"][0]["shape"] = "round"

    result = edited(tmp_path, "large", change)
    assert result.responses()[0].metadata["source"]["mood"] == "good"
    assert result.labels("Contains")[0].detailed_results["shape"] == "round"
    assert result.foreign.facts["source"] == {"news": [1, 2]}
    note = next(note for note in result.foreign.notes() if "not understood" in note)
    assert all(name in note for name in ("news", "mood", "metricsData.shape"))


def test_metadata_of_a_repeated_case(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        case = content["testCases"][0]
        content["testCases"] = [{**case, "metadata": {"try": number}} for number in (1, 2)]

    result = edited(tmp_path, "large", change)
    assert [item["metadata"] for item in result.items()] == [{"try": 1}]
    assert [row.metadata.get("test_case") for row in result.responses()] == [None, {"try": 2}]


def test_no_secret_comes_through(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        content["hyperparameters"]["api_key"] = "sk-secret"
        content["testCases"][0]["trace"] = {
            "llmSpans": [{"headers": {"Authorization": "sk-secret"}}]
        }

    edited(tmp_path, "large", change)
    import_results(tmp_path / "edited.json", tmp_path / "rows")
    for file in (tmp_path / "rows").rglob("*"):
        assert not file.is_file() or b"sk-secret" not in file.read_bytes(), file


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_file_that_ends_in_the_middle(share: float, tmp_path: Path) -> None:
    text = (LOGS / "test_run_large.json").read_text()
    (tmp_path / "torn.json").write_text(text[: int(len(text) * share)])
    result = read(tmp_path / "torn.json")
    assert result.foreign.rejected == 1
    assert "it ends in the middle" in result.foreign.notes()[0]
    assert [item["id"] for item in result.items()] == [
        row["id"] for row in peers.QUESTIONS[: len(result.cases)]
    ]
    assert len(result.cases) >= int(share * 10)


def test_cases_that_are_not_and_cases_that_are_missing(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        content["testCases"][1] = 7
        content["testCases"][2]["metricsData"] = "none"
        content["testCases"].pop()

    result = edited(tmp_path, "large", change)
    assert (len(result.cases), result.foreign.rejected, result.foreign.planned) == (9, 2, 12)
    assert "testCases[1]" in result.foreign.notes()[0]


def test_python_numbers_and_halves_of_characters(tmp_path: Path) -> None:
    """deepeval writes NaN as Python does."""

    def change(content: Log) -> None:
        content["testCases"][0]["metricsData"][0]["score"] = float("nan")
        content["testCases"][1]["actualOutput"] = "half \ud83d"
        content["testCases"][2]["inputTokenCount"] = 10**40

    result = edited(tmp_path, "large", change)
    assert result.labels("Contains")[0].outcome == "skipped"
    assert result.responses()[1].response == "half ?"
    assert result.responses()[2].prompt_tokens is None
    (imported,) = import_results(tmp_path / "edited.json", tmp_path / "rows")
    assert sum(imported.responses.values()) == 12


def test_not_deepevals(tmp_path: Path) -> None:
    for name, text in {
        "a.json": '{"testCases": []}',
        "b.json": '{"testCases": {"name": "x"}, "metricsData": 1}',
        "c.json": "",
        "d.json": "[" * 100_000,
    }.items():
        (tmp_path / name).write_text(text)
        assert deepeval(tmp_path / name) == []
    assert deepeval(tmp_path) == deepeval(tmp_path / "missing") == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = [*log("every_field")["testCases"][0], *log("conversations")["conversationalTestCases"][0]]
OF_METRIC = [*log("every_field")["testCases"][0]["metricsData"][1], "error"]


@given(
    st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), max_size=4),
    st.sampled_from(OF_METRIC),
    VALUES,
)
@settings(max_examples=100, deadline=None)
def test_a_case_with_anything_in_any_field_is_read_or_rejected(
    changes: list[tuple[str, Any]], field: str, value: Any
) -> None:
    def change(content: Log) -> None:
        content["testCases"][0]["metricsData"][0][field] = value
        content["testCases"][1] |= dict(changes)

    with TemporaryDirectory() as folder:
        result = edited(Path(folder), "every_field", change)
        assert len(result.cases) + result.foreign.rejected == 3
        msgspec.json.encode(
            [result.cases, result.foreign.headlines(), result.foreign.facts, result.foreign.notes()]
        )
