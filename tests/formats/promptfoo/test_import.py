"""promptfoo's own logs, field by field, and its own numbers from our rows."""

import json
import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.experiment.imports.results import import_results
from assay.errors import UserError
from assay.formats.promptfoo.reader import promptfoo
from assay.formats.promptfoo.shapes import Assertion, Component, labels_of_results, planned_labels
from tests.formats import peers
from tests.formats.promptfoo.folder import LOGS, Log, edited, log, read, rows


def test_items_are_the_questions() -> None:
    items = read(LOGS / "twelve.json").items()
    assert [item["data"]["question"] for item in items] == [
        row["question"] for row in peers.QUESTIONS
    ]
    assert [item["ground_truth"] for item in items] == [row["answer"] for row in peers.QUESTIONS]
    assert len({item["id"] for item in items}) == 12
    assert all("description" not in item["metadata"] for item in items)  # "Row #1" is a position


def test_the_same_content_has_the_same_id_wherever_it_stands(tmp_path: Path) -> None:
    ids = {item["data"]["question"]: item["id"] for item in read(LOGS / "twelve.json").items()}

    def turn(content: Log) -> None:
        rows(content).reverse()
        for number, row in enumerate(rows(content)):
            row["testIdx"] = number
            row["testCase"]["description"] = f"Row #{number}"

    turned = edited(tmp_path, "twelve.json", turn)
    assert {item["data"]["question"]: item["id"] for item in turned.items()} == ids
    repeats = read(LOGS / "repeats.json")
    assert {item["id"] for item in repeats.items()} < set(ids.values())


def test_responses() -> None:
    result = read(LOGS / "twelve.json")
    theirs = {
        (row["vars"]["question"], row["provider"]["label"]): row for row in rows(log("twelve.json"))
    }
    questions = {item["id"]: item["data"]["question"] for item in result.items()}
    assert len(result.responses()) == len(theirs) == 24
    for row in result.responses():
        their = theirs[questions[row.item_id], row.model_name]
        reply = their["response"]
        assert row.prompt == their["prompt"]["raw"] == questions[row.item_id]
        assert row.response == reply.get("output", "")
        assert row.metadata["model_id"] == their["provider"]["id"]
        assert row.metadata["prompt_template"] == "plain"
        assert row.task == f"{row.model_name}/plain"
        assert row.metadata["finish_reason"] == reply.get("finishReason")
        assert row.total_tokens == their["tokenUsage"]["total"]
        assert row.prompt_tokens == their["tokenUsage"]["prompt"]
        assert row.completion_tokens == their["tokenUsage"]["completion"]
        assert row.inference_time == (reply.get("latencyMs") or their["latencyMs"]) / 1000
        assert row.metadata["source"]["id"] == their["id"]
        assert (
            row.metadata["source"]["metadata"]["http"]["status"]
            == reply["metadata"]["http"]["status"]
        )
        assert row.timestamp == pytest.approx(1794890894, abs=10**6)
        assert row.cost is None  # 0: promptfoo does not know the price


def test_outcomes() -> None:
    """A refusal, an answer that is an HTTP 400, one that was cut off before it began, an HTTP 500."""
    result = read(LOGS / "twelve.json")
    questions = {item["id"]: item["data"]["question"] for item in result.items()}
    large = {
        questions[row.item_id][8:-1]: row for row in result.responses() if row.model_name == "large"
    }
    assert Counter(row.outcome for row in large.values()) == {"ok": 9, "refused": 2, "errored": 1}
    refused, cut_off = large[peers.REFUSED], large[peers.CUT_OFF]
    rejected, broken = large[peers.REJECTED], large[peers.BROKEN]
    assert (refused.outcome, refused.response, refused.error) == (
        "refused",
        "I cannot help with that.",
        None,
    )
    assert (cut_off.outcome, cut_off.response, cut_off.metadata["finish_reason"]) == (
        "ok",
        "",
        "length",
    )
    assert rejected.outcome == "refused"
    assert rejected.error is not None
    assert rejected.error.startswith("API error: 400")
    assert (broken.outcome, broken.error_kind, broken.response) == ("errored", "transient", "")
    assert broken.error is not None
    assert "planned failure" in broken.error
    notes = " ".join(result.foreign.notes())
    assert "2 requests were rejected" in notes
    assert "2 answers have no text" in notes


