"""Where a graph goes after a node: fixed targets, and conditions whose answers a table turns into targets."""

from collections.abc import Mapping
from typing import Any

from assay.errors import UserError
from assay.interfaces import Context
from assay.registry import nearest
from assay.tasks.graph.called import UserFunction
from assay.tasks.graph.expand import END, START
from assay.tasks.graph.nodes import Node, Surroundings

RETURNED_END = "__end__"  # what a condition returns for the end; "END" is taken as well


class Branch:
    """A condition. `table` is what its answers stand for; without a path_map, the names of all nodes."""

    def __init__(self, function: UserFunction, table: dict[Any, str], source: str) -> None:
        self.function = function
        self.table = table
        self.source = source

    async def choose(self, state: dict[str, Any], context: Context) -> list[str]:
        answer = await self.function(context, state)
        return [self._target(one) for one in (answer if isinstance(answer, (list, tuple)) else [answer])]

    def _target(self, answer: Any) -> str:
        try:
            return self.table[answer]
        except (KeyError, TypeError):
            valid = ", ".join(repr(key) for key in self.table if key != RETURNED_END)
            raise UserError(
                f"the condition {self.function.name} after {self.source!r} returned {answer!r}; valid: {valid}"
            ) from None


class Way:
    """Everything that leaves one node."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.branches: list[Branch] = []

    async def follow(self, state: dict[str, Any], context: Context) -> list[str]:
        found = dict.fromkeys(self.targets)
        for branch in self.branches:
            found |= dict.fromkeys(await branch.choose(dict(state), context))
        return list(found)

    def arrows(self) -> list[tuple[str, str]]:
        """Each target with the answer that leads to it; no answer where it is fixed."""
        shown = [(target, "") for target in self.targets]
        for branch in self.branches:
            shown += [(target, str(answer)) for answer, target in branch.table.items() if answer != RETURNED_END]
        return shown


def ways(
    edges: list[dict[str, Any]], nodes: Mapping[str, Node], idle: set[str], around: Surroundings
) -> dict[str, Way]:
    """By the name of the node that they leave, START included."""
    found: dict[str, Way] = {name: Way() for name in (START, *nodes)}
    for edge in edges:
        where = edge["where"]
        source = _known(edge["from"], [START, *nodes], idle, f"{where}.from")
        way = found[source]
        if edge.get("condition") is None:
            target = _known(edge.get("to"), [*nodes, END], idle, f"{where}.to")
            if target in way.targets:
                raise UserError(f"the edge from {source!r} to {target!r} is there twice", where=where, fix="remove one")
            way.targets.append(target)
            continue
        if edge.get("to") is not None:
            around.notes.append(f"{where}: `to` does not count beside `condition`")
        branch = _branch(edge, source, nodes, idle, around)
        if (branch.function.code, branch.table) in [(other.function.code, other.table) for other in way.branches]:
            raise UserError(f"the condition after {source!r} is there twice", where=where, fix="remove one")
        way.branches.append(branch)
    if not found[START].targets and not found[START].branches:
        raise UserError("no edge leaves START", where="edges", fix="add `{from: START, to: …}`")
    return found


def _branch(
    edge: dict[str, Any], source: str, nodes: Mapping[str, Node], idle: set[str], around: Surroundings
) -> Branch:
    where = edge["where"]
    function = around.function(edge, "condition", source, where)
    assert function is not None
    paths = edge.get("path_map")
    if paths is None:
        table: dict[Any, str] = {name: name for name, node in nodes.items() if node.kind != "connector"}
        return Branch(function, {**table, END: END, RETURNED_END: END}, source)
    if not isinstance(paths, Mapping) or not paths:
        raise UserError("path_map says which answer leads to which node", where=f"{where}.path_map")
    table = {
        answer: _known(target, [*nodes, END], idle, f"{where}.path_map.{answer}") for answer, target in paths.items()
    }
    if END in table:
        table.setdefault(RETURNED_END, table[END])
    return Branch(function, table, source)


def _known(name: Any, valid: list[str], idle: set[str], where: str) -> str:
    if name in idle:
        raise UserError(f"the node {name!r} is idle", where=where, fix="remove the edge, or `node_state: idle`")
    if name not in valid:
        what = f"there is no node {name!r}" if name is not None else "the edge has neither `to` nor `condition`"
        raise UserError(what, where=where, fix=nearest(str(name), [one for one in valid if not one.endswith(".END")]))
    return name
