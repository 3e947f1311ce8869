"""The kinds of nodes, each on the real engine."""

from collections import Counter
from typing import Any

import pytest

from assay.errors import PermanentError, UserError
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node


class Static:
    @staticmethod
    def apply(resp: Any, state: Any) -> Any:
        return {"answer": resp.message.content, "seen": state["question"]}


class Instance:
    def __init__(self) -> None:
        self.count = 0

    def apply(self, resp: Any) -> Any:
        self.count += 1
        return {"answer": resp.message.content, "seen": self.count}


class OfClass:
    @classmethod
    def apply(cls, resp: Any, state: Any) -> Any:
        state["answer"], state["seen"] = resp.message.content, cls.__name__
        return state


def plain(message: Any, state: Any) -> Any:
    return {"answer": message.content, "seen": state["question"]}


async def later(message: Any) -> Any:
    return {"answer": message.content, "seen": "async"}


@pytest.mark.parametrize(
    ("helper", "seen"),
    [(Static, "2"), (Instance, 1), (OfClass, "OfClass"), (plain, "2"), (later, "async")],
)
def test_post_processors(helper: Any, seen: Any) -> None:
    bench = Bench({"post": helper})
    source = chain(
        {"ask": llm(post_process="post", output_keys=["answer", "seen"])},
        **mapped("answer", "seen"),
    )
    rows = bench.run(source, *({"question": "2"} for _ in range(8)))
    assert [row.output for row in rows] == [{"answer": "<2>", "seen": seen}] * 8


def test_a_type_error_of_the_helper_is_not_taken_for_another_signature() -> None:
    calls: list[int] = []

    def post(message: Any, state: Any) -> Any:
        calls.append(1)
        return {"answer": 1 + message.content}

    bench = Bench({"a.b.post": post})
    error = bench.error(
        chain({"ask": llm(post_process="a.b.post", output_keys=["answer"])}), question="2"
    )
    assert error.startswith("NodeFailed: node 'ask': post (test_nodes.py:")
    assert "TypeError: unsupported operand" in error
    assert calls == [1]


def test_a_pre_processor_changes_what_its_own_node_sees() -> None:
    class Before:
        def apply(self, state: Any) -> Any:
            state["question"] += "!"
            return state

    def same(config: Any, state: Any) -> Any:
        return {"copy": state["question"]}

    bench = Bench({"before": Before, "same": same})
    nodes = {
        "ask": llm(pre_process="before"),
        "copy": node("lambda", **{"lambda": "same"}, output_keys=["copy"]),
    }
    assert bench.output(chain(nodes, **mapped("answer", "copy")), question="2") == {
        "answer": "<2!>",
        "copy": "2",
    }


def test_without_output_keys_the_answer_is_a_message_for_the_next_node() -> None:
    first, second = llm(), llm([{"system": "s"}])
    del first["output_keys"]
    bench = Bench()
    out = bench.output(
        chain({"first": {**first, "output_role": "user"}, "second": second}), question="2"
    )
    assert bench.sent()[1] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "<2>", "name": "first"},
    ]
    assert out["messages"] == [{"role": "user", "content": "<2>", "name": "first"}]
    assert out["answer"] == "<<2>>"


def test_turns_come_from_the_input_key() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    bench = Bench()
    bench.output(chain({"ask": llm([{"system": "s"}], input_key="turns")}), turns=turns)
    assert bench.sent() == [[{"role": "system", "content": "s"}, *turns]]
    assert "turns is not a list of messages" in bench.error(
        chain({"ask": llm(input_key="turns")}), turns=3, question=""
    )


def test_parameters_of_the_node_go_over_those_of_the_model() -> None:
    from assay.formats.sygra.graph import ModelUse

    bench = Bench()
    uses = {"eval_model": ModelUse("other", {"temperature": 1, "max_tokens": 5})}
    ask = llm(model={"name": "eval_model", "parameters": {"temperature": 0.3}})
    task = bench.task(chain({"ask": ask}), models=uses)
    bench.run_task(task, {"question": "2"})
    assert bench.asked[0].params == {"temperature": 0.3, "max_tokens": 5}
    assert (task.model_name, task.lane, task.facets) == ("other", "other", {"model_id": "other"})


def test_a_model_may_clean_its_texts() -> None:
    from assay.formats.sygra.graph import ModelUse

    bench = Bench(answer=lambda messages: " <|end|>x\n")
    uses = {"m": ModelUse("m", clean=lambda text: text.replace("<|end|>", ""))}
    (row,) = bench.run(chain({"ask": llm()}, **mapped("answer")), {"question": "2"}, models=uses)
    assert row.output == {"answer": "x"}


# ---- lambda


def test_a_lambda_gets_its_own_config_and_what_it_returns_is_merged() -> None:
    class Units:
        @staticmethod
        def apply(config: Any, state: Any) -> Any:
            return {"found": [config["golden_key"], config["more"], state["question"]]}

    async def late(config: Any, state: Any) -> Any:
        return {"late": state["found"][0]}

    def nothing(config: Any, state: Any) -> None:
        state["found"] = "lost"

    bench = Bench({"units": Units, "late": late, "nothing": nothing})
    nodes = {
        "units": node(
            "lambda", **{"lambda": "units"}, golden_key="g", more={"a": 1}, output_keys=["found"]
        ),
        "nothing": node("lambda", **{"lambda": "nothing"}),
        "late": node("lambda", **{"lambda": "late"}, output_keys="late"),
    }
    out = bench.output(chain(nodes, **mapped("found", "late")), question="2")
    assert out == {"found": ["g", {"a": 1}, "2"], "late": "g"}


