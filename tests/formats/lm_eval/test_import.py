"""What lm-eval wrote, as rows of ours: everything lands, and its numbers are ours."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.lm_eval.reader import lm_eval
from assay.formats.lm_eval.scorer import results as scored_by_us
from assay.records import Item
from tests.formats.lm_eval.logged import (
    LATER,
    LOGS,
    STAMP,
    by_name,
    copied,
    imported,
    item_of,
    read,
    report,
    rows,
    sample,
    write,
)

NAMES = ["plain/large", "plain/tiny", "chat/large", "likely/fake", "dummy"]


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions of the tasks that the logs are of."""
    monkeypatch.setenv("ASSAY_TASKS", str(LOGS / "tasks"))
    monkeypatch.chdir(LOGS)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_the_harness_own(name: str, tmp_path: Path) -> None:
    result = imported(LOGS / name, tmp_path / "out")
    (file,) = (LOGS / name).rglob("results_*.json")
    reported = json.loads(file.read_text())["results"]
    numbers = {
        (task, key): value
        for task, entry in reported.items()
        for key, value in entry.items()
        if "," in key and "_stderr" not in key
    }
    assert len(result.headlines) == len(numbers) > 0
    for check in result.headlines:
        assert check.equal is True, check
    theirs = {check.theirs for check in result.headlines}
    assert theirs == {*numbers.values()}
    assert not result.rejected
    assert result.planned == sum(result.responses.values())


def test_standard_errors_of_means_are_computed_again(tmp_path: Path) -> None:
    checks = by_name(imported(LOGS / "plain/large", tmp_path / "out"))
    check = checks["questions", "exact_match,last-word"]
    assert (check.theirs, check.theirs_stderr) == (0.7, 0.15275252316519466)
    assert check.ours_stderr == pytest.approx(check.theirs_stderr)
    assert (check.items, check.failed) == (10, 2)


def test_the_first_filter_brings_the_answer_and_all_bring_values() -> None:
    cases = list(read(LOGS / "plain/large").cases())
    assert len(cases) == 20  # two filters
    assert [case.response is not None for case in cases] == [True] * 10 + [False] * 10
    answered = {case.response.item_id: case.response.key for case in cases if case.response}
    assert len({*answered.values()}) == 10
    for case in cases:
        (row,) = case.evaluations
        assert row.responses == [answered[row.item_id]]
    assert {row.label for case in cases for row in case.evaluations} == {
        "exact_match,last-word",
        "exact_match,number",
    }
    keys = [(row.key, row.part) for case in cases for row in case.evaluations]
    assert len({*keys}) == 20


def test_every_field_of_an_item_and_its_answer() -> None:
    case = next(read(LOGS / "plain/large").cases())
    item = item_of(case)
    assert (item["id"], item["ground_truth"]) == ("questions/0", "5")
    assert item["data"]["doc"] == {
        "id": "sum-2-3",
        "question": "What is 2 + 3?",
        "answer": "5",
        "wrong": "0",
    }
    assert item["data"]["question"] == "What is 2 + 3?"
    (request,) = item["data"]["requests"]
    assert request["messages"] == [{"role": "user", "content": "What is 2 + 3?", "delimiter": ""}]
    assert request["params"] == {"max_tokens": 32, "temperature": 0, "stop": ["\n"], "seed": 1234}
    assert item["metadata"]["benchmark"] == item["metadata"]["task"] == "questions"
    response = case.response
    assert response is not None
    assert (response.model_name, response.task, response.outcome) == (
        "large",
        "large/benchmark",
        "ok",
    )
    assert (response.prompt, response.response) == ("What is 2 + 3?", "The answer is 5.")
    assert response.timestamp > 1.7e9
    assert sorted(response.metadata["source"]) == ["doc_hash", "prompt_hash", "target_hash"]
    (row,) = case.evaluations
    assert (row.score, row.passed, row.detailed_results) == (1.0, True, {"filtered": "5"})


def test_what_a_filter_does_not_find_is_unparsed() -> None:
    rows = [row for case in read(LOGS / "plain/large").cases() for row in case.evaluations]
    unparsed = [row for row in rows if row.outcome == "unparsed"]
    assert len(unparsed) == 6
    assert {row.detailed_results["filtered"] for row in unparsed} == {"[invalid]"}
    results = read(LOGS / "plain/large")
    [*results.cases()]
    assert any("2 answers are empty" in note for note in results.notes())


