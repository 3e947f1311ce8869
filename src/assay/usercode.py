"""User code from files: loading it, and what identifies it.

The identity of a user's function is the bytes of its file and of the local modules that the file imports,
directly or not; of a function that no file holds, its compiled code and that of the functions that it calls. What a
closure captured counts too, unless its module's file determines it. A file that
changed since it was loaded is loaded again, with those modules, so that the code that runs is always the code that is
named.
"""

import ast
import dis
import hashlib
import importlib.util
import inspect
import logging
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from assay.errors import AssayError, UserError
from assay.records import JsonObject

_loaded: dict[str, tuple[ModuleType, str]] = {}
_parsing = threading.Lock()  # Python 3.11 raises SystemError if two threads parse at the same time
_local: set[str] = set()  # every file that was a source of user code
_shown: set[str] = set()  # where errors were raised whose tracebacks are in the log
_MOST_SHOWN = 20
# a line not to repeat
_MAY_BE_SECRET = re.compile(r"(?i)key(?!error)|token|secret|passw|bearer|['\"]sk-")
logger = logging.getLogger(__name__)


def load_file(file: Path, *, where: str = "") -> ModuleType:
    """The module of a Python file; the file's folder is importable while and after it loads."""
    file = file.resolve()
    files = sources(file)
    now = _hash(files)
    loaded = _loaded.get(str(file))
    if loaded is not None and loaded[1] == now:
        return loaded[0]
    _forget(files, file.parent)
    name = (
        f"assay_user_{file.stem}_{hashlib.blake2b(str(file).encode(), digest_size=6).hexdigest()}"
    )
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{file.name!r} is not a Python file", where=where or str(file))
    if str(file.parent) in sys.path:
        sys.path.remove(str(file.parent))
    sys.path.insert(0, str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        what = f"{file.name} cannot be loaded: {type(error).__name__}: {error}"
        raise UserError(what, where=f"{file}{_line_in(error, file)}") from error
    _loaded[str(file)] = (module, now)
    return module


def marks_of(function: Any) -> JsonObject:
    """Return what a plug-in declares of itself."""
    return getattr(function, "__assay__", {})


def is_built_in(function: Any) -> bool:
    """Return whether a plug-in is ours, and not a user's."""
    return str(getattr(function, "__module__", "")).startswith("assay.")


def identity(function: Callable[..., Any]) -> str:
    """Return what a function is: name and version for a built-in, the hash of its sources for a
    user's."""
    marks, plain = marks_of(function), inspect.unwrap(function)
    if isinstance(plain, partial):
        return (
            f"{identity(plain.func)}({_digest(repr((plain.args, sorted(plain.keywords.items()))))})"
        )
    module = str(getattr(plain, "__module__", ""))
    name = str(getattr(plain, "__qualname__", type(plain).__qualname__))
    if module == "assay" or module.startswith("assay."):
        return f"{marks.get('name', name)}@{marks.get('version', 1)}"
    try:
        file = inspect.getsourcefile(plain if hasattr(plain, "__code__") else type(plain))
    except TypeError:
        file = None
    if file is None or not Path(file).is_file():
        return f"{module}.{name}#{_bytecode(plain)}"
    captured = "" if _is_attribute(plain, module) else _cells(plain, set())
    return f"{name}#{_hash(sources(Path(file).resolve(), module))}{captured and f'+{_digest(captured)}'}"


def _is_attribute(function: Any, module: str) -> bool:
    """Return whether a module's file makes this very function, with all that it captured; a
    script's values may be given."""
    held = (
        vars(sys.modules[module]).values() if module != "__main__" and module in sys.modules else ()
    )
    return any(value is function for value in held)


def _cells(function: Any, visited: set[int]) -> str:
    """The plain values and functions that a closure captured and does not change; "" if there are none."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return ""
    changed = {part.argval for part in dis.get_instructions(code) if part.opname == "STORE_DEREF"}
    values = [
        (name, text)
        for name, cell in zip(code.co_freevars, cells, strict=True)
        if name not in changed
        and _is_filled(cell)
        and (text := _text_of(cell.cell_contents, visited))
    ]
    return repr(values) if values else ""


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that is bound later
        return False


def _text_of(value: Any, visited: set[int]) -> str:
    """A value that cannot change, as text; "" for all else: a list that collects results must not change the code."""
    if isinstance(value, (str, bytes, int, float)):
        return repr(value)
    if isinstance(value, tuple):
        parts = [_text_of(part, visited) for part in cast("tuple[Any, ...]", value)]
        return repr(parts) if all(parts) else ""
    if not inspect.isfunction(value) or id(value) in visited:
        return ""
    visited.add(id(value))
    file = value.__code__.co_filename
    return (value.__qualname__ if Path(file).is_file() else _bytecode(value, visited)) + _cells(
        value, visited
    )


def sources(file: Path, module: str = "") -> list[Path]:
    """The file and every local module that it imports: those found beside it or in folders below its own, and, where
    it is a module of a package, those of the folder that the package is in."""
    roots = [file.parent]
    parts = module.split(".")
    if len(parts) > 1 and file.with_suffix("").parts[-len(parts) :] == tuple(parts):
        roots.append(file.parents[len(parts) - 1])
    visited, waiting = {file}, [file]
    while waiting:
        fresh = set(_imports(waiting.pop(), roots)) - visited
        visited |= fresh
        waiting.extend(fresh)
    return sorted(visited)


def _imports(file: Path, roots: list[Path]) -> Iterator[Path]:
    for level, name in imported_names(file):
        for base in [file.parents[level - 1]] if level else roots:
            yield from _files_of(base, name)


def imported_names(file: Path) -> Iterator[tuple[int, str]]:
    """Yield what a file imports, anywhere in it, and what of that may be a module, with the number
    of dots before it."""
    try:
        with _parsing:
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
            yield from ((node.level, name) for name in (node.module, *names) if name)


def _files_of(base: Path, name: str) -> list[Path]:
    parts = name.split(".")
    candidates = [base.joinpath(*parts[:n], "__init__.py") for n in range(1, len(parts) + 1)]
    candidates.append(base.joinpath(*parts[:-1], f"{parts[-1]}.py"))
    return [path for path in candidates if path.is_file()]


def _hash(files: list[Path]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for file in files:
        data = file.read_bytes() if file.is_file() else b""
        state.update(b"%s:%d:" % (file.name.encode(), len(data)) + data)
    return state.hexdigest()


def _bytecode(function: Callable[..., Any], visited: set[int] | None = None) -> str:
    """For functions that no file holds (a notebook, a REPL): their compiled code and constants, and what they use of
    the notebook: functions, and values that cannot change."""
    visited = {id(function)} if visited is None else visited
    state = hashlib.blake2b(digest_size=16)
    called = type(function).__call__
    waiting = [getattr(function, "__code__", None) or getattr(called, "__code__", None)]
    used = dict[str, None]()
    while waiting:
        code = waiting.pop()
        if code is None:
            continue
        state.update(code.co_code)
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                waiting.append(constant)
            else:
                state.update(repr(constant).encode())
        state.update(repr(code.co_names).encode())
        changed = {
            part.argval for part in dis.get_instructions(code) if part.opname == "STORE_GLOBAL"
        }
        used.update(dict.fromkeys(name for name in code.co_names if name not in changed))
    names: JsonObject = getattr(function, "__globals__", {})
    beside = [
        f"{name}={text}"
        for name in used
        if name in names and (text := _text_of(names[name], visited))
    ]
    beside += filter(
        None,
        [
            _text_of(getattr(function, "__defaults__", None), visited),
            _cells(function, visited),
        ],
    )
    for text in beside:
        state.update(text.encode())
    return state.hexdigest()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _forget(files: list[Path], root: Path) -> None:
    """Let the files be imported anew, and no module of the same name from another user's folder in their place."""
    paths = {str(file) for file in files}
    below = [file.relative_to(root).with_suffix("") for file in files if file.is_relative_to(root)]
    names = {".".join(path.parts).removesuffix(".__init__") for path in below}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and (file in paths or (name in names and file in _local)):
            del sys.modules[name]
    _local.update(paths)
    importlib.invalidate_caches()


def raised(error: BaseException) -> str:
    """Return what user code raised, and where: the innermost line of its traceback that is not a
    library's or ours."""
    import sysconfig
    import traceback

    place = ""
    paths = sysconfig.get_paths()
    others = (str(Path(__file__).parent), paths["stdlib"], paths["purelib"], paths["platlib"])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = frame.filename
        if not file.startswith("<frozen") and (file in _local or not file.startswith(others)):
            source = (
                f": {frame.line}" if frame.line and not _MAY_BE_SECRET.search(frame.line) else ""
            )
            place = f" ({Path(file).name}, line {frame.lineno}{source})"
            break
    text = f"{type(error).__name__}: {error}{place}"
    if place and place not in _shown and len(_shown) < _MOST_SHOWN:
        _shown.add(place)
        logger.debug("%s", text, exc_info=error)  # --debug shows it
    return text


@contextmanager
def failing(function: Callable[..., Any], what: str, where: str) -> Generator[None]:
    """A plug-in's own exceptions as a user's mistake; those of ours are ours."""
    try:
        yield
    except (AssayError, OSError):
        raise
    except Exception as error:
        if is_built_in(function):
            raise
        raise UserError(f"{what} failed: {raised(error)}", where=where) from error


def places_in(error: BaseException, is_own: Callable[[str], bool]) -> list[tuple[str, int]]:
    """Return (file, line) of each step of an error's traceback through files of one's own."""
    from traceback import walk_tb

    steps = ((frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__))
    return [step for step in steps if is_own(step[0])]


def _line_in(error: BaseException, file: Path) -> str:
    lines = [line for _, line in places_in(error, str(file).__eq__)]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        lines.append(error.lineno or 0)
    return f":{lines[-1]}" if lines else ""
