"""The parts of the front by themselves: task names, models.yaml and its variables, file names, projections."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.formats.sygra.models_file import bind_model, load_environment, read_models
from assay.formats.sygra.modules import Loader
from assay.formats.sygra.names import Names, begin, find_task, keep, read_yaml
from assay.formats.sygra.outputs import Records, write_records
from assay.interfaces import Completion, Request
from assay.store.memory_log import MemoryLog
from assay.threads import run_blocking

ALL_SPELLINGS = [
    "tasks.eval.classification.simpleqa",
    "eval.classification.simpleqa",
    "tasks/eval/classification/simpleqa",
    "eval/classification/simpleqa",
    "eval/classification/simpleqa/",
    "./tasks/eval/classification/simpleqa",
    "tasks/eval/classification/simpleqa/graph_config.yaml",
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    task = tmp_path / "tasks/eval/classification/simpleqa"
    task.mkdir(parents=True)
    (task / "graph_config.yaml").write_text("graph_config: {nodes: {}}")
    return tmp_path


# ---- names


@pytest.mark.parametrize("name", ALL_SPELLINGS)
def test_every_spelling_means_the_same_task(base: Path, name: str) -> None:
    found = find_task(name, base)
    assert found.folder == base / "tasks/eval/classification/simpleqa"
    assert found.name == "tasks.eval.classification.simpleqa"


def test_an_absolute_path_is_a_task_too(
    base: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert find_task(str(base / "tasks/eval/classification/simpleqa"), elsewhere).graph.is_file()


@pytest.mark.parametrize("name", ["eval.classification.simplqa", "eval/classification/simplqa", ""])
def test_an_unknown_task_is_answered_with_the_nearest(base: Path, name: str) -> None:
    with pytest.raises(UserError) as caught:
        find_task(name, base)
    assert "tasks.eval.classification.simpleqa" in caught.value.fix


def test_yaml_is_read_by_the_rules_that_it_was_written_for(tmp_path: Path) -> None:
    path = tmp_path / "graph_config.yaml"
    path.write_text("required: yes\nquoted: 'yes'\n")
    assert read_yaml(path) == {"required": True, "quoted": "yes"}


@pytest.mark.parametrize(
    ("text", "line"), [("a: [1\nb: 2\n", 2), ("- a\n", None), ("a: \t\n\tb\n", 2)]
)
def test_yaml_that_is_none_is_said_with_its_line(
    tmp_path: Path, text: str, line: int | None
) -> None:
    path = tmp_path / "graph_config.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_yaml(path)
    assert caught.value.where == (f"{path}:{line}" if line else str(path))


# ---- models


def test_the_files_and_the_variables_are_merged(tmp_path: Path) -> None:
    (tmp_path / "sygra/config").mkdir(parents=True)
    (tmp_path / "sygra/config/models.yaml").write_text(
        "my model: {model_type: vllm, url: http://a/v1, parameters: {temperature: 0}}\nother: {url: http://b/v1}\n"
    )
    (tmp_path / "custom.yaml").write_text("other: {url: http://c/v1}\n")
    environ = {
        "SYGRA_CUSTOM_MODELS_PATH": "custom.yaml",
        "SYGRA_MY_MODEL_URL": "http://x/v1|http://y/v1",
        "SYGRA_MY_MODEL_TOKEN": "secret",
        "SYGRA_MY_MODEL_MODEL_SERVING_NAME": "served",
        "SYGRA_NEW_URL": "http://n/v1",
    }
    found = read_models(tmp_path, ["my model", "other", "new"], environ)
    assert found == {
        "my model": {
            "model_type": "vllm",
            "url": ["http://x/v1", "http://y/v1"],
            "auth_token": "secret",
            "model_serving_name": "served",
            "parameters": {"temperature": 0},
        },
        "other": {"url": "http://c/v1"},
        "new": {"url": "http://n/v1"},
    }


def test_a_model_that_nothing_describes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("eval_model: {url: http://a}\n")
    with pytest.raises(UserError, match="'eval_modle' is not described") as caught:
        read_models(tmp_path, ["eval_modle"], {})
    assert "SYGRA_EVAL_MODLE_URL" in caught.value.fix
    assert "did you mean 'eval_model'" in caught.value.fix


def test_a_prefix_of_another_provider_is_taken_off_and_keys_stay_out(tmp_path: Path) -> None:
    entry = {
        "model_type": "openai",
        "model": "openai/org/model-1",
        "url": "http://127.0.0.1:9",
        "auth_token": "very-secret",
        "retry_attempts": "2",
        "parameters": {"temperature": 0.5},
    }
    bound = bind_model("m", entry, Loader(tmp_path), max_concurrency=7)
    assert bound.model.identity["model_name"] == "org/model-1"
    assert bound.limits.max_retries == 2
    assert bound.limits.max_concurrency == 7
    assert bound.use.params == {"temperature": 0.5}
    assert "very-secret" not in repr(bound.use.identity)


def test_only_vllm_is_told_its_schema_in_its_own_way(tmp_path: Path) -> None:
    load = Loader(tmp_path)
    entries = {
        kind: {"model_type": kind, "url": "http://h/v1"} for kind in ("openai", "vllm", "ollama")
    }
    uses = {
        kind: bind_model("m", entry, load, max_concurrency=1).use.native
        for kind, entry in entries.items()
    }
    assert uses == {"openai": "json_schema", "vllm": "guided_json", "ollama": "json_schema"}


def test_answers_are_cleaned_as_the_entry_says(tmp_path: Path) -> None:
    entry = {
        "url": "http://127.0.0.1:9",
        "special_tokens": ["<|end|>"],
        "post_process": "sygra.core.models.model_postprocessor.RemoveThinkData",
    }
    bound = bind_model("m", entry, Loader(tmp_path), max_concurrency=1)
    plain = bind_model("m", {"url": "http://127.0.0.1:9"}, Loader(tmp_path), max_concurrency=1)
    assert bound.use.clean is not None
    assert bound.use.clean("<think>hm</think>yes<|end|>") == "yes"
    assert bound.use.identity != plain.use.identity


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"model_type": "bedrock"}, "model_type 'bedrock' is not offered"),
        ({"model_type": "opnai", "url": "http://h"}, "unknown model_type 'opnai'"),
        ({"model_type": "openai"}, "has no url"),
        ({"url": "http://h", "ssl_verify": False}, "ssl_verify"),
        ({"url": "http://h", "output_type": "image"}, "output_type 'image'"),
        ({"url": "http://h", "parameters": [1]}, "parameters must be a mapping"),
        ({"url": "http://h", "retry_attempts": "many"}, "retry_attempts is 'many'"),
        (
            {"url": "http://h", "post_process": "no.such.Thing"},
            "'no.such.Thing' cannot be imported",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    tmp_path: Path, entry: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        bind_model("m", entry, Loader(tmp_path), max_concurrency=1)


def test_several_addresses_share_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def complete(self: Any, request: Request) -> Completion:
        asked.append(self.base)
        return Completion(text="ok")

    monkeypatch.setattr("assay.models.openai.OpenAIModel.complete", complete)
    bound = bind_model(
        "m", {"url": ["http://a/v1", "http://b/v1"]}, Loader(tmp_path), max_concurrency=2
    )

    async def both() -> None:
        import asyncio

        first = asyncio.create_task(bound.model.complete(Request([])))
        await asyncio.gather(first, bound.model.complete(Request([])))
        await bound.model.close()

    run_blocking(both)
    assert set(asked) <= {"http://a/v1", "http://b/v1"}
    assert len(asked) == 2


def test_the_env_file_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYGRA_M_URL", "outer")
    monkeypatch.setenv("SYGRA_M_TOKEN", "outer")
    (tmp_path / ".env").write_text("# SYGRA_M_TOKEN=no\nSYGRA_M_URL='http://h'\nnot a line\n")
    load_environment(tmp_path)
    import os

    assert os.environ["SYGRA_M_URL"] == "http://h"
    assert os.environ["SYGRA_M_TOKEN"] == "outer"


# ---- names of files


@pytest.mark.parametrize(
    ("run_name", "with_time", "name", "expected"),
    [
        ("", True, "output", "output_T.json"),
        ("", False, "output", "output.json"),
        ("r", True, "MetricCollatorPostProcessor", "r_MetricCollatorPostProcessor_T.json"),
        (
            "my_output_run",
            False,
            "MetricCollatorPostProcessor",
            "my_output_run_MetricCollatorPostProcessor.json",
        ),
    ],
)
def test_names(run_name: str, with_time: bool, name: str, expected: str) -> None:
    assert Names(run_name, with_time).of(name, "T", "json") == expected


@pytest.mark.parametrize("bad", ["a/b", "..", "a\nb", "x" * 151, "a:b"])
def test_a_run_name_that_is_no_file_name_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="run_name"):
        Names(bad, True)


def test_two_processors_of_one_name_have_two_files(tmp_path: Path) -> None:
    path_of = Names("", True).distinct(tmp_path, "T")
    assert [path_of(name).name for name in ("A", "B", "A")] == [
        "A_T.json",
        "B_T.json",
        "A-2_T.json",
    ]


def test_an_unfinished_run_keeps_its_time_and_a_finished_one_does_not(tmp_path: Path) -> None:
    names = Names("", True)
    first = begin(tmp_path / "rows", tmp_path, names)
    assert begin(tmp_path / "rows", tmp_path, names) == first
    (tmp_path / names.of("output", first.stamp, "json")).write_text("[]")
    first.finished = True
    keep(tmp_path / "rows", first)
    assert begin(tmp_path / "rows", tmp_path, names).stamp != first.stamp


# ---- projections


def logs(rows: list[tuple[str, dict[str, Any]]], order: list[int]) -> tuple[MemoryLog, MemoryLog]:
    items, responses = MemoryLog("items.jsonl"), MemoryLog("responses.jsonl")
    for id, _ in rows:
        items.append(json.dumps({"id": id, "data": {"id": id, "text": "é"}}).encode() + b"\n")
    for number in order:
        id, row = rows[number]
        responses.append(json.dumps({"item_id": id, **row}).encode() + b"\n")
    return items, responses


@given(st.data())
def test_records_come_in_the_order_of_the_items(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=12))
    ids = [id.encode("utf-8", "replace").decode() for id in ids]
    ids = list(dict.fromkeys(ids))
    order = data.draw(st.permutations(range(len(ids))))
    kinds = [data.draw(st.sampled_from(["ok", "error", "skipped"])) for _ in ids]
    rows: list[tuple[str, dict[str, Any]]] = []
    expected: list[dict[str, Any]] = []
    for id, kind in zip(ids, kinds, strict=True):
        if kind == "ok":
            rows.append((id, {"output": {"id": id, "a": 1}}))
            expected.append({"id": id, "a": 1})
        elif kind == "error":
            rows.append((id, {"outcome": "errored", "error": "boom"}))
            expected.append({"id": id, "a": None, "error": "boom"})
        else:
            rows.append((id, {"outcome": "skipped"}))
    items, responses = logs(rows, order)
    records = Records(items, responses, ["id", "a"])
    assert list(records) == expected
    assert [records[n] for n in range(len(records))] == expected
    assert records[1:] == expected[1:]
    assert records.failed == kinds.count("error")


def test_a_record_that_was_not_run_is_said_to_be_so() -> None:
    items, responses = logs([("a", {"output": {"id": "a"}}), ("b", {})], [0])
    assert list(Records(items, responses, ["id"])) == [
        {"id": "a"},
        {"id": "b", "error": "it was not run"},
    ]


def test_a_sequence_can_be_indexed_from_its_end_and_not_beyond() -> None:
    items, responses = logs(
        [("a", {"output": {"id": "a"}}), ("b", {"output": {"id": "b"}})], [1, 0]
    )
    records = Records(items, responses, ["id"])
    assert records[-1] == {"id": "b"}
    with pytest.raises(IndexError):
        records[2]


VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=2)


@settings(max_examples=20, deadline=None)  # each writes two files, safe from a power cut
@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=4))
def test_a_json_file_is_what_json_dump_would_write(rows: list[dict[str, Any]]) -> None:
    import tempfile

    lines = [json.dumps(row).encode() for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output.json"
        write_records(path, iter(lines), "json")
        assert json.loads(path.read_bytes()) == rows
        assert path.read_text().count("\n") == json.dumps(rows, indent=4).count("\n")
        write_records(path, iter(lines), "jsonl")
        assert [json.loads(line) for line in path.read_bytes().splitlines()] == rows


def test_a_projection_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "output.json"
    write_records(path, [b"{}"], "json")

    def lines() -> Iterator[bytes]:
        yield b"{}"
        raise UserError("the disk is gone")

    with pytest.raises(UserError):
        write_records(path, lines(), "json")
    assert json.loads(path.read_text()) == [{}]
    assert [file.name for file in tmp_path.iterdir()] == ["output.json"]
