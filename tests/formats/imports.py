"""What an import leaves behind, for the tests of readers."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay.engine.experiment.imports.results import Imported, import_results

Row = dict[str, Any]


class Brought(NamedTuple):
    """The result of one import, and the rows in its folder."""

    result: Imported
    items: dict[str, Row]
    responses: list[Row]
    evaluations: list[Row]

    def responses_to(self, item: str) -> list[Row]:
        return [row for row in self.responses if row["item_id"] == item]

    def labels_of(self, item: str, sample: int = 0) -> dict[str, Row]:
        rows = [
            row
            for row in self.evaluations
            if (row["item_id"], row["sample_index"]) == (item, sample)
        ]
        return {row["label"]: row for row in rows}

    def unequal(self) -> list[str]:
        """The other program's numbers that the rows do not give."""
        return [
            f"{each.label} {each.metric}" for each in self.result.headlines if each.equal is False
        ]

    def headline(self, label: str, metric: str, **where: str) -> Any:
        found = [
            each
            for each in self.result.headlines
            if (each.label, each.metric, each.where) == (label, metric, where)
        ]
        assert len(found) == 1, self.result.headlines
        return found[0]


def bring(path: Path, folder: Path, **params: Any) -> list[Brought]:
    """Import whatever is at the path."""
    return [_brought(result) for result in import_results(path, folder, params=params)]


def bring_one(path: Path, folder: Path, **params: Any) -> Brought:
    (brought,) = bring(path, folder, **params)
    return brought


def _brought(result: Imported) -> Brought:
    items, responses, evaluations = (
        rows_of(Path(result.folder) / f"{name}.jsonl")
        for name in ("items", "responses", "evaluation_results")
    )
    return Brought(result, {row["id"]: row for row in items}, responses, evaluations)


def rows_of(file: Path) -> list[Row]:
    return (
        [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        if file.exists()
        else []
    )