def test_only_failure_reason_two_is_an_error() -> None:
    """`error` has a text for failed assertions, too."""
    failed = [
        row for row in rows(log("twelve.json")) if row.get("error") and row["failureReason"] == 1
    ]
    assert failed
    result = read(LOGS / "twelve.json")
    kept = {row.metadata["source"]["id"]: row.outcome for row in result.responses()}
    assert {kept[row["id"]] for row in failed} == {"ok", "refused"}


def test_every_answer_has_every_label() -> None:
    """An answer that failed has the labels that it was planned to get: it is missing in no mean."""
    result = read(LOGS / "twelve.json")
    for label in ("pass", "score", "contains", "short"):
        assert len(result.labels(label)) == 24
    outcomes = Counter(
        (row.label, row.outcome) for case in result.cases for row in case.evaluations
    )
    assert outcomes[("pass", "errored")] == 2
    # no text is no answer to score
    assert outcomes[("contains", "errored")] == outcomes[("short", "errored")] == 4
    for case in result.cases:
        assert case.response is not None
        assert {row.responses[0] for row in case.evaluations} == {case.response.key}
    keys = [row.key for case in result.cases for row in case.evaluations]
    assert len(set(keys)) == len(keys)


def test_assertions() -> None:
    result = read(LOGS / "every_field.json")
    case = result.cases[0]
    found = {row.label: row for row in case.evaluations}
    assert list(found) == [
        *(
            "pass",
            "score",
            "contains",
            "length",
            "javascript",
            "not-contains",
            "either",
            "icontains",
            "icontains_2",
        ),
        *("judged", "human", "tone"),
    ]
    contains, length = found["contains"], found["length"]
    assert (contains.passed, contains.score, contains.scorer) == (True, 1.0, "promptfoo.contains")
    assert contains.detailed_results == {
        "explanation": "Assertion passed",
        "assertion": {"type": "contains", "value": "{{answer}}", "weight": 3},
        "grading": {"renderedAssertionValue": "5"},
    }
    assert (length.passed, length.score) == (True, 0.5)
    assert length.detailed_results["assertion"]["threshold"] == 0.4
    # a set, of which one failed
    assert (found["either"].passed, found["either"].score) == (True, 0.5)
    assert found["icontains_2"].passed is False
    assert (found["tone"].passed, found["tone"].score) == (None, 1.0)  # two assertions, one name
    assert found["tone"].detailed_results == {"weight": 3.0}


def test_a_grader_that_failed_gives_no_score() -> None:
    result = read(LOGS / "every_field.json")
    judged = result.labels("judged")
    assert len(judged) == 12
    assert {row.outcome for row in judged} == {"errored"}
    assert {row.score for row in judged} == {None}
    assert judged[0].detailed_results["counted_as"] == 0.0
    assert "6 assertions have no score because their grader failed" in " ".join(
        result.foreign.notes()
    )


def test_a_person_decides() -> None:
    result = read(LOGS / "every_field.json")
    (human,) = result.labels("human")
    assert (human.passed, human.score, human.scorer) == (True, 1.0, "promptfoo.human")
    verdict = result.labels("pass")[0]
    assert (verdict.passed, verdict.score) == (True, 1.0)
    assert result.labels("score")[0].score == 1.0
    assert verdict.detailed_results == {"explanation": "looked at", "comment": "fine for me"}
    assert "1 ratings by people" in " ".join(result.foreign.notes())


def test_a_number_from_before_a_rating_is_explained(tmp_path: Path) -> None:
    """promptfoo adds a rating to its sum only if it turns the verdict."""
    (imported,) = import_results(LOGS / "every_field.json", tmp_path / "rows")
    (stale,) = [number for number in imported.headlines if number.equal is False]
    assert stale.where == {"model_name": "openai:large", "prompt_template": "plain"}
    scores = [row["score"] for row in rows(log("every_field.json")) if row["promptIdx"] == 0]
    assert stale.ours == pytest.approx(sum(scores) / len(scores))
    assert "before people rated" in stale.reason


