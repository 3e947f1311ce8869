"""Subgraphs, put into their parent: nodes become `<node>.<inner>`, their start and end connectors of the parent."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import UserError

START, END = "START", "END"
EXIT = ".END"
Subgraph = Callable[[str], Mapping[str, Any]]


class Expanded:
    """A graph without subgraphs: node configs by name, edges, and each level's nodes for checks of that level."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[dict[str, Any]] = []
        self.levels: list[dict[str, dict[str, Any]]] = []
        self.notes: list[str] = []


def expand(config: Any, subgraph: Subgraph | None, where: str) -> Expanded:
    found = Expanded()
    _level(found, config, subgraph, where, "", {}, ())
    return found


def _level(
    found: Expanded,
    config: Any,
    subgraph: Subgraph | None,
    where: str,
    prefix: str,
    overrides: Mapping[str, Any],
    chain: tuple[str, ...],
) -> None:
    nodes, edges = _parts(config, where)
    for name in overrides:
        if name not in nodes:
            found.notes.append(f"{where}: node_config_map names {name!r}, which is no node of the subgraph")
    level: dict[str, dict[str, Any]] = {}
    found.levels.append(level)
    inner: set[str] = set()
    for name, given in nodes.items():
        place = f"{where}.nodes.{name}"
        if name in (START, END):
            raise UserError(f"a node cannot be called {name!r}", where=place, fix="rename it")
        if not isinstance(given, Mapping):
            raise UserError(f"the node {name!r} is a {type(given).__name__}", where=place, fix="give it `node_type:`")
        node = _overridden(given, overrides.get(name) or {})
        full = f"{prefix}{name}"
        if node.get("node_type") != "subgraph" or node.get("node_state") == "idle":
            found.nodes[full] = level[full] = node
            continue
        inner.add(name)
        found.nodes[full] = found.nodes[full + EXIT] = {"node_type": "connector"}
        wanted, source = _load(node, subgraph, place, chain)
        changes = node.get("node_config_map") or {}
        _level(found, source.get("graph_config"), subgraph, place, f"{full}.", changes, (*chain, wanted))
    for number, edge in enumerate(edges):
        found.edges.append(_edge(edge, f"{where}.edges[{number}]", prefix, inner))


def _parts(config: Any, where: str) -> tuple[Mapping[str, Any], list[Any]]:
    if not isinstance(config, Mapping):
        raise UserError("there is no graph_config", where=where, fix="add `graph_config:` with `nodes:` and `edges:`")
    nodes, edges = config.get("nodes"), config.get("edges")
    if not isinstance(nodes, Mapping) or not nodes:
        raise UserError("the graph has no nodes", where=f"{where}.nodes", fix="add `nodes: {name: {node_type: …}}`")
    if not isinstance(edges, list) or not edges:
        raise UserError("the graph has no edges", where=f"{where}.edges", fix="add `edges: [{from: START, to: …}]`")
    return {str(name): node for name, node in nodes.items()}, edges


def _load(
    node: Mapping[str, Any], subgraph: Subgraph | None, place: str, chain: tuple[str, ...]
) -> tuple[str, Mapping[str, Any]]:
    wanted = node.get("subgraph")
    if not isinstance(wanted, str) or subgraph is None:
        raise UserError("a subgraph node needs `subgraph`", where=place, fix="name the task that it runs")
    if wanted in chain:
        way = " → ".join((*chain, wanted))
        raise UserError(f"the subgraph {wanted!r} contains itself", where=place, fix=f"the way to it: {way}")
    return wanted, subgraph(wanted)


def _edge(edge: Any, where: str, prefix: str, inner: set[str]) -> dict[str, Any]:
    """The edge in the names of the whole graph; inside a subgraph, its own start and end are connectors."""
    if not isinstance(edge, Mapping):
        raise UserError(f"the edge is a {type(edge).__name__}", where=where, fix="write `{from: …, to: …}`")
    start, end = (prefix[:-1], prefix[:-1] + EXIT) if prefix else (START, END)

    def target(name: Any) -> Any:
        return end if name == END else f"{prefix}{name}"

    found = {**edge, "where": where}
    source = edge.get("from")
    found["from"] = start if source == START else f"{prefix}{source}" + (EXIT if source in inner else "")
    if edge.get("to") is not None:
        found["to"] = target(edge["to"])
    if isinstance(edge.get("path_map"), Mapping):
        found["path_map"] = {key: target(value) for key, value in edge["path_map"].items()}
    return found


def _overridden(node: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = _merged(node, changes)
    renamed = merged.pop("prompt_placeholder_map", None)
    if renamed and "prompt" in merged:
        merged["prompt"] = _renamed(merged["prompt"], renamed)
    return merged


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _renamed(content: Any, names: Mapping[str, str]) -> Any:
    if isinstance(content, str):
        return re.sub(r"\{([^{}]+)\}", lambda found: f"{{{names.get(found[1], found[1])}}}", content)
    if isinstance(content, list):
        return [_renamed(entry, names) for entry in content]
    if isinstance(content, Mapping):
        return {key: _renamed(value, names) for key, value in content.items()}
    return content
