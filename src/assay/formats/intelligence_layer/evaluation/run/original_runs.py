"""Runs as the original wrote them: `<id>.json`, `<id>/output/<example>.json`, `<id>/trace/<example>.jsonl`.

It had no mark for failures: an output that is nothing but an `error_message` is one.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.formats.intelligence_layer.core.task import Output
from assay.formats.intelligence_layer.core.tracer.file_tracer import FileTracer
from assay.formats.intelligence_layer.evaluation.run.domain import ExampleOutput, FailedExampleRun, RunOverview
from assay.formats.intelligence_layer.types import from_json

Row = dict[str, Any]


class OriginalRuns:
    """Reads only. Ids are looked for among the files that are there: they never become paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: tuple[str, dict[str, Path]] | None = None

    def ids(self) -> list[str]:
        """FileNotFoundError where there is no run of any kind yet, as in the original."""
        return sorted(path.stem for path in self.folder.iterdir() if path.suffix == ".json")

    def overview(self, run_id: str) -> RunOverview | None:
        file = _entry(self.folder, f"{run_id}.json")
        return None if file is None else from_json(json.loads(file.read_bytes()), RunOverview)

    def has(self, run_id: str) -> bool:
        return _entry(self.folder, f"{run_id}.json") is not None or self._part(run_id, "output") is not None

    def output_ids(self, run_id: str) -> list[str]:
        return sorted(self._files(run_id))

    def output(self, run_id: str, example_id: str, output_type: type[Output]) -> ExampleOutput[Output] | None:
        file = self._files(run_id).get(example_id)
        return None if file is None else _output(json.loads(file.read_bytes()), output_type)

    def outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        files = sorted(self._files(run_id).items())
        return (_output(json.loads(file.read_bytes()), output_type) for _, file in files)

    def tracer(self, run_id: str, example_id: str) -> FileTracer | None:
        folder = self._part(run_id, "trace")
        file = None if folder is None else _entry(folder, f"{example_id}.jsonl")
        return None if file is None else FileTracer(file)

    def _files(self, run_id: str) -> dict[str, Path]:
        """The file of each example. Its name need not be the example's id, which stands in it."""
        if self._found is None or self._found[0] != run_id:
            folder = self._part(run_id, "output")
            files = [] if folder is None else folder.rglob("*.json")
            self._found = run_id, {json.loads(file.read_bytes())["example_id"]: file for file in files}
        return self._found[1]

    def _part(self, run_id: str, name: str) -> Path | None:
        folder = _entry(self.folder, run_id)
        return None if folder is None else _entry(folder, name)


def _entry(folder: Path, name: str) -> Path | None:
    if not folder.is_dir():
        return None
    return next((path for path in folder.iterdir() if path.name == name), None)


def _output(row: Row, output_type: type[Output]) -> ExampleOutput[Output]:
    output: Any = row["output"]
    failed = isinstance(output, dict) and output.keys() == {"error_message"}
    kind: Any = FailedExampleRun if failed else output_type
    return ExampleOutput(run_id=row["run_id"], example_id=row["example_id"], output=from_json(output, kind))
