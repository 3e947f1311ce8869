"""Where a graph goes after a node: fixed targets, and conditions whose answers a table turns into targets.

Subgraphs are put into their parent first: nodes become `<node>.<inner>`, their start and end connectors of the parent.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from assay.errors import UserError
from assay.formats.sygra.graph.asking import Surroundings
from assay.formats.sygra.graph.called import UserFunction
from assay.formats.sygra.graph.llm import Node
from assay.formats.sygra.types import Config, Row, deep_update, required, with_texts
from assay.interfaces import Context
from assay.registry import nearest

START, END = "START", "END"
EXIT = ".END"
Subgraph = Callable[[str], Config]
Chain = tuple[str, ...]
_VARIABLE = re.compile(r"\{([^{}]+)\}")


class Expanded:
    """A graph without subgraphs: node configs by name, edges, and each level's nodes for checks of that level."""

    def __init__(self, subgraph: Subgraph | None, notes: list[str]) -> None:
        self.nodes: dict[str, Row] = {}
        self.edges: list[Row] = []
        self.levels: list[dict[str, Row]] = []
        self._subgraph = subgraph
        self._notes = notes

    def add(
        self,
        config: Any,
        where: str,
        prefix: str = "",
        changes: Config | None = None,
        chain: Chain = (),
    ) -> None:
        """Add a graph, or the subgraph whose names begin with `prefix`; `chain` are the subgraphs that it is in."""
        nodes, edges = _parts(config, where)
        for name in changes or ():
            if name not in nodes:
                self._notes.append(
                    f"{where}: node_config_map names {name!r}, which is not a node of the subgraph"
                )
        level: dict[str, Row] = {}
        self.levels.append(level)
        inner: set[str] = set()
        for name, entry in nodes.items():
            place = f"{where}.nodes.{name}"
            if name in (START, END):
                raise UserError(f"a node cannot be called {name!r}", where=place, fix="rename it")
            what = f"the node {name!r} is a {type(entry).__name__}"
            node = deepcopy(dict(required(entry, Mapping, what, place, "give it `node_type:`")))
            deep_update(node, (changes or {}).get(name) or {})
            renamed = node.pop("prompt_placeholder_map", None)
            if renamed and "prompt" in node:
                node["prompt"] = with_texts(node["prompt"], partial(_renamed, renamed))
            full = f"{prefix}{name}"
            if node.get("node_type") != "subgraph" or node.get("node_state") == "idle":
                self.nodes[full] = level[full] = node
                continue
            inner.add(name)
            self.nodes[full] = self.nodes[full + EXIT] = {"node_type": "connector"}
            wanted, source = _load(node, self._subgraph, place, chain)
            self.add(
                source.get("graph_config"),
                place,
                f"{full}.",
                node.get("node_config_map"),
                (*chain, wanted),
            )
        for number, edge in enumerate(edges):
            self.edges.append(_edge(edge, f"{where}.edges[{number}]", prefix, inner))


def _parts(config: Any, where: str) -> tuple[Config, list[Any]]:
    fix = "add `graph_config:` with `nodes:` and `edges:`"
    required(config, Mapping, "there is no graph_config", where, fix)
    fix = "add `nodes: {name: {node_type: …}}`"
    nodes = required(
        config.get("nodes") or None, Mapping, "the graph has no nodes", f"{where}.nodes", fix
    )
    fix = "add `edges: [{from: START, to: …}]`"
    edges = required(
        config.get("edges") or None, list, "the graph has no edges", f"{where}.edges", fix
    )
    return {str(name): node for name, node in nodes.items()}, edges


def _load(node: Config, subgraph: Subgraph | None, place: str, chain: Chain) -> tuple[str, Config]:
    wanted = node.get("subgraph")
    if not isinstance(wanted, str) or subgraph is None:
        raise UserError(
            "a subgraph node needs `subgraph`", where=place, fix="name the task that it runs"
        )
    if wanted in chain:
        way = " → ".join((*chain, wanted))
        raise UserError(
            f"the subgraph {wanted!r} contains itself", where=place, fix=f"the way to it: {way}"
        )
    return wanted, subgraph(wanted)


def _renamed(names: Mapping[str, str], text: str) -> str:
    return _VARIABLE.sub(lambda match: f"{{{names.get(match[1], match[1])}}}", text)


