"""The measure of the house: what it counts cannot be folded, and each bound of `house.toml` stops what it is about."""

from pathlib import Path
from textwrap import dedent

import pytest

from tools.house import (
    HOMES,
    OF_CORE,
    Bounds,
    House,
    parse_functions,
    problems,
    room_of,
    write_functions,
)

LONG = "def long():\n" + "    x = f(1)\n" * 45
BRANCHES = "def branches(a):\n" + "    if a:\n        pass\n" * 12
NESTED = "def nested(a):\n    return [[c for c in b] for b in a]\n"
CHOICES = "def choices(a):\n    return 1 if a else 2 if a > 1 else 3\n"
PASSED = "def _passed(a, b, c, d, e): ...\ndef caller(): return _passed(1, 2, 3, 4, 5)\n"


def plant(source: Path, files: dict[str, str]) -> House:
    for name, text in {"assay/__init__.py": "", **files}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(dedent(text))
    return House(source)


def tokens(source: Path, text: str) -> int:
    return plant(source, {"assay/text/words.py": text}).tokens


def bounds_of(house: House, **further: str) -> Bounds:
    """The bounds that a house just keeps."""
    tables = {
        "strings": {"characters": house.strings},
        "counts": house.counts,
        "homes": {what: len(places) for what, places in house.homes.items()},
        "exempt": {},
        "base": house.rooms,
    }
    lines = [further.get("top", "")]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f'"{name}" = {n}' for name, n in values.items())]
    return Bounds("\n".join([*lines, further.get("end", "")]))


@pytest.mark.parametrize(
    "folded",
    [
        "x = [\n    1,\n    2\n]  # a list\n",
        '"""What this is about."""\n\n\nx = [1, 2]\n',
        "x = [1,\\\n  2]",
    ],
)
def test_layout_comments_and_docstrings_do_not_count(tmp_path: Path, folded: str) -> None:
    assert tokens(tmp_path, folded) == tokens(tmp_path, "x = [1, 2]\n") == 7


def test_an_f_string_is_one_token(tmp_path: Path) -> None:
    assert tokens(tmp_path, "x = f'{a + f(b)} and {c!r:>{d}}'\n") == 3


def test_statements_folded_into_one_line_are_not_fewer_tokens(tmp_path: Path) -> None:
    assert tokens(tmp_path, "x = 1; y = 2\n") > tokens(tmp_path, "x = 1\ny = 2\n")


@pytest.mark.parametrize(
    ("place", "room"),
    [
        ("assay/api.py", "assay"),
        ("assay/store/shared/cloud.py", "assay/store"),
        ("assay/engine/run/plan.py", "assay/engine/run"),
        ("assay/engine/__init__.py", "assay/engine"),
        ("assay/formats/sygra/data/sources.py", "assay/formats/sygra"),
        ("assay_formats/logs/inspect_ai/reader.py", "assay_formats/logs/inspect_ai"),
    ],
)
def test_rooms(place: str, room: str) -> None:
    assert room_of(Path(place)) == room


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n", "assay/text: 3 tokens, at most 0"),
        ("x = 1\n", "3 tokens, at most 0"),
        ("x = 'a text'\n", "6 characters in strings, at most 0"),
        ("x = 1\n", "tokens a statement: 3.0, at most 0.0"),
        (
            "class A: ...\nclass B:\n    class A: ...\n",
            "public class names defined more than once: 1, at most 0",
        ),
        ("def joined(): ...\n", "functions named by a bare participle: 1, at most 0"),
        ("def f():\n    'Whether it is.'\n", "docstrings that are noun clauses: 1, at most 0"),
        (f"x = '{'a' * 100}'\n", "lines over 100 columns: 1, at most 0"),
        (
            "import os\nos.replace(a, b)\n",
            "replacing files: 1 files, at most 0: assay/text/words.py",
        ),
        (LONG, "assay/text/words.py long: tokens 275, at most 250"),
        (BRANCHES, "assay/text/words.py branches: complexity 13, at most 12"),
        (NESTED, "assay/text/words.py nested: comprehensions 2, at most 1"),
        (CHOICES, "assay/text/words.py choices: conditionals 2, at most 1"),
        (PASSED, "assay/text/words.py _passed: parameters 5, at most 4"),
    ],
)
def test_what_breaks_a_bound_is_named(tmp_path: Path, text: str, problem: str) -> None:
    before = plant(tmp_path, {"assay/text/__init__.py": "", "assay/text/words.py": ""})
    assert list(problems(before, bounds_of(before), {})) == []
    after = plant(tmp_path, {"assay/text/words.py": text})
    assert problem in list(problems(after, bounds_of(before), {}))


