"""Items that are conversations: what a model is sent of them, and never the answer."""

import csv
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ConfigError, TransientError, UserError
from assay.interfaces import Completion, Request
from assay.prompts.jinja import jinja
from assay.records import Item
from assay.tasks.prompt import prompt

SECRET = "xyzzy-42"
USER = {"role": "user", "content": "What is it?"}
TOLD = {"role": "assistant", "content": "It is a cat."}
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}


class Ear:
    """A model that keeps what it was asked; it fails as often as it is told to."""

    name = "ear"
    identity: Mapping[str, Any] = {"type": "ear"}

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.failures = 0

    async def complete(self, request: Request) -> Completion:
        if request.messages[-1]["content"] == "Second?" and self.failures:
            self.failures -= 1
            raise TransientError("not now")
        self.asked.append(request)
        return Completion(
            text=f"answer {len(self.asked)}", prompt_tokens=1, completion_tokens=1, total_tokens=2
        )

    async def close(self) -> None: ...


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ear: Ear
) -> Callable[..., list[dict[str, Any]]]:
    """Runs a dataset and gives the rows."""
    monkeypatch.chdir(tmp_path)

    def run(rows: Any, **config: Any) -> list[dict[str, Any]]:
        if isinstance(rows, list):
            (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            rows = "d.jsonl"
        dataset = {"path": rows, **config.pop("dataset", {})}
        assay.run(
            {"name": "c", "dataset": dataset, "output_dir": "out", "max_retries": 0, **config},
            models=[ear],
        )
        return [json.loads(line) for line in Path("out/responses.jsonl").read_text().splitlines()]

    return run


Run = Callable[..., list[dict[str, Any]]]


def test_a_conversation_is_sent_as_it_is(run: Run, ear: Ear) -> None:
    messages = [{"role": "system", "content": "Short."}, USER, TOLD, {**USER, "name": "eve"}]
    (row,) = run([{"messages": messages, "ground_truth": SECRET}])
    assert [request.messages for request in ear.asked] == [messages]
    assert (row["messages"], row["response"]) == (messages, "answer 1")


def test_keys_of_conversations_are_those_of_earlier_versions() -> None:
    task = prompt(jinja(""), Ear(), params={"temperature": 0.5})
    chat = [
        {"role": "system", "content": "Be kind."},
        {"content": [{"type": "text", "text": "Hi"}], "role": "user"},
    ]
    asked = {"question": "2", "turns": ["a", "b"], "conversation": chat, "tools": [TOOL]}
    keys = [
        task.prepare(Item(id="i", data=data)).fingerprint.hex()
        for data in ({"messages": chat}, asked)
    ]
    assert keys == ["6f81e9700c2e18c687d85357f2d71828", "74aedec5aaa0a1ab701ff435f8d5938b"]
    assert task.name == "ear/a87ed620be04"


def test_nulls_of_a_table_are_not_sent(run: Run, ear: Ear) -> None:
    part = {"type": "text", "text": "Hi", "image": None}
    run(
        [
            {
                "messages": [
                    {**USER, "name": None, "tool_calls": None},
                    TOLD,
                    {"role": "user", "content": [part]},
                ]
            }
        ]
    )
    assert ear.asked[0].messages == [
        USER,
        TOLD,
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]


# ---- the end of a conversation


def test_one_that_ends_with_the_assistant_is_refused(run: Run, ear: Ear) -> None:
    with pytest.raises(ConfigError) as raised:
        run([{"id": "a", "messages": [USER, TOLD]}])
    problem = str(raised.value)
    assert "item 'a': the conversation in `messages` ends with the assistant" in problem
    assert "answer: last" in problem
    assert "prefill: true" in problem
    assert not ear.asked


def test_its_last_message_can_be_the_expected_answer(run: Run, ear: Ear) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    rows = [
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": SECRET}]},
        {
            "data": {
                "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]
            }
        },
    ]
    run(rows, dataset={"answer": "last"})
    assert [request.messages[-1]["content"] for request in ear.asked] == ["Hi", "What is it?"]
    items = [json.loads(line) for line in Path("out/items.jsonl").read_text().splitlines()]
    assert [item["ground_truth"] for item in items] == [
        SECRET,
        {"answer": "", "tool_calls": [call]},
    ]


@pytest.mark.parametrize(
    "row",
    [{"messages": [USER]}, {"question": "x"}, {"messages": [USER, TOLD], "ground_truth": "x"}],
)
def test_an_expected_answer_that_is_not_there_is_an_error(run: Run, row: dict[str, Any]) -> None:
    with pytest.raises(UserError) as raised:
        run([row], dataset={"answer": "last"})
    assert raised.value.where == f"{Path('d.jsonl').resolve()}:1"


def test_it_can_be_the_beginning_of_the_answer(run: Run, ear: Ear) -> None:
    run([{"messages": [USER, TOLD]}, {"messages": [USER]}], prompts={"prefill": True})
    assert [request.messages[-1] for request in ear.asked] == [TOLD, USER]


# ---- several turns


def test_each_turn_is_answered_and_paid_once(run: Run, ear: Ear) -> None:
    ear.failures = 1
    rows = [{"id": "t", "turns": ["First?", "Second?"]}]
    (row,) = run(rows)
    assert (row["outcome"], len(ear.asked)) == ("errored", 1)
    (row,) = run(rows)
    assert [len(request.messages) for request in ear.asked] == [1, 3], (
        "the first turn is not paid again"
    )
    told = [("user", "First?"), ("assistant", "answer 1"), ("user", "Second?")]
    assert [(message["role"], message["content"]) for message in row["messages"]] == told
    assert row["response"] == "answer 2"
    (call,) = (json.loads(line) for line in Path("out/calls.jsonl").read_text().splitlines())
    assert (call["step"], call["item_id"], call["completion"]["text"]) == (
        "turn 1",
        "t",
        "answer 1",
    )
    metadata = json.loads(Path("out/manifest.json").read_text())["run"]["metadata"]
    inside = metadata["calls"]["ear/a87ed620be04"]["ear"]
    assert (metadata["usage"]["ear"]["total_tokens"], inside["total_tokens"]) == (2, 2)


def test_turns_that_have_answers_keep_them(run: Run, ear: Ear) -> None:
    messages = [{"role": "system", "content": "s"}, USER, TOLD, USER, USER]
    run([{"messages": messages}], prompts={"turns": "each"})
    assert [len(request.messages) for request in ear.asked] == [4, 6]
    assert [message["role"] for message in ear.asked[1].messages][-3:] == [
        "user",
        "assistant",
        "user",
    ]
    ear.asked.clear()
    run([{"messages": messages}])
    assert [request.messages for request in ear.asked] == [messages], (
        "without the option they are one request"
    )


def test_a_tool_call_in_the_middle_is_a_row_that_says_so(
    run: Run, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(request: Request) -> Completion:
        return Completion(tool_calls=[{"function": {"name": "find", "arguments": "{}"}}])

    monkeypatch.setattr(ear, "complete", call)
    (row,) = run([{"turns": ["First?", "Second?"]}])
    assert "turn 1 was answered with a tool call" in row["error"]


# ---- what goes with the messages


def test_a_rows_own_settings_win(run: Run, ear: Ear) -> None:
    rows = [
        {
            "messages": [USER],
            "tools": [{"name": "find", "parameters": {"type": "object"}}],
            "tool_choice": "required",
        },
        {
            "messages": [USER],
            "system": "Mine.",
            "prefill": "Well",
            "reasoning_effort": "high",
            "tools": None,
        },
        {
            "messages": [{"role": "system", "content": "Own."}, USER],
            "response_format": '{"type": "json_object"}',
        },
    ]
    params = {"temperature": 0.5, "tools": [], "reasoning_effort": "low"}
    run(rows, sample_params=params, prompts={"system": "The config's."})
    first, second, third = ear.asked
    assert first.params == {**params, "tools": [TOOL], "tool_choice": "required"}
    assert second.params == {**params, "reasoning_effort": "high"}
    assert third.params == {**params, "response_format": {"type": "json_object"}}
    contents = [[message["content"] for message in request.messages] for request in ear.asked]
    assert contents == [
        ["The config's.", "What is it?"],
        ["Mine.", "What is it?", "Well"],
        ["Own.", "What is it?"],
    ]


def test_a_template_takes_from_the_row_what_the_config_names(run: Run, ear: Ear) -> None:
    rows = [{"question": "Q", "tools": [TOOL], "topic": "cats", "label": SECRET}]
    run(rows, prompts={"text": "{{question}}"})
    prompts = {
        "text": "{{question}}",
        "row_params": ["tools"],
        "system": "About {{topic}}.",
        "prefill": "A:",
    }
    run(rows, prompts=prompts)
    plain, full = ear.asked
    assert plain.params == {}
    assert full.params == {"tools": [TOOL]}
    assert [message["content"] for message in full.messages] == ["About cats.", "Q", "A:"]


def test_a_rows_settings_are_part_of_its_key() -> None:
    task = prompt(jinja(""), Ear())
    data = [
        {"messages": [USER]},
        {"messages": [USER], "tools": [TOOL]},
        {"messages": [USER], "tool_choice": "auto"},
    ]
    keys = {task.prepare(Item(id="i", data=fields)).fingerprint for fields in data}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("prompts", "row", "problem"),
    [
        (
            {"turns": "each", "prefill": "x"},
            {"turns": ["a", "b"]},
            "cannot be begun with `prefill`",
        ),
        ({}, {"messages": [USER], "tools": ["find"]}, "tool 1 has no name"),
        ({}, {"messages": [USER], "response_format": "{"}, "`response_format` is not an object"),
        ({"turns": "all"}, {"turns": ["a"]}, "turns"),
    ],
)
def test_what_is_refused_before_any_call(
    run: Run, ear: Ear, prompts: Any, row: Any, problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        run([row], prompts=prompts)
    assert not ear.asked


# ---- the answer is never sent

ROWS: dict[str, dict[str, Any]] = {
    "flat": {"question": "Q?", "answer": SECRET},
    "flat, mapped": {"question": "Q?", "gold": SECRET},
    "item": {"data": {"question": "Q?"}, "ground_truth": SECRET},
    "item with the answer in data": {"data": {"question": "Q?", "target": SECRET}},
    "chat": {"messages": [USER], "ground_truth": SECRET},
    "chat, beside": {"messages": [USER], "label": SECRET, "reference": SECRET},
    "chat, in a message": {"messages": [{**USER, "expected_output": SECRET}]},
    "chat, in a part": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Q?", "label": SECRET}]}]
    },
    "chat, last message": {"messages": [USER, {"role": "assistant", "content": SECRET}]},
    "chat in data": {
        "data": {"conversations": [{"from": "human", "value": "Q?"}]},
        "expected": SECRET,
    },
    "turns": {"turns": ["Q?", "R?"], "reference": [SECRET, SECRET]},
    "whole row": {"text": "Q?", "answer": SECRET},
    "whole row, nested": {
        "data": {"text": "Q?", "meta": {"gold_answer": SECRET}},
        "ground_truth": "other",
    },
    "whole row, unnamed": {"data": {"text": "Q?", "city": SECRET}, "ground_truth": SECRET},
    "whole row, listed": {"data": {"text": "Q?", "cities": [SECRET]}, "ground_truth": [SECRET]},
    "question with parts": {"question": {"stem": "Q?", "answer": SECRET}},
    "metadata": {"question": "Q?", "metadata": {"answer": SECRET}},
}


def _json(path: Path, row: dict[str, Any]) -> str:
    path.with_suffix(".json").write_text(json.dumps({"items": [row]}))
    return str(path.with_suffix(".json"))


def _packed(path: Path, row: dict[str, Any]) -> str:
    (path.parent / "rows.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    return str(path.parent / "rows.jsonl.gz")


def _table(path: Path, row: dict[str, Any]) -> str:
    with path.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(
            {
                key: value if isinstance(value, str) else json.dumps(value)
                for key, value in row.items()
            }
        )
    return str(path.with_suffix(".csv"))


def _function(path: Path, row: dict[str, Any]) -> str:
    path.with_suffix(".py").write_text(f"def rows():\n    return [{row!r}]\n")
    return f"{path.with_suffix('.py')}:rows"


def _parquet(path: Path, row: dict[str, Any]) -> str:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist([row]), path.with_suffix(".parquet"))
    return str(path.with_suffix(".parquet"))


@pytest.mark.parametrize("write", [_json, _packed, _table, _function, _parquet])
@pytest.mark.parametrize("name", ROWS)
def test_no_form_of_dataset_sends_the_answer(
    run: Run, ear: Ear, tmp_path: Path, name: str, write: Callable[[Path, dict[str, Any]], str]
) -> None:
    row = ROWS[name]
    fields = {"fields": {"ground_truth": "gold"}} if "gold" in row else {}
    path = write(tmp_path / "rows", row)
    refused = name.startswith("whole row") or name in ("question with parts", "chat, last message")
    if refused or (name == "item with the answer in data" and write is _table):
        with pytest.raises(UserError, match=r"the whole row would be sent|ends with the assistant"):
            run(path, dataset=fields)
        assert not ear.asked
    else:
        rows = run(path, dataset=fields)
        assert ear.asked
        assert SECRET not in str([(request.messages, request.params) for request in ear.asked])
        assert SECRET not in json.dumps([[row["prompt"], row["messages"]] for row in rows])


@pytest.mark.parametrize("text", ["[1, 2, 3]", '{"city": "Rome"}', "[INST] x", "{", "yes"])
def test_a_question_that_looks_like_data_is_a_question(run: Run, ear: Ear, text: str) -> None:
    run(
        [
            {"data": {"question": text}, "ground_truth": "[1, 2, 3]"},
            {"data": text, "ground_truth": "yes"},
        ]
    )
    assert [request.messages[0]["content"] for request in ear.asked] == [text, text]


def test_a_template_that_names_it_sends_it(run: Run, ear: Ear) -> None:
    run([{"question": "Q?", "answer": SECRET}], prompts="{{question}} {{answer}}")
    assert SECRET in ear.asked[0].messages[0]["content"]
