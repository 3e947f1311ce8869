"""Importing the modules of hooks.

Their `import lm_eval…` is answered by the façade, whether lm-eval is installed or not, by giving each module its own
`__import__`; `sys.modules` and the imports of everybody else stay as they are.
"""

import builtins
import logging
import re
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from assay.foreign_modules import ForeignModules
from assay.formats.lm_eval.facade import class_tasks
from assay.formats.lm_eval.facade.class_tasks import value_of_part
from assay.formats.lm_eval.facade.sources import (
    PACKAGE,
    TASKS,
    closure,
    digest,
    install_line,
    is_installed,
    local_file,
    local_path,
)
from assay.formats.lm_eval.tasks.definition import Hook, own_line
from assay.sdk import AssayError, JsonObject, UserError
from assay.text.normalise import squad

# of assay.formats.lm_eval.scoring.hub
METRICS = frozenset(["accuracy", "bleu", "code_eval", "exact_match", "f1", "rouge", "wer"])

Sandbox = Literal["closed", "weak"]
# where `code_eval` runs code; None: nowhere
SANDBOX: ContextVar[Sandbox | None] = ContextVar("SANDBOX", default=None)


@contextmanager
def code_runs_in(sandbox: Sandbox | None) -> Generator[None]:
    token = SANDBOX.set(sandbox)
    try:
        yield
    finally:
        SANDBOX.reset(token)


def load(name: str, *args: Any, **parameters: Any) -> Any:
    if name in METRICS:
        from assay.formats.lm_eval.scoring.hub import HubMetric

        return HubMetric(name)
    try:
        return builtins.__import__("evaluate").load(name, *args, **parameters)
    except ImportError:
        raise UserError(
            f"the metric {name!r} needs the package evaluate", fix=install_line("evaluate")
        ) from None
    except Exception as error:
        what = f"the metric {name!r} is code of the Hugging Face hub, and could not be fetched: {type(error).__name__}"
        raise UserError(what, fix="run it once where the hub can be reached") from error


_registered: dict[tuple[str, str], Any] = {}  # (kind, name): what a task's own module registered


def registered(kind: str, name: str) -> Any:
    """What a hook's module registered as a `filter`, `metric` or `aggregation`; None if none that is loaded did."""
    return _registered.get((kind, name))


def _register(kind: str) -> Callable[..., Any]:
    def decorator(*names: Any, **parameters: Any) -> Callable[[Any], Any]:
        labels = [*names, *([parameters["metric"]] if "metric" in parameters else [])]

        def register(value: Any) -> Any:
            _registered.update({(kind, str(label)): value for label in labels})
            return value

        return register

    return decorator


def general_detokenize(string: str) -> str:
    for spaced, plain in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        string = string.replace(spaced, plain)
    return re.sub(r" (['.,])", r"\1", string)


def metric_max_over_ground_truths(
    metric_fn: Callable[[Any, Any], Any], prediction: Any, ground_truths: Any
) -> Any:
    return max(metric_fn(prediction, reference) for reference in ground_truths)


def compute_exact(a_gold: str, a_pred: str) -> int:
    return int(squad(a_gold) == squad(a_pred))


def compute_f1(a_gold: str, a_pred: str) -> float:
    """The F1 of the words of two answers, as SQuAD has it."""
    reference, prediction = squad(a_gold).split(), squad(a_pred).split()
    common = (Counter(reference) & Counter(prediction)).total()
    if not reference or not prediction or not common:
        return int(reference == prediction)
    precision, recall = common / len(prediction), common / len(reference)
    return (2 * precision * recall) / (precision + recall)


NAMES: dict[str, JsonObject] = {
    "evaluate": {"load": load},
    f"{PACKAGE}.api.filter": {},
    f"{PACKAGE}.api.instance": {"Instance": class_tasks.Instance},
    f"{PACKAGE}.api.metrics": {"metric_max_over_ground_truths": metric_max_over_ground_truths},
    f"{PACKAGE}.api.registry": {
        f"register_{kind}": _register(kind)
        for kind in ("filter", "metric", "aggregation", "model", "task")
    },
    f"{PACKAGE}.api.samplers": {},
    f"{PACKAGE}.api.task": {"ConfigurableTask": class_tasks.ConfigurableTask},
    f"{PACKAGE}.filters.extraction": {},
    f"{PACKAGE}.utils": {
        "eval_logger": logging.getLogger("lm-eval"),
        "general_detokenize": general_detokenize,
        "logging": logging,
    },
    "transformers.data.metrics.squad_metrics": {  # for three small functions nobody needs transformers
        "compute_exact": compute_exact,
        "compute_f1": compute_f1,
        "normalize_answer": squad,
    },
}


def _value(module: str, name: str) -> Any:
    inner = f"{module}.{name}"
    if inner in MODULES:
        return MODULES.module(inner)
    values = _values(module)
    if name not in values:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return values[name]


def _values(module: str) -> JsonObject:
    return {**NAMES.get(module, {}), **_ours().get(module.removeprefix(f"{PACKAGE}."), {})}


MODULES = ForeignModules(NAMES, _value, lambda module: [*_values(module)])


