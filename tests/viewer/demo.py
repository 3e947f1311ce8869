"""An experiment to look at, and pages of it as a browser gets them."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

import assay
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page

CONFIG = Path(__file__).parents[2] / "examples" / "demo" / "config.yaml"


def demo(folder: Path, **overrides: Any) -> Path:
    """The example `demo`: two models, two prompts, four samples of 46 items of six kinds."""
    assay.run(CONFIG, output_dir=str(folder), overrides=overrides)
    return folder


def ask(root: Path | Experiments, name: str, /, **query: Any) -> Any:
    """A page as JSON; a field with several values is a list."""
    experiments = root if isinstance(root, Experiments) else Experiments([root])
    texts = {
        key: list(map(str, value)) if isinstance(value, list) else [str(value)]
        for key, value in query.items()
    }
    return msgspec.json.decode(msgspec.json.encode(page(experiments, name, texts)))


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def content(folder: Path) -> dict[str, str]:
    """What every file below a folder holds."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): sha256(file.read_bytes()).hexdigest() for file in files}
