"""Subgraphs inside a graph."""

from typing import Any

import pytest

from assay.errors import UserError
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node


def test_a_subgraph_runs_in_place_with_its_overrides() -> None:
    inner = chain(
        {
            "draw": node("weighted_sampler", attributes={"tone": {"values": ["calm"]}}),
            "say": llm("{p} {tone}"),
        }
    )
    changes = {
        "say": {
            "output_keys": "said",
            "prompt_placeholder_map": {"p": "prompt"},
            "model": {"parameters": {"temperature": 1}},
        }
    }
    sub = node("subgraph", subgraph="tasks.inner", node_config_map=changes)
    source = chain({"sub": sub, "last": llm("{said}")}, **mapped("tone", "said", "answer"))
    bench = Bench()
    (row,) = bench.run(source, {"prompt": "hi"}, subgraph={"tasks.inner": inner}.__getitem__)
    assert row.output == {"tone": "calm", "said": "<hi calm>", "answer": "<<hi calm>>"}
    assert [request.params for request in bench.asked] == [{"temperature": 1}, {}]


def test_inner_nodes_have_the_outer_name_before_their_own() -> None:
    inner = chain({"say": llm("{missing}")})
    outer = chain({"a": node("subgraph", subgraph="inner")})
    (row,) = Bench().run(outer, {}, subgraph=lambda name: inner)
    assert row.error is not None
    assert "node 'a.say': the prompt needs 'missing'" in row.error


def test_conditions_inside_lead_to_the_end_of_the_subgraph_and_loops_to_it() -> None:
    def count(config: Any, state: Any) -> Any:
        return {"n": state.get("n", 0) + 1}

    inner = chain({"count": node("lambda", **{"lambda": "count"}, output_keys=["n"])})
    inner["graph_config"]["edges"][1] = {
        "from": "count",
        "condition": "inner",
        "path_map": {"count": "count", "END": "END"},
    }
    deeper = chain({"deep": node("subgraph", subgraph="inner")})
    source = chain({"sub": node("subgraph", subgraph="deeper")}, **mapped("n"))
    source["graph_config"]["edges"][1] = {
        "from": "sub",
        "condition": "outer",
        "path_map": {"again": "sub", "END": "END"},
    }
    helpers = {
        "count": count,
        "inner": lambda state: "count" if state["n"] % 3 else "__end__",
        "outer": lambda state: "again" if state["n"] < 9 else "__end__",
    }
    (row,) = Bench(helpers).run(source, {}, subgraph={"inner": inner, "deeper": deeper}.__getitem__)
    assert row.output == {"n": 9}


def test_connectors_are_no_steps() -> None:
    inner = chain({"count": node("lambda", **{"lambda": "count"}, output_keys=["n"])})
    source = chain({"sub": node("subgraph", subgraph="inner")}, **mapped("n"))
    source["graph_config"]["edges"][1] = {"from": "sub", "condition": "go"}
    helpers = {
        "count": lambda config, state: {"n": state.get("n", 0) + 1},
        "go": lambda state: "sub.count" if state["n"] < 100 else "END",
    }
    (row,) = Bench(helpers).run(source, {}, subgraph=lambda name: inner)
    assert row.output == {"n": 100}


def test_a_subgraph_cannot_contain_itself() -> None:
    source = chain({"sub": node("subgraph", subgraph="inner")})
    with pytest.raises(UserError, match="'inner' contains itself"):
        Bench().task(source, subgraph=lambda name: source)


def test_an_override_of_nothing_is_noted() -> None:
    source = chain({"sub": node("subgraph", subgraph="inner", node_config_map={"sya": {}})})
    task = Bench().task(source, subgraph=lambda name: chain({"say": llm()}))
    assert task.notes == [
        "graph_config.nodes.sub: node_config_map names 'sya', which is not a node of the subgraph"
    ]


def test_equal_names_in_two_subgraphs_are_no_conflict() -> None:
    inner = chain({"say": llm("{question}", post_process="post", output_keys=["said"])})
    subs = {name: node("subgraph", subgraph="inner") for name in ("one", "two")}
    bench = Bench(
        {"post": lambda message, state: {"said": state.get("said", "") + message.content}}
    )
    (row,) = bench.run(
        chain(subs, **mapped("said")), {"question": "2"}, subgraph=lambda name: inner
    )
    assert row.output == {"said": "<2><2>"}