def _edge(edge: Any, where: str, prefix: str, inner: set[str]) -> Row:
    """The edge in the names of the whole graph; inside a subgraph, its own start and end are connectors."""
    fix = "write `{from: …, to: …}`"
    required(edge, Mapping, f"the edge is a {type(edge).__name__}", where, fix)
    start, end = (prefix[:-1], prefix[:-1] + EXIT) if prefix else (START, END)

    def target(name: Any) -> Any:
        return end if name == END else f"{prefix}{name}"

    renamed = {**edge, "where": where}
    source, following = edge.get("from"), edge.get("to")
    if isinstance(source, list | dict) or isinstance(following, list | dict):
        raise UserError("an edge leads from one node to one node", where=where, fix=fix)
    renamed["from"] = (
        start if source == START else f"{prefix}{source}" + (EXIT if source in inner else "")
    )
    if following is not None:
        renamed["to"] = target(following)
    if isinstance(edge.get("path_map"), Mapping):
        renamed["path_map"] = {key: target(value) for key, value in edge["path_map"].items()}
    return renamed


RETURNED_END = "__end__"  # what a condition returns for the end; "END" is taken as well


class Branch(NamedTuple):
    """A condition. `table` is what its answers stand for; without a path_map, the names of all nodes."""

    function: UserFunction
    table: dict[Any, str]
    source: str

    async def choose(self, state: Row, context: Context) -> list[str]:
        answer = await self.function(context, state)
        targets: list[str] = []
        for name in answer if isinstance(answer, (list, tuple)) else [answer]:
            try:
                targets.append(self.table[name])
            except (KeyError, TypeError):
                valid = ", ".join(repr(key) for key in self.table if key != RETURNED_END)
                what = f"the condition {self.function.name} after {self.source!r} returned {name!r}; valid: {valid}"
                raise UserError(what) from None
        return targets


class Way(msgspec.Struct):
    """Everything that leaves one node."""

    targets: list[str] = []
    branches: list[Branch] = []

    async def follow(self, state: Row, context: Context) -> list[str]:
        targets = dict.fromkeys(self.targets)
        for branch in self.branches:
            targets |= dict.fromkeys(await branch.choose(dict(state), context))
        return list(targets)

    def all_targets(self) -> set[str]:
        """Return the targets of all edges and conditions."""
        return set(self.targets).union(*(branch.table.values() for branch in self.branches))


def ways(
    edges: list[Row], nodes: Mapping[str, Node], idle: set[str], around: Surroundings
) -> dict[str, Way]:
    """By the name of the node that they leave, START included."""
    by_node: dict[str, Way] = {name: Way() for name in (START, *nodes)}
    for edge in edges:
        where = edge["where"]
        source = _known(edge["from"], [START, *nodes], idle, f"{where}.from")
        way = by_node[source]
        if edge.get("condition") is None:
            target = _known(edge.get("to"), [*nodes, END], idle, f"{where}.to")
            if target in way.targets:
                raise UserError(
                    f"the edge from {source!r} to {target!r} occurs twice",
                    where=where,
                    fix="remove one",
                )
            way.targets.append(target)
            continue
        if edge.get("to") is not None:
            around.notes.append(f"{where}: `to` does not count beside `condition`")
        branch = _branch(edge, source, nodes, idle, around)
        if (branch.function.code, branch.table) in [
            (other.function.code, other.table) for other in way.branches
        ]:
            raise UserError(
                f"the condition after {source!r} occurs twice", where=where, fix="remove one"
            )
        way.branches.append(branch)
    if not by_node[START].targets and not by_node[START].branches:
        raise UserError("no edge leaves START", where="edges", fix="add `{from: START, to: …}`")
    return by_node


def _branch(
    edge: Row,
    source: str,
    nodes: Mapping[str, Node],
    idle: set[str],
    around: Surroundings,
) -> Branch:
    where = edge["where"]
    function = around.function(edge, "condition", source, where)
    assert function is not None
    paths = edge.get("path_map")
    if paths is None:
        table: dict[Any, str] = {
            name: name for name, node in nodes.items() if node.kind != "connector"
        }
        return Branch(function, {**table, END: END, RETURNED_END: END}, source)
    what = "path_map says which answer leads to which node"
    required(paths or None, Mapping, what, f"{where}.path_map")
    table = {
        answer: _known(target, [*nodes, END], idle, f"{where}.path_map.{answer}")
        for answer, target in paths.items()
    }
    if END in table:
        table.setdefault(RETURNED_END, table[END])
    return Branch(function, table, source)


def _known(name: Any, valid: list[str], idle: set[str], where: str) -> str:
    if name in idle:
        raise UserError(
            f"the node {name!r} is idle", where=where, fix="remove the edge, or `node_state: idle`"
        )
    if name not in valid:
        what = (
            f"there is no node {name!r}"
            if name is not None
            else "the edge has neither `to` nor `condition`"
        )
        raise UserError(
            what,
            where=where,
            fix=nearest(str(name), [node for node in valid if not node.endswith(".END")]),
        )
    return name
