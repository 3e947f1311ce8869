"""The state of a record: what is merged, what is dropped, what grows, what nobody else can touch."""

from typing import Any

from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node


def fn(name: str, *keys: str) -> dict[str, Any]:
    return node("lambda", **{"lambda": name}, **({"output_keys": list(keys)} if keys else {}))


def test_an_undeclared_variable_is_dropped_and_said_once() -> None:
    bench = Bench({"f": lambda config, state: {"known": 1, "undeclared": 2}})
    task = bench.task(chain({"f": fn("f", "known")}, **mapped("known", "undeclared")))
    assert task.notes == []
    rows = bench.run_task(task, {}, {}, {})
    assert [row.output for row in rows] == [{"known": 1, "undeclared": None}] * 3
    assert task.notes == [
        "node 'f' returned 'undeclared', which no output_keys declares: it is dropped"
    ]


def test_fields_of_the_record_prompts_and_given_keys_are_declared() -> None:
    bench = Bench({"f": lambda config, state: {"field": 1, "in_prompt": 2, "given": 3}})
    nodes = {"f": fn("f"), "ask": llm("{in_prompt}")}
    (row,) = bench.run(
        chain(nodes, **mapped("field", "in_prompt", "given")), {"field": 0}, record_keys=["given"]
    )
    assert row.output == {"field": 1, "in_prompt": 2, "given": 3}


def test_a_record_may_have_fields_that_others_lack() -> None:
    rows = Bench({"f": lambda config, state: {}}).run(
        chain({"f": fn("f")}, **mapped("b")), {"a": 1}, {"b": 2}
    )
    assert [row.output for row in rows] == [{"b": None}, {"b": 2}]


def test_messages_grow_and_a_returned_state_repeats_none() -> None:
    ask = llm()
    del ask["output_keys"]
    bench = Bench({"same": lambda config, state: state})
    out = bench.output(
        chain({"one": ask, "same": fn("same"), "two": ask, "again": fn("same")}), question="2"
    )
    assert [message["name"] for message in out["messages"]] == ["one", "two"]


def test_helpers_of_one_sample_cannot_touch_anothers_record() -> None:
    def spoil(config: Any, state: Any) -> Any:
        state["golden"]["tool"] = state["golden"].get("tool", 0) + 1
        return state

    bench = Bench({"spoil": spoil})
    task = bench.task(chain({"spoil": fn("spoil")}, **mapped("golden")))
    rows = bench.run_task(task, {"golden": {}}, samples=5)
    assert [row.output for row in rows] == [{"golden": {"tool": 1}}] * 5


def test_a_record_without_an_id_gets_the_items() -> None:
    bench = Bench({"f": lambda config, state: {}})
    assert bench.output(chain({"f": fn("f")}, **mapped("id"))) == {"id": "r0"}


# ---- chat history

TURNS = [
    {"role": "user", "content": "u1"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "function": {"name": "click", "arguments": {"x": 1}}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "user", "content": "u2"},
    {"role": "assistant", "content": "a2"},
]


def chatting(mode: str, window: int = 100) -> tuple[Bench, dict[str, Any]]:
    def begin(config: Any, state: Any) -> Any:
        return {"__chat_history__": TURNS}

    bench = Bench({"begin": begin})
    ask = llm([{"system": "s"}, {"user": "{question}"}], chat_history=True)
    source = chain({"begin": fn("begin"), "ask": ask, "again": {**ask, "output_keys": "second"}})
    source["graph_config"]["graph_properties"] = {
        "chat_conversation": mode,
        "chat_history_window_size": window,
    }
    return bench, source


def test_multiturn_puts_the_turns_after_the_system_message() -> None:
    bench, source = chatting("multiturn")
    out = bench.output(source, question="q")
    first, second = bench.sent()
    call = {"id": "c", "type": "function", "function": {"name": "click", "arguments": '{"x":1}'}}
    assert first == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u1"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "user", "content": "u2"},
        {"role": "assistant", "content": "a2"},
        {"role": "user", "content": "q"},
    ]
    assert second == first
    kept = out["__chat_history__"]
    assert kept[:5] == TURNS
    assert [entry["name"] for entry in kept[5:]] == ["ask", "again"]
    assert kept[5] == {"name": "ask", "request": first, "response": "<q>"}


def test_the_window_begins_with_a_user() -> None:
    bench, source = chatting("multiturn", window=4)
    source["graph_config"]["nodes"].pop("again")
    source["graph_config"]["edges"][2:] = [{"from": "ask", "to": "END"}]
    bench.output(source, question="q")
    assert [message["content"] for message in bench.sent()[0]] == ["s", "u2", "a2", "q"]


def test_singleturn_tells_the_conversation() -> None:
    bench, source = chatting("singleturn")
    source["graph_config"]["nodes"]["begin"]["lambda"] = "nothing"
    bench.helpers["nothing"] = lambda config, state: {}
    bench.output(source, question="q")
    first, second = bench.sent()
    assert [message["content"] for message in first] == ["s", "q"]
    assert second[0] == {"role": "system", "content": "s"}
    lines = second[1]["content"].splitlines()
    assert lines[1:3] == ["Organizer: q", "ask: <q>"]
    assert "again" in lines[-1]


def test_a_helper_that_keeps_the_history_itself_does_not_double_it() -> None:
    """The loop of a web agent: each attempt begins from the record's own history."""

    class Before:
        @classmethod
        def apply(cls, state: Any) -> Any:
            state["__chat_history__"] = list(state["chat_history"])
            return state

    class After:
        @classmethod
        def apply(cls, resp: Any, state: Any) -> Any:
            state["tries"] = state.get("tries", 0) + 1
            return state

    bench = Bench(
        {
            "before": Before,
            "after": After,
            "go": lambda state: "ask" if state["tries"] < 3 else "__end__",
        }
    )
    ask = llm(
        "{question}",
        chat_history=True,
        pre_process="before",
        post_process="after",
        output_keys=["tries"],
    )
    source = chain({"ask": ask}, **mapped("tries"))
    source["graph_config"]["graph_properties"] = {
        "chat_conversation": "multiturn",
        "chat_history_window_size": 1000,
    }
    source["graph_config"]["edges"][1] = {
        "from": "ask",
        "condition": "go",
        "path_map": {"ask": "ask", "END": "END"},
    }
    assert bench.output(source, question="q", chat_history=TURNS[:1]) == {"tries": 3}
    assert (
        bench.sent() == [[{"role": "user", "content": "u1"}, {"role": "user", "content": "q"}]] * 3
    )
