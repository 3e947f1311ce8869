"""Tasks: what identifies their work, and what becomes of what they return."""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from assay.errors import UserError
from assay.interfaces import Completion, Request
from assay.models.python import python
from assay.prompts.jinja import jinja
from assay.records import Item
from assay.tasks.function import FunctionTask, answer_of, function
from assay.tasks.prompt import PromptTask, prompt

ITEM = Item(id="i", data={"question": "2 + 2", "note": "n"}, ground_truth="4", metadata={"m": 1})


class Around:
    """The context of a task under test: sends to the model itself, runs in no thread."""

    item_id, sample_index, seed = "i", 3, 99

    async def send(self, model: Any, request: Request) -> Completion:
        self.request = request
        return await model.complete(request)

    async def thread(self, call: Any) -> Any:
        return call()


def edited(**changes: Any) -> Item:
    return msgspec.structs.replace(ITEM, **changes)


def prompt_task(
    text: Any = "Q: {{question}}", params: dict[str, Any] | None = None, **model: Any
) -> PromptTask:
    answer = python("m", function=lambda prompt: f"<{prompt}>", **model)
    return prompt(
        jinja(text, name="plain"),
        answer,
        params=params or {"temperature": 0.5},
        samples=4,
        timeout=7.0,
    )


def test_a_prompt_task_is_named_by_model_and_template() -> None:
    task = prompt_task()
    assert (task.name, task.lane, task.model_name) == ("m/plain", "m", "m")
    assert task.facets["sampling"] == {"temperature": 0.5, "num_samples": 4}
    nameless = [prompt(jinja(text), task.model) for text in ("a", "b", "a")]
    assert len({task.name for task in nameless}) == 2


def test_a_prompt_tasks_fingerprint_is_what_is_sent() -> None:
    same = prompt_task().prepare(ITEM).fingerprint
    assert prompt_task().prepare(ITEM).fingerprint == same
    for unseen in (
        edited(ground_truth="5"),
        edited(metadata={}),
        edited(data={"question": "2 + 2", "note": "other"}),
    ):
        assert prompt_task().prepare(unseen).fingerprint == same
    assert prompt_task().prepare(edited(data={"question": "3 + 3"})).fingerprint != same
    assert prompt_task("Q:  {{question}}").prepare(ITEM).fingerprint != same
    assert prompt_task(params={"temperature": 1}).prepare(ITEM).fingerprint != same
    assert (
        prompt_task([{"role": "system", "content": "Q: {{question}}"}]).prepare(ITEM).fingerprint
        != same
    )


def test_a_prompt_task_asks_once() -> None:
    task, around = prompt_task(), Around()
    work = task.prepare(ITEM)
    assert (work.prompt, work.messages) == ("Q: 2 + 2", None)
    assert asyncio.run(task.run(work, around)).text == "<Q: 2 + 2>"  # type: ignore[arg-type]
    assert (around.request.sample_index, around.request.seed, around.request.timeout) == (
        3,
        99,
        7.0,
    )


def test_a_chat_is_shown_as_messages() -> None:
    turns = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    work = prompt_task(turns).prepare(ITEM)
    assert (work.prompt, work.messages) == ("S\n\nU", turns)


def test_a_refusal_is_no_answer() -> None:
    refusing = python("m", function=lambda prompt: Completion(text="No.", refused=True))
    task = prompt(jinja("x"), refusing)
    assert asyncio.run(task.run(task.prepare(ITEM), Around())).outcome == "refused"  # type: ignore[arg-type]


# ---- functions


def of_data(data: Any) -> Any:
    return data["question"]


def of_item(item: Item, *, suffix: str = "") -> Any:
    return f"{item.ground_truth}{suffix}"


async def of_context(data: Any, context: Any) -> Any:
    return context.seed


class Agent:
    name = "agent"

    def answer(self, question: Any) -> str:
        return "it is 4"


def ran(task: FunctionTask) -> Any:
    return asyncio.run(task.run(task.prepare(ITEM), Around()))  # type: ignore[arg-type]


def test_a_function_gets_what_it_asks_for() -> None:
    assert ran(function(of_data)).text == "2 + 2"
    assert ran(function(of_item, params={"suffix": "!"})).text == "4!"
    assert ran(function(of_context)).output == 99
    assert ran(function(Agent().answer, name=Agent.name)).text == "it is 4"


def test_a_functions_fingerprint_is_what_it_sees() -> None:
    seen = function(of_data).prepare(ITEM).fingerprint
    assert function(of_data).prepare(edited(ground_truth="5", metadata={})).fingerprint == seen
    assert (
        function(of_data).prepare(edited(data={"question": "2 + 2", "note": "other"})).fingerprint
        != seen
    )
    whole = function(of_item).prepare(ITEM).fingerprint
    assert function(of_item).prepare(edited(ground_truth="5")).fingerprint != whole
    assert function(of_item, params={"suffix": "!"}).prepare(ITEM).fingerprint != whole
    assert function(of_item, name="other").prepare(ITEM).fingerprint != whole


def test_a_function_is_checked_when_it_is_bound() -> None:
    with pytest.raises(UserError, match="takes no item"):
        function(lambda context: 1, name="f")
    with pytest.raises(UserError, match="no parameter 'sufix'"):
        function(of_item, params={"sufix": "!"})


@dataclass
class Found:
    answer: str
    sources: list[int]


class Typed(msgspec.Struct):
    score: float


@pytest.mark.parametrize(
    ("result", "text", "output"),
    [
        ("text", "text", None),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        ([1, 2], "[1,2]", [1, 2]),
        (4, "4", 4),
        (None, "null", None),
        (Found("x", [1]), '{"answer":"x","sources":[1]}', {"answer": "x", "sources": [1]}),
        (Typed(0.5), '{"score":0.5}', {"score": 0.5}),
        ({1: "a"}, '{"1":"a"}', {"1": "a"}),
        (Completion(text="c"), "c", None),
    ],
)
def test_results(result: Any, text: str, output: Any) -> None:
    answer = answer_of(result)
    assert (answer.text, answer.output) == (text, output)


def test_what_is_no_json_value_is_refused() -> None:
    with pytest.raises(TypeError):
        answer_of(object())
