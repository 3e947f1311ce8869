"""The folder that agents share: one writer at a time changes it, and the questions file only grows.

A writer waits for the others, since agents may run side by side in several processes. Every file is whole when it
gets its name.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Literal

import msgspec

from assay.formats.ragicamp.files import RagicampFile, look
from assay.formats.ragicamp.rows import answers_in, id_of, question_row
from assay.sdk import (
    JsonObject,
    Log,
    UserError,
    id_hash,
    make_folder,
    safe_name,
    store_error,
    sweep,
    write_file,
)
from assay.store.files import open_own
from assay.store.index import ItemIndex
from assay.store.keyset import Seen
from assay.store.ledger import check_replaceable, replace_file

_LOCK = ".ragicamp.lock"
_BLOCK = 1 << 20
Note = Callable[[str], None]
FileKind = Literal["predictions", "summary"]
KINDS: tuple[FileKind, ...] = ("predictions", "summary")


def questions_file(folder: Path, dataset: str) -> Path:
    return folder / f"{safe_name(dataset)}_questions.json"


def agent_file(folder: Path, agent: str, kind: FileKind, dataset: str = "") -> Path:
    """With a dataset: the longer name, for an agent whose plain one is taken."""
    stem = f"{safe_name(agent)}_{safe_name(dataset)}" if dataset else safe_name(agent)
    return folder / f"{stem}_{kind}.json"


@contextmanager
def exclusive_access(folder: Path) -> Generator[None]:
    """Wait until no other process changes the folder. The lock ends with its holder."""
    try:
        make_folder(folder)
        fd = open_own(folder / _LOCK, os.O_RDWR)
    except OSError as error:
        raise store_error(error, folder) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        sweep(folder)
        yield
    finally:
        os.close(fd)


class RowList:
    """Rows written aside, indented as RAGiCamp does: a file has their number before them."""

    def __init__(self, file: IO[bytes]) -> None:
        self.count = 0
        self._file = file

    def add(self, row: JsonObject) -> None:
        text = msgspec.json.format(msgspec.json.encode(row), indent=2)
        self._file.write(b",\n    " if self.count else b"\n    ")
        self._file.write(text.replace(b"\n", b"\n    "))
        self.count += 1

    def blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while block := self._file.read(_BLOCK):
            yield block
        yield b"\n  ]" if self.count else b"]"


def document(head: JsonObject, **lists: RowList) -> Iterator[bytes]:
    """Return an object with lists as its last fields, in parts."""
    fields = msgspec.json.format(msgspec.json.encode(dict(head)), indent=2)
    yield fields[: fields.rindex(b"\n}")]
    for name, rows in lists.items():
        yield b',\n  "%b": [' % name.encode()
        yield from rows.blocks()
    yield b"\n}\n"


# ---- questions


def merge_questions(folder: Path, dataset: str, items: Log, note: Note) -> Path:
    """Put the items into the questions file: what it has keeps its place, ours are new, none goes. A question that asks
    otherwise than ours of the same id is a conflict; other answers are replaced, and named. Call it within `exclusive_access`."""
    path = questions_file(folder, dataset)
    broken: list[str] = []
    answers: list[str] = []
    old = _questions_in(path)
    if old is None and path.exists():
        broken.append(f"{path} holds no questions")
    with TemporaryFile(prefix="assay-") as spool:
        questions = RowList(spool)
        for row in _merged_rows(old, ItemIndex(items), broken.append, answers.append):
            questions.add(row)
        said = {} if old is None else {**old.tail, **old.head}
        head = {"dataset_name": dataset, "num_questions": 0, **said}
        head["num_questions"] = questions.count
        if answers:
            others = f", and {len(answers) - 1:,} more" if len(answers) > 1 else ""
            note(
                f"{path.name} had other answers to {answers[0]!r}{others}: they are those of this dataset now"
            )
        if broken:
            aside = path.with_name(f"{path.name}.broken")
            os.replace(path, aside)
            note(
                f"{broken[0]}; its questions up to there are kept, and the old file is now {aside.name}"
            )
        write_file(path, document(head, questions=questions))
    return path


def check_questions(folder: Path, dataset: str, items: Log) -> None:
    """Refuse items that ask otherwise than the questions file does, before an agent is asked."""
    old, ignored = _questions_in(questions_file(folder, dataset)), list[str]()
    for _ in _merged_rows(old, ItemIndex(items), ignored.append, ignored.append):
        pass


def _questions_in(path: Path) -> RagicampFile | None:
    old = look(path)
    return old if old is not None and old.kind == "questions" else None


def _merged_rows(
    old: RagicampFile | None, items: ItemIndex, broken: Note, answered: Note
) -> Iterator[JsonObject]:
    taken = Seen()
    for place, number, row in () if old is None else old.rows(broken):
        id = id_of(row, number)
        item = items.get(id)
        if item is None:
            yield row
        elif taken.add(id_hash(id)):
            ours = question_row(item)
            theirs = str(row.get("question") or "")
            if theirs.split() and theirs.split() != ours["question"].split():
                fix = "write to another folder, or name the dataset otherwise"
                fix += " (export: --set dataset=NAME)"
                what = f"question {id!r} is {theirs!r} in the file and {ours['question']!r} here"
                raise UserError(what, where=place, fix=fix)
            if answers_in(row) != answers_in(ours):
                answered(id)
            yield ours
    for item in items:
        if taken.add(id_hash(item.id)):
            yield question_row(item)


# ---- predictions and summaries


def places_of(
    folder: Path, agent: str, dataset: str, *, plain_names: bool, force: bool
) -> dict[FileKind, Path]:
    """The names of an agent's files: RAGiCamp's, unless another dataset's results have them. Files that Assay did not
    write are refused. Call it within `exclusive_access`."""
    plain = [agent_file(folder, agent, kind) for kind in KINDS]
    taken = not plain_names and any(
        path.exists() and _dataset_in(path) != dataset for path in plain
    )
    places: dict[FileKind, Path] = {
        kind: agent_file(folder, agent, kind, dataset if taken else "") for kind in KINDS
    }
    for path in places.values():
        check_replaceable(path, force=force)
    return places


def put_in_place(files: Mapping[FileKind, Path], places: Mapping[FileKind, Path]) -> None:
    """Give an agent's whole files their names. Call it within `exclusive_access`."""
    for kind, temporary in files.items():
        replace_file(temporary, places[kind])


def _dataset_in(path: Path) -> str | None:
    found = look(path)
    return None if found is None else found.head.get("dataset_name")
