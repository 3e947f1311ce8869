"""Scripts in every field of every row, huge answers, characters that deceive, broken rows: nothing runs or hangs."""

import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.browser.conftest import Site, Tab
from tests.browser.lab import PAYLOADS, labelled

New = Callable[..., Tab]
HIDDEN = "\u202e\u202c\u2066\u2069\u200e\u200b\ufeff\x1b\x07\x9b"


@pytest.mark.parametrize(
    "view",
    ["experiments", "leaderboard", "samples", "matrix", "compare", "plots", "judges", "review"],
)
def test_views_of_hostile_rows(site: Site, tab: New, view: str) -> None:
    opened = tab()
    query = {"experiment": "hostile"} | ({"annotator": "x"} if view == "review" else {})
    page = opened.open(site.url(view, **query))
    page.wait_for_timeout(300)
    text = page.inner_text("main")
    assert len(text) > 10
    assert (
        page.evaluate(
            "document.querySelectorAll('main script, main iframe, main [onerror], main [onload]').length"
        )
        == 0
    )
    assert page.locator("main :is(base, link, meta, form[action])").count() == 0


def test_every_sample_rendered_and_raw(site: Site, tab: New) -> None:
    """From one to the next through the whole list, each shown raw and rendered."""
    opened = tab()
    page = opened.open(site.url("samples", experiment="hostile"))
    total = 84
    page.locator("[role=row] a").first.click()
    opened.at("sample?")
    for number in range(total):
        opened.settle()
        page.keyboard.press("r")
        page.wait_for_timeout(30)
        page.keyboard.press("r")
        opened.check()
        if number < total - 1:
            before = page.url
            page.keyboard.press("n")
            page.wait_for_function("url => location.href !== url", arg=before)


def test_hidden_characters_are_seen_in_one_line_places(site: Site, tab: New) -> None:
    page = tab().open(site.url("samples", experiment="hostile"))
    cells = " ".join(page.locator("[role=cell]").all_inner_texts())
    assert not [hex(ord(character)) for character in HIDDEN if character in cells]
    assert not [hex(ord(character)) for character in HIDDEN if character in page.title()]


def test_an_answer_of_ten_million_characters(site: Site, tab: New) -> None:
    opened = tab()
    started = time.monotonic()
    page = opened.open(site.url("samples", experiment="hostile", sort="length", descending="1"))
    page.locator("[role=row] a").first.click()
    opened.at("sample?")
    for _ in range(2):
        page.keyboard.press("r")
        page.wait_for_timeout(200)
    assert page.evaluate("1 + 1") == 2  # it still answers
    assert page.evaluate("document.querySelector('main').innerText.length") < 2_000_000
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("payload", PAYLOADS[:6])
def test_addresses_cannot_carry_scripts(site: Site, tab: New, payload: str) -> None:
    opened = tab()
    for url in (
        f"{site.base}#/{quote(payload)}",
        site.url("samples", experiment=payload, search=payload, label=payload, where=payload),
        site.url("sample", item=payload, experiment=payload, **{"from": payload}),
        site.url("compare", a=payload, b=payload),
        f"{site.base}#/samples?{payload}",
    ):
        opened.page.goto(url)
        opened.page.wait_for_timeout(150)
        opened.check()


def test_many_labels_of_scorers_and_people(
    serve: Callable[..., Site], tab: New, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """10,000 evaluations of 500 labels and 100,000 labels of people: slow is allowed, hanging is not."""
    site = serve(str(labelled(tmp_path_factory.mktemp("labelled"), 100_000)))
    opened = tab(of=site)
    for view in ("leaderboard", "samples", "matrix", "sample", "judges", "review"):
        started = time.monotonic()
        query = {"experiment": "labelled"} | ({"item": "q1"} if view == "sample" else {})
        page = opened.open(
            site.url(view, **query, **({"annotator": "me"} if view == "review" else {}))
        )
        assert len(page.inner_text("main")) > 10
        assert page.evaluate("1 + 1") == 2
        assert time.monotonic() - started < 60, view
