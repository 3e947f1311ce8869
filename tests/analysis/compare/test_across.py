"""One table of several labels: a value is marked only where it differs from every other."""

import random
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

from assay.analysis.compare.across import Across, across
from assay.errors import UserError
from assay.reports.sheet import sheet
from tests.analysis.rows import counted, rows_of, save


def marked(found: Across) -> list[tuple[str, str]]:
    return [
        (name, label)
        for name, cells in found.sides.items()
        for label, cell in cells.items()
        if cell.best
    ]


def both(*passes: int, n: int = 100) -> list[dict[str, Any]]:
    """Rows under the labels a, b, … with so many passes each."""
    return [
        row
        for label, count in zip("abc", passes, strict=False)
        for row in counted(count, n, label=label, scorer=label)
    ]


def test_a_best_value_differs_from_all_others(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / name, both(*passes))
        for name, passes in {"x": (90, 50), "y": (60, 52), "z": (58, 50)}.items()
    ]
    found = across(paths)
    assert marked(found) == [("x", "a")], "under b nobody is better than chance allows"
    assert (found.labels, found.tests, list(found.sides)) == (["a", "b"], 6, ["x", "y", "z"])
    assert (found.sides["x"]["a"].value, found.sides["x"]["a"].items) == (0.9, 100)


def test_the_best_of_two_that_are_alike_is_not_marked(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / name, both(passes)) for name, passes in {"x": 90, "y": 89, "z": 40}.items()
    ]
    assert marked(across(paths)) == []


def test_less_can_be_better(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / name, both(passes, 100 - passes))
        for name, passes in {"x": 90, "y": 40}.items()
    ]
    assert marked(across(paths)) == [("x", "a"), ("y", "b")]
    assert marked(across(paths, lower=["b"])) == [("x", "a"), ("x", "b")]


@pytest.mark.parametrize("seed", range(5))
def test_marks_are_those_of_mid_p_tests_with_holms_correction(seed: int, tmp_path: Path) -> None:
    """Oracle: McNemar's mid-p test by scipy, Holm's correction over all pairs and labels by statsmodels."""
    draw = random.Random(seed)
    skills = {name: {label: draw.choice([0.3, 0.5, 0.8]) for label in "ab"} for name in "xyz"}
    verdicts = {
        name: {label: [draw.random() < skill for _ in range(60)] for label, skill in of.items()}
        for name, of in skills.items()
    }
    for name, of in verdicts.items():
        rows = [
            rows_of({f"q{n}": one for n, one in enumerate(given)}, label=label, scorer=label)
            for label, given in of.items()
        ]
        save(tmp_path / name, chain(*rows))
    tests = [
        (label, first, second)
        for label in "ab"
        for first, second in (("x", "y"), ("x", "z"), ("y", "z"))
    ]
    p_values: list[float] = []
    winners: list[str] = []
    for label, first, second in tests:
        pairs = list(zip(verdicts[first][label], verdicts[second][label], strict=True))
        gained, lost = pairs.count((True, False)), pairs.count((False, True))
        most = max(gained, lost)
        half = binom.pmf(most, gained + lost, 0.5)  # of the outcome itself
        p_values.append(min(1.0, 2 * binom.sf(most - 1, gained + lost, 0.5) - half))
        winners.append(first if gained > lost else second)
    real = multipletests(p_values, alpha=0.05, method="holm")[0]
    wins = [
        (winner, label)
        for (label, _, _), winner, is_real in zip(tests, winners, real, strict=True)
        if is_real
    ]
    assert sorted(marked(across([tmp_path / name for name in "xyz"]))) == sorted(
        {one for one in wins if wins.count(one) == 2}
    )


def test_a_facet_labels_and_failures(tmp_path: Path) -> None:
    rows = [*both(9, 5, n=10), *rows_of({"q00011": "errored"}, label="a", scorer="a")]
    other = [{**row, "model_name": "n"} for row in both(2, 5, n=10)]
    found = across([save(tmp_path / "one", rows + other)], facet="model_name", labels=["a"])
    assert (found.labels, list(found.sides)) == (["a"], ["m", "n"])
    assert found.sides["m"]["a"].failed == 1


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    paths = [save(tmp_path / "x", both(5, 5, n=10)), save(tmp_path / "y", both(5, n=10))]
    assert across(paths).labels == ["a"]
    with pytest.raises(UserError, match="not every side has the label 'b'"):
        across(paths, labels=["b"])
    with pytest.raises(UserError, match="no row has the label 'c'"):
        across(paths, lower=["c"])
    with pytest.raises(UserError, match="no label is common to all: x has a, b; z has q"):
        across([paths[0], save(tmp_path / "z", counted(3, 10, label="q"))])


def test_a_side_without_a_value_leaves_its_cell_open(tmp_path: Path) -> None:
    for name, number in (("a", 20), ("b", 39)):
        save(tmp_path / name, counted(number, 40))
    save(tmp_path / "bad", rows_of({f"q{n:05}": "errored" for n in range(40)}))
    table = across([tmp_path / name for name in ("a", "b", "bad")])
    assert {name: list(of) for name, of in table.sides.items()} == {
        "a": ["match"],
        "b": ["match"],
        "bad": [],
    }
    assert "–" in sheet(table).form("markdown")
    assert not any(cell.best for of in table.sides.values() for cell in of.values())
    assert any(note.startswith("left out: mean of 'bad'") for note in table.notes)


def test_missing_rows_that_could_reverse_it_take_the_mark(tmp_path: Path) -> None:
    old = {f"q{n:03}": n >= 40 for n in range(200)}
    for failed in (0, 5, 100):
        new = {f"q{n:03}": "errored" if n >= 200 - failed else True for n in range(200)}
        paths = [save(tmp_path / "old", rows_of(old)), save(tmp_path / f"n{failed}", rows_of(new))]
        (cell,) = across(paths).sides[f"n{failed}"].values()
        assert cell.best == (failed < 100)
