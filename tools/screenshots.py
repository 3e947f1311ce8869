"""`python -m tools.screenshots`: the pictures of the viewer in docs/images, made from the demo in a real Chromium.

Pixels differ between machines, so `viewer.txt` beside them holds a digest of what they show: the app and the demo.
`--check` compares it and makes nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
INPUTS = ("src/assay/viewer/assets/*.js", "src/assay/viewer/assets/*.css", "examples/demo/*", "tools/screenshots.py")
PROMPTS = {"a": "demo::prompt_template=short", "b": "demo::prompt_template=polite"}
VIEWS = {
    "leaderboard": ("leaderboard", {"experiment": "demo"}),
    "samples": ("samples", {"experiment": "demo", "only": "disagree", "sort": "disagreement", "descending": "1"}),
    "sample": ("sample", {"experiment": "demo", "item": "letters-1", "task": "demo-small/short"}),
    "compare": ("compare", {"experiment": "demo", **PROMPTS}),
}
SIZE = {"width": 1280, "height": 800}


def digest() -> str:
    """What the pictures depend on."""
    state = sha256()
    for file in sorted(path for pattern in INPUTS for path in ROOT.glob(pattern)):
        state.update(f"{file.relative_to(ROOT)}\n".encode() + sha256(file.read_bytes()).digest())
    return state.hexdigest()


def problem() -> str:
    """Why the pictures are not current; empty if they are."""
    names = [f"viewer-{name}-{theme}.png" for name in VIEWS for theme in ("light", "dark")]
    missing = [name for name in names if not (IMAGES / name).is_file()]
    if missing:
        return f"missing in docs/images: {', '.join(missing)}; make screenshots"
    written = IMAGES / "viewer.txt"
    if not written.is_file() or written.read_text().strip() != digest():
        return "the app or the demo changed since the pictures were made: make screenshots"
    return ""


def make() -> None:
    """All pictures, from a run of the demo that ends with them."""
    with TemporaryDirectory(prefix="assay-pictures-") as folder:
        environ = {**os.environ, "ASSAY_STATE_DIR": f"{folder}/state"}
        assay = [sys.executable, "-m", "assay"]
        run = [*assay, "run", str(ROOT / "examples/demo/config.yaml"), "-o", f"{folder}/lab/demo", "--no-progress"]
        subprocess.run(run, env=environ, check=True, stdout=subprocess.DEVNULL)
        view = [*assay, "view", f"{folder}/lab", "--port", "0", "--no-open"]
        with subprocess.Popen(view, env=environ, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                _shoot(server.stdout.readline().strip())
            finally:
                server.terminate()
    (IMAGES / "viewer.txt").write_text(digest() + "\n")


def _shoot(entry: str) -> None:
    from playwright.sync_api import sync_playwright

    base = entry.partition("?")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.goto(entry)
            for name, (view, query) in VIEWS.items():
                page.goto(f"{base}#/{view}?{urlencode(query)}")
                page.wait_for_timeout(2000)
                page.screenshot(path=IMAGES / f"viewer-{name}-{theme}.png")
                print(f"docs/images/viewer-{name}-{theme}.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether the pictures are current")
    if not parser.parse_args().check:
        make()
    sys.exit(problem() or 0)
