"""The modules `sygra.…` and `tasks.eval.utils` for code that imports them, and what dotted names in a task's YAML mean:
functions, classes and modules of the user's folder, or ours.

`install()` makes the modules importable; each name in them stands for ours, and nothing of ours is loaded before a name
is asked for. What we do not offer comes from a `sygra/` folder of the user's own, if that has it. A
`tasks/eval/utils.py` of theirs is found first, and so is an installed langchain, of which helpers may use messages and
tools; other names fail with an error that says what to use instead. A user's folder is importable until another one is
bound. Its modules are imported anew for each binding, so that in a notebook the files' code runs.
"""

import difflib
import importlib
import importlib.machinery
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from assay import foreign_modules
from assay.foreign_modules import ForeignModules
from assay.formats.sygra.instead import INSTEAD
from assay.sdk import UserError, nearest
from assay.usercode import places_in

_HERE = "assay.formats.sygra"
_UNIT = (
    "exact_match",
    "fuzzy_match",
    "typed_value_match",
    "action_within_bbox",
    "scroll_direction",
    "scroll_amount",
)
_AGGREGATE = (
    "accuracy",
    "precision",
    "recall",
    "f1_score",
    "pass_at_k",
    "pass_power_k",
    "step_efficiency",
)
_HELPERS = {  # modules whose names are in our module of helpers
    "core.graph.functions.node_processor": "NodePreProcessor NodePostProcessor NodePostProcessorWithState",
    "core.graph.functions.lambda_function": "LambdaFunction AsyncLambdaFunction",
    "core.graph.functions.edge_condition": "EdgeCondition",
    "core.graph.graph_postprocessor": "GraphPostProcessor",
    "core.base_task_executor": "BaseTaskExecutor DefaultTaskExecutor",
    "core.models.model_postprocessor": "ModelPostProcessor RemoveThinkData",
    "processors.output_record_generator": "BaseOutputGenerator",
    "logger.logger_config": "logger",
    "utils.constants": "SYGRA_START SYGRA_END START END BACKEND ERROR_PREFIX GRAPH_OUTPUT_KEY LIST_SEPARATOR"
    " CHAT_CONVERSATION_MULTITURN CHAT_CONVERSATION_SINGLETURN VAR_CHAT_HISTORY",
    "utils.utils": "convert_messages_from_config_to_chat_format convert_messages_from_langchain_to_chat_format"
    " current_task deep_update extract_and_load_json extract_pattern flatten_dict get_dot_walk_path"
    " get_file_in_task_dir get_graph_properties get_graph_property load_json load_json_file load_jsonl_file"
    " load_yaml_file logger save_json_file save_jsonl_file",
}
_METRICS = {
    "unit_metrics.base_unit_metric": "BaseUnitMetric",
    "unit_metrics.unit_metric_result": "UnitMetricResult",
    "unit_metrics.unit_metric_registry": "UnitMetricRegistry unit_metric",
    "aggregator_metrics.base_aggregator_metric": "BaseAggregatorMetric",
    "aggregator_metrics.aggregator_metric_registry": "AggregatorMetricRegistry aggregator_metric",
}


def _module_table() -> dict[str, tuple[str, list[str]]]:
    """By module: the module of ours that has its names, and the names; `*` stands for all that ours has."""
    messages = "graph.messages"
    homes = {f"sygra.{module}": ("helpers", names) for module, names in _HELPERS.items()}
    homes |= {
        "sygra.core.graph.sygra_message": (messages, "SygraMessage"),
        "sygra.core.graph.sygra_state": (messages, "SygraState"),
        "sygra.core.eval.metrics.base_metric_metadata": ("metrics", "BaseMetricMetadata"),
        "sygra.processors.data_transform": ("data.transforms", "*"),
        "tasks.eval.utils": ("eval_utils", "*"),
        "langchain_core.messages": (messages, "AIMessage HumanMessage SystemMessage ToolMessage"),
        "langchain_core.tools": ("graph.called", "tool"),
        "langgraph.graph": ("helpers", "START END"),
    }
    # the second is where they were at first
    for package in ("sygra.core.eval.metrics", "sygra.core.metrics"):
        homes |= {f"{package}.{module}": ("metrics", names) for module, names in _METRICS.items()}
        for folder, home, metrics in (
            ("unit_metrics", "unit", _UNIT),
            ("aggregator_metrics", "counting", _AGGREGATE),
        ):
            for name in metrics:  # `exact_match` is `ExactMatchMetric`
                title = f"{name.title().replace('_', '')}Metric"
                homes[f"{package}.{folder}.{name}"] = (f"metrics.{home}", title)
    return {module: (f"{_HERE}.{home}", names.split()) for module, (home, names) in homes.items()}


OFFERED = _module_table()
_OURS = {module for module in OFFERED if module.startswith("sygra.")}


def install() -> None:
    """Let `sygra.…` and `tasks.eval.utils` be imported, from now on and in the whole process."""
    # The first: the original need not be installed, and its base classes would not be ours. The
    # last: what the user's folder or the machine has is found before it.
    _ORIGINALS.install(first=True)
    _STAND_INS.install()


def _value(module: str, name: str) -> Any:
    """Return a name of a module from the module of ours that has it."""
    home, names = OFFERED.get(module, ("", []))
    home_module = importlib.import_module(home) if name in names or "*" in names else None
    if name in names or hasattr(home_module, name):
        return getattr(home_module, name)
    inner = f"{module}.{name}"
    if inner in _ORIGINALS or inner in _STAND_INS or _find_own(inner):
        return importlib.import_module(inner)
    what = f"Assay does not offer {name!r} of {module!r}; {_instead(name, module)}"
    raise ImportError(what, name=module)