def test_a_lambda_that_returns_no_dict() -> None:
    bench = Bench({"f": lambda config, state: "text"})
    assert "node 'f': lambda returned a str" in bench.error(
        chain({"f": node("lambda", **{"lambda": "f"})})
    )


def test_what_a_lambda_raises_is_the_records_error() -> None:
    def fails(config: Any, state: Any) -> Any:
        return {"answer": state["no_such"]} if state["question"] == "2" else {"answer": "fine"}

    bench = Bench({"f": fails})
    source = chain(
        {"f": node("lambda", **{"lambda": "f"}, output_keys=["answer"])}, **mapped("id", "answer")
    )
    rows = bench.run(source, {"id": "a", "question": "2"}, {"id": "b", "question": "3"})
    assert rows[0].error is not None
    assert "KeyError: 'no_such'" in rows[0].error
    assert (rows[0].item_id, rows[1].output) == ("a", {"id": "b", "answer": "fine"})


# ---- multi_llm


def test_several_models_answer_side_by_side() -> None:
    bench = Bench()
    models = {"one": {"name": "m"}, "two": {"name": "other", "parameters": {"temperature": 0}}}
    multi = node("multi_llm", models=models, prompt=[{"user": "{question}"}], output_keys="answers")
    assert bench.output(chain({"all": multi}, **mapped("answers")), question="2") == {
        "answers": [{"one": "<2>", "two": "<2>"}]
    }
    assert sorted(str(request.params) for request in bench.asked) == ["{'temperature': 0}", "{}"]


def test_several_models_with_a_post_processor() -> None:
    def best(outputs: Any) -> Any:
        return {
            "best": max(output["answer"] for output in outputs.values()),
            "labels": sorted(outputs),
        }

    def post(message: Any) -> Any:
        return {"answer": message.content.upper()}

    bench = Bench({"best": best, "post": post}, lambda messages: "abc")
    multi = node(
        "multi_llm",
        models={"x": {"name": "m"}, "y": {"name": "m"}},
        prompt=[{"user": "{question}"}],
        output_keys=["best", "labels"],
        post_process="post",
        multi_llm_post_process="best",
    )
    out = bench.output(chain({"all": multi}, **mapped("best", "labels")), question="2")
    assert out == {"best": "ABC", "labels": ["x", "y"]}


def test_a_model_that_fails_leaves_no_other_at_work() -> None:
    def answer(messages: Any) -> Any:
        raise PermanentError("broken")

    bench = Bench(answer=answer)
    multi = node(
        "multi_llm", models={0: {"name": "m"}, 1: {"name": "other"}}, prompt=[{"user": "x"}]
    )
    assert bench.error(chain({"all": multi})) == "broken"
    assert len(bench.asked) == 2


# ---- weighted_sampler

TONES = node(
    "weighted_sampler",
    attributes={"tone": {"values": ["a", "b"], "weights": [3, 1]}, "n": {"values": [1, 2]}},
)


def test_samples_follow_the_seed_and_the_weights() -> None:
    source = chain({"draw": TONES}, **mapped("id", "tone", "n"))
    records = [{"id": str(n)} for n in range(600)]
    first, second = ([row.output for row in Bench().run(source, *records)] for _ in range(2))
    assert first == second
    other = Bench()
    assert [row.output for row in other.run_task(other.task(source), *records, seed=1)] != first
    counts = Counter(out["tone"] for out in first)
    assert 400 < counts["a"] < 500  # 450 expected, standard deviation 10.6
    assert len({(out["tone"], out["n"]) for out in first}) == 4


def test_a_loop_draws_anew() -> None:
    def keep(config: Any, state: Any) -> Any:
        return {"all": [*state.get("all", []), state["n"]]}

    bench = Bench(
        {"keep": keep, "more": lambda state: "draw" if len(state["all"]) < 20 else "__end__"}
    )
    source = chain(
        {"draw": TONES, "keep": node("lambda", **{"lambda": "keep"}, output_keys=["all"])},
        **mapped("all"),
    )
    source["graph_config"]["edges"][-1] = {
        "from": "keep",
        "condition": "more",
        "path_map": {"draw": "draw", "END": "END"},
    }
    assert set(bench.output(source)["all"]) == {1, 2}


def test_values_from_a_source() -> None:
    rows = [{"role": f"role {n}", "mood": f"mood {n}"} for n in range(5)]
    asked: list[Any] = []

    def opened(source: Any) -> Any:
        asked.append(source)
        return rows

    values = {"column": ["role", "mood"], "source": {"type": "disk"}}
    source = chain(
        {"draw": node("weighted_sampler", attributes={"who": {"values": values}})}, **mapped("who")
    )
    found = [
        row.output["who"] for row in Bench().run(source, *({} for _ in range(200)), rows=opened)
    ]
    assert set(found) == {value for row in rows for value in row.values()}
    assert asked == [{"type": "disk"}]
    values["column"] = "age"
    with pytest.raises(UserError, match="no column 'age'") as caught:
        Bench().task(source, rows=opened)
    assert caught.value.fix == "it has: role, mood"


@pytest.mark.parametrize(
    "attribute",
    [
        {},
        {"values": []},
        {"values": "abc"},
        {"values": [1, 2], "weights": [1]},
        {"values": [1], "weights": [0]},
    ],
)
def test_attributes_that_cannot_be_drawn(attribute: Any) -> None:
    with pytest.raises(UserError) as caught:
        Bench().task(chain({"draw": node("weighted_sampler", attributes={"a": attribute})}))
    assert caught.value.where == "graph_config.nodes.draw.attributes.a"
