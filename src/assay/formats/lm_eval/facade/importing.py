"""Importing the modules of hooks.

Their `import lm_eval…` is answered by the façade, whether lm-eval is installed or not, by giving each module its own
`__import__`; `sys.modules` and the imports of everybody else stay as they are.
"""

import builtins
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.errors import AssayError, UserError
from assay.formats.lm_eval.facade.class_tasks import value_of_part
from assay.formats.lm_eval.facade.names import NAMES, code_runs_in, load, modules
from assay.formats.lm_eval.facade.packages import PACKAGE, install_line, is_installed
from assay.formats.lm_eval.facade.sources import TASKS, closure, digest, local_file, local_path
from assay.formats.lm_eval.tasks.definition import Hook

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
    module = modules().get(name)
    if module is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return module if fromlist else modules()[name.split(".")[0]]


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
    own = {str(path) for path in closure(file)} if file else set()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in own]
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames]
    if isinstance(error, SyntaxError) and error.filename in own:
        places = [f"{error.filename}:{error.lineno}"]
    return UserError(
        f"it cannot be loaded: {type(error).__name__}: {error}",
        where=places[-1] if places else where,
    )
