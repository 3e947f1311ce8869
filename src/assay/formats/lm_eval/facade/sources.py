"""What a hook's module is made of: its imports and its local files. Nothing is executed."""

import ast
import hashlib
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

PACKAGE = "lm_eval"
ALWAYS = {"jinja2", "numpy", "yaml"}  # Assay's own
_DISTRIBUTIONS = {
    "absl": "absl-py",
    "antlr4": "antlr4-python3-runtime==4.11",
    "antlr4-python3-runtime": "antlr4-python3-runtime==4.11",
    "bert_score": "bert-score",
    "bs4": "beautifulsoup4",
    "iso639": "iso639-lang",
    "kstar_planner": "kstar-planner",
    "math_verify": "math-verify[antlr4_11_0]",
    "rouge_score": "rouge-score",
    "sklearn": "scikit-learn",
    "tinyBenchmarks": "git+https://github.com/felipemaiapolo/tinyBenchmarks",
}


def install_line(*modules: str) -> str:
    names = dict.fromkeys(module.split(".")[0] for module in modules)
    return "pip install " + " ".join(f"'{_DISTRIBUTIONS.get(name, name)}'" for name in names)


@cache
def is_installed(module: str) -> bool:
    """Return whether the package of a module, or a distribution (`a-b`), is there; it is not imported."""
    if "-" in module:
        return _has_version(*_DISTRIBUTIONS.get(module, module).partition("==")[::2])
    try:
        return find_spec(module.split(".")[0]) is not None
    except (ValueError, ImportError):
        return False


def _has_version(distribution: str, start: str) -> bool:
    pattern = f"{distribution.replace('-', '_')}-{start}*.dist-info"  # `importlib.metadata` takes long to import
    return any(next(Path(folder).glob(pattern), None) for folder in sys.path)


def installed_tasks() -> Path | None:
    """The folder of tasks of an installed lm-eval, which is not imported."""
    try:
        spec = find_spec(PACKAGE)
    except (ValueError, ImportError):
        return None
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next(
        (Path(folder, "tasks") for folder in folders if Path(folder, "tasks").is_dir()), None
    )


def missing(names: tuple[str, ...]) -> str:
    """Return which of the packages are not installed, as a reason; "" if all are."""
    lacking = [name for name in names if not is_installed(name)]
    return f"needs {', '.join(lacking)}: {install_line(*lacking)}" if lacking else ""


_parsing = threading.Lock()  # Python 3.11 raises SystemError if two threads parse at the same time
TASKS = f"{PACKAGE}.tasks"
_NOT_RUN = ("TYPE_CHECKING", "__name__")  # of conditions whose branch does not run in an import


class CodePart(msgspec.Struct):
    """What a function, a class or a variable uses, or what runs when the module is imported. `local` has the module's
    own files that it imports, with the names; `loads` the metrics that it takes from the hub ("": a computed name)."""

    uses: set[str] = set()
    modules: set[str] = set()
    local: set[tuple[Path, str]] = set()
    loads: set[str] = set()


class SourceFile(msgspec.Struct):
    """A file's parts by name; what runs in an import is the part "". `files` are all local ones that it can import."""

    parts: dict[str, CodePart] = {}
    files: set[Path] = set()
    problem: str = ""


def reach(file: Path, attribute: str) -> CodePart:
    """All that an attribute of a module needs, in this file and in local ones."""
    whole = CodePart()
    waiting = [(file, ""), (file, attribute)]
    visited: set[tuple[Path, str]] = set()
    while waiting:
        place = waiting.pop()
        part = source(place[0]).parts.get(place[1]) if place not in visited else None
        visited.add(place)
        if part is not None:
            whole.modules |= part.modules
            whole.loads |= part.loads
            waiting += [(place[0], name) for name in part.uses]
            waiting += [(path, name) for path, imported in part.local for name in ("", imported)]
    return whole


