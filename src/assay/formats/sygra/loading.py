"""The objects that dotted names in a task's YAML mean: functions, classes and modules of the user's folder, or ours.

The folder is importable until another one is loaded. Its modules are imported anew for each binding, so that in a notebook the code
that runs is the code that is there.
"""

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.modules import install
from assay.registry import nearest

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
        found: Any = module
        for number, part in enumerate(rest):
            try:
                found = getattr(found, part)
            except ImportError as error:  # a module that stands in for another says what it offers
                raise UserError(str(error), where=where) from None
            except AttributeError:
                holder = ".".join([module.__name__, *rest[:number]])
                public = [name for name in dir(found) if name[0] != "_"]
                what = f"{dotted!r} cannot be imported: {holder!r} has no {part!r}"
                raise UserError(what, where=where, fix=nearest(part, public)) from None
        return found

    def notes(self) -> list[str]:
        """What the user should know about where names came from."""
        own = self.base / "tasks" / "eval" / "utils.py"
        return [f"tasks.eval.utils is your own {own.relative_to(self.base)}, not Assay's"] if own.is_file() else []

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
    for name in list(sys.modules):
        if name in _loaded or name.partition(".")[0] == "tasks":
            del sys.modules[name]
    _loaded.clear()
    while _importable:
        with suppress(ValueError):
            sys.path.remove(_importable.pop())
    importlib.invalidate_caches()
