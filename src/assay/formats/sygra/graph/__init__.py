"""A graph of nodes as a task: models, functions, samplers, agents and subgraphs, joined by edges and conditions.

Only what a graph is and how a record goes through it may be here; nothing here knows of files, commands or metrics.
The graph is a config in the words of SyGra's YAML. What it needs from outside is passed in: `load` resolves dotted
paths, `models` says what its models are, `subgraph` loads another config, `rows` opens the source of a sampler,
`check` refuses a final state by raising.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assay.formats.sygra.graph.asking import ModelUse as ModelUse
from assay.formats.sygra.graph.edges import Subgraph
from assay.formats.sygra.graph.messages import MODES
from assay.formats.sygra.graph.nodes import Load, Rows, Surroundings
from assay.formats.sygra.graph.run import GraphTask as GraphTask
from assay.formats.sygra.graph.run import Plan


def graph(
    source: Mapping[str, Any],
    *,
    name: str,
    load: Load,
    models: Mapping[str, ModelUse],
    subgraph: Subgraph | None = None,
    rows: Rows | None = None,
    check: Callable[[Mapping[str, Any]], object] | None = None,
    record_keys: Iterable[str] = (),
    facets: Mapping[str, Any] | None = None,
    lane: str = "",
    where: str = "",
) -> GraphTask:
    """A graph as a task. `record_keys` are variables that records may have; `where` names the config in errors."""
    config: Any = source.get("graph_config")
    properties = config.get("graph_properties") if isinstance(config, Mapping) else None
    around = Surroundings(load, models, rows, properties or {})
    mode = around.properties.get("chat_conversation")
    if mode not in (None, *MODES):
        around.notes.append(f"chat_conversation {mode!r} is not known and does nothing; valid: {', '.join(MODES)}")
    plan = Plan(source, around, subgraph, record_keys, where)
    return GraphTask(
        plan,
        name,
        models=list(around.used),
        schema=source.get("schema_config"),
        check=check,
        facets=facets or {},
        lane=lane,
    )
