"""Lists of a report are made in the browser; they must say what the server's pages say of the same rows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.viewer.experiments import Experiments
from assay.viewer.pages import page as page_of
from tests.browser.conftest import Site, Tab

New = Callable[..., Tab]
QUERIES: list[dict[str, Any]] = [
    {"sort": "item"},
    {"sort": "item", "descending": "1", "experiment": ["demo", "failures"]},
    {"sort": "item", "only": "disagree"},
    {"sort": "item", "only": "failed_by_all"},
    {"sort": "item", "only": "passed_by_one", "label": "correct"},
    {"sort": "item", "outcome": ["errored", "refused", "unparsed"]},
    {"sort": "item", "passed": "failed", "experiment": ["judges"], "label": "panel"},
    {
        "sort": "item",
        "low": "0.5",
        "high": "1",
        "where": ["model_name=demo-small", "model_name=demo-large"],
    },
    {"sort": "item", "where": ["kind=capital", "prompt_template=short"]},
    {"sort": "item", "search": "CAPITAL of"},
    {
        "sort": "item",
        "search": r"(?i)what is \d+ \+",
        "regex": "1",
        "experiment": ["demo", "judges"],
    },
    {"sort": "length", "descending": "1", "experiment": ["demo"]},
    {"sort": "score", "experiment": ["demo"]},
    {"sort": "disagreement", "descending": "1", "experiment": ["demo"]},
]


@pytest.fixture(scope="module")
def experiments(labs: Path) -> Experiments:
    return Experiments([labs])


def texts(query: dict[str, Any]) -> dict[str, list[str]]:
    return {
        name: value if isinstance(value, list) else [value] for name, value in query.items()
    } | {"limit": ["500"]}


@pytest.mark.parametrize("view", ["samples", "matrix"])
def test_lists_of_a_report_are_those_of_the_server(
    report: Site, tab: New, experiments: Experiments, view: str
) -> None:
    opened = tab(of=report)
    for query in ({"experiment": ["demo", "failures", "judges"], **query} for query in QUERIES):
        expected: Any = page_of(experiments, view, texts(query))
        page = opened.open(report.url(view, **query))
        page.wait_for_function(
            "start => document.querySelector('main [role=status]')?.innerText.startsWith(start)",
            arg=f"{expected['total']:,} ",
        )
        rows = page.locator("main .all [role=row]")
        if not expected["rows"]:
            assert rows.count() == 0
            continue
        rows.first.locator("> *").nth(2).wait_for()
        shown = [row.all_inner_texts() for row in (each.locator("> *") for each in rows.all()[:12])]
        name = {"samples": 2, "matrix": 0}[view]
        items = [cells[name].splitlines()[0] for cells in shown]
        if query["sort"] == "item":
            assert items == [row["item"] for row in expected["rows"][:12]]
        if view == "matrix":
            rates = {row["item"]: row["rate"] for row in expected["rows"]}
            for item, cells in zip(items, shown, strict=True):
                assert (None if cells[2] == "–" else float(cells[2])) == pytest.approx(
                    rates[item], abs=0.0051
                )
            continue
        assert all(re.fullmatch(r"[1-9]\d{0,2}(\.\d{1,2})? (µs|ms|s)", cells[6]) for cells in shown)
        if query["sort"] == "score":
            assert [float(cells[5]) for cells in shown] == [
                row["score"] for row in expected["rows"][:12]
            ]


@pytest.mark.parametrize("facet", ["metadata.model_id", "prompt_template"])
def test_flips_of_a_report_are_those_of_the_server(
    report: Site, tab: New, experiments: Experiments, facet: str
) -> None:
    values = {
        "metadata.model_id": ("demo-large", "demo-small"),
        "prompt_template": ("polite", "short"),
    }[facet]
    a, b = (f"demo::{facet}={value}" for value in values)
    expected: Any = page_of(experiments, "flips", {"a": [a], "b": [b], "limit": ["500"]})
    page = tab(of=report).open(report.url("compare", a=a, b=b))
    assert f"{expected['gained']} gained, {expected['lost']} lost" in page.inner_text("main")
    values_of = {
        row["item"]: [f"{name}: {row[name]['value']:.3f}" for name in "ab"]
        for row in expected["rows"]
    }
    flips = page.locator(".flip").all()
    assert flips
    for flip in flips:
        sides = flip.locator(".beside .quiet").all_inner_texts()
        assert [side.partition(",")[0] for side in sides] == values_of[
            flip.locator("h3 a").inner_text()
        ]


def test_a_broken_expression_is_told_beside_its_field(report: Site, site: Site, tab: New) -> None:
    for of in (report, site):
        page = tab(of=of).open(of.url("samples", search="(", regex="1"))
        page.get_by_role("search").get_by_role("alert").wait_for()
        assert (
            "not a regular expression"
            in page.get_by_role("search").get_by_role("alert").inner_text()
        )
