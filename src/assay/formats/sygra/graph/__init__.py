"""A graph of nodes as a task: models, functions, samplers and subgraphs, with edges and conditions.
A record goes from START to END, node by node, and what comes out is the response.

Only what a graph is and how a record goes through it may be here; nothing here knows of files, commands or metrics.
The graph is a config in the words of SyGra's YAML. What it needs from outside is passed in: `load` resolves dotted
paths, `models` says what its models are, `subgraph` loads another config, `rows` opens the source of a sampler,
`check` refuses a final state by raising.

All nodes that are due run side by side, each on its own copy of the state; then what they returned is merged, in the
order of the edges. `messages` and `__chat_history__` grow, all else is replaced. A variable that is not declared
(`output_keys`, a prompt, the record) is dropped, and `notes` says so once.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from assay.formats.sygra.graph.asking import GraphParts, Load, ModelUse, Rows
from assay.formats.sygra.graph.edges import END, EXIT, START, Expanded, Subgraph, ways
from assay.formats.sygra.graph.llm import (
    LambdaNode,
    LlmNode,
    MultiLlmNode,
    Node,
    SamplerNode,
    side_by_side,
)
from assay.formats.sygra.graph.messages import HISTORY, MESSAGES, MODES
from assay.formats.sygra.graph.output import OutputMap
from assay.formats.sygra.instead import not_offered
from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import (
    Answer,
    ConfigError,
    Context,
    Item,
    UserError,
    Work,
    as_list,
    canonical,
    digest,
    nearest,
)

KINDS: dict[str, Callable[..., Node]] = {
    "llm": LlmNode,
    "multi_llm": MultiLlmNode,
    "lambda": LambdaNode,
    "weighted_sampler": SamplerNode,
}


def _nodes(
    expanded: Expanded, around: GraphParts, place: str, problems: list[UserError]
) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for name, config in expanded.nodes.items():
        at = YamlPlace(config, f"{place}.nodes.{name}")
        if config.get("node_state") == "idle":
            continue
        try:
            nodes[name] = _kind(at("node_type"))(name, at, around)
        except ConfigError as error:
            problems += error.problems
        except UserError as error:
            error.where = error.where or at.where
            problems.append(error)
    return nodes


def _kind(at: YamlPlace) -> Callable[..., Node]:
    if at.value == "agent":
        raise not_offered("node_type 'agent'", at.where)
    kind = str(at.value)
    if kind in KINDS or kind == Node.kind:
        return KINDS.get(kind, Node)
    what = "the node has no node_type" if at.value is None else f"unknown node type {kind!r}"
    raise at.error(what, nearest(kind, [*KINDS, "subgraph"]))


def _check_outputs(
    expanded: Expanded, around: GraphParts, place: str, problems: list[UserError]
) -> None:
    """Note two nodes of one graph that declare the same variable; in a list it is an error."""
    for level in expanded.levels:
        owners: dict[str, str] = {}
        for name, config in level.items():
            at = YamlPlace(config.get("output_keys"), f"{place}.nodes.{name}.output_keys")
            is_list = isinstance(at.value, list)
            names: list[Any] = as_list(at.value) if is_list or isinstance(at.value, str) else []
            for number, key in enumerate(names):
                other = name if key in names[:number] else owners.get(str(key))
                if other is not None and is_list:
                    what = f"the output variable {key!r} occurs twice"
                    problems.append(at.error(what, f"{other!r} has it: rename one"))
                elif other is not None and key != MESSAGES:
                    around.notes.append(f"{at.where}: {key!r} is an output of {other!r} too")
            owners |= {str(key): name for key in names}


STEPS = 100
_GROWING = (MESSAGES, HISTORY)
_ABSENT = object()
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Row).decode

Check = Callable[[Config], object]


class GraphTask:
    """`record_keys` are variables that records may have; `where` names the config in errors. `declared` are the
    variables that a node may return. `notes` holds what a user should hear of and no row says: look at it before and
    after a run."""

    def __init__(
        self,
        source: Config,
        *,
        name: str,
        load: Load,
        models: Mapping[str, ModelUse],
        subgraph: Subgraph | None = None,
        rows: Rows | None = None,
        check: Check | None = None,
        record_keys: Iterable[str] = (),
        where: str = "",
    ) -> None:
        config: Any = source.get("graph_config")
        properties = config.get("graph_properties") if isinstance(config, Mapping) else None
        around = GraphParts(load, models, rows, properties or {})
        mode = around.properties.get("chat_conversation")
        if mode not in (None, *MODES):
            around.notes.append(
                f"chat_conversation {mode!r} is not known and does nothing; valid: {', '.join(MODES)}"
            )
        self.name = name
        self.notes = around.notes
        self._where = where
        made_of = self._build(source, around, subgraph, where)
        self.declared = {MESSAGES, HISTORY, *record_keys}
        for node in self.nodes.values():
            self.declared |= {*node.makes, *node.reads}
        used = list(around.used)
        self.model_name = used[0] if len(used) == 1 else name
        self.lane = used[0] if used else name
        self.facets: Config = {"model_id": self.model_name}
        code = canonical({"task": name, "graph": made_of, "schema": source.get("schema_config")})
        # JSON values only, whatever the YAML had for keys and dates
        self.identity: Config = _decode(code)
        self._code = digest("graph", code)
        self._check = check
        self._connectors = {name for name, node in self.nodes.items() if node.kind == "connector"}
        self._fixed = {
            name: [target for target in way.targets if target != END]
            for name, way in self.ways.items()
            if not way.branches
        }

    def _build(
        self, source: Config, around: GraphParts, subgraph: Subgraph | None, where: str
    ) -> Row:
        """Make nodes, ways and output; what they are made of is a part of the rows' keys."""
        place = f"{where}: graph_config" if where else "graph_config"
        expanded = Expanded(subgraph, around.notes)
        expanded.add(YamlPlace(source.get("graph_config"), place))
        problems: list[UserError] = []
        self.nodes = _nodes(expanded, around, place, problems)
        _check_outputs(expanded, around, place, problems)
        if problems:
            raise problems[0] if len(problems) == 1 else ConfigError(problems, source=where)
        idle = {name for name, node in expanded.nodes.items() if node.get("node_state") == "idle"}
        self.ways = ways(expanded.edges, self.nodes, idle, around)
        self.output = OutputMap(
            source, around.load, place.removesuffix("graph_config") + "output_config", around.notes
        )
        self._look(place)
        return {
            "nodes": expanded.nodes,
            "edges": [
                {key: value for key, value in edge.items() if key != "where"}
                for edge in expanded.edges
            ],
            "properties": dict(around.properties),
            "made of": {name: node.code for name, node in self.nodes.items()},
            "conditions": [
                branch.function.code for way in self.ways.values() for branch in way.branches
            ],
            "output": self.output.code,
        }

    def _look(self, place: str) -> None:
        """Note nodes that no way leads to, and nodes where the graph stops without an edge to END."""
        reached = self._nodes_after([START])
        for name, node in self.nodes.items():
            way = self.ways[name]
            if name not in reached and not name.endswith(EXIT):
                self.notes.append(f"{place}: no edge leads to the node {name!r}")
            elif node.kind != "connector" and not way.targets and not way.branches:
                self.notes.append(
                    f"{place}: no edge leaves the node {name!r}: the graph ends there"
                )

    def _nodes_after(self, begun: list[str]) -> set[str]:
        """The nodes that come after these."""
        reached: set[str] = set()
        waiting = list(begun)
        while waiting:
            targets = self.ways[waiting.pop()].all_targets() - reached - {END}
            reached |= targets
            waiting += targets
        return reached

    def check_prompts(self, fields: Iterable[str]) -> None:
        """Refuse a prompt with a variable that neither a record, which has these fields, nor a node before it sets."""
        names = {
            MESSAGES,
            HISTORY,
            *map(str, fields),
            *(key for node in self.nodes.values() for key in node.makes),
        }
        after_any = self._nodes_after([name for name, node in self.nodes.items() if node.is_open])
        for name, node in self.nodes.items():
            missing = sorted(node.needs - names) if name not in after_any else []
            if missing:
                raise UserError(
                    f"the prompt of the node {name!r} needs {missing[0]!r}, which no record has and no node sets",
                    where=self._where,
                    fix=f"{nearest(missing[0], names)}; a subgraph is run by the task that names it",
                )

    def prepare(self, item: Item) -> Work:
        if not isinstance(item.data, dict):
            raise UserError(f"a record is an object, not a {type(item.data).__name__}")
        record: Row = item.data if "id" in item.data else {"id": item.id, **item.data}
        return Work(digest("graph", self._code, canonical(record)), _encode(record))

    async def run(self, work: Work, context: Context) -> Answer:
        state = _decode(work.payload)  # decoded for each sample: helpers change what they get
        for key in _GROWING:
            state[key] = state.get(key) or []
        visits: dict[str, int] = {}
        due = self._fixed.get(START) or await self._after([START], state, context)
        steps = 0
        while due:
            steps += not self._connectors.issuperset(due)
            if steps > STEPS:
                shown = ", ".join(map(repr, due))
                raise UserError(
                    f"the graph is not at its end after {STEPS} steps; the next would be {shown}"
                )
            for name in due:
                visits[name] = visits.get(name, 0) + 1
            if len(due) == 1:
                node = self.nodes[due[0]]
                self._merge(state, await node.run(dict(state), context, visits[node.name]), node)
            else:
                await self._together([self.nodes[name] for name in due], state, context, visits)
            # most nodes have one way out
            fixed = self._fixed.get(due[0]) if len(due) == 1 else None
            due = await self._after(due, state, context) if fixed is None else fixed
        if self._check is not None:
            self._check(state)
        record = await self.output.record(state, context)
        if record is None:
            return Answer(outcome="skipped")
        return Answer(text=_encode(record).decode(), output=record)

    async def _after(self, names: list[str], state: Row, context: Context) -> list[str]:
        targets: dict[str, None] = {}
        for name in names:
            targets |= dict.fromkeys(await self.ways[name].follow(state, context))
        targets.pop(END, None)
        return list(targets)

    async def _together(
        self, nodes: list[Node], state: Row, context: Context, visits: Mapping[str, int]
    ) -> None:
        before = dict(state)
        runs = (node.run(dict(state), context, visits[node.name]) for node in nodes)
        written: dict[str, Node] = {}
        for node, update in zip(nodes, await side_by_side(runs), strict=True):
            news = {
                key: value
                for key, value in update.items()
                if key in _GROWING or value is not before.get(key, END)
            }
            for key in news:
                if key not in _GROWING and (other := written.setdefault(key, node)) is not node:
                    raise UserError(
                        f"the nodes {other.name!r} and {node.name!r} both set {key!r} in one step"
                    )
            self._merge(state, news, node, before)

    def _merge(
        self,
        state: Row,
        update: Config,
        node: Node,
        before: Config | None = None,
    ) -> None:
        for key, value in update.items():
            # a helper that returns the whole state returns mostly what was there
            if value is state.get(key, _ABSENT):
                continue
            if key in _GROWING:
                entries = state[key] if before is None else before[key]
                state[key] = [*state[key], *_new(value, entries, node, key)]
            elif key in state or key in self.declared:
                state[key] = value
            else:
                note = f"node {node.name!r} returned {key!r}, which no output_keys declares: it is dropped"
                if note not in self.notes:
                    self.notes.append(note)


def _new(value: Any, entries: list[Any], node: Node, key: str) -> list[Any]:
    """Return what a node added to a list: a helper that returns the whole state returns the old
    entries as well."""
    if not value:
        return []
    if not isinstance(value, (list, tuple)):
        raise UserError(
            f"node {node.name!r} returned {key!r} as a {type(value).__name__}; it has to be a list"
        )
    old = len(entries)
    has_old = len(value) >= old and all(
        entry is other for entry, other in zip(value, entries, strict=False)
    )
    return list(value[old:] if has_old else value)
