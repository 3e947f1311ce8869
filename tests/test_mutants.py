"""`make mutants`: what it changes, what it leaves alone, and that it finds what no test notices."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from tools.mutants import ROOT, chosen, main, mutants, relevant_tests

CODE = """\
    def size(values: list[int], most: int = 3) -> int:
        \"\"\"At most 3 of them.\"\"\"
        if values and len(values) > most:
            raise ValueError(f"more than {most + 1}")
        return len(values) + 1
    """


def lines_of(code: str, tmp_path: Path) -> set[str]:
    """The changed lines of all mutants of a piece of code."""
    path = tmp_path / "code.py"
    path.write_text(dedent(code))
    before = dedent(code).splitlines()
    found: set[str] = set()
    for mutant in mutants(path):
        ast.parse(mutant.text)
        changed = [
            line for line, old in zip(mutant.text.splitlines(), before, strict=True) if line != old
        ]
        assert mutant.text.splitlines()[mutant.line - 1] == changed[0]
        found.update(line.strip() for line in changed)
    return found


def test_every_kind_of_mutant(tmp_path: Path) -> None:
    assert lines_of(CODE, tmp_path) == {
        "def size(values: list[int], most: int = 4) -> int:",
        "if (values or len(values) > most):",
        "if values and (len(values) >= most):",
        "return None",
        "return (len(values) - 1)",
        "return len(values) + 2",
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = a if b else c", {"x = a if (not b) else c"}),
        ("while a.b(): pass", {"while (not a.b()): pass"}),
        ("x = not a", {"x = (a)"}),
        ("x = True", {"x = False"}),
        (
            "x = 'ä' if a is not None else 0.5",
            {"x = 'ä' if (a is None) else 0.5", "x = 'ä' if a is not None else 1.5"},
        ),
        ("x = a < b <= c", {"x = (a <= b <= c)", "x = (a < b < c)"}),
        ("x = a % b", {"x = (a * b)"}),
        ("if TYPE_CHECKING:\n    x = 1", set()),
        ("assert x > 1", set()),
        ("x: tuple[int, 3]", set()),
        ("@f(1)\ndef g(): return None", set()),
    ],
)
def test_what_is_changed(code: str, expected: set[str], tmp_path: Path) -> None:
    assert lines_of(code, tmp_path) == expected


def test_the_tests_of_a_room(tmp_path: Path) -> None:
    for name in (
        "engine/run/test_run.py",
        "engine/run/test_plan.py",
        "engine/run/support.py",
        "engine/test_all.py",
    ):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text("")
    tests = relevant_tests(tmp_path / "src/assay/engine/run/run.py", tmp_path)
    assert tests == ["tests/engine/run/test_run.py", "tests/engine/run/test_plan.py"]


def test_every_room_of_the_engine_has_tests() -> None:
    files = {mutant.path for mutant in chosen(["src/assay/engine", "src/assay/stats"], 0)}
    assert all(relevant_tests(path) for path in files)
    assert ROOT / "src/assay/engine/aggregate/groups.py" in files


@pytest.mark.slow
def test_a_mutant_that_no_test_notices_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "src/assay/__init__.py": "",
        "src/assay/pytest_plugin.py": "",
        "src/assay/stats/__init__.py": "",
        "src/assay/stats/size.py": "def size(n):\n    return n > 2\n",
        "tests/stats/test_size.py": """\
            from assay.stats.size import size

            def test_size():
                assert size(4) is True and size(1) is False
            """,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    main(["--minutes", "5", "--only", "src/assay/stats"], root=tmp_path)
    shown = capsys.readouterr().out
    assert "src/assay/stats/size.py:2: comparison" in shown
    assert "-    return n > 2\n+    return (n >= 2)" in shown
    assert "3 of 3 mutants tried, 2 survived" in shown
    assert (tmp_path / "src/assay/stats/size.py").read_text() == files["src/assay/stats/size.py"]
