"""Graphs that cannot work: each problem is found when the graph is bound, named with its place."""

from typing import Any

import pytest

from assay.errors import ConfigError, UserError
from tests.formats.sygra.graph.graphs import Bench, chain, llm, node


def fn(name: str = "f", **config: Any) -> dict[str, Any]:
    return node("lambda", **{"lambda": name}, **config)


def problem(source: Any, helpers: Any = None) -> UserError:
    with pytest.raises(UserError) as caught:
        Bench(helpers or {"f": lambda config, state: {}}).task(source, where="g.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("nodes", "what", "where", "fix"),
    [
        ({"a": node("lmm")}, "unknown node type 'lmm'", "a.node_type", "did you mean 'llm'?"),
        ({"a": {}}, "no node_type", "a.node_type", "llm"),
        ({"a": None}, "is a NoneType", "a", "node_type"),
        ({"a": node("lambda")}, "needs `lambda`", "a", "function or a class"),
        ({"a": fn("no.such")}, "'no.such' cannot be imported", "a.lambda", ""),
        ({"a": fn(3)}, "not a dotted path", "a.lambda", ""),  # type: ignore[arg-type]
        ({"a": llm(post_process="no.such")}, "'no.such' cannot be imported", "a.post_process", ""),
        ({"a": llm(pre_process="no.such")}, "'no.such' cannot be imported", "a.pre_process", ""),
        ({"a": llm(tools=["no.such"])}, "'no.such' cannot be imported", "a.tools", ""),
        (
            {"a": llm(output_keys=["x"])},
            "list of output_keys needs a post-processor",
            "a.output_keys",
            "post_process",
        ),
        ({"a": llm(output_keys=3)}, "output_keys is 3", "a", "list of names"),
        ({"a": llm(output_vars=["x"])}, "output_vars", "a", "output_keys"),
        ({"a": llm(model={"name": "n"})}, "unknown model 'n'", "a.model.name", "valid: m, other"),
        ({"a": llm(model={})}, "model has no name", "a.model", "name"),
        (
            {"a": llm(model={"name": "m", "parameters": {"step": 1}})},
            "'step' is not a parameter",
            "a.model.parameters",
            "",
        ),
        ({"a": node("llm", model="m")}, "needs `prompt`", "a", "prompt"),
        ({"a": llm('{"x"}')}, "names no variable", "a.prompt[0]", "{{ and }}"),
        (
            {"a": node("multi_llm", prompt=[{"user": "x"}], models={0: 3})},
            "model has no name",
            "a.models.0",
            "name",
        ),
        ({"a": node("multi_llm", prompt=[{"user": "x"}])}, "needs `models`", "a", "label"),
        ({"a": node("weighted_sampler")}, "needs `attributes`", "a", "attributes"),
        ({"a": node("subgraph")}, "needs `subgraph`", "a", "task"),
        (
            {"a": fn(output_keys=["x"]), "b": fn(output_keys=["x"])},
            "'x' occurs twice",
            "b.output_keys",
            "'a' has it",
        ),
        ({"a": fn(output_keys=["x", "x"])}, "'x' occurs twice", "a.output_keys", "rename"),
        ({"a": fn(output_keys=["messages"])}, "belongs to every graph", "a.output_keys", "rename"),
        (
            {"a": fn(output_keys="__chat_history__")},
            "belongs to every graph",
            "a.output_keys",
            "rename",
        ),
        ({"END": fn()}, "cannot be called 'END'", "END", "rename"),
    ],
)
def test_nodes(nodes: Any, what: str, where: str, fix: str) -> None:
    error = problem(chain(nodes))
    assert what in error.what
    assert error.where == f"g.yaml: graph_config.nodes.{where}"
    assert fix in error.fix


def test_a_class_without_apply_and_an_abstract_one() -> None:
    from abc import ABC, abstractmethod

    class Abstract(ABC):
        @staticmethod
        @abstractmethod
        def apply(config: Any, state: Any) -> Any: ...

    assert "has no `apply`" in problem(chain({"a": fn()}), {"f": type("Empty", (), {})}).what
    assert "is abstract" in problem(chain({"a": fn()}), {"f": Abstract}).what
    assert "is a int" in problem(chain({"a": fn()}), {"f": 3}).what


