"""A real Chromium looks at a real `assay view`. Every test fails if the page logs an error, asks for anything from
elsewhere, or runs what stands in the data."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

import assay
from tests.browser import lab
from tests.cli.shell import COMMAND

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

INSTALL = "apt-get update && apt-get install -y --no-install-recommends chromium; pip install -e '.[browser]'"
MANY = 100_000  # rows of the experiment that is scrolled


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.build(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.many(tmp_path_factory.mktemp("many"), MANY)


class Site:
    """Where views are: an address to begin with, and addresses of views."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.base = entry.partition("?")[0]

    def url(self, view: str, **query: Any) -> str:
        return f"{self.base}#/{view}?{urlencode(query, doseq=True)}"


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., Site]]:
    """Starts `assay view` for a folder; all of them end with the tests."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: str) -> Site:
        command = [*COMMAND, "view", *words, "--port", "0", "--no-open"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        processes.append(process)
        assert process.stdout is not None
        return Site(process.stdout.readline().strip())

    yield start
    for process in processes:
        process.terminate()  # SIGINT is ignored where a shell has put the tests into the background
        process.communicate(timeout=20)


@pytest.fixture(scope="session")
def site(serve: Callable[..., Site], labs: Path) -> Site:
    return serve(str(labs))


@pytest.fixture(scope="session")
def report(labs: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The same experiments as a file, opened from the disk."""
    file = tmp_path_factory.mktemp("report") / "report #1 50%.html"
    assay.report([labs], file, samples=None)
    return Site(file.as_uri())


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        pytest.fail(f"Chromium or Playwright is missing: {INSTALL}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


class Tab:
    """A page of the browser, and what went wrong in it."""

    def __init__(self, page: "Page", origin: str) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", lambda message: self._logged(message.type, message.text))
        page.on("response", lambda answer: self._answered(answer.status, answer.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self._asked(request.url, origin))

    def _logged(self, kind: str, text: str) -> None:
        # answers are checked apart
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.problems.append(text)

    def _answered(self, status: int, url: str) -> None:
        if status >= 400 and status != 422:  # which is a plain word about the data, and shown
            self.problems.append(f"{status} {url}")

    def _asked(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "data:", "blob:", "file:///")):
            self.problems.append(f"asked for {url}")

    def open(self, url: str) -> "Page":
        """Go there, and wait until it is all there."""
        self.page.goto(url)
        self.settle()
        return self.page

    def settle(self) -> None:
        # The app hears of a new address in a task of its own, and draws after it.
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        )
        self.page.wait_for_function(
            """() => document.querySelector("main") && !document.querySelector("[aria-busy=true]")
                && !document.querySelector("main").innerText.includes("loading …")""",
            timeout=60_000,
        )

    def at(self, part: str) -> "Page":
        """Wait until the address has this part, and all that belongs to it is there."""
        self.page.wait_for_function(
            "part => location.href.includes(part)", arg=part, timeout=10_000
        )
        self.settle()
        return self.page

    def check(self) -> None:
        assert self.page.evaluate("window.pwned") is None
        assert self.page.evaluate("({}).polluted") is None
        assert self.problems == []


@pytest.fixture
def tab(chromium: "Browser", site: Site) -> Iterator[Callable[..., Tab]]:
    """Opens tabs, each in a context of its own that is logged in; afterwards every one of them is checked."""
    tabs: list[Tab] = []

    def new(width: int = 1280, *, dark: bool = False, of: Site = site, **options: Any) -> Tab:
        context = chromium.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            **options,
        )
        tabs.append(Tab(context.new_page(), of.base))
        tabs[-1].page.goto(of.entry)
        return tabs[-1]

    yield new
    for each in tabs:
        each.check()
        each.page.context.close()