def test_a_room_with_too_many_files_is_crowded_unless_they_are_plug_ins(tmp_path: Path) -> None:
    files = {
        f"assay/{room}/{number}.py": "" for room in ("store", "metrics") for number in range(14)
    }
    assert plant(tmp_path, files).crowded_folders == ["assay/store"]


def test_grants_and_moves_raise_rooms_and_only_grants_the_whole(tmp_path: Path) -> None:
    empty = plant(tmp_path, {"assay/text/words.py": "", "assay/store/log.py": "x = 1\n"})
    grant = '[[grant]]\nissue = 1\nroom = "assay/text"\ntokens = 2\n'
    move = '[[move]]\nfrom = "assay/store"\nto = "assay/text"\ntokens = 1\n'
    moved = bounds_of(empty, end=move)
    assert (moved.rooms["assay/text"], sum(moved.rooms.values())) == (1, 3)
    both = bounds_of(empty, end=grant + move)
    assert both.rooms == {"assay": 0, "assay/text": 3, "assay/store": 2}
    granted = bounds_of(empty, end=grant.replace("assay/text", "assay/store"))
    assert [each.counts[OF_CORE] for each in (moved, both, granted)] == [2, 2, 5]


def test_a_known_function_may_stay_and_not_grow(tmp_path: Path) -> None:
    house = plant(tmp_path, {"assay/text/words.py": LONG})
    bounds, known = bounds_of(house), {"assay/text/words.py long": {"tokens": 275}}
    assert list(problems(house, bounds, known)) == []
    known["assay/text/words.py long"]["tokens"] = 274
    assert any("at most 274" in line for line in problems(house, bounds, known))
    gone = {**known, "assay/text/words.py gone": {"complexity": 20}}
    assert any("breaks no rule any more" in line for line in problems(house, bounds, gone))


def test_the_list_of_functions_is_read_as_written() -> None:
    known = {
        "assay/a.py A.b": {"tokens": 300, "complexity": 14},
        "assay/b.py c": {"conditionals": 2},
    }
    assert parse_functions(write_functions(known)) == known


def test_an_exemption_has_a_file_that_needs_it(tmp_path: Path) -> None:
    house = plant(tmp_path, {"assay/text/words.py": "sha256(x)\n"})
    exempt = '[exempt."content hashes"]\n"assay/text/words.py" = "a signature"\n'
    exact = bounds_of(house, end=exempt)
    exact.values["homes"]["content hashes"] = 0
    assert list(problems(house, exact, {})) == []
    without = plant(tmp_path, {"assay/text/words.py": "x(x)\n"})
    assert "content hashes: assay/text/words.py needs no exemption" in list(
        problems(without, exact, {})
    )


def test_numbers_are_lowered_and_never_raised() -> None:
    bounds = Bounds(
        '[walk]\nfiles = 9\n\n[base]\n"assay/a" = 10\n"assay/b" = 5\n"assay/gone" = 3\n'
    )
    assert bounds.lowered({"base": {"assay/a": 7, "assay/b": 8}}) == (
        '[walk]\nfiles = 9\n\n[base]\n"assay/a" = 7\n"assay/b" = 5\n'
    )


def test_every_mechanism_has_a_bound() -> None:
    root = Path(__file__).parents[1]
    assert Bounds((root / "house.toml").read_text()).values["homes"].keys() == HOMES.keys()
