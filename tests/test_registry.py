"""The registry: every way to name a plug-in, and what it says about a name or a parameter that is wrong."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from assay.errors import UserError
from assay.registry import (
    Registry,
    check_params,
    dataset,
    load_function,
    metric,
    model,
    nearest,
    prompt,
    scorer,
    task,
)


@pytest.fixture
def registry() -> Registry:
    return Registry("scorer", "assay.scorers")


def test_nearest() -> None:
    assert (
        nearest("exactmatch", ["exact_match", "contains"])
        == "did you mean 'exact_match'? valid: contains, exact_match"
    )
    assert nearest("zzz", ["b", "a"]) == "valid: a, b"
    assert nearest("zzz", []) == ""


def test_the_built_ins() -> None:
    found = {kind.kind: kind.names() for kind in (dataset, prompt, model, task, scorer, metric)}
    assert {"csv", "function", "json", "jsonl"} <= set(found["dataset"])
    assert {"demo", "openai", "python", "replay"} <= set(found["model"])
    assert {"contains", "exact_match"} <= set(found["scorer"])
    assert {"mean", "pass_at_k", "pass_rate"} <= set(found["metric"])
    assert ({"jinja"} <= set(found["prompt"]), {"function", "prompt"} <= set(found["task"])) == (
        True,
        True,
    )
    assert all(name == name.strip("_") for names in found.values() for name in names)


@pytest.mark.parametrize(
    "kind", [dataset, prompt, model, task, scorer, metric], ids=lambda kind: kind.kind
)
def test_each_built_in_is_found_by_the_name_of_its_file(kind: Registry) -> None:
    for name in kind.names():
        assert callable(kind.get(name))


@pytest.mark.parametrize(
    "name", ["exactmatch", "", "_rows", "..", "a..b", ".x", "no.such.module", "os.nothing", "a b"]
)
def test_an_unknown_name(registry: Registry, name: str) -> None:
    with pytest.raises(UserError, match="unknown scorer") as caught:
        registry.get(name, where="evaluation_methods[0]")
    assert "exact_match" in caught.value.fix
    assert caught.value.where == "evaluation_methods[0]"


def test_the_decorator(registry: Registry) -> None:
    @registry
    def mine() -> None: ...

    @registry(name="other", version=3)
    def something() -> None: ...

    assert registry.get("mine") is mine
    assert registry.get("other") is something
    assert something.__assay__ == {"kind": "scorer", "name": "other", "version": 3}
    assert {"mine", "other"} <= set(registry.names())


def defined_in(folder: Path, name: str, text: str) -> Callable[..., Any]:
    path = folder / f"{name}.py"
    path.write_text(text)
    return load_function(str(path), "mine")


def test_two_of_one_name_are_an_error(registry: Registry, tmp_path: Path) -> None:
    registry(defined_in(tmp_path, "one", "def mine(): ...\n"))
    with pytest.raises(UserError, match="two scorers are called 'mine'") as caught:
        registry(defined_in(tmp_path, "two", "\ndef mine(): ...\n"))
    assert "one.py:1" in caught.value.where
    assert "two.py:2" in caught.value.where


def test_a_file_that_was_edited_registers_again(registry: Registry, tmp_path: Path) -> None:
    registry(defined_in(tmp_path, "one", "def mine(): return 1\n"))
    registry(defined_in(tmp_path, "one", "\n\n\ndef mine(): return 2\n"))
    assert registry.get("mine")() == 2


def test_a_dotted_name(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.get("os.path.join").__name__ == "join"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "assay_test_broken.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "assay_test_failing.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match="no_such_module_at_all"):
        registry.get("assay_test_broken.f")
    with pytest.raises(UserError, match="ZeroDivisionError"):
        registry.get("assay_test_failing.f")
    assert "assay_test_failing" not in sys.modules


def test_a_file_and_its_function(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def judge(): return 'ok'\nvalue = 3\n")
    assert registry.get("mine.py:judge", base=tmp_path)() == "ok"
    assert registry.get(f"{tmp_path}/mine.py:judge")() == "ok"
    with pytest.raises(UserError, match="has no function 'juge'") as caught:
        registry.get("mine.py:juge", base=tmp_path, where="here")
    assert (caught.value.where, "did you mean 'judge'" in caught.value.fix) == ("here", True)
    with pytest.raises(UserError, match="has no function 'value'"):
        registry.get("mine.py:value", base=tmp_path)
    with pytest.raises(UserError, match=r"no file 'absent\.py'"):
        registry.get("absent.py:f", base=tmp_path)


@pytest.mark.parametrize("text", ["def f(:\n", "import no_such_module_at_all\n", "1 / 0\n"])
def test_a_file_that_cannot_be_loaded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(UserError, match=r"bad\.py cannot be loaded") as caught:
        load_function(str(path), "f")
    assert caught.value.where == f"{path}:1"


# ---- parameters


def plug_in(
    group: Any, *, k: int = 1, mode: Literal["a", "b"] = "a", names: list[str] | None = None
) -> None: ...


def needing(group: Any, *, pattern: str) -> None: ...


def open_ended(group: Any, limit: int = 3, **more: Any) -> None: ...


def oddly_annotated(group: Any, *, x: "no_such_type") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def test_parameters_are_converted_and_checked() -> None:
    assert check_params(plug_in, {"k": 2, "names": ["x"]}) == {"k": 2, "names": ["x"]}
    assert check_params(plug_in, {}) == {}
    assert check_params(oddly_annotated, {"x": 1}) == {"x": 1}
    assert check_params(open_ended, {"limit": 4, "any": 1}) == {"limit": 4, "any": 1}


@pytest.mark.parametrize(
    ("function", "params", "what", "fix"),
    [
        (plug_in, {"kk": 2}, "plug_in has no parameter 'kk'", "did you mean 'k'"),
        (plug_in, {"group": 2}, "plug_in has no parameter 'group'", "valid: k, mode, names"),
        (plug_in, {"k": "two"}, "plug_in.k: Expected `int`, got `str`", ""),
        (plug_in, {"mode": "c"}, "plug_in.mode: Invalid enum value 'c'", ""),
        (needing, {}, "needing needs the parameter 'pattern'", "add `pattern:`"),
    ],
)
def test_wrong_parameters(function: Any, params: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(UserError) as caught:
        check_params(function, params, where="metrics[0]")
    assert caught.value.what.startswith(what)
    assert fix in caught.value.fix
    assert caught.value.where == "metrics[0]"


def test_reserved_parameters_are_the_engines() -> None:
    def judge(item: Any, *, context: Any, scale: float = 1.0) -> None: ...

    assert check_params(judge, {"scale": 2}, reserved=["context"]) == {"scale": 2.0}
    with pytest.raises(UserError, match="no parameter 'context'"):
        check_params(judge, {"context": 1}, reserved=["context"])


def test_a_folder_that_lost_its_files_is_not_a_plug_in(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As git leaves one behind, with nothing but byte code."""
    import assay.scorers

    (tmp_path / "gone/__pycache__").mkdir(parents=True)
    monkeypatch.setattr(assay.scorers, "__path__", [*assay.scorers.__path__, str(tmp_path)])
    with pytest.raises(UserError, match="unknown scorer 'gone'"):
        registry.get("gone")
