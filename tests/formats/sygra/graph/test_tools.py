"""Tools: what a model is told about them, and which it asks for."""

import json
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.sygra.graph.called import load_tools, tool
from assay.interfaces import Completion
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool("times")
def multiply(a: float, b: float) -> float:
    """Multiply."""
    return a * b


@tool
async def slow_echo(text: str) -> dict[str, str]:
    return {"text": text}


def call(name: str, arguments: Any, id: str = "c1") -> dict[str, Any]:
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def test_the_schema_comes_from_the_signature() -> None:
    (one,) = load_tools(["add"], lambda dotted, where: add, "w")
    assert one.description == {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a"],
            },
        },
    }


def module(**members: Any) -> ModuleType:
    made = ModuleType("tools_of_mine")
    vars(made).update(members)
    return made


class Holder:
    times = multiply
    other = 3


class Wrapper:
    def get_tools(self) -> list[Any]:
        return [add]


def of_pydantic() -> Any:
    """Shaped like a tool of langchain."""
    from pydantic import create_model

    schema = create_model("Args", x=(int, ...))
    return SimpleNamespace(
        name="foreign",
        description="d",
        args_schema=schema,
        invoke=lambda arguments: arguments["x"] * 2,
        func=None,
    )


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (multiply, ["times"]),
        (module(a=multiply, b=slow_echo, add=add, _hidden=multiply), ["times", "slow_echo"]),
        (Holder, ["times"]),
        (Wrapper, ["add"]),
        (of_pydantic(), ["foreign"]),
        (module(foreign=of_pydantic()), ["foreign"]),
    ],
)
def test_where_tools_are_found(target: Any, names: list[str]) -> None:
    found = load_tools("path", lambda dotted, where: target, "w")
    assert [one.name for one in found] == names
    assert all(one.description["function"]["parameters"]["properties"] for one in found)


def test_a_module_of_plain_functions_is_all_tools() -> None:
    plain = module()
    exec(
        "def f(x): return x\ndef g(): return 1\nfrom json import dumps",
        {"__name__": "tools_of_mine"},
        vars(plain),
    )
    found = load_tools(["m"], lambda dotted, where: plain, "w")
    assert [one.name for one in found] == ["f", "g"]


@pytest.mark.parametrize(("target", "what"), [(3, "is a int"), (module(), "holds no tools")])
def test_what_holds_no_tools(target: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        load_tools(["path"], lambda dotted, where: target, "w")


def test_two_tools_of_one_name() -> None:
    found = {"a": add, "b": lambda a: a}
    found["b"].__name__ = "add"
    with pytest.raises(UserError, match="two tools are called 'add'"):
        load_tools(["a", "b"], lambda dotted, where: found[dotted], "w")


# ---- llm nodes only say which tool they want


def test_an_llm_node_gives_its_tool_calls() -> None:
    wanted = [call("add", {"a": 1})]
    seen: list[Any] = []

    def post(message: Any, state: Any) -> Any:
        seen.append(state["tool_calls"])
        return {"answer": message.content}

    bench = Bench(
        {"add": add, "post": post}, lambda messages: Completion(text="", tool_calls=wanted)
    )
    out = bench.output(
        chain({"ask": llm(tools=["add"])}, **mapped("answer", "tool_calls")), question="2"
    )
    assert out == {"answer": "", "tool_calls": wanted}
    params = bench.asked[0].params
    assert (params["tool_choice"], [one["function"]["name"] for one in params["tools"]]) == (
        "auto",
        ["add"],
    )
    source = chain(
        {"ask": llm(tools="add", post_process="post", tool_choice="required")}, **mapped("answer")
    )
    assert bench.output(source, question="2") == {"answer": ""}
    assert seen == [wanted]


def test_no_tool_calls_is_an_empty_list() -> None:
    bench = Bench({"add": add})
    assert bench.output(
        chain({"ask": llm(tools=["add"])}, **mapped("tool_calls")), question="2"
    ) == {"tool_calls": []}
