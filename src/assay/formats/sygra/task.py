"""The task kind `graph`: `assay sygra` builds it with a task folder's models, a config (`graph:`) with the config's."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from assay.formats.sygra.data import open_source
from assay.formats.sygra.data.schema import row_schema
from assay.formats.sygra.eval_utils import UNIT_METRICS, UnitMetrics, result_columns
from assay.formats.sygra.graph import GraphTask, ModelUse
from assay.formats.sygra.graph.edges import START
from assay.formats.sygra.graph.output import Field
from assay.formats.sygra.helpers import running_task
from assay.formats.sygra.modules import OFFERED, Loader
from assay.formats.sygra.names import TaskFolder, find_task, read_yaml
from assay.formats.sygra.types import Config
from assay.sdk import Answer, Context, Item, Model, Task, UserError, Work, digest, nearest, task


def models_used(source: Config, folder: TaskFolder) -> list[str]:
    """The names of the models that the graph and its subgraphs call; idle nodes call none."""
    return list(dict.fromkeys(_models_used(source, folder, set())))


def _models_used(source: Config, folder: TaskFolder, seen: set[str]) -> Iterator[str]:
    config = source.get("graph_config")
    nodes = config.get("nodes") if isinstance(config, dict) else None
    for node in nodes.values() if isinstance(nodes, dict) else ():
        if not isinstance(node, dict) or node.get("node_state") == "idle":
            continue
        models = node.get("models")
        # a subgraph's changes need not say it
        kind = node.get("node_type", "llm" if models is None else "multi_llm")
        named = list(models.values()) if kind == "multi_llm" and isinstance(models, dict) else []
        if kind == "llm":
            named.append(node.get("model"))
        for model in named:
            name = model.get("name") if isinstance(model, dict) else model
            if isinstance(name, str):
                yield name
        changes = node.get("node_config_map")
        if isinstance(changes, dict):
            yield from _models_used({"graph_config": {"nodes": changes}}, folder, seen)
        inner = node.get("subgraph")
        if isinstance(inner, str) and inner not in seen:
            seen.add(inner)
            yield from _models_used(read_yaml(find_task(inner, folder.base).graph), folder, seen)


class SygraTask(GraphTask):
    """The graph of a task folder, which tells its helpers which task is running; all that is wrong with it is raised
    here. `columns` are the fields that unit metrics write. `answer` names the field of
    the output record whose text scorers are given as the response; without it they are given the record's JSON."""

    def __init__(
        self,
        folder: TaskFolder,
        source: Config,
        load: Loader,
        models: Mapping[str, ModelUse],
        *,
        name: str = "",
        answer: str = "",
    ) -> None:
        super().__init__(
            source,
            name=name or folder.name,
            load=load,
            models=models,
            subgraph=lambda task_name: read_yaml(find_task(task_name, folder.base).graph),
            rows=lambda source: list(open_source(source, base=folder.base, load=load)),
            check=_schema(source, load, str(folder.graph)),
            where=str(folder.graph),
        )
        self.folder = folder
        import_metrics(load, folder.folder)
        self._metric_nodes = _metric_nodes(source, load, self._where)
        self.columns, own = self._unit_metrics()
        self._answer = answer
        more = {"answer": answer, "unit metrics": " ".join(own)}
        self._more = {key: value for key, value in more.items() if value}
        self.identity: Config = {**self.identity, **self._more}

    def _unit_metrics(self) -> tuple[list[str], list[str]]:
        """Return the fields of the output record that unit metrics write, and the code of the
        user's own. Metrics that cannot be made are refused: they would fail in every record, after
        its calls were paid."""
        names: dict[str, str] = {}
        for name, node in self._metric_nodes.items():
            where = f"{self._where}: graph_config.nodes.{name}.unit_metrics_map"
            names |= result_columns(node, where)
        fields = self.output.fields or {name: Field(name, None, None) for name in names}
        plain = {name: field.source for name, field in fields.items() if not field.transform}
        columns = [name for name, source in plain.items() if source in names]
        return columns, sorted({code for code in names.values() if code})

    def check_unit_metrics(self, holds: Callable[[str], bool]) -> None:
        """Refuse unit metrics that compare what no state can have; `holds` tells of a variable."""
        reached = self._nodes_after([START])
        for name, node in self._metric_nodes.items():
            for key in ("golden_key", "predicted_key"):
                variable = node.get(key)
                if name in reached and not (isinstance(variable, str) and holds(variable)):
                    raise UserError(
                        f"{key} is {variable!r}, which no record has and no output_keys declare",
                        where=f"{self._where}: graph_config.nodes.{name}.{key}",
                        fix=nearest(str(variable), self.declared),
                    )

    def prepare(self, item: Item) -> Work:
        work = super().prepare(item)
        for key, value in self._more.items():
            work.fingerprint = digest(key, value.encode(), work.fingerprint)
        return work

    async def run(self, work: Work, context: Context) -> Answer:
        running_task.set(self.folder)
        answer = await super().run(work, context)
        if self._answer and answer.output is not None:
            if self._answer not in answer.output:
                fields = ", ".join(map(str, answer.output))
                raise UserError(f"the output record has no field {self._answer!r}; it has {fields}")
            value = answer.output[self._answer]
            answer.text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return answer