def with_edges(*edges: Any) -> Any:
    return {
        "graph_config": {
            "nodes": {"a": fn(), "b": fn(), "c": {**fn(), "node_state": "idle"}},
            "edges": list(edges),
        }
    }


A = {"from": "START", "to": "a"}


@pytest.mark.parametrize(
    ("edges", "what", "where"),
    [
        ([A, {"from": "a", "to": "bb"}], "there is no node 'bb'", "edges[1].to"),
        ([A, {"from": "aa", "to": "END"}], "there is no node 'aa'", "edges[1].from"),
        ([A, {"from": "END", "to": "a"}], "there is no node 'END'", "edges[1].from"),
        ([A, {"from": "a", "to": "START"}], "there is no node 'START'", "edges[1].to"),
        ([A, {"from": "a", "to": "c"}], "'c' is idle", "edges[1].to"),
        ([A, {"from": "a"}], "neither `to` nor `condition`", "edges[1].to"),
        ([A, "a -> b"], "the edge is a str", "edges[1]"),
        (
            [A, {"from": "a", "condition": "no.such", "path_map": {}}],
            "cannot be imported",
            "edges[1].condition",
        ),
        ([A, {"from": "a", "condition": "f", "path_map": {}}], "path_map", "edges[1].path_map"),
        (
            [A, {"from": "a", "condition": "f", "path_map": {"x": "d"}}],
            "no node 'd'",
            "edges[1].path_map.x",
        ),
        ([A, A], "from 'START' to 'a' occurs twice", "edges[1]"),
        (
            [A, {"from": "a", "condition": "f"}, {"from": "a", "condition": "f"}],
            "occurs twice",
            "edges[2]",
        ),
    ],
)
def test_edges(edges: Any, what: str, where: str) -> None:
    error = problem(with_edges(*edges))
    assert what in error.what
    assert error.where == f"g.yaml: graph_config.{where}"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({}, "no graph_config"),
        ({"graph_config": {"nodes": {}}}, "no nodes"),
        ({"graph_config": {"nodes": {"a": fn()}}}, "no edges"),
        (with_edges({"from": "a", "to": "b"}), "no edge leaves START"),
    ],
)
def test_graphs_that_are_none(source: Any, what: str) -> None:
    assert what in problem(source).what


def test_all_problems_of_the_nodes_at_once() -> None:
    error = problem(chain({"a": node("lmm"), "b": fn("no.such"), "c": llm(output_keys=["x"])}))
    assert isinstance(error, ConfigError)
    assert [one.where.rpartition("nodes.")[2] for one in error.problems] == [
        "a.node_type",
        "b.lambda",
        "c.output_keys",
    ]


def test_what_is_odd_is_noted() -> None:
    source = with_edges(A, {"from": "a", "to": "END"})
    source["graph_config"]["nodes"] |= {"x": llm(output_keys="v"), "y": llm(output_keys="v")}
    source["graph_config"]["nodes"]["x"]["model"]["url"] = "http://127.0.0.1:1"
    task = Bench({"f": lambda config, state: {}}).task(source)
    assert task.notes == [
        "graph_config.nodes.x.model: url of a model count only where the model is defined",
        "graph_config.nodes.y.output_keys: 'v' is an output of 'x' too",
        *(f"graph_config: no edge leads to the node {name!r}" for name in ("b", "x", "y")),
    ]


def test_a_record_that_is_no_object() -> None:
    from assay.records import Item

    task = Bench().task(chain({"a": llm()}))
    with pytest.raises(UserError, match="a record is an object"):
        task.prepare(Item(id="a", data="text"))


def test_graph_properties() -> None:
    source = chain({"a": llm()})
    source["graph_config"]["graph_properties"] = {"chat_conversation": "multi-turn"}
    assert "chat_conversation 'multi-turn' is not known" in Bench().task(source).notes[0]
    source["graph_config"]["graph_properties"] = {"chat_history_window_size": "many"}
    assert "the window is 'many'" in problem(source).what