def test_repeats_of_a_chat_are_the_answers_of_one_document() -> None:
    cases = list(read(LOGS / "chat").cases())
    assert len(cases) == 10
    response, item = cases[0].response, item_of(cases[0])
    assert response is not None
    assert response.output == {"answers": ["The answer is 5."] * 3}
    assert item["data"]["requests"][0]["repeats"] == 3
    assert item["data"]["requests"][0]["messages"][0]["content"] == "What is 2 + 3?"


def test_likelihoods_are_numbers_again() -> None:
    cases = {case.response.item_id: case for case in read(LOGS / "likely").cases() if case.response}
    choice, text = cases["right_or_wrong/0"], cases["texts/0"]
    assert choice.response is not None
    assert text.response is not None
    output = choice.response.output
    assert [(entry["text"], entry["greedy"]) for entry in output["choices"]] == [
        (" 0", True),
        (" 5", False),
    ]
    assert all(isinstance(entry["logprob"], float) for entry in output["choices"])
    best = max(output["choices"], key=lambda entry: entry["logprob"])
    assert choice.response.response == best["text"]
    item = item_of(choice)
    assert (item["ground_truth"], item["data"]["choices"]) == (1, ["0", "5"])
    assert item["data"]["question"] == "What is 2 + 3?"
    assert item["data"]["requests"][0]["continuations"] == [" 0", " 5"]
    assert item_of(text)["data"]["requests"] == [
        {"messages": [], "continuations": ["What is 2 + 3? 5"], "rolling": True}
    ]
    values = {row.label: row.value for row in text.evaluations}
    assert values["word_perplexity"][1] == 6
    assert all(row.score is None for row in text.evaluations)


@pytest.mark.parametrize("name", NAMES)
def test_our_scorer_gives_the_same_values_to_the_imported_rows(name: str) -> None:
    """Documents, targets, choices and answers are what the harness had: its own rules give its own values."""
    values: dict[tuple[str, str], Any] = {}
    ours: dict[tuple[str, str], Any] = {}
    for case in read(LOGS / name).cases():
        for row in case.evaluations:
            values[row.item_id, row.label] = row.value if row.score is None else row.score
        if case.response is not None:
            item = item_of(case)
            wanted = scored_by_us(Item(**item), case.response)
            ours |= {
                (item["id"], one.label): one.value if one.score is None else one.score
                for one in wanted
            }
    assert ours == values
    assert len(values) >= 10


def test_a_group_is_checked_from_its_tasks(tmp_path: Path) -> None:
    check = by_name(imported(LOGS / "likely", tmp_path / "out"))["facts", "acc"]
    assert (check.theirs, check.ours, check.metric) == (0.625, 0.625, "mean of 3 tasks")


def test_what_the_run_was_is_in_the_manifest(tmp_path: Path) -> None:
    imported(LOGS / "likely", tmp_path / "out")
    facts = json.loads((tmp_path / "out/manifest.json").read_text())
    text = json.dumps(facts)
    assert '"lm_eval_version": "0.4.13"' in text
    assert '"limit": 8.0' in text
    assert "doc_to_choice" in text
    items = rows(tmp_path / "out", "items")
    assert {
        item["metadata"]["benchmark"] for item in items if item["metadata"]["task"] == "words"
    } == {"words (modified: limit 8)"}


def test_groups_may_hold_one_another(tmp_path: Path) -> None:
    """Neither a circle nor groups that are shared a million times take long."""
    names = [f"g{number}" for number in range(60)]
    inside = {name: [after, after] for name, after in zip(names, [*names[1:], "sums"], strict=True)}
    inside["g59"].append("g0")
    numbers = report(size=1)
    numbers["results"]["g0"] = {
        "alias": "g0",
        "exact_match,none": 0.5,
        "exact_match_stderr,none": "N/A",
    }
    results = read(write(tmp_path / "m", [sample()], {**numbers, "group_subtasks": inside}))
    [*results.cases()]
    task, group = results.headlines()
    assert (task.value, task.ours, task.reason) == (1.0, None, "")
    assert (group.value, group.stderr, group.ours) == (0.5, None, 1.0)


# ---- which files