@cache
def _ours() -> dict[str, JsonObject]:
    """What the evaluation itself uses: it knows a function by its identity. Imported once a hook is."""
    from assay.formats.lm_eval.asking import fewshot
    from assay.formats.lm_eval.scoring import aggregations, corpora, filters

    steps = {"Filter": filters.Filter, "RegexFilter": filters.RegexFilter}
    return {
        "api.filter": steps,
        "api.metrics": aggregations.BY_IDENTITY,
        "api.samplers": {kind.__name__: kind for kind in fewshot.SAMPLERS.values()},
        "filters.extraction": steps,
        "utils": {"weighted_f1_score": corpora.weighted_f1_score},
    }


_lock = threading.RLock()
_loaded: dict[Path, ModuleType] = {}  # with `__state__`: what the file was when it was loaded


def value_of(hook: Hook) -> Any:
    module, _, attribute = hook.name.rpartition(".")
    attribute, *path = attribute.split(":")
    where = f"{hook!r} in {hook.folder}"
    if not module:
        raise UserError(
            f"{hook!r} names no module", where=hook.folder, fix="write it as !function module.name"
        )
    file = hook.file
    try:
        asking = {"__file__": str(Path(hook.folder, "hook"))}
        loaded = module_of(file) if file else _import(module, asking, fromlist=[attribute])
        value = getattr(loaded, attribute)
        return value_of_part(value, path) if path else value
    except AssayError:
        raise
    except ImportError as error:
        raise _import_error(error, where, file) from error
    except AttributeError as error:
        if not file or traceback.extract_tb(error.__traceback__)[-1].filename != __file__:
            raise _failed(error, where, file) from error
        raise UserError(f"{file.name} has no {attribute}", where=where) from error
    except (Exception, SystemExit) as error:  # some modules exit where a program is missing
        raise _failed(error, where, file) from error


def module_of(file: Path) -> ModuleType:
    """The module of a file, loaded again once it has changed."""
    with _lock:
        state = file.stat()
        changed = (state.st_mtime_ns, state.st_size)
        module = _loaded.get(file)
        if module is not None and module.__dict__["__state__"] == changed:
            return module
        # Named by content: what `datasets` keeps of a function's results is found by this name.
        module = ModuleType(f"{PACKAGE}_hooks_{file.stem.replace('.', '_')}_{digest(file)}")
        module.__file__ = str(file)
        module.__dict__["__state__"] = changed
        module.__dict__["__builtins__"] = builtins.__dict__ | {"__import__": _import}
        _loaded[file] = sys.modules[module.__name__] = module
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                warnings.simplefilter("ignore", DeprecationWarning)  # of odd escapes
                code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
            # modules of code tasks try out a line of their own; no answer is here yet
            with code_runs_in("weak"):
                exec(code, module.__dict__)
        except BaseException:
            del _loaded[file], sys.modules[module.__name__]
            raise
        return module


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    asking = Path((globals or {}).get("__file__") or ".")
    if level or name.startswith(f"{TASKS}."):
        return _local("." * level + name, asking, fromlist or ())
    if name.split(".")[0] != PACKAGE and name not in NAMES:
        module = builtins.__import__(name, globals, locals, fromlist, level)
        return (
            _with_metrics(module)
            if name == "datasets" and "load_metric" in (fromlist or ())
            else module
        )
    if name not in MODULES:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return MODULES.module(name if fromlist else name.split(".")[0])


def _with_metrics(datasets: ModuleType) -> ModuleType:
    """With what older versions had, and `evaluate` has today."""
    made = ModuleType(datasets.__name__)
    made.__dict__.update({"load_metric": load, **vars(datasets)})
    return made


def _local(name: str, asking: Path, parts: Sequence[str]) -> ModuleType:
    """A module of the task's own files; a package with those of its modules that are asked for."""
    file, folder = local_file(name, asking), local_path(name, asking)
    if file is None and not (folder and folder.is_dir()):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_of(file) if file else ModuleType(name)
    for part in parts:
        path = local_file(f"{name}{'' if name.endswith('.') else '.'}{part}", asking)
        if path and not hasattr(module, part):
            setattr(module, part, module_of(path))
    return module


def _import_error(error: ImportError, where: str, file: Path | None) -> UserError:
    cause: BaseException | None = error
    while (
        isinstance(cause, ImportError) and not cause.name and (cause.__cause__ or cause.__context__)
    ):
        cause = cause.__cause__ or cause.__context__
    name = str(getattr(cause, "name", None) or "")
    if not isinstance(cause, ModuleNotFoundError) or not name.replace(".", "").isidentifier():
        return _failed(error, where, file)
    if name.split(".")[0] == PACKAGE:
        return UserError(
            f"it imports {name}, which is not a part of what Assay has of lm-eval", where=where
        )
    if is_installed(name):
        what = f"it needs {name}, which the installed version of that package does not have"
        return UserError(what, where=where)
    return UserError(
        f"it needs the package {name.split('.')[0]}", where=where, fix=install_line(name)
    )


def _failed(error: BaseException, where: str, file: Path | None) -> UserError:
    place = own_line(error) or where
    if isinstance(error, SyntaxError) and file and Path(error.filename or "") in closure(file):
        place = f"{error.filename}:{error.lineno}"
    return UserError(
        f"it cannot be loaded: {type(error).__name__}: {error}",
        where=place,
    )
