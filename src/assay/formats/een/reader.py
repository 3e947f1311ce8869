"""EEN's files: `responses.jsonl` and `evaluation_results.jsonl` with EEN's fields, in a folder without a manifest."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from assay.engine.experiment.dataset import content_stamp
from assay.foreign import Foreign, ForeignCase, Headline, head_of
from assay.sdk import ROWS_FILE, Evaluation, JsonMapping, Response, reader
from assay.store.index import id_number
from assay.store.keyset import Seen
from assay.store.log import FileLog
from assay.store.stores import MANIFEST
from assay.store.table.decode import read_blocks

T = TypeVar("T")
_RESPONSES, _EVALUATIONS = ROWS_FILE["run"], ROWS_FILE["evaluation"]
_MARKS = {"item_id", "sample_index", "total_samples", "model_name", "prompt", "response"}
_OURS = {"key", "task", "outcome"}


@reader
def een(path: Path) -> list[Foreign]:
    """A folder with EEN's two files of rows, or one of them."""
    file = path if path.name == _RESPONSES else path / _RESPONSES
    if not file.is_file() or (file.parent / MANIFEST).exists():
        return []
    first = head_of(file).partition(b"\n")[0]
    try:
        row = msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        return []
    return [EenFiles(file.parent)] if row.keys() >= _MARKS and not row.keys() & _OURS else []


class EenFiles:
    """The rows of one folder. Their items are what EEN leaves of them: ids."""

    planned: int | None = None
    rejected = 0

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.dataset = folder.absolute().name
        self._files = [
            folder / name for name in (_RESPONSES, _EVALUATIONS) if (folder / name).is_file()
        ]

    @property
    def source(self) -> JsonMapping:
        return {"format": "een", "files": [content_stamp(file.absolute()) for file in self._files]}

    @property
    def facts(self) -> JsonMapping:
        return {"read_from": [file.name for file in self._files]}

    def cases(self) -> Iterator[ForeignCase]:
        self.rejected = 0
        seen, last = Seen(), None
        for row in self._rows(_RESPONSES, Response):
            new = row.item_id != last and seen.add(id_number(row.item_id))
            last = row.item_id
            yield ForeignCase({"id": last, "data": {"prompt": row.prompt}} if new else None, row)
        for row in self._rows(_EVALUATIONS, Evaluation):
            yield ForeignCase(evaluations=(row,))

    def notes(self) -> list[str]:
        return [f"{self.rejected:,} lines are not rows and were left out"] if self.rejected else []

    def headlines(self) -> list[Headline]:
        return []

    def _rows(self, name: str, kind: type[T]) -> Iterator[T]:
        for block in read_blocks(FileLog(self.path / name), kind):
            self.rejected += len(block.unreadable)
            yield from block.rows
