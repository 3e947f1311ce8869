"""Experiment folders of ours as results that can be imported: how one is copied, and where a copy may be put."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.resolve import sources_below
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG
from assay.foreign import ForeignCase, Headline
from assay.sdk import (
    ROWS_FILE,
    Evaluation,
    JsonMapping,
    JsonObject,
    Kind,
    Response,
    StoreError,
    UserError,
    canonical,
    write_file,
)
from assay.store.log import FileLog
from assay.store.seal import is_unchanged
from assay.store.stores import read_manifests
from assay.store.table.columns import place_of
from assay.store.table.decode import no_row, read_blocks

_KINDS: tuple[Kind, ...] = ("dataset", "run", "evaluation")
_MORE_ROWS = ROWS_FILE["aggregation"], "calls.jsonl", "traces.jsonl"
_BESIDE = (*_MORE_ROWS, CONFIG)


class OwnFolder:
    """The rows of one source, and with a folder what is beside them."""

    rejected = 0

    def __init__(self, source: Source) -> None:
        self.rows = source
        self.dataset = source.name

    @property
    def planned(self) -> int | None:
        manifest = self.rows.manifest("run")
        return manifest.planned if manifest is not None else None

    @property
    def source(self) -> JsonMapping:
        logs = [log for kind in _KINDS for log in self.rows.logs(kind)]
        files = [log.path.parent / part.name for log in logs for part in log.segments()]
        folder = self.rows.folder
        more = (
            [folder / name for name in _BESIDE if (folder / name).is_file()]
            if folder is not None
            else []
        )
        return {
            "format": "assay",
            "files": [content_stamp(file.absolute()) for file in (*files, *more)],
        }

    @property
    def facts(self) -> JsonMapping:
        return {"read_from": [str(file) for file in self.rows.files.values()]}

    def cases(self) -> Iterator[ForeignCase]:
        yield from (ForeignCase(item=row) for row in rows_of(self.rows, "dataset", JsonObject))
        yield from (ForeignCase(response=row) for row in rows_of(self.rows, "run", Response))
        yield from (
            ForeignCase(evaluations=(row,)) for row in rows_of(self.rows, "evaluation", Evaluation)
        )

    def notes(self) -> list[str]:
        return []

    def headlines(self) -> list[Headline]:
        return []

    def restore(self, folder: Path) -> None:
        """Copy what is beside the rows; the config is its folder's, whose owner has not vouched for the copy."""
        if self.rows.folder is None:
            return
        for name in _MORE_ROWS:
            log = FileLog(self.rows.folder / name)
            if log.segments() and not FileLog(folder / name).segments():
                FileLog(folder / name).replace(line + b"\n" for _, line in log.scan())
        config = self.rows.folder / CONFIG
        if config.is_file():
            write_file(folder / CONFIG, config.read_bytes())


def rows_of(source: Source, kind: Kind, type: Any) -> Iterator[Any]:
    """The rows of a kind as what they are."""
    return chain.from_iterable(blocks_of(source, kind, type))


def blocks_of(source: Source, kind: Kind, type: Any) -> Iterator[list[Any]]:
    """The same rows, many at once."""
    for log in source.logs(kind):
        for block in read_blocks(log, type):
            for line in block.unreadable:
                raise no_row(line.reason, place_of(log, str(log.path), line.position))
            yield block.rows


def own_results(path: Path) -> list[OwnFolder]:
    """Return the experiments of ours at a path: itself, or those below it."""
    return [OwnFolder(source) for source in sources_below(path)]


def check_free(folder: Path, source: JsonMapping) -> bool:
    """A folder may be written that is empty, or that an import of this source has begun; whether one has finished."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    try:
        state = _state(folder, canonical(dict(source))) if folder.is_dir() else "other"
    except StoreError:
        state = "other"
    if state == "other":
        raise UserError(
            "this exists, and is not what an earlier conversion of the same source has written",
            where=str(folder),
            fix="choose another name, or remove it",
        )
    return state == "done"


def _state(folder: Path, source: bytes) -> Literal["done", "begun", "other"]:
    """Return whether all in a folder was made from this source, and nothing has changed since."""
    ours = read_manifests(folder, *_KINDS).values()
    if not ours or any(
        canonical(each.plan.get("adopted", each.plan.get("imported"))) != source for each in ours
    ):
        return "other"
    if any(each.ended is None for each in ours):
        return "begun"
    files = (FileLog(folder / ROWS_FILE[each.kind]) for each in ours)
    return "done" if all(map(is_unchanged, ours, files)) else "other"
