"""From a config to a graph that can run: every name resolved, every text parsed, every problem found before a call."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.errors import ConfigError, UserError
from assay.registry import nearest
from assay.tasks.graph.agent import AgentNode
from assay.tasks.graph.edges import ways
from assay.tasks.graph.expand import END, EXIT, START, Expanded, Subgraph, expand
from assay.tasks.graph.llm import LlmNode, MultiLlmNode
from assay.tasks.graph.messages import HISTORY, MESSAGES
from assay.tasks.graph.nodes import Connector, LambdaNode, Node, Surroundings
from assay.tasks.graph.output import Output
from assay.tasks.graph.sampler import SamplerNode

KINDS: dict[str, Callable[..., Node]] = {
    "llm": LlmNode,
    "multi_llm": MultiLlmNode,
    "agent": AgentNode,
    "lambda": LambdaNode,
    "weighted_sampler": SamplerNode,
}


class Plan:
    """`declared` are the variables that a node may return; `notes` what is odd but no error."""

    def __init__(
        self,
        source: Mapping[str, Any],
        around: Surroundings,
        subgraph: Subgraph | None,
        record_keys: Iterable[str],
        where: str,
    ) -> None:
        place = f"{where}: graph_config" if where else "graph_config"
        found = expand(source.get("graph_config"), subgraph, place)
        around.notes += found.notes
        problems: list[UserError] = []
        self.nodes = _nodes(found, around, place, problems)
        _check_outputs(found, around, place, problems)
        if problems:
            raise problems[0] if len(problems) == 1 else ConfigError(problems, source=where)
        idle = {name for name, node in found.nodes.items() if node.get("node_state") == "idle"}
        self.ways = ways(found.edges, self.nodes, idle, around)
        self.output = Output(
            source, around.load, place.removesuffix("graph_config") + "output_config", around.notes
        )  # fmt: skip
        self.declared = {MESSAGES, HISTORY, *record_keys}
        for node in self.nodes.values():
            self.declared |= {*node.makes, *node.reads}
        self.notes = around.notes
        self._look(place)
        self.code = {
            "nodes": found.nodes,
            "edges": [{key: value for key, value in edge.items() if key != "where"} for edge in found.edges],
            "properties": dict(around.properties),
            "made of": {name: node.code for name, node in self.nodes.items()},
            "conditions": [branch.function.code for way in self.ways.values() for branch in way.branches],
            "output": self.output.code,
        }

    def _look(self, place: str) -> None:
        """Note nodes that no way leads to, and nodes where the graph stops without an edge to END."""
        reached, waiting = {START}, [START]
        while waiting:
            for target, _ in self.ways[waiting.pop()].arrows():
                if target != END and target not in reached:
                    reached.add(target)
                    waiting.append(target)
        for name, node in self.nodes.items():
            way = self.ways[name]
            if name not in reached and not name.endswith(EXIT):
                self.notes.append(f"{place}: no edge leads to the node {name!r}")
            elif node.kind != "connector" and not way.targets and not way.branches:
                self.notes.append(f"{place}: no edge leaves the node {name!r}: the graph ends there")


def _nodes(found: Expanded, around: Surroundings, place: str, problems: list[UserError]) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for name, config in found.nodes.items():
        kind = config.get("node_type")
        where = f"{place}.nodes.{name}"
        if config.get("node_state") == "idle":
            continue
        if kind == "connector":
            nodes[name] = Connector(name)
            continue
        try:
            if kind not in KINDS:
                what = "the node has no node_type" if kind is None else f"unknown node type {kind!r}"
                raise UserError(what, where=f"{where}.node_type", fix=nearest(str(kind), [*KINDS, "subgraph"]))
            nodes[name] = KINDS[kind](name, config, around, where)
        except ConfigError as error:
            problems += error.problems
        except UserError as error:
            error.where = error.where or where
            problems.append(error)
    return nodes


def _check_outputs(found: Expanded, around: Surroundings, place: str, problems: list[UserError]) -> None:
    """Two nodes of one graph that declare the same variable: an error in a list, else a note."""
    for level in found.levels:
        owners: dict[str, str] = {}
        for name, config in level.items():
            keys = config.get("output_keys")
            where = f"{place}.nodes.{name}.output_keys"
            names: list[Any] = [keys] if isinstance(keys, str) else keys if isinstance(keys, list) else []
            for number, key in enumerate(names):
                other = name if key in names[:number] else owners.get(str(key))
                if other is not None and isinstance(keys, list):
                    fix = f"{other!r} has it: rename one"
                    problems.append(UserError(f"the output variable {key!r} is there twice", where=where, fix=fix))
                elif other is not None and key != MESSAGES:
                    around.notes.append(f"{where}: {key!r} is an output of {other!r} too")
            owners |= {str(key): name for key in names}