def test_the_newest_samples_of_each_task_win(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", [sample(0)], report(value=1.0, size=1))
    write(folder, [sample(0, exact_match=0.0)], report(value=0.0, size=1), stamp=LATER)
    write(folder, [sample(5)], report("other", size=1), task="other", stamp="2025-01-01T00-00-00.1")
    results = read(tmp_path)
    cases = list(results.cases())
    scores = {row.item_id: row.score for case in cases for row in case.evaluations}
    assert scores == {"sums/0": 0.0, "other/5": 1.0}
    assert any("1 older samples" in note for note in results.notes())
    assert {headline.value for headline in results.headlines()} == {0.0, 1.0}


def test_a_file_brings_those_of_the_same_run(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", [sample(0)], report(size=1))
    write(folder, [sample(1)], task="other")
    for name in (f"samples_sums_{STAMP}.jsonl", f"results_{STAMP}.json"):
        results = read(folder / name)
        assert results.experiment.model == "org/model"
        assert {case.response.item_id for case in results.cases() if case.response} >= {"sums/0"}
        assert results.headlines()


def test_two_models_are_two_experiments(tmp_path: Path) -> None:
    write(tmp_path / "a", [sample(0)], report(model_name="a"))
    write(tmp_path / "b", [sample(0)], report(model_name="b"))
    assert [results.dataset for results in lm_eval(tmp_path)] == ["a-sums", "b-sums"]


def test_samples_alone_are_read_and_nothing_is_checked(tmp_path: Path) -> None:
    results = read(write(tmp_path / "some-model", [sample(n) for n in range(3)]))
    assert len(list(results.cases())) == 3
    assert (results.planned, results.headlines(), results.experiment.model) == (
        None,
        [],
        "some-model",
    )
    assert any("no results file" in note for note in results.notes())


def test_results_alone_are_an_error_that_names_the_flag(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", None, report())
    with pytest.raises(UserError) as error:
        imported(folder, tmp_path / "out")
    assert "--log_samples" in error.value.fix
    assert "sums" in error.value.what


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "results_x.json").write_text('{"results": {"a": {"alias": "b"}}}')
    (tmp_path / "samples_x.jsonl").write_text('{"doc_id": 1}\n')
    (tmp_path / "x.json").write_text('{"results": [1]}')
    (tmp_path / "y.json").write_bytes(b"\xff\xfe{")
    assert lm_eval(tmp_path) == []
    assert lm_eval(tmp_path / "y.json") == []
    assert lm_eval(tmp_path / "nothing") == []


def test_a_newer_version_is_refused_by_its_fields(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", [sample()], report(lm_eval_version="0.5.0", shape="new"))
    with pytest.raises(UserError) as error:
        lm_eval(folder)
    assert "'0.5.0'" in error.value.what
    assert "shape" in error.value.what


# ---- odd, torn and hostile input


def test_unknown_fields_stay_and_are_counted(tmp_path: Path) -> None:
    results = read(
        write(tmp_path / "m", [sample(0, novelty=[1]), sample(1)], report(size=2, season="spring"))
    )
    first, second = results.cases()
    assert first.response is not None
    assert second.response is not None
    assert first.response.metadata["source"]["novelty"] == [1]
    assert "novelty" not in second.response.metadata["source"]
    told = " ".join(results.notes())
    assert "novelty (1)" in told
    assert "season" in told
    assert results.facts["season"] == "spring"


def test_secrets_do_not_come_along(tmp_path: Path) -> None:
    given = "model=x,api_key=sk-12345,base_url=http://me:word@host/v1"
    results = read(
        write(tmp_path / "m", [sample()], report(config={"model": "x", "model_args": given}))
    )
    text = json.dumps(results.facts)
    assert "sk-12345" not in text
    assert "word@" not in text
    assert "host/v1" in text


def test_torn_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", [sample(n) for n in range(3)], report(size=3))
    (file,) = folder.glob("samples*")
    text = file.read_text().splitlines()
    file.write_text(
        "\n".join(
            [text[0], "[1, 2]", '{"doc_id": "x"}', text[1], text[1], text[2][: len(text[2]) // 2]]
        )
    )
    result = imported(folder, tmp_path / "out")
    assert result.responses == {"ok": 2}
    assert result.rejected == 4
    assert "samples_sums" in " ".join(result.notes)
    assert not json.loads((tmp_path / "out/manifest.json").read_text())["run"]["complete"]


def test_missing_lines_make_a_run_partial(tmp_path: Path) -> None:
    result = imported(write(tmp_path / "m", [sample(0)], report(size=3)), tmp_path / "out")
    assert (result.planned, result.responses) == (3, {"ok": 1})


def test_a_damaged_results_file_is_told(tmp_path: Path) -> None:
    folder = copied("plain/large", tmp_path)
    (file,) = folder.glob("results*")
    file.write_text(file.read_text()[:-40])
    results = read(folder)
    assert len(list(results.cases())) == 20
    assert results.rejected == 1
    assert "damaged" in " ".join(results.notes())


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    line = json.dumps(sample(0, exact_match=math.nan, resps=[["x"]]))
    folder = write(tmp_path / "m", [], report(size=2))
    (file,) = folder.glob("samples*")
    choices = sample(
        1,
        arguments={
            "gen_args_0": {"arg_0": "a", "arg_1": " b"},
            "gen_args_1": {"arg_0": "a", "arg_1": " c"},
        },
        resps=[[["-inf", "False"]], [["-1.5", "True"]]],
    )
    file.write_text(f"{line}\n{json.dumps(choices)}\n")
    first, second = read(folder).cases()
    assert first.evaluations[0].score is None
    assert second.response is not None
    assert [entry["logprob"] for entry in second.response.output["choices"]] == [None, -1.5]
    assert second.response.response == " c"


@pytest.mark.parametrize(
    ("target", "config", "expected"),
    [
        ("3", {"doc_to_choice": ["a"]}, 3),
        ("3", {}, "3"),
        ("['a', 'b']", {}, ["a", "b"]),
        ("[not python", {}, "[not python"),
        ("[__import__('os')]", {}, "[__import__('os')]"),
        ("[" * 900 + "]" * 900, {}, None),
        ("7", {"doc_to_target": "number"}, 7),
    ],
)
def test_targets_are_what_they_were(
    target: str, config: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    line = sample(0, target=target, doc={"number": 7})
    results = read(write(tmp_path / "m", [line], report(configs={"sums": config})))
    (case,) = results.cases()
    assert case.item is not None
    assert case.item["ground_truth"] == (target if expected is None else expected)


def test_odd_document_numbers_cost_no_memory(tmp_path: Path) -> None:
    numbers = [2**62, -5, 0, 10**9]
    results = read(write(tmp_path / "m", [sample(number) for number in numbers]))
    assert [case.response.item_id for case in results.cases() if case.response] == [
        f"sums/{n}" for n in numbers
    ]


@given(
    documents=st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=8),
    filters=st.lists(st.sampled_from("abc"), unique=True, min_size=1),
    mixed=st.randoms(use_true_random=False),
)
def test_folding_needs_no_order(
    documents: list[int], filters: list[str], mixed: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In whatever order lines stand: an answer for each document, a value for each document and filter."""
    lines = [sample(number, filter=name) for name in filters for number in documents]
    mixed.shuffle(lines)
    folder = tmp_path_factory.mktemp("mixed")
    results = read(write(folder / "m", lines))
    cases = list(results.cases())
    answers = sorted(case.response.item_id for case in cases if case.response)
    assert answers == sorted(f"sums/{number}" for number in documents)
    labels = {(row.item_id, row.label) for case in cases for row in case.evaluations}
    assert len(labels) == len(lines)
    assert results.rejected == 0


def test_answers_that_nobody_scored_have_no_scores(tmp_path: Path) -> None:
    lines = [sample(number, metrics=["bypass"], bypass=999) for number in range(3)]
    results = {"sums": {"alias": "sums", "bypass,none": 999, "bypass_stderr,none": "N/A"}}
    write(tmp_path / "log", lines, report(results=results))
    result = imported(tmp_path / "log", tmp_path / "out")
    assert (result.responses, result.evaluations, result.headlines) == ({"ok": 3}, {}, [])


def test_a_damaged_byte_in_a_document_rejects_its_line(tmp_path: Path) -> None:
    write(
        tmp_path / "log", [sample(number, doc={"n": f"?{number}"}) for number in range(3)], report()
    )
    (file,) = (tmp_path / "log").glob("samples_*")
    file.write_bytes(file.read_bytes().replace(b"?1", b"\xff1"))
    result = imported(tmp_path / "log", tmp_path / "out")
    assert (result.rejected, result.items) == (1, 2)
