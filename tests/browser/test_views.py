"""Every view in a real browser: it opens, the address holds its state, it can be used by keyboard and by everybody."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Site, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Page

New = Callable[..., Tab]
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "experiments": ("experiments", {}),
    "leaderboard": ("leaderboard", {}),
    "leaderboard of one": ("leaderboard", {"experiment": "demo"}),
    "leaderboard with failures": ("leaderboard", {"experiment": "failures"}),
    "samples": ("samples", {"experiment": "demo"}),
    "samples of all": ("samples", {}),
    "matrix": ("matrix", {"experiment": "demo"}),
    "sample": ("sample", {"experiment": "demo", "item": "addition-1"}),
    "sample with a judge": ("sample", {"experiment": "judges", "item": "q1"}),
    "sample with matches": ("sample", {"experiment": "pairs", "item": "q1"}),
    "failed sample": ("sample", {"experiment": "failures", "item": "sum-1"}),
    "compare": (
        "compare",
        {"a": "judges::model_name=small", "b": "judges::model_name=large", "label": "correct"},
    ),
    "plots": ("plots", {"experiment": "demo"}),
    "judges": ("judges", {"experiment": "judges"}),
    "ranking": ("judges", {"experiment": "pairs"}),
    "review": ("review", {"experiment": "judges", "annotator": "nobody"}),
    "review of pairs": ("review", {"experiment": "pairs", "annotator": "nobody"}),
    "no such view": ("nothing", {}),
    "no such experiment": ("samples", {"experiment": "nothing"}),
}
MAY_FAIL = {"no such view", "no such experiment"}


def complaints(page: "Page") -> list[str]:
    return [text for text in page.locator("main [role=alert]").all_inner_texts() if text.strip()]


def serious(page: "Page") -> list[str]:
    """What axe-core finds that keeps people from using a page."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_opens_and_fits(site: Site, tab: New, name: str) -> None:
    """On a wide screen and on a telephone, where the page does not scroll sideways."""
    view, query = VIEWS[name]
    for width in (1280, 400):
        page = tab(width).open(site.url(view, **query))
        assert "token" not in page.url
        assert len(page.inner_text("main")) > 10
        assert name in MAY_FAIL or complaints(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", [name for name in VIEWS if name not in MAY_FAIL])
def test_axe_finds_nothing_serious(site: Site, tab: New, name: str, dark: bool) -> None:
    view, query = VIEWS[name]
    assert serious(tab(dark=dark, bypass_csp=True).open(site.url(view, **query))) == []


def test_the_back_button_and_the_address(site: Site, tab: New) -> None:
    opened = tab()
    page = opened.open(site.url("samples", experiment="demo"))
    everything = page.get_by_role("status").first.inner_text()
    page.get_by_label("only").select_option("disagree")
    opened.at("only=disagree")
    page.wait_for_function(
        "text => !document.querySelector('[role=status]').innerText.includes(text)", arg=everything
    )
    filtered, address = page.get_by_role("status").first.inner_text(), page.url
    page.locator("[role=row] a").first.click()
    opened.at("sample?")
    title = page.get_by_role("heading", level=2).first.inner_text()
    sample = page.url
    page.go_back()
    opened.settle()
    assert (page.url.partition("&at=")[0], page.get_by_role("status").first.inner_text()) == (
        address,
        filtered,
    )
    page.go_back()
    page.wait_for_function(
        "text => document.querySelector('[role=status]').innerText.includes(text)", arg=everything
    )
    again = tab()
    assert again.open(sample).get_by_role("heading", level=2).first.inner_text() == title
    assert again.open(address).get_by_role("status").first.inner_text() == filtered


def test_the_first_page_leads_to_what_one_looks_for(site: Site, tab: New) -> None:
    """The hardest items, a failing answer, whether two prompts differ."""
    opened = tab()
    page = opened.open(site.url("experiments"))
    demo = page.get_by_role("row").filter(has=page.get_by_role("link", name="demo", exact=True))
    demo.get_by_role("link", name="hardest items").click()
    rates = opened.at("matrix").locator("main .all [role=row] > .number").all_inner_texts()
    assert rates == sorted(rates)
    page.go_back()
    opened.settle()
    demo.get_by_role("link", name="failed answers").click()
    assert set(opened.at("samples").locator("main .all .mark").all_inner_texts()) == {"F failed"}
    page.go_back()
    opened.settle()
    demo.get_by_role("link", name="compare").click()
    opened.at("compare").get_by_role("link", name="by prompt_template").click()
    assert "No difference can be told" in opened.at("prompt_template").inner_text("main")


def test_everything_by_keyboard(site: Site, tab: New) -> None:
    """To the matrix, through a list into a sample, to the next and back: no mouse."""
    opened = tab()
    page = opened.open(site.url("experiments"))
    keys = page.keyboard
    keys.press("?")
    assert page.get_by_role("dialog").is_visible()
    keys.press("Escape")
    page.wait_for_function("() => document.activeElement === document.body")
    keys.press("g")
    keys.press("m")
    opened.at("matrix")
    page.goto(site.url("samples", experiment="demo", passed="failed"))
    opened.settle()
    keys.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    keys.type("letter")
    opened.at("search=letter")
    page.wait_for_function(
        "() => document.querySelector('[role=status]').innerText.startsWith('32 of')"
    )
    keys.press("Escape")
    for _ in range(60):
        keys.press("Tab")
        if page.evaluate("document.activeElement.closest('[role=table], [role=grid]') !== null"):
            break
    page.locator("[role=row] a").first.wait_for()
    keys.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.matches('[role=row]:has(a)')")
    keys.press("Enter")
    opened.at("sample?")
    first = page.url
    keys.press("n")
    page.wait_for_function("url => location.href !== url", arg=first)
    opened.settle()
    keys.press("p")
    page.wait_for_function("url => location.href === url", arg=first)
    keys.press("u")
    opened.at("samples?")


def test_labels_by_keyboard(site: Site, tab: New, labs: Path) -> None:
    opened = tab()
    page = opened.open(site.url("review", experiment="judges", label="correct"))
    page.keyboard.press("Tab")
    page.get_by_role("textbox").focus()
    page.keyboard.type("Kim")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="pass").wait_for()
    assert "the judge" not in page.inner_text("main")
    page.evaluate("document.activeElement.blur()")
    for number, key in enumerate("1f1", 1):
        page.keyboard.press(key)
        page.get_by_text(f"{number} of 50 labelled").wait_for()
    assert "the judge" in page.inner_text("main")
    page.keyboard.press("u")
    page.get_by_text("2 of 50 labelled").wait_for()
    rows = [json.loads(line) for line in (labs / "judges/labels.jsonl").read_text().splitlines()]
    assert [(row["label"], row["annotator"]) for row in rows] == [
        (1, "Kim"),
        (0, "Kim"),
        (1, "Kim"),
        (None, "Kim"),
    ]
    again = opened.open(site.url("review", experiment="judges", label="correct", annotator="Kim"))
    again.get_by_text("2 of 50 labelled").wait_for()


def test_failures_stand_beside_the_numbers(site: Site, tab: New) -> None:
    page = tab().open(site.url("leaderboard", experiment="failures"))
    text = page.inner_text("main").lower()
    assert "refused" in text
    assert "errored" in text


def test_tables_are_copied_as_markdown(site: Site, tab: New) -> None:
    opened = tab(permissions=["clipboard-read", "clipboard-write"])
    page = opened.open(site.url("experiments"))
    page.get_by_role("button", name="copy as Markdown").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("| experiment |")
    assert len(copied.splitlines()) == 2 + 5


def test_a_missing_token_is_told(tab: New) -> None:
    """The document is there, the data are not."""
    opened = tab()
    stranger = opened.page.context.browser.new_context().new_page()  # type: ignore[union-attr]
    stranger.goto(opened.page.url)
    stranger.get_by_text("the token is missing").first.wait_for()
    assert "assay view" in stranger.inner_text("main")
    stranger.context.close()
