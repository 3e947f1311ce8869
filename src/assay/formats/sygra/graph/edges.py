"""Where a graph goes after a node: fixed targets, and conditions whose answers a table turns into targets.

Subgraphs are put into their parent first: nodes become `<node>.<inner>`, their start and end connectors of the parent.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from assay.formats.sygra.graph.asking import GraphParts
from assay.formats.sygra.graph.called import UserFunction
from assay.formats.sygra.graph.llm import Node
from assay.formats.sygra.types import Config, Row, YamlPlace, deep_update, with_texts
from assay.sdk import Context, UserError, nearest

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
        self, at: YamlPlace, prefix: str = "", changes: Config | None = None, chain: Chain = ()
    ) -> None:
        """Add a graph, or the subgraph whose names begin with `prefix`; `chain` are the subgraphs that it is in."""
        at.require(
            Mapping, "there is no graph_config", "add `graph_config:` with `nodes:` and `edges:`"
        )
        nodes = at("nodes")
        nodes.require_some(Mapping, "the graph has no nodes", "add `nodes: {name: {node_type: …}}`")
        edges = at("edges")
        edges.require_some(list, "the graph has no edges", "add `edges: [{from: START, to: …}]`")
        names = {str(name): name for name in nodes.value}
        for name in (changes or {}).keys() - names:
            what = f"node_config_map names {name!r}, which is not a node of the subgraph"
            self._notes.append(f"{at.where}: {what}")
        level: dict[str, Row] = {}
        self.levels.append(level)
        inner: set[str] = set()
        for name, key in names.items():
            node = _node_config(nodes(key), name, (changes or {}).get(name))
            full = f"{prefix}{name}"
            if node.get("node_type") != "subgraph" or node.get("node_state") == "idle":
                self.nodes[full] = level[full] = node
                continue
            inner.add(name)
            self.nodes[full] = self.nodes[full + EXIT] = {"node_type": "connector"}
            place = YamlPlace(node, nodes(key).where)
            wanted = self._find_subgraph(place, chain)
            source = YamlPlace(wanted[1].get("graph_config"), place.where)
            self.add(source, f"{full}.", node.get("node_config_map"), (*chain, wanted[0]))
        self.edges += [_edge(edge, prefix, inner) for edge in edges.entries()]

    def _find_subgraph(self, at: YamlPlace, chain: Chain) -> tuple[str, Config]:
        """Return the name of a node's subgraph, and its config."""
        wanted = at.value.get("subgraph")
        if not isinstance(wanted, str) or self._subgraph is None:
            raise at.error("a subgraph node needs `subgraph`", "name the task that it runs")
        if wanted in chain:
            way = " → ".join((*chain, wanted))
            raise at.error(f"the subgraph {wanted!r} contains itself", f"the way to it: {way}")
        return wanted, self._subgraph(wanted)


def _node_config(at: YamlPlace, name: str, changes: Config | None) -> Row:
    """Return a copy of a node with what its parent changes."""
    if name in (START, END):
        raise at.error(f"a node cannot be called {name!r}", "rename it")
    what = f"the node {name!r} is a {type(at.value).__name__}"
    node = deepcopy(dict(at.require(Mapping, what, "give it `node_type:`")))
    deep_update(node, changes or {})
    names = node.pop("prompt_placeholder_map", None)
    if names and "prompt" in node:
        node["prompt"] = with_texts(node["prompt"], partial(_with_new_names, names))
    return node


def _with_new_names(names: Mapping[str, str], text: str) -> str:
    return _VARIABLE.sub(lambda match: f"{{{names.get(match[1], match[1])}}}", text)


def _edge(at: YamlPlace, prefix: str, inner: set[str]) -> Row:
    """Return the edge in the names of the whole graph; inside a subgraph, its own start and end are connectors."""
    fix = "write `{from: …, to: …}`"
    edge = at.require(Mapping, f"the edge is a {type(at.value).__name__}", fix)
    start, end = (prefix[:-1], prefix[:-1] + EXIT) if prefix else (START, END)

    def target(name: Any) -> Any:
        return end if name == END else f"{prefix}{name}"

    source, following = edge.get("from"), edge.get("to")
    if isinstance(source, list | dict) or isinstance(following, list | dict):
        raise at.error("an edge leads from one node to one node", fix)
    leaves = f"{prefix}{source}{EXIT if source in inner else ''}"
    renamed = {**edge, "where": at.where, "from": start if source == START else leaves}
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

    def is_same(self, other: "Branch") -> bool:
        return (self.function.code, self.table) == (other.function.code, other.table)

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


class NodeWays(msgspec.Struct):
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
    edges: list[Row], nodes: Mapping[str, Node], idle: set[str], around: GraphParts
) -> dict[str, NodeWays]:
    """Return the ways by the name of the node that they leave, START included."""
    by_node = {name: NodeWays() for name in (START, *nodes)}
    sources = _EdgeNames([START, *nodes], idle)
    targets = _EdgeNames([*nodes, END], idle)
    for edge in edges:
        at = YamlPlace(edge, edge["where"])
        source = sources.name_at(at("from"))
        way = by_node[source]
        if edge.get("condition") is None:
            target = targets.name_at(at("to"))
            if target in way.targets:
                raise at.error(f"the edge from {source!r} to {target!r} occurs twice", "remove one")
            way.targets.append(target)
            continue
        if edge.get("to") is not None:
            around.notes.append(f"{at.where}: `to` does not count beside `condition`")
        function = around.function(at("condition"), source)
        assert function is not None
        branch = Branch(function, _table(at("path_map"), nodes, targets), source)
        if any(branch.is_same(other) for other in way.branches):
            raise at.error(f"the condition after {source!r} occurs twice", "remove one")
        way.branches.append(branch)
    if not by_node[START].targets and not by_node[START].branches:
        raise YamlPlace(edges, "edges").error("no edge leaves START", "add `{from: START, to: …}`")
    return by_node


def _table(at: YamlPlace, nodes: Mapping[str, Node], targets: "_EdgeNames") -> dict[Any, str]:
    """Return what the answers of a condition stand for."""
    if at.value is None:
        steps = {name: name for name, node in nodes.items() if node.kind != "connector"}
        return {**steps, END: END, RETURNED_END: END}
    at.require_some(Mapping, "path_map says which answer leads to which node")
    table = {answer: targets.name_at(at(answer)) for answer in at.value}
    if END in table:
        table.setdefault(RETURNED_END, table[END])
    return table


class _EdgeNames(NamedTuple):
    """The nodes that an edge may name, and those that are idle."""

    valid: list[str]
    idle: set[str]

    def name_at(self, at: YamlPlace) -> str:
        """Return the name of a node; refuse any other."""
        name = at.value
        if name in self.idle:
            fix = "remove the edge, or `node_state: idle`"
            raise at.error(f"the node {name!r} is idle", fix)
        if name not in self.valid:
            missing = "the edge has neither `to` nor `condition`"
            what = missing if name is None else f"there is no node {name!r}"
            names = [node for node in self.valid if not node.endswith(EXIT)]
            raise at.error(what, nearest(str(name), names))
        return name
