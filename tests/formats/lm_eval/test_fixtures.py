"""The fixtures are whole: enough tasks, every key and rule of the format used, and values that the fake model gives."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.formats.lm_eval.tasks.definition import Definition, FewShotKeys
from tests.formats.lm_eval import fake_answers
from tests.formats.lm_eval.fake_answers import FakeServer

HERE = Path(__file__).parent
FOLDERS = {"ours": HERE / "expected", "shipped": HERE / "shipped/expected"}
# ours, and what needs a model with eyes or ears
NOT_IN_TEXT = {"file", "changes", "doc_to_image", "doc_to_audio"}
FILTERS = """take_first take_first_k majority_vote regex regex_pos remove_whitespace multi_choice_regex lowercase
uppercase map format_span custom our_reverse"""
METRICS = """acc acc_norm acc_bytes acc_mutual_info exact_match f1 mcc brier_score likelihood perplexity word_perplexity
byte_perplexity bits_per_byte bleu chrf chrf++ ter bypass"""
AGGREGATIONS = """mean median nanmean perplexity weighted_perplexity bits_per_byte f1 matthews_corrcoef bleu chrf chrf++
ter brier_score bypass"""


@dataclass
class Function:
    """What `!function` names."""

    name: str


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("!function", lambda loader, node: Function(loader.construct_scalar(node)))


@cache
def task_files() -> list[dict[str, Any]]:
    broken = HERE / "tasks/files/broken.yaml"
    texts = [path.read_text() for path in (HERE / "tasks").rglob("*.yaml") if path != broken]
    texts += [path.read_text() for path in (HERE / "tasks").rglob("_*") if path.is_file()]
    return [yaml.load(text, Loader) for text in texts]


@cache
def fixture(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


def fixtures() -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in FOLDERS.values():
        for path in sorted(folder.iterdir()):
            yield path.name, fixture(path)


def asked(of: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Every request with its answers."""
    for documents in of.get("documents", {}).values():
        for document in documents:
            yield from zip(document["arguments"], document["resps"], strict=True)


def named(key: str) -> set[str]:
    """Names of metrics or aggregations in the tasks."""
    entries = [entry for task in task_files() for entry in task.get("metric_list") or []]
    return {entry[key] for entry in entries if isinstance(entry.get(key), str)}


def test_there_are_enough() -> None:
    ours = {path.name.removesuffix(".json.gz") for path in FOLDERS["ours"].iterdir()}
    tasks = {
        task["task"]
        for task in task_files()
        if "group" not in task and isinstance(task.get("task"), str)
    }
    groups = {task["group"] for task in task_files() if "group" in task}
    assert len(tasks & ours) >= 150
    assert groups <= ours
    assert len(list(FOLDERS["shipped"].iterdir())) >= 40
    assert (
        sum(path.stat().st_size for folder in FOLDERS.values() for path in folder.iterdir())
        < 3_000_000
    )


def test_every_task_has_its_fixture_and_every_fixture_its_task() -> None:
    ours = {path.name.removesuffix(".json.gz") for path in FOLDERS["ours"].iterdir()}
    names = {
        name
        for task in task_files()
        for name in (task.get("group"), task.get("task"))
        if isinstance(name, str)
    }
    special = set(yaml.safe_load((HERE / "runs.yaml").read_text()))
    assert names - ours == {"diamond"}, "a task that lm-eval itself does not load"
    assert ours - special <= names | {"our_files", "our_lists"}
    shipped = set(yaml.safe_load((HERE / "shipped/runs.yaml").read_text()))
    assert shipped == {path.name.removesuffix(".json.gz") for path in FOLDERS["shipped"].iterdir()}


def test_every_key_is_used() -> None:
    assert set(Definition.__struct_fields__) - NOT_IN_TEXT <= {
        key for task in task_files() for key in task
    }
    shots = {key for task in task_files() for key in task.get("fewshot_config") or {}}
    assert set(FewShotKeys.__struct_fields__) <= shots
    types = {task.get("output_type", "generate_until") for task in task_files()}
    assert types >= {"generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"}


def test_every_filter_metric_and_aggregation_is_used() -> None:
    pipelines = [pipeline for task in task_files() for pipeline in task.get("filter_list") or []]
    functions = [step["function"] for pipeline in pipelines for step in pipeline["filter"]]
    assert {name for name in functions if isinstance(name, str)} >= set(FILTERS.split())
    assert any(isinstance(name, Function) for name in functions)
    assert named("metric") >= set(METRICS.split())
    assert named("aggregation") >= set(AGGREGATIONS.split())


