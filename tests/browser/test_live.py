"""A run under way, followed in the browser; and many tabs, of which a browser lets only six connections through."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

from tests.browser.conftest import Site, Tab
from tests.support import Lab, wait_for

New = Callable[..., Tab]


def test_a_run_is_followed_without_a_reload(
    serve: Callable[..., Site], tab: New, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, items=6)
    lab.write(
        "model.py", "import time\n\ndef calculator(prompt):\n    time.sleep(0.5)\n    return '1'\n"
    )
    lab.config["max_concurrency"] = 1
    run = threading.Thread(target=lab.run)
    run.start()
    try:
        wait_for((tmp_path / "out/status.json").exists)
        site = serve(str(tmp_path))
        page = tab(of=site).open(site.url("experiments"))
        page.get_by_text("is running").wait_for()
        page.get_by_text("per second").wait_for()
        page.get_by_text("is running").wait_for(state="detached", timeout=60_000)
    finally:
        run.join()
    page.locator(".state.complete").first.wait_for()
    total = json.loads((tmp_path / "out/status.json").read_text())["total_samples"]
    assert f"{total}" in page.inner_text("main")


def test_many_tabs_at_once(site: Site, tab: New) -> None:
    first = tab()
    first.open(site.url("experiments"))
    others = [Tab(first.page.context.new_page(), site.base) for _ in range(8)]
    for number, other in enumerate(others):
        other.open(site.url("samples" if number % 2 else "leaderboard", experiment="demo"))
        assert "demo" in other.page.inner_text("main")
    for other in others:
        other.check()
