"""Evaluations as the original wrote them: `<id>.json` for the overview and `<id>/<example>.json` for each result."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
)
from assay.formats.intelligence_layer.types import from_json
from assay.store.stores import MANIFEST


class OriginalEvaluations:
    """Reads only. Ids are looked for among the files that are there: they never become paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ids(self, suffix: str = "json") -> list[str]:
        """FileNotFoundError where there is no evaluation of any kind yet, as in the original."""
        return sorted(path.stem for path in self.folder.iterdir() if path.suffix == f".{suffix}")

    def overview(self, evaluation_id: str) -> EvaluationOverview | None:
        file = self._entry(f"{evaluation_id}.json")
        return None if file is None else from_json(_read(file), EvaluationOverview)

    def partial(self, evaluation_id: str) -> PartialEvaluationOverview | None:
        file = self._entry(f"{evaluation_id}.partial_json")
        return None if file is None else from_json(_read(file), PartialEvaluationOverview)

    def has(self, evaluation_id: str) -> bool:
        """Whether there are results in the original's files: a folder of ours has a manifest or rows instead."""
        folder = self._entry(evaluation_id)
        if folder is None or not folder.is_dir() or (folder / MANIFEST).exists():
            return False
        return self._entry(f"{evaluation_id}.json") is not None or any(folder.glob("*.json"))

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None:
        found = (row for row in self._rows(evaluation_id) if row["example_id"] == example_id)
        return next((_result(row, evaluation_type) for row in found), None)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        found = (_result(row, evaluation_type) for row in self._rows(evaluation_id))
        return sorted(found, key=lambda each: each.example_id)

    def _rows(self, evaluation_id: str) -> Iterator[dict[str, Any]]:
        folder = self._entry(evaluation_id)
        return (_read(file) for file in folder.rglob("*.json")) if folder else iter(())

    def _entry(self, name: str) -> Path | None:
        if not self.folder.is_dir():
            return None
        return next((path for path in self.folder.iterdir() if path.name == name), None)


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_bytes())


def _result(row: dict[str, Any], evaluation_type: type[Evaluation]) -> ExampleEvaluation[Evaluation]:
    kind: Any = FailedExampleEvaluation if row["is_exception"] else evaluation_type
    result = from_json(json.loads(row["json_result"]), kind)
    return ExampleEvaluation(evaluation_id=row["evaluation_id"], example_id=row["example_id"], result=result)