def _find_other(name: str) -> ModuleSpec | None:
    """Find a module that the user's `sygra/` folder has beside those that ours stand for."""
    if name.partition(".")[0] != "sygra":
        return None
    if own := _find_own(name):
        return own
    what = f"Assay does not offer the module {name!r}; {_instead(name, name.rpartition('.')[0])}"
    raise ModuleNotFoundError(what, name=name)


def _find_own(name: str) -> ModuleSpec | None:
    *parents, _ = name.split(".")
    if name in INSTEAD or not parents:
        return None
    places = [str(Path(folder, *parents)) for folder in sys.path]
    return importlib.machinery.PathFinder.find_spec(name, places)


def _instead(name: str, module: str) -> str:
    """Return what to use in place of a name that is not offered."""
    if name in INSTEAD:
        return f"use {INSTEAD[name]}"
    if module in OFFERED:
        hint = nearest(name, _names_in(module)) + "; "
    else:
        close = difflib.get_close_matches(name, OFFERED, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}write it yourself, in a module beside the task"


def _names_in(module: str) -> list[str]:
    home, names = OFFERED.get(module, ("", []))
    if "*" not in names:
        return names
    members = vars(importlib.import_module(home))
    if "__all__" in members:
        return members["__all__"]
    own = [name for name, value in members.items() if getattr(value, "__module__", home) == home]
    return [name for name in own if name[0] != "_" and not isinstance(members[name], ModuleType)]


_ORIGINALS = ForeignModules(_OURS, _value, _names_in, _find_other)
_STAND_INS = ForeignModules(OFFERED.keys() - _OURS, _value, _names_in)
_FINDERS = (__file__, foreign_modules.__file__)
_SHOWN = 3
_loaded: set[str] = set()  # modules of users' folders
_importable: list[str] = []  # the folder that is on the path for the last loader


class Loader:
    """Resolves dotted names against one folder; call it with the name and the place that it is written at."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        install()
        _forget()
        sys.path.insert(0, str(self.base))
        _importable.append(str(self.base))

    def __call__(self, dotted: str, where: str = "") -> Any:
        is_text = isinstance(dotted, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_text or not all(part.isidentifier() for part in dotted.split(".")):
            raise UserError(
                f"{dotted!r} is not a dotted name",
                where=where,
                fix="write it like `tasks.mine.task_executor.Name`",
            )
        before = set(sys.modules)
        try:
            module, rest = self._module(dotted, where)
        finally:
            _loaded.update(
                name for name in set(sys.modules) - before if self._is_own(sys.modules[name])
            )
        target: Any = module
        for number, part in enumerate(rest):
            try:
                target = getattr(target, part)
            except ImportError as error:  # a module that stands in for another says what it offers
                raise UserError(str(error), where=where) from None
            except AttributeError:
                holder = ".".join([module.__name__, *rest[:number]])
                public = [name for name in dir(target) if name[0] != "_"]
                what = f"{dotted!r} cannot be imported: {holder!r} has no {part!r}"
                raise UserError(what, where=where, fix=nearest(part, public)) from None
        return target

    def notes(self) -> list[str]:
        """Return what the user should know about where names came from."""
        files = {name: self.base.joinpath(*name.split(".")).with_suffix(".py") for name in OFFERED}
        own = {
            name: str(file.relative_to(self.base)) for name, file in files.items() if file.is_file()
        }
        utils = own.pop("tasks.eval.utils", None)
        notes = [f"tasks.eval.utils is your own {utils}, not Assay's"] if utils else []
        if own:
            shown = ", ".join([*list(own.values())[:_SHOWN], *["…"][: len(own) - _SHOWN > 0]])
            notes.append(f"Assay's own modules stand for {len(own)} of your sygra folder: {shown}")
        return notes

    def _module(self, dotted: str, where: str) -> tuple[ModuleType, list[str]]:
        """The longest part of the name that is a module, and what is left of it."""
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            name = ".".join(parts[:size])
            try:
                return importlib.import_module(name), parts[size:]
            except ModuleNotFoundError as error:
                if error.name is None or not (
                    name == error.name or name.startswith(f"{error.name}.")
                ):
                    raise _import_problem(dotted, error, where) from error
                missing = error
            except (Exception, SystemExit) as error:
                raise _import_problem(dotted, error, where) from error
            if "does not offer" in str(missing):
                raise UserError(str(missing), where=where)
        raise UserError(
            f"{dotted!r} cannot be imported: there is no module {parts[0]!r}",
            where=where,
            fix=f"names count from {self.base}; run the command from the folder that holds `tasks/`",
        )

    def _is_own(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return (
            file is not None
            and Path(file).is_relative_to(self.base)
            and "site-packages" not in file
        )


def _is_elsewhere(file: str) -> bool:
    return file[0] != "<" and "importlib" not in file and file not in _FINDERS


def _import_problem(dotted: str, error: BaseException, where: str) -> UserError:
    places = places_in(error, _is_elsewhere)
    place = f"{places[-1][0]}:{places[-1][1]}" if places else ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    missing = isinstance(error, ModuleNotFoundError) and "does not offer" not in str(error)
    fix = f"pip install what provides {error.name!r}, or do without it" if missing else ""  # type: ignore[attr-defined]
    return UserError(
        f"{dotted!r} cannot be imported: {type(error).__name__}: {error}",
        where=", ".join(filter(None, (where, place))),
        fix=fix,
    )


def _forget() -> None:
    """Let users' modules be imported anew, and none of another folder's `tasks` stand in for this one's."""
    while _importable:
        with suppress(ValueError):
            sys.path.remove(_importable.pop())
    for name in list(sys.modules):
        if name in _loaded or name.partition(".")[0] in ("sygra", "tasks"):
            del sys.modules[name]
    _loaded.clear()
    importlib.invalidate_caches()
