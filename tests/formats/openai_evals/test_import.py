"""Logs of OpenAI evals as rows of ours: every kind of event has its place, and the report's numbers are ours."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.engine.experiment.imports.results import Imported, import_results
from assay.foreign import ForeignCase
from assay.formats.openai_evals.reader import EvalsRun, openai_evals
from assay.records import Response

LOGS = Path(__file__).parent / "logs"


def read(path: Path) -> EvalsRun:
    (results,) = openai_evals(path)
    assert isinstance(results, EvalsRun)
    return results


def imported(path: Path, folder: Path) -> Imported:
    (result,) = import_results([path], folder)
    return result


def spec(**more: Any) -> dict[str, Any]:
    run = {
        "completion_fns": ["large"],
        "eval_name": "sums.test.v0",
        "base_eval": "sums",
        "run_id": "r1",
    }
    return {"spec": run | more}


def event(sample: int, kind: str, **data: Any) -> dict[str, Any]:
    when = "2026-11-17 04:56:41.793622+00:00"
    head = {"run_id": "r1", "event_id": 1, "sample_id": f"sums.test.{sample}", "type": kind}
    return {**head, "data": data, "created_by": "", "created_at": when}


def asked(sample: int, text: str = "") -> dict[str, Any]:
    return event(
        sample, "sampling", prompt=text or f"What is {sample} + 1?", sampled=[str(sample + 1)]
    )


def matched(sample: int, correct: bool = True) -> dict[str, Any]:
    return event(sample, "match", correct=correct, expected=str(sample + 1), picked=None)


def write(file: Path, lines: list[Any]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def answers(cases: list[ForeignCase]) -> list[Response]:
    return [case.response for case in cases if case.response is not None]


@pytest.mark.parametrize(
    ("name", "label", "metric", "value"),
    [
        ("match_large", "match", "accuracy", 0.875),
        ("match_tiny", "match", "accuracy", 0.5),
        ("fuzzy", "f1_score", "f1_score", 0.4375),
        ("fuzzy", "accuracy", "accuracy", 0.875),
        ("steps", "score", "score", 0.5),
    ],
)
def test_the_report_is_reproduced(
    name: str, label: str, metric: str, value: float, tmp_path: Path
) -> None:
    result = imported(LOGS / f"{name}.jsonl", tmp_path / "out")
    checks = {(check.label, check.metric): check for check in result.headlines}
    check = checks[label, metric]
    assert (check.theirs, check.equal) == (pytest.approx(value), True)
    tokens = [check for check in result.headlines if check.label == "usage"]
    assert len(tokens) == 3
    assert all(check.equal for check in tokens)
    lines = (LOGS / f"{name}.jsonl").read_text().splitlines()
    report = next(json.loads(line) for line in lines if "final_report" in line)
    assert report["final_report"][metric] == check.theirs


def test_failures_that_the_report_leaves_out_are_shown(tmp_path: Path) -> None:
    result = imported(LOGS / "steps.jsonl", tmp_path / "out")
    (check,) = [check for check in result.headlines if check.metric == "score"]
    assert (check.ours, check.with_failures, check.failed) == (0.5, 0.4375, 1)
    assert result.responses == {"ok": 7, "errored": 1}
    assert result.evaluations["errored"] == 1


def test_what_is_drawn_anew_has_a_reason(tmp_path: Path) -> None:
    result = imported(LOGS / "match_large.jsonl", tmp_path / "out")
    (check,) = [check for check in result.headlines if check.metric == "boostrap_std"]
    assert (check.equal, check.ours) == (None, None)
    assert "random halves" in check.reason


def test_every_field_of_a_sample() -> None:
    cases = [*read(LOGS / "match_large.jsonl").cases()]
    (case,) = [
        case for case in cases if case.item and case.item["data"]["question"] == "What is 21 + 21?"
    ]
    assert case.item is not None
    assert case.item["ground_truth"] == "42"
    assert [message["role"] for message in case.item["data"]["input"]] == ["system", "user"]
    response = case.response
    assert response is not None
    assert (response.response, response.served_model, response.outcome) == (
        "The answer is 42.",
        "large-2026",
        "ok",
    )
    assert (response.prompt_tokens, response.completion_tokens, response.total_tokens) == (5, 4, 9)
    assert response.timestamp == pytest.approx(1794892453.8, abs=5)
    assert response.messages == case.item["data"]["input"]
    assert response.metadata["source"]["sample_id"] == "questions.test.4"
    (row,) = case.evaluations
    assert (row.label, row.score, row.passed, row.scorer) == ("match", 1.0, True, "questions")
    assert (row.detailed_results["picked"], row.detailed_results["expected"]) == (
        "The answer is 42.",
        "42",
    )
    assert row.responses == [response.key]


def test_steps_tools_likelihoods_and_the_rest() -> None:
    responses = answers([*read(LOGS / "steps.jsonl").cases()])
    response = next(each for each in responses if each.outcome == "ok")
    assert response.messages is not None
    assert [message["role"] for message in response.messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert len(response.output["steps"]) == 1
    assert response.output["choices"] == [{"text": " 5", "logprob": -0.25}]
    assert response.tool_calls == [
        {
            "type": "function",
            "function": {"name": "add", "arguments": {"numbers": [1, 2]}},
            "result": 3,
        }
    ]
    assert [one["type"] for one in response.metadata["source"]["events"]] == [
        "pick_option",
        "extra",
    ]
    failed = next(each for each in responses if each.outcome == "errored")
    assert failed.error == "ValueError: planned"
    rows = [row for case in read(LOGS / "steps.jsonl").cases() for row in case.evaluations]
    assert {row.label: row.value for row in rows if row.value is not None} == {"words": {"a": 1}}


def test_a_run_that_was_stopped_is_partial(tmp_path: Path) -> None:
    result = imported(LOGS / "stopped.jsonl", tmp_path / "out")
    assert sum(result.responses.values()) == 2
    assert result.planned == 3
    assert any("stopped" in note for note in result.notes)
    assert not json.loads((tmp_path / "out/manifest.json").read_text())["run"]["complete"]


def test_two_runs_have_the_same_items() -> None:
    first, second = (
        {case.item["id"] for case in read(LOGS / f"match_{name}.jsonl").cases() if case.item}
        for name in ("large", "tiny")
    )
    assert first == second
    assert len(first) == 8


@given(order=st.randoms(use_true_random=False), size=st.integers(1, 12))
def test_events_are_joined_in_any_order(
    order: random.Random, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    events = [
        made for number in range(size) for made in (asked(number), matched(number, number % 2 == 0))
    ]
    lines = [*events, {"final_report": {"accuracy": 1.0}, "run_id": "r1"}]
    order.shuffle(lines)
    results = read(write(tmp_path_factory.mktemp("log") / "x.jsonl", [spec(), *lines]))
    cases = [*results.cases()]
    assert len(cases) == size
    for case in cases:
        assert case.response is not None
        number = int(case.response.metadata["source"]["sample_id"].rpartition(".")[2])
        assert case.response.response == str(number + 1)
        assert [row.passed for row in case.evaluations] == [number % 2 == 0]
    assert results.planned is None


def test_the_same_question_again_is_another_sample(tmp_path: Path) -> None:
    same = [event(number, "sampling", prompt="Why?", sampled=["x"]) for number in range(3)]
    results = read(write(tmp_path / "x.jsonl", [spec(), *same]))
    responses = answers([*results.cases()])
    assert len({each.item_id for each in responses}) == 1
    assert [each.sample_index for each in responses] == [0, 1, 2]
    assert len({each.key for each in responses}) == 3
    assert any("2 samples ask" in note for note in results.notes())


def test_unknown_events_and_fields_are_kept_and_counted(tmp_path: Path) -> None:
    odd = {**event(0, "smell", rose=1), "colour": "red"}
    results = read(write(tmp_path / "x.jsonl", [spec(), asked(0), odd]))
    (response,) = answers([*results.cases()])
    assert response.metadata["source"]["events"] == [{"type": "smell", "rose": 1}]
    assert response.metadata["source"]["fields"] == {"colour": "red"}
    told = " ".join(results.notes())
    assert "smell" in told
    assert "colour" in told


def test_torn_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [spec(), asked(0), matched(0), [1], {"type": "match"}])
    file.write_bytes(file.read_bytes() + b'\xff\xfe\n\n{"run_id": "r1", "sam')
    result = imported(file, tmp_path / "out")
    assert result.responses == {"ok": 1}
    assert result.rejected == 4
    assert any("4 lines" in note for note in result.notes)


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    text = json.dumps(event(0, "metrics", score=float("nan"), other=1.0))
    file = tmp_path / "x.jsonl"
    file.write_text(f"{json.dumps(spec())}\n{json.dumps(asked(0))}\n{text}\n")
    (case,) = read(file).cases()
    assert {row.label: row.score for row in case.evaluations} == {"score": None, "other": 1.0}


def test_secrets_do_not_come_along(tmp_path: Path) -> None:
    settings = {"eval_spec": {"args": {"api_key": "sk-12345"}}, "command": "x"}
    results = read(write(tmp_path / "x.jsonl", [spec(run_config=settings), asked(0)]))
    assert "sk-12345" not in json.dumps(results.facts)


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"spec": {"x": 1}}\n')
    (tmp_path / "b.jsonl").write_text('{"spec": ')
    (tmp_path / "c.jsonl").write_bytes(b"\x00\xff")
    assert openai_evals(tmp_path) == []
    assert openai_evals(tmp_path / "nothing") == []
    assert len(openai_evals(LOGS)) == 5
