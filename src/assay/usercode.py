"""User code from files: loading it, and what identifies it.

The identity of a user's function is the bytes of its file and of the local modules that the file imports,
directly or not. A file that changed since it was loaded is loaded again, with those modules, so that the code
that runs is always the code that is named.
"""

import ast
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.errors import UserError

_loaded: dict[str, tuple[ModuleType, str]] = {}
_parsing = threading.Lock()  # Python 3.11 raises SystemError if two threads parse at the same time
_local: set[str] = set()  # every file that was a source of user code


def load_file(file: Path, *, where: str = "") -> ModuleType:
    """The module of a Python file; the file's folder is importable while and after it loads."""
    file = file.resolve()
    files = sources(file)
    now = _hash(files)
    known = _loaded.get(str(file))
    if known is not None and known[1] == now:
        return known[0]
    _forget(files, file.parent)
    name = f"assay_user_{file.stem}_{hashlib.blake2b(str(file).encode(), digest_size=6).hexdigest()}"
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


def identity(function: Callable[..., Any]) -> str:
    """What a function is: name and version for a built-in, the hash of its sources for a user's."""
    marks: dict[str, Any] = getattr(function, "__assay__", {})
    plain = inspect.unwrap(function)
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
    return f"{name}#{_hash(sources(Path(file).resolve(), module))}"


def sources(file: Path, module: str = "") -> list[Path]:
    """The file and every local module that it imports: those found beside it or in folders below its own, and, where
    it is a module of a package, those of the folder that the package is in."""
    roots = [file.parent]
    parts = module.split(".")
    if len(parts) > 1 and file.with_suffix("").parts[-len(parts) :] == tuple(parts):
        roots.append(file.parents[len(parts) - 1])
    found: dict[Path, None] = {}
    waiting = [file]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found[current] = None
        waiting.extend(path for path in _imports(current, roots) if path not in found)
    return sorted(found)


def _imports(file: Path, roots: list[Path]) -> list[Path]:
    try:
        with _parsing:
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    paths: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(root, alias.name) for alias in node.names for root in roots]
        elif isinstance(node, ast.ImportFrom):
            bases = roots if node.level == 0 else [file.parents[node.level - 1]]
            inside = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
            names = [(base, name) for base in bases for name in filter(None, (node.module, *inside))]
        else:
            continue
        for base, name in names:
            paths.extend(_files_of(base, name))
    return paths


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


def _bytecode(function: Callable[..., Any]) -> str:
    """For functions that no file holds (a notebook, a REPL): their compiled code and constants."""
    state = hashlib.blake2b(digest_size=16)
    waiting = [getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)]
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
    return state.hexdigest()


def _forget(files: list[Path], root: Path) -> None:
    """Let the files be imported anew, and no module of the same name from another user's folder in their place."""
    own = {str(file) for file in files}
    below = [file.relative_to(root).with_suffix("") for file in files if file.is_relative_to(root)]
    names = {".".join(path.parts).removesuffix(".__init__") for path in below}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and (file in own or (name in names and file in _local)):
            del sys.modules[name]
    _local.update(own)
    importlib.invalidate_caches()


def _line_in(error: BaseException, file: Path) -> str:
    line = ""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(file):
            line = f":{frame.tb_lineno}"
        frame = frame.tb_next
    if isinstance(error, SyntaxError) and error.filename == str(file):
        line = f":{error.lineno}"
    return line
