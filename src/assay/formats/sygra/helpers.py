"""What task helpers import: the classes that they inherit from, `sygra.utils.constants`, and what they call from
`sygra.utils.utils`: files, JSON out of answers, and the properties of their graph."""

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from assay.formats.sygra.graph.messages import SygraMessage, SygraState
from assay.formats.sygra.graph.output import OutputGenerator
from assay.formats.sygra.names import TaskFolder, find_task, read_yaml
from assay.formats.sygra.types import Config, Row, deep_update as deep_update
from assay.sdk import UserError
from assay.text.answers import without_reasoning
from assay.text.json_out import NoJson, find_json, read_json


class NodePreProcessor(ABC):
    """Prepares the state before an llm node."""

    @abstractmethod
    def apply(self, state: SygraState) -> SygraState: ...


class NodePostProcessor(ABC):
    """Turns the answer of an llm node into changes of the state."""

    @abstractmethod
    def apply(self, resp: SygraMessage) -> Any: ...


class NodePostProcessorWithState(ABC):
    """Like NodePostProcessor, and it is given the state."""

    @abstractmethod
    def apply(self, resp: SygraMessage, state: SygraState) -> Any: ...


class LambdaFunction(ABC):
    """A lambda node; the first argument is the node's own mapping."""

    @staticmethod
    @abstractmethod
    def apply(lambda_node_dict: Row, state: SygraState) -> Any: ...


class AsyncLambdaFunction(ABC):
    @staticmethod
    @abstractmethod
    async def apply(lambda_node_dict: Row, state: SygraState) -> Any: ...


class EdgeCondition(ABC):
    """Names the branch that a conditional edge takes."""

    @staticmethod
    @abstractmethod
    def apply(state: SygraState) -> str: ...


class GraphPostProcessor(ABC):
    """Looks at all output records after the run; what it returns becomes a file of its own."""

    @abstractmethod
    def process(self, data: Sequence[Row], metadata: Row) -> Any: ...


class ModelPostProcessor(ABC):
    """Changes the text of every answer of a model."""

    @abstractmethod
    def apply(self, completion: str) -> str: ...


class RemoveThinkData(ModelPostProcessor):
    """The answer without the reasoning before it."""

    def apply(self, completion: str) -> str:
        return without_reasoning(completion)


class BaseOutputGenerator(OutputGenerator):
    """Makes the fields of an output map that name a `transform`, or all of the record."""


class BaseTaskExecutor:
    """Only a name to import: a task is run by Assay's engine, whatever its folder defines as executor."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        raise UserError(
            f"{type(self).__name__} cannot be run: Assay's own engine executes the graph",
            fix="run the task with `assay sygra --task …`, or assay.formats.sygra.run(…)",
        )


class DefaultTaskExecutor(BaseTaskExecutor):
    pass


SYGRA_START = "__start__"
SYGRA_END = "__end__"
START = "START"
END = "END"
BACKEND = "langgraph"
ERROR_PREFIX = "###SERVER_ERROR###"
GRAPH_OUTPUT_KEY = "output_keys"
CHAT_CONVERSATION_MULTITURN = "multiturn"
CHAT_CONVERSATION_SINGLETURN = "singleturn"
VAR_CHAT_HISTORY = "__chat_history__"
LIST_SEPARATOR = "|"

logger = logging.getLogger("assay.sygra")
running_task: ContextVar[TaskFolder | None] = ContextVar("running_task", default=None)


def __getattr__(name: str) -> Any:
    if name == "current_task":  # asked for while a record runs, so it is that record's task
        task = running_task.get()
        return None if task is None else task.name
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_graph_properties(task_name: str | None = None) -> Row:
    """`graph_properties` of a task, by default of the one that runs."""
    task = running_task.get()
    if task is None or (task_name and task_name != task.name):
        if not task_name:
            return {}
        task = find_task(task_name, Path.cwd() if task is None else task.base)
    return deepcopy(_properties(task.graph, task.graph.stat().st_mtime_ns))


@lru_cache(16)
def _properties(file: Path, modified: int) -> Row:
    """Helpers ask for them in every record."""
    return (read_yaml(file).get("graph_config") or {}).get("graph_properties") or {}


def get_graph_property(key: str, default_value: Any, task_name: str | None = None) -> Any:
    return get_graph_properties(task_name).get(key, default_value)


def get_file_in_task_dir(task: str, file: str) -> str:
    folder = task if "/" in task else task.replace(".", "/")
    return f"{folder}/{file}"


def get_dot_walk_path(path: str) -> str:
    return path.replace("/", ".")


def load_yaml_file(filepath: str) -> Any:
    return read_yaml(Path(filepath))


def load_json_file(filepath: str) -> Any:
    return json.loads(Path(filepath).read_text("utf-8"))


def load_jsonl_file(filepath: str) -> list[Any]:
    return [
        json.loads(line) for line in Path(filepath).read_text("utf-8").splitlines() if line.strip()
    ]


def save_json_file(filepath: str, data: Any) -> None:
    Path(filepath).write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=4))


def save_jsonl_file(filepath: str, data: Iterable[Any]) -> None:
    Path(filepath).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in data))


def load_json(text: str) -> Any:
    """The value that the text is, or None."""
    try:
        return read_json(text)
    except (NoJson, TypeError):
        return None


def extract_and_load_json(text: str) -> Any:
    """The JSON value in an answer, or None."""
    try:
        return find_json(text)
    except (NoJson, TypeError):
        return None


def extract_pattern(string: str, pattern: str) -> list[str]:
    """Return what the pattern finds, empty finds left out."""
    return [match for match in re.findall(pattern, string) if match]


def flatten_dict(d: Config, parent_key: str = "", sep: str = "_") -> Row:
    """One level of keys: `{a: {b: 1}}` becomes `{a_b: 1}`."""
    flat: Row = {}
    for key, value in d.items():
        path = f"{parent_key}{sep}{key}" if parent_key else key
        flat.update(flatten_dict(value, path, sep) if isinstance(value, Mapping) else {path: value})
    return flat


def convert_messages_from_config_to_chat_format(
    messages: Sequence[Config],
) -> list[Row]:
    """`{user: text}` becomes `{role: user, content: text}`."""
    return [
        {"role": role, "content": content}
        for message in messages
        for role, content in message.items()
    ]


def convert_messages_from_langchain_to_chat_format(messages: Sequence[Any]) -> list[Row]:
    """Message objects as `{role, content}`; `type` or `role` says who speaks."""
    roles = {"human": "user", "ai": "assistant"}
    spoken = [
        (str(getattr(m, "role", None) or getattr(m, "type", "user")), m.content) for m in messages
    ]
    return [{"role": roles.get(role, role), "content": content} for role, content in spoken]
