"""The modules `sygra.…` and `tasks.eval.utils` for code that imports them, and what dotted names in a task's YAML mean:
functions, classes and modules of the user's folder, or ours.

`install()` makes the modules importable; each name in them stands for ours, and nothing of ours is loaded before a name
is asked for. A `tasks/eval/utils.py` of the user's own is found first, and so is an installed langchain, of which
helpers may use messages and tools; names that are not offered fail with an error that says what to use instead. A
user's folder is importable until another one is bound. Its modules are imported anew for each binding, so that in a
notebook the code that runs is the code of the files.
"""

import difflib
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.errors import UserError
from assay.registry import nearest

_HERE = "assay.formats.sygra"
_METRICS = f"{_HERE}.metrics"
_CLASSES = f"{_HERE}.classes"
_MESSAGES = f"{_HERE}.graph.messages"
_CONSTANTS = (
    *("SYGRA_START", "SYGRA_END", "START", "END", "BACKEND", "ERROR_PREFIX", "GRAPH_OUTPUT_KEY", "LIST_SEPARATOR"),
    *("CHAT_CONVERSATION_MULTITURN", "CHAT_CONVERSATION_SINGLETURN", "VAR_CHAT_HISTORY"),
)


_PROCESSORS = ("NodePreProcessor", "NodePostProcessor", "NodePostProcessorWithState")


def _offered() -> dict[str, dict[str, str]]:
    """By module: each name in it, and the module of ours that has it; `*` stands for all that ours has."""
    graph, metrics = "sygra.core.graph", "sygra.core.eval.metrics"
    offered = {
        f"{graph}.functions.node_processor": _in(_CLASSES, *_PROCESSORS),
        f"{graph}.functions.lambda_function": _in(_CLASSES, "LambdaFunction", "AsyncLambdaFunction"),
        f"{graph}.functions.edge_condition": _in(_CLASSES, "EdgeCondition"),
        f"{graph}.graph_postprocessor": _in(_CLASSES, "GraphPostProcessor"),
        f"{graph}.sygra_message": _in(_MESSAGES, "SygraMessage"),
        f"{graph}.sygra_state": _in(_MESSAGES, "SygraState"),
        "sygra.core.base_task_executor": _in(_CLASSES, "BaseTaskExecutor", "DefaultTaskExecutor"),
        "sygra.core.models.model_postprocessor": _in(_CLASSES, "ModelPostProcessor", "RemoveThinkData"),
        "sygra.processors.data_transform": _in(f"{_HERE}.data.transforms", "*"),
        "sygra.processors.output_record_generator": _in(_CLASSES, "BaseOutputGenerator"),
        "sygra.utils.utils": _in(f"{_HERE}.functions", "*"),
        "sygra.utils.constants": _in(_CLASSES, *_CONSTANTS),
        "sygra.logger.logger_config": _in(f"{_HERE}.functions", "logger"),
        "tasks.eval.utils": _in(f"{_HERE}.eval_utils", "*"),
        "langchain_core.messages": _in(_MESSAGES, "AIMessage", "HumanMessage", "SystemMessage", "ToolMessage"),
        "langchain_core.tools": _in(f"{_HERE}.graph.called", "tool"),
        f"{metrics}.base_metric_metadata": _in(_METRICS, "BaseMetricMetadata"),
    }
    unit = {
        "base_unit_metric": _in(_METRICS, "BaseUnitMetric"),
        "unit_metric_result": _in(_METRICS, "UnitMetricResult"),
        "unit_metric_registry": _in(_METRICS, "UnitMetricRegistry", "unit_metric"),
        **_each_in(f"{_METRICS}.unit", "exact_match", "fuzzy_match", "typed_value_match"),
        **_each_in(f"{_METRICS}.unit", "action_within_bbox", "scroll_direction", "scroll_amount"),
    }
    aggregate = {
        "base_aggregator_metric": _in(_METRICS, "BaseAggregatorMetric"),
        "aggregator_metric_registry": _in(_METRICS, "AggregatorMetricRegistry", "aggregator_metric"),
        **_each_in(f"{_METRICS}.aggregate", "accuracy", "precision", "recall", "f1_score"),
        **_each_in(f"{_METRICS}.aggregate", "pass_at_k", "pass_power_k", "step_efficiency"),
    }
    for folder, modules in (("unit_metrics", unit), ("aggregator_metrics", aggregate)):
        for module, names in modules.items():
            offered[f"{metrics}.{folder}.{module}"] = names
            offered[f"sygra.core.metrics.{folder}.{module}"] = names  # where they were at first
    return offered


def _in(home: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, home)


def _each_in(home: str, *modules: str) -> dict[str, dict[str, str]]:
    """Metrics that have a module of their own: `exact_match` is `ExactMatchMetric`."""
    return {name: {f"{name.title().replace('_', '')}Metric": home} for name in modules}


