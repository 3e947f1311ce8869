"""What `assay` offers: sorted, complete, and imported only when it is used."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import assay
from assay import api
from assay.cli import ORDER

TYPES_ONLY = {"Config", "Paths", "Stop"}  # what api.py imports for its annotations


def test_the_names_are_sorted_and_exist() -> None:
    assert api.__all__ == sorted(api.__all__)
    for name in api.__all__:
        assert getattr(assay, name) is getattr(api, name)


def test_the_names_are_complete() -> None:
    ours = {
        name
        for name, value in vars(api).items()
        if name[0] != "_" and not isinstance(value, ModuleType) and _is_ours(value)
    }
    assert ours - set(api.__all__) <= {*_homes()}
    assert {name for name in _homes() if name[0].isupper()} <= set(api.__all__)


def _is_ours(value: object) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.startswith("assay.")


def _homes() -> dict[str, tuple[str, str]]:
    """Where each lazy name is said to be, and what it is called there."""
    found: dict[str, tuple[str, str]] = {}
    for module, names in api._HOMES.items():
        for entry in names.split():
            there, _, here = entry.partition("=")
            found[here or there] = (f"assay.{module}", there)
    return found


def test_type_checkers_and_python_find_the_same_things() -> None:
    """What api.py imports for type checkers is what its table imports when it is asked."""
    tree = ast.parse(Path(api.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported: dict[str, tuple[str, str]] = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            imported |= {
                alias.asname or alias.name: (node.module, alias.name) for alias in node.names
            }
    defined = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    public = {name: home for name, home in _homes().items() if name in api.__all__}
    assert {name: home for name, home in imported.items() if name not in TYPES_ONLY} == public
    assert set(api.__all__) <= {*imported, *defined}
    for name in _homes():
        assert getattr(api, name) is not None


def test_every_verb_of_the_command_line_is_a_function() -> None:
    groups = {"dataset": ["add", "ls", "show", "verify"], "local": ["list", "pull"]}
    groups["benchmarks"] = ["list", "pull"]
    renamed = {"import": ["import_"], "judge": ["calibrate", "label"]}
    renamed["demo"] = ["init", "run"]  # `assay.demo` is a room
    for verb in ORDER:
        names = [f"{verb}_{word}" for word in groups[verb]] if verb in groups else renamed.get(verb)
        for name in names if names is not None else [verb.replace("-", "_")]:
            assert callable(getattr(assay, name)), name
            assert (getattr(assay, name).__doc__ or "").strip(), (
                f"{name} has no line of documentation"
            )


def test_dir_shows_them() -> None:
    assert set(dir(assay)) == {*api.__all__, "__version__"}


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'load_test'; .*`max_concurrency`"):
        assay.load_test  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        assay.rnu  # noqa: B018


def test_importing_assay_imports_nothing_else() -> None:
    code = "import sys, assay; print([name for name in ('numpy', 'msgspec', 'jinja2', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_door_itself_imports_nothing_heavy() -> None:
    code = "import sys, assay.api; print([n for n in ('numpy', 'msgspec', 'asyncio', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