def test_prompts_and_providers() -> None:
    result = read(LOGS / "every_field.json")
    assert Counter(
        (row.model_name, row.metadata["prompt_template"]) for row in result.responses()
    ) == {
        ("openai:large", "plain"): 4,
        ("openai:large", "chat"): 4,
        ("careful", "chat"): 4,
    }
    chat = next(row for row in result.responses() if row.metadata["prompt_template"] == "chat")
    assert chat.messages == [
        {"role": "system", "content": "Answer in one sentence."},
        {"role": "user", "content": "What is 2 + 3?"},
    ]
    first = result.items()[0]
    assert first["metadata"] == {"kind": "sum", "description": "a sum"}
    facts = result.foreign.facts
    assert facts["agents"] == ["careful", "openai:large"]
    assert facts["prompts"][0]["template"] == "{{question}}"
    assert facts["config"]["providers"][1]["config"]["temperature"] == 0
    assert facts["metadata"]["promptfooVersion"] == "0.121.20"


def test_stored_answers() -> None:
    cached = [
        row for row in read(LOGS / "every_field.json").responses() if row.metadata.get("cached")
    ]
    assert cached
    assert {(row.prompt_tokens, row.completion_tokens) for row in cached} == {(None, None)}
    assert all(row.total_tokens for row in cached)


def test_repeats_are_samples() -> None:
    result = read(LOGS / "repeats.json")
    assert [(row.sample_index, row.total_samples) for row in result.responses()] == [
        (0, 3),
        (1, 3),
        (2, 3),
    ] * 2
    assert len(result.items()) == 2
    assert [row.sample_id for row in result.responses()][:2] == [
        f"{result.items()[0]['id']}_sample_{number}" for number in (0, 1)
    ]


@pytest.mark.parametrize("name", ["twelve.json", "every_field.json", "repeats.json"])
def test_the_numbers_are_promptfoos(name: str, tmp_path: Path) -> None:
    (imported,) = import_results(LOGS / name, tmp_path / "rows")
    stats = log(name)["results"]["stats"]
    first = imported.headlines[0]
    tests = stats["successes"] + stats["failures"] + stats["errors"]
    assert first.theirs == stats["successes"] / tests
    assert first.failed == stats["errors"]
    computed = [number for number in imported.headlines if not number.reason]
    assert {number.equal for number in computed} == {True}
    for prompt in log(name)["results"]["prompts"]:
        where = {"model_name": prompt["provider"], "prompt_template": prompt["label"]}
        named = {
            number.label: number.ours
            for number in computed
            if number.where == where and number.label not in ("pass", "score")
        }
        weights = prompt["metrics"]["namedScoreWeights"]
        assert named == {
            metric: pytest.approx(prompt["metrics"]["namedScores"][metric] / weight)
            for metric, weight in weights.items()
        }


def test_what_a_mean_of_theirs_hides(tmp_path: Path) -> None:
    (imported,) = import_results(LOGS / "twelve.json", tmp_path / "rows")
    short = next(number for number in imported.headlines if number.label == "short")
    assert (short.theirs, short.ours, short.with_failures, short.failed) == (0.9, 0.9, 0.75, 2)


def test_a_derived_metric_is_shown_without_a_check(tmp_path: Path) -> None:
    (imported,) = import_results(LOGS / "every_field.json", tmp_path / "rows")
    double = next(number for number in imported.headlines if number.label == "double")
    assert (double.theirs, double.ours, double.equal) == (9.0625, None, None)
    assert double.reason == "promptfoo made it of other metrics"


def test_lines_have_the_same_rows() -> None:
    whole, lines = read(LOGS / "twelve.json"), read(LOGS / "twelve.jsonl")
    assert [row.key for row in whole.responses()] == [row.key for row in lines.responses()]
    assert whole.items() == lines.items()
    assert [row.score for row in whole.labels("score")] == [
        row.score for row in lines.labels("score")
    ]
    assert lines.foreign.headlines() == []
    assert lines.responses()[0].timestamp == 0.0


def test_a_folder_has_each_evaluation_once() -> None:
    """promptfoo writes both files at once: the one that has the header is read."""
    assert [foreign.dataset for foreign in promptfoo(LOGS)] == ["every_field", "repeats", "twelve"]


def test_lines_of_another_evaluation_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text((LOGS / "repeats.json").read_text())
    (tmp_path / "b.jsonl").write_text((LOGS / "twelve.jsonl").read_text())
    assert [foreign.dataset for foreign in promptfoo(tmp_path)] == ["a", "b"]


def test_as_promptfoo_prints_it(tmp_path: Path) -> None:
    plain, pretty = (
        read(LOGS / "twelve.json"),
        edited(tmp_path, "twelve.json", lambda content: None, indent=2),
    )
    assert plain.cases == pretty.cases


