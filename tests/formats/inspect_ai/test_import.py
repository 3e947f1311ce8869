"""Logs that inspect_ai made become items, responses, evaluations and spans, with its own numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.foreign import Headline
from assay.formats.inspect_ai.reader import inspect_ai
from tests.formats import peers
from tests.formats.inspect_ai.lab import (
    LOGS,
    cases,
    header,
    imported,
    plain,
    rows,
    sample,
    spec,
    write_eval,
    write_json,
)


def by_id(folder: Path, name: str, id: str) -> list[dict[str, Any]]:
    return [row for row in rows(folder, name) if row["item_id"] == id]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    imported(LOGS / "large.eval", folder / "out")
    return folder / "out"


def test_items_are_the_questions(large: Path) -> None:
    items = {row["id"]: row for row in rows(large, "items.jsonl")}
    assert len(items) == len(peers.QUESTIONS)
    for entry in peers.QUESTIONS:
        item = items[entry["id"]]
        assert item["data"] == {"input": entry["question"]}
        assert item["ground_truth"] == entry["answer"]


def test_every_epoch_is_a_sample(large: Path) -> None:
    responses = rows(large, "responses.jsonl")
    assert len(responses) == 2 * len(peers.QUESTIONS)
    for entry in peers.QUESTIONS:
        own = [row for row in responses if row["item_id"] == entry["id"]]
        assert [row["sample_index"] for row in own] == [0, 1]
        assert {row["total_samples"] for row in own} == {2}
        assert [row["sample_id"] for row in own] == [
            f"{entry['id']}_sample_{number}" for number in range(2)
        ]
    assert len({row["key"] for row in responses}) == len(responses)


def test_a_response_has_what_the_sample_says(large: Path) -> None:
    row = by_id(large, "responses.jsonl", "sum-2-3")[0]
    assert row["response"] == "The answer is 5."
    assert row["outcome"] == "ok"
    assert row["model_name"] == row["task"] == row["metadata"]["model_id"] == "openai/large"
    assert row["served_model"] == "large-2026"
    assert (row["prompt_tokens"], row["completion_tokens"], row["total_tokens"]) == (5, 4, 9)
    assert row["prompt"] == "What is 2 + 3?"
    assert [(each["role"], each["content"]) for each in row["messages"]] == [
        ("user", "What is 2 + 3?")
    ]
    assert row["metadata"]["finish_reason"] == "stop"
    assert row["metadata"]["source"]["uuid"]
    assert row["inference_time"] > 0
    assert row["timestamp"] > 1_790_000_000


def test_failures_are_told_apart(large: Path) -> None:
    outcomes = {
        id: by_id(large, "responses.jsonl", id)[0]["outcome"]
        for id in ("sum-14-6", "sum-33-9", "sum-40-2")
    }
    assert outcomes == {"sum-14-6": "refused", "sum-33-9": "refused", "sum-40-2": "errored"}
    refused = by_id(large, "evaluation_results.jsonl", "sum-14-6")[0]
    assert (refused["outcome"], refused["score"], refused["value"]) == ("scored", 0.0, "I")
    errored = by_id(large, "evaluation_results.jsonl", "sum-40-2")[0]
    assert (errored["outcome"], errored["score"], errored["label"]) == ("errored", None, "includes")
    assert by_id(large, "responses.jsonl", "sum-40-2")[0]["error"].startswith("RetryError")
    empty = by_id(large, "evaluation_results.jsonl", "sum-5-50")[0]
    assert (empty["outcome"], empty["score"], empty["value"]) == ("unparsed", None, "I")
    assert by_id(large, "responses.jsonl", "sum-5-50")[0]["metadata"]["finish_reason"] == "length"


def test_an_evaluation_has_its_reasons(large: Path) -> None:
    row = by_id(large, "evaluation_results.jsonl", "sum-2-3")[0]
    assert (row["label"], row["scorer"], row["score"], row["passed"]) == (
        "includes",
        "includes",
        1.0,
        True,
    )
    assert row["detailed_results"] == {
        "answer": "the answer is 5.",
        "explanation": "The answer is 5.",
    }
    assert row["responses"] == [by_id(large, "responses.jsonl", "sum-2-3")[0]["key"]]


@pytest.mark.parametrize(
    "name", ["large.eval", "tiny.eval", "letters.eval", "limited.json", "tools.eval"]
)
def test_the_numbers_are_those_of_inspect_ai(tmp_path: Path, name: str) -> None:
    result = imported(LOGS / name, tmp_path / "out")
    assert result.headlines
    assert all(headline.equal for headline in result.headlines), result.headlines


def test_both_numbers_are_told_where_failures_are_hidden(tmp_path: Path) -> None:
    result = imported(LOGS / "large.eval", tmp_path / "out")
    (headline,) = result.headlines
    assert headline.theirs == pytest.approx(7 / 11)
    assert headline.theirs_stderr == pytest.approx(0.15212, abs=1e-5)
    assert any("leaves 2 failed samples out" in note and "0.5833" in note for note in result.notes)
    cancelled = imported(LOGS / "cancelled.eval", tmp_path / "cancelled")
    assert (cancelled.headlines[0].ours, cancelled.headlines[0].with_failures) == (1.0, 0.75)


def test_a_dict_is_a_label_for_each_key_and_groups_are_checked(tmp_path: Path) -> None:
    result = imported(LOGS / "tools.eval", tmp_path / "out")
    labels = {
        row["label"]: row for row in by_id(tmp_path / "out", "evaluation_results.jsonl", "picture")
    }
    assert set(labels) == {"two_marks.right", "two_marks.short"}
    assert [labels[name]["part"] for name in sorted(labels)] == [[0, 2], [1, 2]]
    assert len({row["key"] for row in labels.values()}) == 1
    assert labels["two_marks.short"]["passed"] is True
    numbers = {headline.metric: (headline.theirs, headline.where) for headline in result.headlines}
    assert numbers["grouped_image"] == (1.0, {"kind": "image"})
    assert numbers["grouped_all"] == (0.5, {})


def test_tools_images_reasoning_and_cost(tmp_path: Path) -> None:
    imported(LOGS / "tools.eval", tmp_path / "out")
    row = by_id(tmp_path / "out", "responses.jsonl", "picture")[0]
    assert [each["role"] for each in row["messages"]] == ["user", "assistant", "tool"]
    image = row["messages"][0]["content"][1]
    assert image["type"] == "image_url"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    (call,) = row["messages"][1]["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": {"first": 2, "second": 3}}
    assert row["cost"] == pytest.approx(0.002)
    assert row["total_tokens"] == 53
    (item,) = (row for row in rows(tmp_path / "out", "items.jsonl") if row["id"] == "picture")
    assert item["data"]["input"] == "Add the numbers of this picture: 2 and 3."
    assert item["metadata"] == {"kind": "image"}


def test_choices_are_part_of_the_item(tmp_path: Path) -> None:
    result = imported(LOGS / "letters.eval", tmp_path / "out")
    items = rows(tmp_path / "out", "items.jsonl")
    assert [item["id"] for item in items] == ["1", "2", "word"]
    assert items[0]["data"]["choices"] == ["Lima", "Oslo", "Paris"]
    assert result.evaluations == {"scored": 2, "unparsed": 1}


def test_limits_are_noted(tmp_path: Path) -> None:
    result = imported(LOGS / "limited.json", tmp_path / "out")
    assert any("6 samples reached a limit" in note for note in result.notes)
    limit = rows(tmp_path / "out", "responses.jsonl")[0]["metadata"]["source"]["limit"]
    assert limit["type"] == "token"
    assert result.headlines[0].equal


@pytest.mark.parametrize(
    ("name", "planned", "present", "note"),
    [
        ("failed.eval", 12, 10, "the run failed: RetryError"),
        ("killed.eval", 6, 3, "the run had not ended"),
        ("cancelled.eval", 6, 4, "the run was cancelled"),
    ],
)
def test_a_run_that_did_not_end_is_partial(
    tmp_path: Path, name: str, planned: int, present: int, note: str
) -> None:
    result = imported(LOGS / name, tmp_path / "out")
    assert (result.planned, sum(result.responses.values())) == (planned, present)
    assert any(each.startswith(note) for each in result.notes), result.notes
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert "run" in json.dumps(manifest)


def test_json_and_archive_give_the_same_rows(tmp_path: Path) -> None:
    several = [sample("a"), sample("b", value="I", error_retries=[{"message": "once"}])]
    archive = plain(cases(write_eval(tmp_path / "log.eval", header(), several)))
    for indent in (None, 2):
        assert plain(cases(write_json(tmp_path / "log.json", header(), several, indent))) == archive


def test_older_spellings_are_understood(tmp_path: Path) -> None:
    old = sample()
    del old["scores"]
    old["score"] = {"value": 0.5}
    scores = [{"name": "f1", "scorer": "f1", "metrics": {"mean": {"name": "mean", "value": 0.5}}}]
    (case,) = cases(write_eval(tmp_path / "log.eval", header(results={"scores": scores}), [old]))
    assert [(row.label, row.score, row.passed) for row in case.evaluations] == [("f1", 0.5, None)]


def test_ids_that_look_alike_stay_apart(tmp_path: Path) -> None:
    about = spec(dataset={"samples": 2, "sample_ids": [1, "1"]}, config={"epochs": 2})
    several = [sample(id, epoch, input=f"Say {id!r}.") for epoch in (1, 2) for id in (1, "1")]
    path = write_eval(tmp_path / "log.eval", header(eval=about), several)
    result = imported(path, tmp_path / "out")
    assert sorted(row["id"] for row in rows(tmp_path / "out", "items.jsonl")) == ["1", "1~number"]
    assert len(by_id(tmp_path / "out", "responses.jsonl", "1~number")) == 2
    assert result.planned == 4


def test_shards_are_read_without_their_merged_log_only(tmp_path: Path) -> None:
    for number in (0, 1):
        folder = tmp_path / f"run.shards/{number}"
        folder.mkdir(parents=True)
        write_eval(folder / "part.eval", header(), [sample(f"s{number}")])
    assert [case.response.item_id for case in cases(tmp_path) if case.response] == ["s0", "s1"]
    write_eval(tmp_path / "run.eval", header(), [sample("merged")])
    assert [case.response.item_id for case in cases(tmp_path) if case.response] == ["merged"]
    write_eval(tmp_path / "run-recovered.eval", header(), [sample("recovered")])
    assert [case.response.item_id for case in cases(tmp_path) if case.response] == ["recovered"]


def numbers(path: Path) -> dict[str, Headline]:
    (log,) = inspect_ai(path)
    list(log.cases())
    return {headline.metric: headline for headline in log.headlines()}


@pytest.mark.parametrize(
    ("reducer", "reduce"),
    [("mean", "mean"), ("median", "median"), ("mode", "mode"), ("max", "max"), (None, "mean")],
)
def test_reducers(tmp_path: Path, reducer: str | None, reduce: str) -> None:
    about = spec(config={"epochs": 3})
    several = [
        sample(id, epoch, value)
        for id, values in (("a", "CIC"), ("b", "III"))
        for epoch, value in enumerate(values, 1)
    ]
    value = {"mean": 1 / 3, "median": 0.5, "mode": 0.5, "max": 0.5}[reduce]
    metrics = {"accuracy": {"name": "accuracy", "value": value, "params": {}}}
    scores = [{"name": "match", "scorer": "match", "reducer": reducer, "metrics": metrics}]
    path = write_eval(
        tmp_path / "log.eval", header(eval=about, results={"scores": scores}), several
    )
    result = imported(path, tmp_path / "out")
    assert result.headlines[0].equal, result.headlines
    assert numbers(path)["accuracy"].reduce == reduce


def test_numbers_that_are_not_means(tmp_path: Path) -> None:
    several = [sample(str(number), value=value) for number, value in enumerate([1.0, 2.0, 4.0])]
    values = {"mean": 7 / 3, "std": 1.527525, "var": 2.333333, "bootstrap_stderr": 0.7}
    metrics = {name: {"name": name, "value": value, "params": {}} for name, value in values.items()}
    scores = [{"name": "match", "scorer": "match", "metrics": metrics}]
    scores.append(
        {
            "name": "match",
            "scorer": "match",
            "reducer": "pass_at_2",
            "metrics": {"mean": {"value": 1.0}},
        }
    )
    made = numbers(write_eval(tmp_path / "log.eval", header(results={"scores": scores}), several))
    assert made["std"].ours == pytest.approx(values["std"], abs=1e-5)
    assert made["var"].ours == pytest.approx(values["var"], abs=1e-5)
    assert made["bootstrap_stderr"].reason
    assert made["mean (pass_at_2)"].reason


def test_a_text_that_is_not_a_mark_is_named(tmp_path: Path) -> None:
    score = {
        "name": "match",
        "scorer": "match",
        "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}},
    }
    rows = [sample("a"), sample("b", value="about right")]
    write_json(tmp_path / "log.json", header(results={"scores": [score]}), rows)
    result = imported(tmp_path / "log.json", tmp_path / "out")
    told = "match: texts that are not marks, which inspect_ai counts as 0 and which have no score here: 1"
    assert told in result.notes
