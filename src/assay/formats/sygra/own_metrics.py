"""Metrics of the user's own: classes that register themselves, beside the task or where SyGra's document puts them in a
`sygra/` folder."""

import re
from pathlib import Path

from assay.formats.sygra.modules import OFFERED, Loader

_FOLDERS = [
    f"sygra/core/{package}/{kind}_metrics" for package in ("eval/metrics", "metrics") for kind in ("unit", "aggregator")
]
_REGISTERS = re.compile(
    r"^\s*@(?:\w+\.)*(?:unit|aggregator)_metric\(|(?:Unit|Aggregator)MetricRegistry\.register\(", re.MULTILINE
)


def import_metrics(load: Loader, task: Path) -> None:
    """Import the files that register a metric, those of the task last; no other file of theirs is touched."""
    for folder in (*(load.base / name for name in _FOLDERS), task):
        for file in sorted(folder.glob("*.py")) if folder.is_relative_to(load.base) else ():
            name = ".".join(file.relative_to(load.base).with_suffix("").parts)
            importable = all(part.isidentifier() for part in name.split(".")) and name not in OFFERED
            if importable and _REGISTERS.search(file.read_text("utf-8", errors="replace")):
                load(name, str(file))