def test_a_provider_twice(tmp_path: Path) -> None:
    def alike(content: Log) -> None:
        for prompt in content["results"]["prompts"]:
            prompt["provider"] = "same"
        for row in rows(content):
            row["provider"] = {"id": "same", "label": ""}

    result = edited(tmp_path, "twelve.json", alike)
    assert Counter(row.model_name for row in result.responses()) == {"same": 12, "same#2": 12}
    assert {row.sample_index for row in result.responses()} == {0}


def test_cost_calls_and_values(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}

    def change(content: Log) -> None:
        first, second, third = rows(content)[:3]
        first["response"] |= {"cost": 0.25, "output": {"sum": 5}, "logProbs": [-0.1]}
        second["response"]["output"] = [call]
        third["response"]["output"] = {"content": "let me see", "tool_calls": [call]}
        third["cost"] = 0.5

    first, second, third = edited(tmp_path, "twelve.json", change).responses()[:3]
    assert (first.cost, first.output, first.response, first.logprobs) == (
        0.25,
        {"sum": 5},
        '{"sum":5}',
        [-0.1],
    )
    assert (second.tool_calls, second.response) == ([call], "")
    assert (third.tool_calls, third.response, third.cost) == ([call], "let me see", 0.5)


def test_a_test_without_variables(tmp_path: Path) -> None:
    def bare(content: Log) -> None:
        for row in rows(content):
            row["vars"] = row["testCase"]["vars"] = {}

    result = edited(tmp_path, "every_field.json", bare)
    assert [item["data"]["prompt"][:5] for item in result.items()] == [
        "{{que",
        '[{"ro',
        "{{que",
        '[{"ro',
    ]


