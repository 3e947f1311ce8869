"""A report opened from the disk, without any network: the same views, as safe as those of the server."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Site, Tab
from tests.browser.test_views import complaints, serious

New = Callable[..., Tab]
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "experiments": ("experiments", {}),
    "leaderboard": ("leaderboard", {}),
    "samples": ("samples", {}),
    "samples of one": ("samples", {"experiment": "judges"}),
    "matrix": ("matrix", {"experiment": "demo"}),
    "sample": ("sample", {"experiment": "demo", "item": "addition-1"}),
    "compare": ("compare", {}),
    "plots": ("plots", {}),
    "judges": ("judges", {"experiment": "judges"}),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_opens_offline_and_fits(report: Site, tab: New, name: str) -> None:
    view, query = VIEWS[name]
    for width in (1280, 400):
        page = tab(width, of=report, offline=True).open(report.url(view, **query))
        assert len(page.inner_text("main")) > 10
        assert complaints(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(report: Site, tab: New, dark: bool) -> None:
    opened = tab(dark=dark, of=report, bypass_csp=True)
    for view, query in VIEWS.values():
        assert serious(opened.open(report.url(view, **query))) == []


def test_it_shows_what_the_server_shows(report: Site, site: Site, tab: New) -> None:
    for view, query in (
        ("leaderboard", {}),
        ("samples", {"experiment": "demo", "only": "disagree"}),
    ):
        pages = [tab(of=of).open(of.url(view, **query)) for of in (site, report)]
        for page in pages if view == "leaderboard" else ():
            page.get_by_text("may be best").first.wait_for()
        numbers = [
            [line for line in page.inner_text("main").splitlines() if re.search(r"\d", line)]
            for page in pages
        ]
        same = 12 if view == "leaderboard" else 1  # a report has failures first
        assert numbers[0][:same] == numbers[1][:same]


def test_the_back_button_and_the_address(report: Site, tab: New) -> None:
    opened = tab(of=report)
    page = opened.open(report.url("samples", experiment="judges", passed="failed"))
    status = page.get_by_role("status").first.inner_text()
    page.locator("[role=row] a").first.click()
    sample = opened.at("sample?").url
    title = page.get_by_role("heading", level=2).first.inner_text()
    page.go_back()
    opened.at("samples?")
    assert page.get_by_role("status").first.inner_text() == status
    assert tab(of=report).open(sample).get_by_role("heading", level=2).first.inner_text() == title


def test_hostile_samples_rendered_and_raw(report: Site, tab: New) -> None:
    opened = tab(of=report)
    page = opened.open(report.url("samples", experiment="hostile"))
    page.locator("[role=row] a").first.click()
    opened.at("sample?")
    for _ in range(42):
        page.keyboard.press("r")
        page.wait_for_timeout(30)
        opened.check()
        before = page.get_by_role("navigation", name="list").inner_text()
        page.keyboard.press("n")
        page.wait_for_function(
            "text => document.querySelector('nav[aria-label=list]').innerText !== text", arg=before
        )
        opened.settle()


def test_nothing_can_be_labelled(report: Site, tab: New) -> None:
    page = tab(of=report).open(report.url("experiments"))
    assert page.get_by_role("link", name="Review").count() == 0


def test_it_opens_on_a_pair_that_can_be_compared_and_prints(report: Site, tab: New) -> None:
    opened = tab(703, of=report)  # A4 with usual margins
    opened.open(report.url("compare"))
    opened.page.get_by_role("region", name="verdict").wait_for()
    opened.open(report.url("report"))
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 703