def _schema(source: Config, load: Loader, file: str) -> Callable[[Config], None] | None:
    config = source.get("schema_config")
    if not config:
        return None
    problems_of = row_schema(config, load=load, where=f"{file}: schema_config")

    def check(state: Config) -> None:
        if problems := problems_of(state):
            raise UserError(f"the schema refuses the record: {'; '.join(problems)}")

    return check


def _metric_nodes(source: Config, load: Loader, file: str) -> dict[str, Config]:
    """Return the nodes whose lambda is SyGra's for unit metrics: by its name, also where a file of
    the user's defines it, or by being ours."""
    nodes: dict[str, Config] = {}
    for name, node in source["graph_config"]["nodes"].items():
        if node.get("node_type") == "lambda" and node.get("node_state") != "idle":
            made = load(node["lambda"], f"{file}: graph_config.nodes.{name}.lambda")
            if made is UnitMetrics or node["lambda"] == UNIT_METRICS:
                nodes[name] = node
    return nodes


@task(name="sygra.graph")
@task(name="graph")
def graph_task(
    source: str,
    *,
    name: str,
    models: Mapping[str, Model],
    inference: Mapping[str, Config] | None = None,
    use: Mapping[str, str] | None = None,
    answer: str = "",
) -> Task:
    """A graph_config.yaml as a task of a config, with the config's models: `use` says which stands for which name of
    the graph; a name that is a model's own needs no word, nor does anything if the config has one model."""
    path = Path(source).resolve()
    # Names count from the folder that holds `tasks/`, or from the current one.
    base = next((parent.parent for parent in path.parents if parent.name == "tasks"), Path.cwd())
    folder = find_task(str(path if path.is_dir() else path.parent), base)
    graph_source = read_yaml(folder.graph)
    uses: dict[str, ModelUse] = {}
    for wanted in models_used(graph_source, folder):
        chosen = (use or {}).get(wanted) or (
            wanted if wanted in models or len(models) != 1 else next(iter(models))
        )
        if chosen not in models:
            fix = f"add `params: {{use: {{{wanted}: NAME}}}}`; {nearest(chosen, models)}"
            raise UserError(f"the graph's model {wanted!r} is not one of the config's", fix=fix)
        model = models[chosen]
        params = (inference or {}).get(chosen, {})
        uses[wanted] = ModelUse(model=chosen, params=params, identity=model.identity)
    return SygraTask(folder, graph_source, Loader(folder.base), uses, name=name, answer=answer)


_FOLDERS = [
    f"sygra/core/{package}/{kind}_metrics"
    for package in ("eval/metrics", "metrics")
    for kind in ("unit", "aggregator")
]
_REGISTERS = re.compile(
    r"^\s*@(?:\w+\.)*(?:unit|aggregator)_metric\(|(?:Unit|Aggregator)MetricRegistry\.register\(",
    re.MULTILINE,
)


def import_metrics(load: Loader, task: Path) -> None:
    """Import the files that register a metric of the user's own, where SyGra's document puts them or beside the task;
    no other file of theirs is touched."""
    for folder in (*(load.base / name for name in _FOLDERS), task):
        for file in sorted(folder.glob("*.py")) if folder.is_relative_to(load.base) else ():
            name = ".".join(file.relative_to(load.base).with_suffix("").parts)
            importable = (
                all(part.isidentifier() for part in name.split(".")) and name not in OFFERED
            )
            if importable and _REGISTERS.search(file.read_text("utf-8", errors="replace")):
                load(name, str(file))
