"""What `assay` offers: sorted, complete, and imported only when it is used."""

import subprocess
import sys
from types import ModuleType

import pytest

import assay
from assay import api

INTERNAL = {"Config", "load", "planned", "run_blocking"}  # what api.py imports for its own use


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
    assert ours - set(api.__all__) == INTERNAL


def _is_ours(value: object) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.startswith("assay.")


def test_dir_shows_them() -> None:
    assert set(dir(assay)) == {*api.__all__, "__version__"}


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        assay.rnu  # noqa: B018


def test_importing_assay_imports_nothing_else() -> None:
    code = "import sys, assay; print([name for name in ('numpy', 'msgspec', 'jinja2', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