OFFERED = _offered()
_STAND_INS = {
    *("tasks", "tasks.eval", "tasks.eval.utils"),
    *("langchain_core", "langchain_core.messages", "langchain_core.tools"),
}
_INSTEAD = {  # what does the same here
    "Workflow": "assay.formats.sygra.run(task, …)",
    "sygra.workflow": "assay.formats.sygra.run(task, …)",
    "ModelFactory": "an llm node, or a function task with `context.complete`",
    "sygra.core.models.model_factory": "an llm node, or a function task with `context.complete`",
    "SemanticDedupPostProcessor": "`assay dataset` finds duplicates",
}


def install() -> None:
    """Let `sygra.…` and `tasks.eval.utils` be imported, from now on and in the whole process."""
    if not any(isinstance(finder, _Sygra) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Sygra())
        sys.meta_path.append(_IfMissing())


class _Sygra(importlib.abc.MetaPathFinder):
    """Stands first: the original need not be installed, and its base classes would not be ours."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return _spec(fullname) if fullname.partition(".")[0] == "sygra" else None


class _IfMissing(importlib.abc.MetaPathFinder):
    """Stands last: what the user's folder or the machine has is found before it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return _spec(fullname) if fullname in _STAND_INS else None


def _spec(name: str) -> importlib.machinery.ModuleSpec:
    is_package = any(module.startswith(f"{name}.") for module in OFFERED)
    if not is_package and name not in OFFERED:
        parent = name.rpartition(".")[0]
        raise ModuleNotFoundError(f"Assay does not offer the module {name!r}; {_instead(name, parent)}", name=name)
    return importlib.machinery.ModuleSpec(name, _StandLoader(), is_package=is_package)


class _StandLoader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Stand(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Stand(ModuleType):
    """Looks a name up in the module of ours that has it, each time: some of them change while a graph runs."""

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        offered = OFFERED.get(self.__name__, {})
        home = offered.get(name) or offered.get("*")
        if home is not None:
            home_module = importlib.import_module(home)
            if name in offered or hasattr(home_module, name):
                return getattr(home_module, name)
        inner = f"{self.__name__}.{name}"
        if inner in OFFERED or any(module.startswith(f"{inner}.") for module in OFFERED):
            return importlib.import_module(inner)
        raise ImportError(
            f"Assay does not offer {name!r} of {self.__name__!r}; {_instead(name, self.__name__)}", name=self.__name__
        )

    def __dir__(self) -> Sequence[str]:
        offered = OFFERED.get(self.__name__, {})
        all_of = _public(offered["*"]) if "*" in offered else []
        return sorted({*super().__dir__(), *(name for name in offered if name != "*"), *all_of})


def _instead(name: str, module: str) -> str:
    """What to use in place of a name that is not offered."""
    if name in _INSTEAD:
        return f"use {_INSTEAD[name]}"
    offered = OFFERED.get(module)
    if offered is None:
        close = difflib.get_close_matches(name, OFFERED, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
    else:
        names = [*offered, *(_public(offered["*"]) if "*" in offered else [])]
        hint = nearest(name, (entry for entry in names if entry != "*")) + "; "
    return f"{hint}write it yourself, in a module beside the task"


def _public(home: str) -> list[str]:
    members = vars(importlib.import_module(home))
    if "__all__" in members:
        return members["__all__"]
    names = [name for name, value in members.items() if getattr(value, "__module__", home) == home]
    return [name for name in names if name[0] != "_" and not isinstance(members[name], ModuleType)]


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
        if not isinstance(dotted, str) or not all(part.isidentifier() for part in dotted.split(".")):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(
                f"{dotted!r} is not a dotted name", where=where, fix="write it like `tasks.mine.task_executor.Name`"
            )
        before = set(sys.modules)
        try:
            module, rest = self._module(dotted, where)
        finally:
            _loaded.update(name for name in set(sys.modules) - before if self._is_own(sys.modules[name]))
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
        """What the user should know about where names came from."""
        file = self.base / "tasks" / "eval" / "utils.py"
        return [f"tasks.eval.utils is your own {file.relative_to(self.base)}, not Assay's"] if file.is_file() else []

    def _module(self, dotted: str, where: str) -> tuple[ModuleType, list[str]]:
        """The longest part of the name that is a module, and what is left of it."""
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            name = ".".join(parts[:size])
            try:
                return importlib.import_module(name), parts[size:]
            except ModuleNotFoundError as error:
                if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                    raise _failed(dotted, error, where) from error
                missing = error
            except (Exception, SystemExit) as error:
                raise _failed(dotted, error, where) from error
            if "does not offer" in str(missing):
                raise UserError(str(missing), where=where)
        raise UserError(
            f"{dotted!r} cannot be imported: there is no module {parts[0]!r}",
            where=where,
            fix=f"names count from {self.base}; run the command from the folder that holds `tasks/`",
        )

    def _is_own(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return file is not None and Path(file).is_relative_to(self.base) and "site-packages" not in file


def _failed(dotted: str, error: BaseException, where: str) -> UserError:
    frame, place = error.__traceback__, ""
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith("<") and "importlib" not in file and file != __file__:
            place = f"{file}:{frame.tb_lineno}"
        frame = frame.tb_next
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
        if name in _loaded or name.partition(".")[0] == "tasks":
            del sys.modules[name]
    _loaded.clear()
    importlib.invalidate_caches()
