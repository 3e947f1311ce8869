"""What MLflow knows about a run: its name, parameters, tags and metrics, and how many rows its dataset has.

It is in the run's folder (the file store), or in an SQLite database beside the folder with the artifacts.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from assay import reading
from assay.engine.experiment.imports.values import fields_of, number_of
from assay.formats.mlflow.values import decoded

_LARGEST = 1 << 22  # bytes of a file with one fact
_MODEL_NAMES = ("model", "model_name", "mlflow.genaiEvaluate.agent.function")
STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
RUN_ID = re.compile(r"[0-9a-f]{32}")


class Run(msgspec.Struct, kw_only=True):
    """`rows` is the size of the dataset, where there is one."""

    id: str = ""
    name: str = ""
    experiment: str = ""
    status: str = ""
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}
    rows: int | None = None

    @property
    def model(self) -> str:
        """The model by the run's parameters or tags; else the run is what is compared."""
        known = {**self.tags, **self.params}
        return next((known[name] for name in _MODEL_NAMES if known.get(name)), self.name)

    def facts(self) -> dict[str, Any]:
        return {
            "run_id": self.id,
            "run": self.name,
            "experiment": self.experiment,
            "params": self.params,
        }


def run_of_folder(folder: Path) -> Run | None:
    """The run in a folder of the file store; None if it is not one."""
    meta = read_yaml(folder / "meta.yaml")
    if "run_id" not in meta:
        return None
    metrics = {
        name: value
        for name, text in read_texts(folder / "metrics").items()
        if (value := _last(text)) is not None
    }
    experiment = read_yaml(folder.parent / "meta.yaml")
    tags = read_texts(folder / "tags")
    status = meta.get("status")
    return Run(
        id=str(meta["run_id"]),
        name=tags.get("mlflow.runName") or str(meta.get("run_name") or meta["run_id"]),
        experiment=str(experiment.get("name") or ""),
        status=STATUSES.get(status or 0, str(status or "")),
        params=read_texts(folder / "params"),
        tags=tags,
        metrics=metrics,
        rows=_rows_of(folder),
    )


def _rows_of(folder: Path) -> int | None:
    inputs = [read_yaml(file) for file in sorted(folder.glob("inputs/*/meta.yaml"))]
    ids = {str(entry.get("source_id")) for entry in inputs if entry.get("source_type") == "DATASET"}
    if len(ids) != 1 or not RUN_ID.fullmatch(id := ids.pop()):
        return None
    return rows_in_profile(read_yaml(folder.parent / "datasets" / id / "meta.yaml").get("profile"))


def rows_in_profile(profile: Any) -> int | None:
    """The number of rows in the description of a dataset."""
    rows = fields_of(decoded(profile)).get("num_rows")
    return rows if isinstance(rows, int) else None


def _last(text: str) -> float | None:
    """The value of the last line of a metric: time, value, step."""
    lines = text.split("\n")
    words = next((line.split() for line in reversed(lines) if line.strip()), [])
    try:
        return number_of(float(words[1]))
    except (IndexError, ValueError):
        return None


def read_texts(folder: Path) -> dict[str, str]:
    """The files below a folder, by their names; those of metrics stand in folders, as their names have slashes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {
        file.relative_to(folder).as_posix(): _text(file)
        for file in files
        if file.stat().st_size <= _LARGEST
    }


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in a small file; empty if there is none."""
    if not file.is_file() or file.stat().st_size > _LARGEST:
        return {}
    try:
        found = yaml.load(_text(file), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return fields_of(found)


def _text(file: Path) -> str:
    try:
        return reading.text(file, errors="replace")
    except OSError:
        return ""