def source(file: Path) -> SourceFile:
    state = file.stat()
    return _source(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _source(file: Path, _changed: int, _size: int) -> SourceFile:
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, mostly
            tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError) as error:
        return SourceFile(problem=f"{file.name}: {error}")
    parts: dict[str, CodePart] = {"": _part(_at_import(tree), file, called=True)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts[node.name] = _part(ast.walk(node), file)
        elif isinstance(node, ast.Assign):
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            parts.update((name, _part(ast.walk(node.value), file)) for name in names)
    return SourceFile(parts=parts, files={path for path, _ in _part(ast.walk(tree), file).local})


def _part(nodes: Iterator[ast.AST], file: Path, called: bool = False) -> CodePart:
    part = CodePart()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, path in _imports_of(node, file):
                if path is None:
                    part.modules.add(name)
                else:
                    part.local.add((path, name))
        elif isinstance(node, ast.Call):
            part.loads.update(_loaded_metric(node))
            part.modules.update(_versions(node))
            part.uses.update([node.func.id] if isinstance(node.func, ast.Name) else [])
        elif isinstance(node, ast.Name) and not called:
            part.uses.add(node.id)
    return part


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run when the module is imported, but the imports whose failure it bears."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and any(
            getattr(part, "id", getattr(part, "attr", "")) in _NOT_RUN
            for part in ast.walk(node.test)
        ):
            continue
        yield node
        is_borne = isinstance(node, ast.Try) and not _raises(node.handlers)
        parts = ast.iter_child_nodes(node)
        waiting += [
            part
            for part in parts
            if not (is_borne and isinstance(part, ast.Import | ast.ImportFrom))
        ]


def _raises(handlers: list[ast.ExceptHandler]) -> bool:
    return any(isinstance(part, ast.Raise) for handler in handlers for part in ast.walk(handler))


def _imports_of(node: ast.Import | ast.ImportFrom, file: Path) -> Iterator[tuple[str, Path | None]]:
    """Modules by name; for a local file the name that is imported from it, "" for all of it."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            path = local_file(alias.name, file)
            yield ("", path) if path else (alias.name, None)
        return
    module = "." * node.level + (node.module or "")
    whole = local_file(module, file)
    for alias in node.names:
        path = local_file(f"{module}.{alias.name}" if node.module else module + alias.name, file)
        if path or whole:
            yield ("", path) if path else (alias.name, whole)
        else:
            yield module, None


def _versions(call: ast.Call) -> list[str]:
    """The package in `version("…")`: one whose version the module wants to know, it needs."""
    name = call.args[0] if call.args and getattr(call.func, "id", "") == "version" else None
    return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []


def _loaded_metric(call: ast.Call) -> list[str]:
    """The name in `evaluate.load(…)`, or in `load(…)` and `load_metric(…)` with a text."""
    function, name = call.func, call.args[0] if call.args else None
    is_text = isinstance(name, ast.Constant) and isinstance(name.value, str)
    is_plain = isinstance(function, ast.Name) and function.id in ("load", "load_metric") and is_text
    is_attribute = isinstance(function, ast.Attribute) and function.attr == "load"
    owner = getattr(getattr(function, "value", None), "id", "")
    if not is_plain and not (is_attribute and owner.endswith("evaluate")):
        return []
    return [str(name.value) if isinstance(name, ast.Constant) else ""]


def local_file(name: str, asking: Path) -> Path | None:
    """The file of a relative module, or of one of `lm_eval.tasks`: of the tasks that `asking` belongs to, else of an
    installed lm-eval. None if there is none, and for every other module."""
    path = local_path(name, asking)
    files = [path.parent / f"{path.name}.py", path / "__init__.py"] if path else []
    return next((file.resolve() for file in files if file.is_file()), None)


def local_path(name: str, asking: Path) -> Path | None:
    """Return where a local module is, without its suffix; a package's folder."""
    if name.startswith("."):
        plain = name.lstrip(".")
        above = list(asking.parents)[len(name) - len(plain) - 1 :]
        return above[0].joinpath(*filter(None, plain.split("."))) if above else None
    root = tasks_of(asking) if name.startswith(f"{TASKS}.") else None
    return root.joinpath(*name.removeprefix(f"{TASKS}.").split(".")) if root else None


def tasks_of(file: Path) -> Path | None:
    above = (
        folder
        for folder in file.parents
        if folder.name == "tasks" and folder.parent.name == PACKAGE
    )
    return next(above, None) or installed_tasks()


def closure(file: Path) -> list[Path]:
    """A file and all local files that it imports, directly or not."""
    visited, waiting = {file}, [file]
    while waiting:
        fresh = source(waiting.pop()).files - visited
        visited |= fresh
        waiting += fresh
    return sorted(visited)


def digest(file: Path) -> str:
    """A hash of the bytes of a module's files; the same wherever the folder is."""
    state = hashlib.blake2b(digest_size=16)
    for path in closure(file):
        data = path.read_bytes()
        state.update(b"%s:%d:" % (path.name.encode(), len(data)) + data)
    return state.hexdigest()
