"""A column that Python declares is a filter, a sort and a cell of the lists, without a line in the app."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.viewer.index import columns
from assay.viewer.index.columns import COLUMNS, query_type
from assay.viewer.pages import matrix, samples
from tests.browser.conftest import Site, Tab
from tests.viewer.client import viewing
from tests.viewer.generated import experiment, read
from tests.viewer.test_columns import NEW

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(columns, "COLUMNS", [*COLUMNS, *NEW])
    monkeypatch.setattr("assay.viewer.rows.COLUMNS", columns.COLUMNS)
    for module in (samples, matrix):
        monkeypatch.setattr(module, "Query", query_type())
    experiment(tmp_path / "runs/e", 31)
    return tmp_path / "runs"


@pytest.fixture(params=["server", "report"])
def opened(request: pytest.FixtureRequest, runs: Path) -> Iterator[Site]:
    if request.param == "report":
        file = runs.parent / "report.html"
        assay.report([runs], file, samples=None)
        yield Site(file.as_uri())
        return
    with viewing(runs) as client:
        yield Site(client.server.address)


def total(page: "Page", number: int) -> None:
    page.wait_for_function(
        "start => document.querySelector('main [role=status]')?.innerText.startsWith(start)",
        arg=f"{number:,} ",
    )


def test_a_new_column_is_a_filter_a_sort_and_a_cell(
    opened: Site, tab: Callable[..., Tab], runs: Path
) -> None:
    rows = read(runs / "e/responses.jsonl")
    dear = sum(row["cost"] is not None for row in rows)
    page = tab(of=opened).open(opened.url("samples"))
    heads = page.get_by_role("columnheader").all_inner_texts()
    assert heads[-3:] == ["prompted", "paid", "dear"]
    page.get_by_label("dear", exact=True).select_option("dear")
    total(page, dear)
    assert page.locator("main .all [role=row]").first.locator("> *").last.inner_text() == "true"
    page.get_by_label("dear", exact=True).select_option("")
    page.get_by_label("paid to").fill("0.9")
    total(page, 0)
    page.get_by_label("paid to").fill("")
    total(page, len(rows))
    prompt = rows[0]["prompt"]
    page.get_by_label("prompted").fill(prompt)
    total(page, sum(row["prompt"] == prompt for row in rows))
    page.get_by_label("prompted").fill("")
    page.get_by_label("sort by").select_option("prompted")
    total(page, len(rows))
    assert "descending" not in page.url
    page.get_by_label("sort by").select_option("paid")
    total(page, len(rows))
    assert "descending=1" in page.url
    page.goto(opened.url("matrix", price="dear", sort="prompted"))
    total(page, len({row["item_id"] for row in rows if row["cost"] is not None}))
