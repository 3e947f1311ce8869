"""The app that is shipped is the one that `web/` builds, its types are right, and it is small."""

import gzip
import subprocess
from pathlib import Path

from tools import screenshots

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "src/assay/viewer/assets"
FIX = "cd web && npm ci && node build.mjs"


def test_types() -> None:
    checked = subprocess.run(
        ["npx", "tsc", "--noEmit"], cwd=ROOT / "web", capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_the_shipped_app_is_the_built_one(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", "--out", str(tmp_path)], cwd=ROOT / "web", check=True)
    built = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    shipped = {
        file.name: file.read_bytes() for file in ASSETS.iterdir() if file.suffix in (".js", ".css")
    }
    differ = [
        name for name in built.keys() | shipped.keys() if built.get(name) != shipped.get(name)
    ]
    assert not differ, f"{differ} differ from what web/ builds: {FIX}"


def test_the_pictures_of_the_docs_are_current() -> None:
    assert screenshots.problem() == ""


def test_the_app_is_small() -> None:
    sizes = {
        name: len(gzip.compress((ASSETS / name).read_bytes(), 9)) for name in ("app.js", "rich.js")
    }
    assert sizes["app.js"] <= 60_000
    assert sum(sizes.values()) <= 150_000
