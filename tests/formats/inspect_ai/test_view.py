"""`inspect view` opens the logs that we write: a real Chromium looks at its list, its samples and their transcripts."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.analysis.look.export import export
from tests.convert_lab import make
from tests.formats.installed import needed

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.peers
MISSING_OF_ITS_OWN = (
    "/api/flow"  # which the viewer asks for, and has only where inspect_flow is installed
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of the demo model, and one with every outcome."""
    folder = tmp_path_factory.mktemp("view")
    item = {
        "id": "sum/1",
        "question": "What is 7 + 8?",
        "answer": "15",
        "metadata": {"kind": "a sum of two"},
    }
    town = {"id": "town", "question": "What is the capital of Norway?", "answer": "Bergen"}
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (item, town)))
    config = {
        "name": "demo",
        "dataset": str(folder / "items.jsonl"),
        "models": [{"name": "solver", "type": "demo"}],
        "prompt_template": "{{question}}",
        "evaluation_methods": ["exact_match", "contains"],
        "output_dir": str(folder / "demo"),
    }
    assay.run(config)
    export(folder / "demo", "inspect_ai", output=folder / "logs/demo.eval")
    export(make(folder / "lab"), "inspect_ai", output=folder / "logs/lab")
    return folder / "logs"


@pytest.fixture(scope="module")
def address(logs: Path) -> Iterator[str]:
    """Where `inspect view` shows them."""
    program = needed("inspect_ai", "inspect")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        program,
        "view",
        "start",
        "--log-dir",
        logs,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = next((line for line in process.stdout if "Running on" in line), "")
    assert f"127.0.0.1:{port}" in said
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=60)


@pytest.fixture
def page(address: str) -> Iterator["Page"]:
    """A page of the viewer; the test fails if the page has an error, or asks for anything from elsewhere."""
    chromium = shutil.which("chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="make test-browser installs Playwright"
    )
    if chromium is None:
        pytest.skip("Chromium is not installed")
    problems: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": 1400, "height": 1200}, base_url=address)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "response",
            lambda answer: (
                problems.append(f"{answer.status} {answer.url}")
                if answer.status >= 400 and MISSING_OF_ITS_OWN not in answer.url
                else None
            ),
        )
        page.on(
            "request",
            lambda request: (
                problems.append(request.url)
                if not request.url.startswith((address, "data:", "blob:"))
                else None
            ),
        )
        yield page
        browser.close()
    assert problems == []


def shown(page: "Page", *texts: str) -> None:
    """Wait until the page has all of these texts."""
    for text in texts:
        page.get_by_text(text, exact=True).first.wait_for()


def test_a_list_of_logs_and_one_of_samples(page: "Page") -> None:
    page.goto("/")
    shown(page, "solver", "0.5")
    page.goto("/#/logs/demo.eval")
    shown(
        page,
        "exact_match",
        "contains",
        "2 Samples",
        "sum/1",
        "town",
        "What is 7 + 8?",
        "15",
        "Bergen",
        "Oslo",
    )
    page.get_by_text("What is 7 + 8?", exact=True).first.click()
    shown(page, "Sample sum/1 (Epoch 1)")


def test_a_sample_has_a_transcript_messages_scores_and_metadata(page: "Page") -> None:
    page.goto("/#/logs/demo.eval/samples/sample/town/1")
    shown(
        page,
        "Info: assay",
        "scorer: exact_match",
        "scorer: contains",
        "What is the capital of Norway?",
        "Oslo",
    )
    page.goto("/#/logs/demo.eval/samples/sample/town/1/messages")
    shown(page, "user", "assistant", "What is the capital of Norway?", "Oslo")
    page.goto("/#/logs/demo.eval/samples/sample/sum%2F1/1/scoring")
    shown(page, "Explanation", "exact_match", "contains", "15")
    page.goto("/#/logs/demo.eval/samples/sample/sum%2F1/1/metadata")
    shown(page, "a sum of two")


def test_a_failure_and_a_call_of_a_tool_are_shown(page: "Page") -> None:
    page.goto("/#/logs/lab/small.eval/samples/sample/q1/2")
    shown(page, 'HTTP 500: "broken"')
    page.goto("/#/logs/lab/small.eval/samples/sample/q%2F2%20%C3%BC/2")
    shown(page, "hi", "add", "scorer: exact_match (judge (strict))")
