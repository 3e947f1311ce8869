"""A list of 100,000 rows scrolls without a pause that one notices."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import MANY, Site, Tab

if TYPE_CHECKING:  # `make test` collects this file where there is no Playwright
    from playwright.sync_api import Page

LONGEST = 200  # ms
ROUNDS = 4


def test_scrolling_many_rows(
    serve: Callable[..., Site], many: Path, tab: Callable[..., Tab]
) -> None:
    site = serve(str(many))
    opened = tab(of=site)
    page = opened.open(site.url("samples"))
    page.wait_for_function(
        "count => document.querySelector('[role=status]')?.innerText.startsWith(count)",
        arg=f"{MANY:,}",
        timeout=120_000,
    )
    page.wait_for_timeout(1000)
    page.evaluate(
        """() => {
            window.pauses = [];
            new PerformanceObserver(list => window.pauses.push(...list.getEntries().map(e => e.duration)))
                .observe({type: "longtask"});
        }"""
    )
    # other programs make pauses, too, but not every time
    longest = min(_scrolled(page) for _ in range(ROUNDS))
    page.get_by_text(f"i{MANY - 1:06}").first.wait_for()
    assert longest <= LONGEST
    assert page.locator("[role=row]").count() < 500


def _scrolled(page: "Page") -> float:
    """The longest pause in ms while one scrolls from the top with the wheel, then jumps."""
    _jump(page, 0)
    page.evaluate("window.pauses.length = 0")
    page.locator("[role=table], [role=grid]").first.hover()
    for _ in range(60):
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(30)
    for share in (0.25, 0.9, 0.5, 1.0):
        _jump(page, share)
    return max(page.evaluate("window.pauses"), default=0.0)


def _jump(page: "Page", share: float) -> None:
    page.evaluate(
        """share => {
            const tall = e => e.scrollHeight > 100000 && e.clientHeight < 2000;
            const place = [...document.querySelectorAll("main *")].find(tall) ?? document.scrollingElement;
            place.scrollTop = share * place.scrollHeight;
        }""",
        share,
    )
    page.wait_for_timeout(300)
