"""Edges, conditions and loops."""

from typing import Any

import pytest

from assay.errors import UserError
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node


def step(config: Any, state: Any) -> Any:
    return {"count": state.get("count", 0) + 1}


def looped(condition: Any, path_map: Any, **more: Any) -> tuple[Bench, dict[str, Any]]:
    """One node that counts its visits, and a condition after it."""
    bench = Bench({"step": step, "go": condition})
    edge: dict[str, Any] = {"from": "step", "condition": "go", **more}
    if path_map is not None:
        edge["path_map"] = path_map
    nodes = {"step": node("lambda", **{"lambda": "step"}, output_keys=["count"])}
    edges = [{"from": "START", "to": "step"}, edge]
    return bench, {"graph_config": {"nodes": nodes, "edges": edges}, **mapped("count")}


@pytest.mark.parametrize("end", ["__end__", "END"])
@pytest.mark.parametrize(
    "path_map", [{"step": "step", "END": "END"}, None, {"step": "step", "END": "END", "x": "END"}]
)
def test_a_self_loop_runs_until_its_condition_ends_it(end: str, path_map: Any) -> None:
    bench, source = looped(lambda state: "step" if state["count"] < 7 else end, path_map)
    assert bench.output(source, x=1) == {"count": 7}


def test_a_condition_may_be_a_class_and_its_answers_anything() -> None:
    class Again:
        @classmethod
        def apply(cls, state: Any) -> Any:
            return state["count"] < 3

    bench, source = looped(Again, {True: "step", False: "END"})
    assert bench.output(source) == {"count": 3}


def test_a_hundred_steps_are_the_limit() -> None:
    bench, source = looped(lambda state: "step" if state["count"] < 100 else "END", None)
    assert bench.output(source) == {"count": 100}
    bench, source = looped(lambda state: "step", None)
    assert bench.error(source) == (
        "UserError: the graph is not at its end after 100 steps; the next would be 'step'"
    )


@pytest.mark.parametrize("answer", ["elsewhere", None, ["step", "elsewhere"], {}])
def test_an_unknown_branch_is_named_with_the_valid_ones(answer: Any) -> None:
    bench, source = looped(lambda state: answer, {"step": "step", "END": "END"})
    error = bench.error(source)
    named = "elsewhere" if answer else answer
    assert f"the condition go after 'step' returned {named!r}; valid: 'step', 'END'" in error


def test_a_condition_cannot_change_the_state() -> None:
    def go(state: Any) -> str:
        state["count"] = 99
        return "END"

    bench, source = looped(go, None)
    assert bench.output(source) == {"count": 1}


def test_to_beside_a_condition_does_not_count() -> None:
    bench, source = looped(lambda state: "END", None, to="step")
    task = bench.task(source)
    assert task.notes == ["graph_config.edges[1]: `to` does not count beside `condition`"]
    assert bench.run_task(task, {})[0].output == {"count": 1}


def parallel(**helpers: Any) -> tuple[Bench, dict[str, Any]]:
    nodes = {
        name: node("lambda", **{"lambda": name}, output_keys=[f"from_{name}"]) for name in helpers
    }
    nodes["join"] = node("lambda", **{"lambda": "join"}, output_keys=["seen"])
    edges = [{"from": "START", "to": name} for name in helpers] + [
        {"from": name, "to": "join"} for name in helpers
    ]
    bench = Bench(
        {**helpers, "join": lambda config, state: {"seen": [*state.get("seen", []), sorted(state)]}}
    )
    return bench, {
        "graph_config": {"nodes": nodes, "edges": [*edges, {"from": "join", "to": "END"}]}
    }


def test_several_edges_run_side_by_side_and_meet() -> None:
    def returns_all(config: Any, state: Any) -> Any:
        state["from_b"] = 2
        return state

    bench, source = parallel(a=lambda config, state: {"from_a": 1}, b=returns_all)
    out = bench.output(source, x=1)
    assert (out["from_a"], out["from_b"], out["x"]) == (1, 2, 1)
    assert len(out["seen"]) == 1
    assert {"from_a", "from_b"} <= set(out["seen"][0])


def test_two_nodes_cannot_set_one_variable_in_one_step() -> None:
    bench, source = parallel(a=lambda config, state: {"x": 1}, b=lambda config, state: {"x": 2})
    assert "the nodes 'a' and 'b' both set 'x' in one step" in bench.error(source, x=0)


def test_both_edges_and_conditions_of_a_node_are_followed() -> None:
    nodes = {
        name: node("lambda", **{"lambda": name}, output_keys=[f"from_{name}"]) for name in "abc"
    }
    edges = [
        {"from": "START", "to": "a"},
        {"from": "a", "to": "b"},
        {"from": "a", "condition": "go", "path_map": {"yes": "c"}},
    ]
    helpers = {name: (lambda config, state, name=name: {f"from_{name}": 1}) for name in "abc"}
    bench = Bench({**helpers, "go": lambda state: "yes"})
    task = bench.task({"graph_config": {"nodes": nodes, "edges": edges}})
    assert [note.rpartition(": no edge")[2] for note in task.notes] == [
        " leaves the node 'b': the graph ends there",
        " leaves the node 'c': the graph ends there",
    ]
    out = bench.run_task(task, {})[0].output
    assert (out["from_b"], out["from_c"]) == (1, 1)


def test_an_idle_node_is_left_out() -> None:
    nodes = {
        "ask": llm(),
        "off": {**llm(output_keys="unused", model={"name": "gone"}), "node_state": "idle"},
    }
    source = chain({"ask": nodes["ask"]}, **mapped("answer"))
    source["graph_config"]["nodes"] = nodes
    assert Bench().output(source, question="2") == {"answer": "<2>"}
    source["graph_config"]["edges"].append({"from": "off", "to": "END"})
    with pytest.raises(UserError, match="'off' is idle"):
        Bench().task(source)
