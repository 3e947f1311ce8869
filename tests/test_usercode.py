"""User code from files: what identifies it, and that an edited file is the one that runs."""

import gc
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.scorers.exact_match import exact_match
from assay.usercode import identity, load_file, raised, sources

FILES = {
    "main.py": "import helper\nfrom package import part\nfrom package.deep import leaf\n"
    "def f():\n    return helper.VALUE\n",
    "helper.py": "import second\nVALUE = 1\n",
    "second.py": "def late():\n    import third\n",
    "third.py": "",
    "package/__init__.py": "from . import sibling\n",
    "package/part.py": "",
    "package/sibling.py": "from .deep import leaf\n",
    "package/deep/__init__.py": "",
    "package/deep/leaf.py": "",
    "unrelated.py": "",
    "package/unused.py": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def f_of(folder: Path) -> Callable[..., Any]:
    return load_file(folder / "main.py").f


def test_the_sources_are_what_is_imported_from_beside_it(folder: Path) -> None:
    found = {path.relative_to(folder).as_posix() for path in sources(folder / "main.py")}
    assert found == set(FILES) - {"unrelated.py", "package/unused.py"}


@pytest.mark.parametrize("name", sorted(set(FILES) - {"unrelated.py", "package/unused.py"}))
def test_identity_changes_with_every_source(folder: Path, name: str) -> None:
    before = identity(f_of(folder))
    (folder / name).write_text(FILES[name] + "\nextra = 1\n")
    assert identity(f_of(folder)) != before
    (folder / name).write_text(FILES[name])
    assert identity(f_of(folder)) == before


def test_identity_does_not_change_with_other_files(folder: Path) -> None:
    before = identity(f_of(folder))
    (folder / "unrelated.py").write_text("x = 1\n")
    (folder / "package" / "unused.py").write_text("x = 1\n")
    (folder / "data.json").write_text("{}")
    assert identity(f_of(folder)) == before


def test_identity_does_not_depend_on_the_place(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    (folder / "alone.py").write_text("def f(): ...\n")
    (other / "alone.py").write_text("def f(): ...\n")
    assert identity(load_file(folder / "alone.py").f) == identity(load_file(other / "alone.py").f)


def test_an_unchanged_file_is_loaded_once(folder: Path) -> None:
    assert load_file(folder / "main.py") is load_file(folder / "main.py")


def test_an_edited_file_and_an_edited_helper_are_loaded_again(folder: Path) -> None:
    assert f_of(folder)() == 1
    (folder / "helper.py").write_text("import second\nVALUE = 22\n")
    assert f_of(folder)() == 22
    (folder / "main.py").write_text("def f():\n    return 333\n")
    assert f_of(folder)() == 333


def test_files_of_one_name_do_not_meet(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "main.py").write_text("import helper\n\ndef f():\n    return helper.VALUE\n")
    (other / "helper.py").write_text("VALUE = 'other'\n")
    one, two = f_of(folder), f_of(other)
    assert (one(), two()) == (1, "other")


def test_a_built_in_is_its_name_and_version() -> None:
    assert identity(exact_match) == "exact_match@1"


def compiled(text: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "notebook"}
    exec(compile(text, "<cell>", "exec"), namespace)
    return namespace["f"]


def test_code_that_no_file_holds() -> None:
    one = "def f(x):\n    return [y + 1 for y in x]\n"
    assert identity(compiled(one)) == identity(compiled(one))
    assert identity(compiled(one)) != identity(compiled(one.replace("+ 1", "+ 2")))
    assert identity(compiled(one)) != identity(compiled(one.replace("+ 1", "- 1")))


def test_an_object_that_can_be_called(folder: Path) -> None:
    text = "class Judge:\n    def __call__(self, item, response):\n        return True\n\njudge = Judge()\n"
    (folder / "object.py").write_text(text)
    before = identity(load_file(folder / "object.py").judge)
    (folder / "object.py").write_text(text.replace("True", "False"))
    assert identity(load_file(folder / "object.py").judge) != before


def test_files_that_import_each_other(folder: Path) -> None:
    (folder / "second.py").write_text("import helper\n")
    assert folder / "second.py" in sources(folder / "main.py")


def test_threads_may_ask_at_the_same_time(folder: Path) -> None:
    """Python 3.11 cannot parse in two threads if the garbage collector lets the other one run in between."""
    (folder / "main.py").write_text(
        "\n".join(f"def f{n}(a, b={n}):\n    return [a + b, {{a: b}}]" for n in range(200))
    )
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(3):
                sources(folder / "main.py")
        except BaseException as error:
            failures.append(error)

    def let_others_run(phase: str, info: dict[str, int]) -> None:
        time.sleep(1e-5)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(50)
    try:
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(let_others_run)
        gc.set_threshold(*before)
    assert failures == []


def test_what_a_closure_captured_counts_unless_it_changes_or_a_file_determines_it(
    folder: Path,
) -> None:
    def above(least: int, seen: list[int]) -> Callable[..., Any]:
        return lambda value: bool(seen.append(value)) or value > least

    def counting(count: int) -> Callable[..., Any]:
        def counted() -> int:
            nonlocal count
            count += 1
            return count

        return counted

    assert identity(above(3, [])) == identity(above(3, [1]))
    assert identity(above(3, [])) != identity(above(4, []))
    assert identity(counting(1)) == identity(counting(2))
    (folder / "made.py").write_text("def make(n):\n    return lambda: n\nmade = make(4)\n")
    module = load_file(folder / "made.py")
    assert "+" not in identity(module.made)
    assert "+" in identity(module.make(4))


def test_a_partial_is_its_function_and_its_arguments() -> None:
    def power(value: int, exponent: int) -> int:
        return value**exponent

    assert identity(partial(power, exponent=2)) != identity(partial(power, exponent=3))
    assert identity(partial(power, exponent=2)) == identity(partial(power, exponent=2))
    assert identity(partial(power, exponent=2)).startswith(identity(power))


def test_code_that_no_file_holds_is_also_what_it_uses() -> None:
    plain = "def f(x): return x"
    assert identity(compiled(plain)) == identity(compiled(f"OTHER = 1\n{plain}"))

    def code(limit: int = 1, sign: str = "+", count: int = 0) -> str:
        used = f"LIMIT = {limit}\nCOUNT = {count}\ndef help(x): return x {sign} LIMIT\n"
        return identity(
            compiled(used + "def f(x):\n    global COUNT\n    COUNT += 1\n    return help(x)")
        )

    assert code() == code()
    assert code() != code(limit=2)
    assert code() != code(sign="-")
    assert code() == code(count=7), "a counter that it changes itself is not its code"


def test_what_user_code_raised_has_its_place_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def plain():\n    return 1 / 0\n\ndef secret():\n    return 1 / len(''), 'api_key=abc' + 0\n\n"
        "def deep():\n    import json\n    return json.loads('{')\n"
    )
    module = load_file(tmp_path / "mine.py")
    texts = {}
    for name in ("plain", "secret", "deep"):
        try:
            getattr(module, name)()
        except Exception as error:
            texts[name] = raised(error)
    assert texts["plain"] == "ZeroDivisionError: division by zero (mine.py, line 2: return 1 / 0)"
    assert texts["secret"] == "ZeroDivisionError: division by zero (mine.py, line 5)"
    assert texts["deep"].endswith(" (mine.py, line 9: return json.loads('{'))"), (
        "the user's line, not the library's"
    )
