"""Tasks that are Python classes (`class:`), as far as they ask for one text about each document.

The methods of such a class stand for the keys of a YAML file. A class that asks for more than a text, or that brings
its own data, is refused.
"""

import ast
import inspect
from functools import cache
from types import SimpleNamespace
from typing import Any

from assay.formats.lm_eval.tasks.definition import Hook, default_generation
from assay.sdk import JsonObject, UserError

REFUSED = "a task written in Python (class:) that does more than ask for a text"
_OWN_WAYS = {"download", "fewshot_context", "fewshot_docs", "doc_to_choice", "apply_filters"}


class Instance:
    """A request of a class."""

    def __init__(
        self, request_type: str, doc: Any, arguments: tuple[Any, ...], idx: int, **more: Any
    ) -> None:
        self.request_type = request_type
        self.arguments = arguments


class ConfigurableTask:
    """What the classes derive from. No data is read: a split's documents are its name."""

    VERSION: Any = None
    DATASET_PATH: str | None = None
    DATASET_NAME: str | None = None

    def __init__(
        self,
        data_dir: Any = None,
        cache_dir: Any = None,
        download_mode: Any = None,
        config: Any = None,
    ) -> None:
        own = {"generation_kwargs": default_generation(), **(config or {})}
        self.config = SimpleNamespace(**own)
        self.dataset = _SplitNames()


class _SplitNames:
    def __getitem__(self, name: str) -> str:
        return name


def is_plain(hook: Hook) -> bool:
    """Return whether a class asks for one text about each document, by its source."""
    tree = ast.parse(hook.file.read_bytes()) if hook.file else ast.Module([], [])
    name = hook.name.rpartition(".")[2]
    kind = next(
        (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None
    )
    if kind is None or [getattr(base, "id", "") for base in kind.bases] != ["ConfigurableTask"]:
        return False
    methods = {part.name: part for part in kind.body if isinstance(part, ast.FunctionDef)}
    asking = ast.walk(methods["construct_requests"]) if "construct_requests" in methods else []
    calls = [
        node
        for node in asking
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Instance"
    ]
    kinds = [
        ast.unparse(word.value)
        for call in calls
        for word in call.keywords
        if word.arg == "request_type"
    ]
    return kinds == ["'generate_until'"] and not methods.keys() & _OWN_WAYS


def keys_of(hook: Hook) -> JsonObject:
    """The keys of a YAML file for which the class stands."""
    made = _task_object(hook.value)
    try:
        kinds = [
            kind
            for kind in ("training", "validation", "test")
            if getattr(made, f"has_{kind}_docs")()
        ]
        splits = {f"{kind}_split": getattr(made, f"{kind}_docs")() for kind in kinds}
        (request,) = made.construct_requests({}, "")
        better = made.higher_is_better()
        names = list(made.aggregation())
    except Exception as error:
        raise UserError(
            f"{REFUSED}: {type(error).__name__}: {error}", where=f"{hook!r} in {hook.folder}"
        ) from error
    return {
        **splits,
        **{key: part(hook, key) for key in ("doc_to_text", "doc_to_target", "process_results")},
        "dataset_path": made.DATASET_PATH,
        "dataset_name": made.DATASET_NAME,
        "output_type": "generate_until",
        "generation_kwargs": request.arguments[1],
        "metric_list": [
            {
                "metric": name,
                "aggregation": part(hook, "aggregation", name),
                "higher_is_better": better.get(name, True),
            }
            for name in names
        ],
        "metadata": {"version": made.VERSION},
    }


def part(hook: Hook, *path: str) -> Hook:
    return Hook(":".join([hook.name, *path]), hook.folder)


def value_of_part(kind: Any, path: list[str]) -> Any:
    """A method of the class's only object; of `aggregation`, the function of a metric."""
    method = getattr(_task_object(kind), path[0])
    return method()[path[1]] if len(path) > 1 else method


@cache
def _task_object(kind: Any) -> Any:
    return kind(config={}) if "config" in inspect.signature(kind.__init__).parameters else kind()