@pytest.mark.parametrize(("kind", "forms"), [("text", 3), ("target", 6), ("choice", 5)])
def test_every_form_of_a_template_is_used(kind: str, forms: int) -> None:
    """Text, column and template; for choices and targets lists, numbers, functions, dictionaries too."""
    values = [
        task[f"doc_to_{kind}"] for task in task_files() if task.get(f"doc_to_{kind}") is not None
    ]
    seen = {
        "template" if isinstance(value, str) and "{" in value else type(value).__name__
        for value in values
    }
    assert len(seen) >= forms, seen


def test_runs_that_fail_are_those_that_should() -> None:
    for name, run in fixtures():
        assert ("error" in run) == name.startswith("err_"), name


def test_values_are_finite() -> None:
    """JSON has no other numbers; what is not finite is text, and only the task that makes gaps has it."""
    for name, run in fixtures():
        for documents in run.get("documents", {}).values():
            values = [
                value
                for entry in documents
                for part in entry["filters"].values()
                for value in part["metrics"].values()
            ]
            assert "NaN" not in values or "gaps" in name or "bootstrap" in name, name
        for results in run.get("results", {}).get("results", {}).values():
            assert not {"NaN", "Infinity", "-Infinity"} & {
                str(value) for value in results.values()
            }, name


def test_answers_are_those_of_the_fake_model() -> None:
    """Likelihoods of every run with whole contexts, and what was generated for every plain text."""
    count = 0
    for _, run in fixtures():
        if (
            run["run"].get("model_args")
            or run["run"].get("model")
            or isinstance(run.get("requests"), dict)
        ):
            continue
        bodies = {body["prompt"]: body for body in run.get("requests", [])}
        for arguments, answers in asked(run):
            if len(arguments) == 2 and isinstance(arguments[1], str):
                assert [list(fake_answers.score(*arguments))] * len(answers) == answers
            elif len(arguments) == 2:
                body = bodies[arguments[0]]
                numbers = range(len(answers)) if body["temperature"] else [0] * len(answers)
                texts = [fake_answers.answer(arguments[0], number) for number in numbers]
                assert [
                    fake_answers.cut(text, body["stop"], body["max_tokens"]) for text in texts
                ] == answers
            count += 1
    assert count > 5_000


def test_pieces_and_numbers_give_the_text_back() -> None:
    text = "<s>Größe 東京 🙂  a_b-42\t1234567 wonderfully\n</s>x"
    numbers = fake_answers.token_ids(fake_answers.tokenize(text))
    assert fake_answers.detokenize(numbers) == text
    assert max(numbers) < 2**53
    assert (numbers[0], numbers[-2]) == (1, 2)


def post(server: FakeServer, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection = HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", path, json.dumps(body))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_server_says_what_the_functions_say() -> None:
    context, continuation = "The capital of France is", " Paris or so"
    with FakeServer() as server:
        body = {"prompt": context + continuation, "echo": True, "logprobs": 1, "max_tokens": 1}
        logprobs = post(server, "/v1/completions", body)["choices"][0]["logprobs"]
        inside = [
            place for place, offset in enumerate(logprobs["text_offset"]) if offset >= len(context)
        ][:-1]
        value = sum(logprobs["token_logprobs"][place] for place in inside)
        greedy = all(
            logprobs["token_logprobs"][at] == max(logprobs["top_logprobs"][at].values())
            for at in inside
        )
        assert (value, greedy) == fake_answers.score(context, continuation)

        numbers = post(server, "/tokenize", {"prompt": context})["tokens"]
        by_numbers = post(
            server,
            "/v1/completions",
            {"prompt": [numbers, numbers], "max_tokens": 9, "stop": ["."]},
        )
        text = fake_answers.cut(fake_answers.answer(context), ["."], 9)
        assert [choice["text"] for choice in by_numbers["choices"]] == [text, text]

        chat = {
            "messages": [{"role": "user", "content": "2 (hint: 4)"}],
            "max_tokens": 50,
            "temperature": 1,
        }
        texts = [
            post(server, "/v1/chat/completions", chat)["choices"][0]["message"]["content"]
            for _ in range(5)
        ]
        assert texts == [fake_answers.answer("user: 2 (hint: 4)", number) for number in range(5)]
        assert len(server.bodies) == 7
        assert "error" in post(server, "/v1/nowhere", {})
