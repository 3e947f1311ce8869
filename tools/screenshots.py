"""`python -m tools.screenshots`: the pictures of the viewer in docs/images, made from the examples in a real Chromium.

Pixels differ between machines, so `viewer.txt` beside them holds a digest of what they show: the app, its charts
and the examples. `--check` compares it and makes nothing.
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
INPUTS = (
    "src/assay/viewer/assets/*.js",
    "src/assay/viewer/assets/*.css",
    "src/assay/reports/charts/*.py",
    "examples/demo/*",
    "examples/judges/*",
    "tools/screenshots.py",
)
DEMO, JUDGES, PAIRS = ({"experiment": name} for name in ("demo", "judges", "pairs"))
PROMPTS = {"a": "demo::prompt_template=short", "b": "demo::prompt_template=polite"}
# By the picture's name: the view, what it is asked, and the height of what matters.
VIEWS = {
    "experiments": ("experiments", {}, 290),
    "leaderboard": ("leaderboard", DEMO, 400),
    "samples": (
        "samples",
        {**DEMO, "only": "disagree", "sort": "disagreement", "descending": "1"},
        430,
    ),
    "matrix": ("matrix", DEMO, 560),
    "sample": ("sample", {**DEMO, "item": "letters-1", "task": "demo-small/short"}, 840),
    "compare": ("compare", {**DEMO, **PROMPTS}, 515),
    "plots": ("plots", {**DEMO, "name": "pass_at_k"}, 730),
    "judges": ("judges", JUDGES, 790),
    "rankings": ("judges", PAIRS, 760),
    "review": ("review", {**JUDGES, "label": "panel", "annotator": "Ada"}, 385),
}
WIDTH = 1280


def digest() -> str:
    """What the pictures depend on."""
    state = sha256()
    for file in sorted(path for pattern in INPUTS for path in ROOT.glob(pattern)):
        state.update(f"{file.relative_to(ROOT)}\n".encode() + sha256(file.read_bytes()).digest())
    return state.hexdigest()


def problem() -> str:
    """Why the pictures are not current; empty if they are."""
    missing = [picture.name for picture in map(_picture, VIEWS) if not picture.is_file()]
    if missing:
        return f"missing in docs/images: {', '.join(missing)}; make screenshots"
    written = IMAGES / "viewer.txt"
    if not written.is_file() or written.read_text().strip() != digest():
        return (
            "the app, a chart or an example changed since the pictures were made: make screenshots"
        )
    return ""


def make() -> None:
    """All pictures, from runs of the examples that end with them."""
    with TemporaryDirectory(prefix="assay-pictures-") as folder:
        lab = f"{folder}/output"
        environ = {**os.environ, "ASSAY_STATE_DIR": f"{folder}/state"}
        assay = [sys.executable, "-m", "assay"]
        for config, name in (
            ("demo/config", "demo"),
            ("judges/config", "judges"),
            ("judges/pairs", "pairs"),
        ):
            run = [*assay, "run", f"examples/{config}.yaml", "-o", f"{lab}/{name}", "--no-progress"]
            subprocess.run(run, cwd=ROOT, env=environ, check=True, stdout=subprocess.DEVNULL)
        calibrate = [
            *assay,
            "judge",
            "calibrate",
            f"{lab}/judges",
            "--labels",
            "examples/judges/labels.csv",
        ]
        subprocess.run(calibrate, cwd=ROOT, env=environ, check=True, stdout=subprocess.DEVNULL)
        view = [*assay, "view", "output", "--port", "0", "--no-open"]
        with subprocess.Popen(
            view, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                _shoot(server.stdout.readline().strip())
            finally:
                server.terminate()
    (IMAGES / "viewer.txt").write_text(digest() + "\n")


def _picture(name: str) -> Path:
    return IMAGES / f"viewer-{name}.png"


def _shoot(entry: str) -> None:
    from playwright.sync_api import sync_playwright

    base = entry.partition("?")[0]
    with sync_playwright() as playwright:
        # Letters with coloured edges would double the size of the files.
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-lcd-text"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(entry)
        for name, (view, query, height) in VIEWS.items():
            page.goto(f"{base}#/{view}?{urlencode(query)}")
            page.wait_for_timeout(2000)
            page.screenshot(
                path=_picture(name), clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
            )
            print(_picture(name).relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="only tell whether the pictures are current"
    )
    if not parser.parse_args().check:
        make()
    sys.exit(problem() or 0)