def test_a_question_gets_a_usual_name_and_a_truth(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        row = rows(content)[0]
        row["vars"] = row["testCase"]["vars"] = {"city": "Lima"}
        row["testCase"]["assert"] = [{"type": "latency"}, {"type": "icontains", "value": "Peru"}]

    item = edited(tmp_path, "twelve.json", change).items()[0]
    assert item["data"] == {"city": "Lima", "question": "Lima"}
    assert item["ground_truth"] == "Peru"


def test_unknown_fields_are_kept_and_named(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        content["news"] = {"a": 1}
        rows(content)[0]["mood"] = "good"
        rows(content)[0]["response"]["colour"] = "red"
        rows(content)[0]["gradingResult"]["componentResults"][0]["shape"] = "round"

    result = edited(tmp_path, "twelve.json", change)
    source = result.responses()[0].metadata["source"]
    assert (source["mood"], source["colour"]) == ("good", "red")
    assert result.labels("contains")[0].detailed_results["source"] == {"shape": "round"}
    assert result.foreign.facts["source"] == {"news": {"a": 1}}
    note = next(note for note in result.foreign.notes() if "not understood" in note)
    assert all(
        name in note for name in ("news", "mood", "response.colour", "componentResults.shape")
    )


def test_no_secret_comes_through(tmp_path: Path) -> None:
    """promptfoo leaves the key of a grader as it is in the results of its assertions."""

    def change(content: Log) -> None:
        content["config"]["env"] = {"OPENAI_API_KEY": "sk-secret"}
        content["config"]["providers"][0]["config"]["apiKey"] = "sk-secret"
        row = rows(content)[0]
        row["response"]["metadata"]["http"]["headers"]["set-cookie"] = "sk-secret"
        row["response"]["metadata"]["http"]["url"] = "http://me:sk-secret@host/v1?api_key=sk-secret"
        grader = {"id": "openai:chat:large", "config": {"apiKey": "sk-secret"}}
        row["gradingResult"]["componentResults"][0]["assertion"]["provider"] = grader

    result = edited(tmp_path, "twelve.json", change)
    import_results(tmp_path / "edited.json", tmp_path / "rows")
    assert (
        result.labels("contains")[0].detailed_results["assertion"]["provider"]["id"]
        == "openai:chat:large"
    )
    for file in (tmp_path / "rows").rglob("*"):
        assert not file.is_file() or b"sk-secret" not in file.read_bytes(), file


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    content = log("repeats.json")
    content["results"]["version"] = 4
    (tmp_path / "new.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="of version 4, which this Assay does not know"):
        promptfoo(tmp_path / "new.json")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.999])
def test_a_file_that_ends_in_the_middle(share: float, tmp_path: Path) -> None:
    text = (LOGS / "twelve.json").read_text()
    (tmp_path / "torn.json").write_text(text[: int(len(text) * share)])
    result = read(tmp_path / "torn.json")
    assert result.foreign.rejected == 1
    assert "it ends in the middle" in result.foreign.notes()[0]
    whole = read(LOGS / "twelve.json").cases
    assert [case.response.key for case in result.cases if case.response] == [
        case.response.key for case in whole[: len(result.cases)] if case.response
    ]
    assert len(result.cases) >= int(share * 20)


def test_lines_that_are_not_rows(tmp_path: Path) -> None:
    lines = (LOGS / "twelve.jsonl").read_text().splitlines()
    lines[3] = lines[3][:100]
    lines[5] = json.dumps({**json.loads(lines[5]), "success": "maybe"})
    lines[7] = "[1]"
    (tmp_path / "torn.jsonl").write_text("\n\n".join(lines))
    result = read(tmp_path / "torn.jsonl")
    assert (len(result.cases), result.foreign.rejected) == (21, 3)
    assert "torn.jsonl:7: " in result.foreign.notes()[0]


def test_rows_that_are_missing_were_planned(tmp_path: Path) -> None:
    result = edited(tmp_path, "twelve.json", lambda content: rows(content).pop())
    assert (result.foreign.planned, len(result.cases)) == (24, 23)
    (imported,) = import_results(tmp_path / "edited.json", tmp_path / "rows")
    assert imported.planned == 24


def test_odd_texts_and_numbers(tmp_path: Path) -> None:
    def change(content: Log) -> None:
        rows(content)[0]["response"]["output"] = "half \ud83d of a character"
        rows(content)[1]["tokenUsage"]["total"] = 10**40
        rows(content)[1]["response"]["tokenUsage"]["total"] = 10**40
        rows(content)[2]["score"] = math.inf

    result = edited(tmp_path, "twelve.json", change)
    assert result.foreign.rejected == 0
    assert result.responses()[0].response == "half ? of a character"
    assert result.responses()[1].total_tokens is None
    (imported,) = import_results(tmp_path / "edited.json", tmp_path / "rows")
    assert sum(imported.responses.values()) == 24


def test_not_promptfoos(tmp_path: Path) -> None:
    for name, text in {
        "a.json": '{"results": {"version": 3}}',
        "b.json": '{"results": []}',
        "c.jsonl": '{"promptIdx": 0}\n',
        "d.jsonl": '{"testCase": {}, "promptIdx": ',
        "e.json": "",
        "f.json": "[" * 100_000,
    }.items():
        (tmp_path / name).write_text(text)
        assert promptfoo(tmp_path / name) == []
    assert promptfoo(tmp_path) == promptfoo(tmp_path / "missing") == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = sorted(rows(log("every_field.json"))[0])
INNER = [
    (part, field)
    for part in ("response", "testCase", "gradingResult")
    for field in rows(log("every_field.json"))[0][part]
]


@given(
    st.lists(
        st.tuples(st.sampled_from([*((name, "") for name in FIELDS), *INNER]), VALUES), max_size=4
    )
)
@settings(max_examples=100, deadline=None)
def test_a_row_with_anything_in_any_field_is_read_or_rejected(
    changes: list[tuple[tuple[str, str], Any]],
) -> None:
    with TemporaryDirectory() as folder:

        def change(content: Log) -> None:
            del rows(content)[2:]
            row = rows(content)[0]
            for (name, field), value in changes:
                if field and isinstance(row[name], dict):
                    row[name][field] = value
                else:
                    row[name] = value

        result = edited(Path(folder), "every_field.json", change)
        assert len(result.cases) + result.foreign.rejected == 2
        msgspec.json.encode(
            [result.cases, result.foreign.headlines(), result.foreign.facts, result.foreign.notes()]
        )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["contains", "javascript", "pass", "score"]),
            st.none() | st.sampled_from("abc"),
        ),
        max_size=6,
    )
)
def test_a_failed_answer_has_the_labels_of_a_scored_one(
    kinds: list[tuple[str, str | None]],
) -> None:
    asserts = [Assertion(kind, metric) for kind, metric in kinds]
    scored = labels_of_results([Component(assertion=entry) for entry in asserts], {})
    foreseen = planned_labels(asserts, {})
    assert foreseen[: len(scored)] == scored
    labels = [entry.label for entry in foreseen]
    assert len(set(labels)) == len(labels)
    assert not {"pass", "score"} & set(labels)
    assert {metric for _, metric in kinds if metric} <= set(labels)
