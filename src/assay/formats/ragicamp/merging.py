"""The folder that agents share: one writer at a time changes it, and the questions file only grows.

A writer waits for the others, since agents may run side by side in several processes. Every file is whole when it
gets its name.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal

import msgspec

from assay.errors import UserError
from assay.formats.ragicamp.files import Document, look
from assay.formats.ragicamp.rows import Row, answers_in, id_of, question_row
from assay.interfaces import Log
from assay.store.files import make_folder, open_own, safe_name, store_error, sweep, write_file
from assay.store.index import ItemIndex
from assay.store.items import decode_item
from assay.store.keys import id_hash
from assay.store.keyset import Seen
from assay.store.written import check_replaceable, remember

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
def shared(folder: Path) -> Generator[None]:
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


def document(head: Mapping[str, Any], list_name: str, rows: Iterable[Row]) -> Iterator[bytes]:
    """An object with a list as its last field, indented as RAGiCamp does, row by row."""
    fields = msgspec.json.format(msgspec.json.encode(dict(head)), indent=2)
    yield fields[: fields.rindex(b"\n}")] + b',\n  "%b": [' % list_name.encode()
    between = b"\n    "
    for row in rows:
        yield between + _indented(row)
        between = b",\n    "
    yield b"]\n}\n" if between[:1] == b"\n" else b"\n  ]\n}\n"


def _indented(row: Row) -> bytes:
    return msgspec.json.format(msgspec.json.encode(row), indent=2).replace(b"\n", b"\n    ")


# ---- questions


def merge_questions(folder: Path, dataset: str, items: Log, note: Note) -> Path:
    """Put the items into the questions file: what it has keeps its place, ours are new, none goes. A question that asks
    otherwise than ours of the same id is a conflict; other answers are replaced, and named. Call it within `shared`."""
    path = questions_file(folder, dataset)
    broken: list[str] = []
    old = look(path) if path.exists() else None
    if old is not None and old.kind != "questions":
        old = None
    if old is None and path.exists():
        broken.append(f"{path} holds no questions")
    head: Row = {"dataset_name": dataset, "num_questions": 0, **({} if old is None else old.head)}
    answers: list[str] = []
    with TemporaryFile(prefix="assay-") as spool:
        head["num_questions"] = _spool(spool, old, items, broken.append, answers.append)
        if answers:
            others = f", and {len(answers) - 1:,} more" if len(answers) > 1 else ""
            note(
                f"{path.name} had other answers to {answers[0]!r}{others}: they are those of this dataset now"
            )
        head |= (
            {}
            if old is None
            else {key: value for key, value in old.tail.items() if key not in head}
        )
        if broken:
            aside = path.with_name(f"{path.name}.broken")
            os.replace(path, aside)
            note(
                f"{broken[0]}; its questions up to there are kept, and the old file is now {aside.name}"
            )
        write_file(path, _framed(head, spool))
    return path


def _spool(spool: IO[bytes], old: Document | None, items: Log, broken: Note, answered: Note) -> int:
    """Write the questions aside, for the file has their number before them; returns it."""
    count = 0
    for row in _asked(items) if old is None else _merged(old, ItemIndex(items), broken, answered):
        spool.write((b",\n    " if count else b"\n    ") + _indented(row))
        count += 1
    return count


def _asked(items: Log) -> Iterator[Row]:
    for _, line in items.scan():
        if line and not line.isspace():
            yield question_row(decode_item(line, "items.jsonl"))


def _merged(old: Document, items: ItemIndex, broken: Note, answered: Note) -> Iterator[Row]:
    taken = Seen()
    for place, number, row in old.rows(broken):
        id = id_of(row, number)
        item = items.get(id)
        if item is None:
            yield row
        elif taken.add(id_hash(id)):
            ours = question_row(item)
            _check_same(id, str(row.get("question") or ""), ours["question"], place)
            if answers_in(row) != answers_in(ours):
                answered(id)
            yield ours
    for item in items:
        if taken.add(id_hash(item.id)):
            yield question_row(item)


def _check_same(id: str, theirs: str, ours: str, place: str) -> None:
    if theirs.split() and theirs.split() != ours.split():
        fix = "export to another folder, or under another name: --set dataset=NAME"
        raise UserError(
            f"question {id!r} is {theirs!r} in the file and {ours!r} here", where=place, fix=fix
        )


def _framed(head: Row, spool: IO[bytes]) -> Iterator[bytes]:
    begin, end = document(head, "questions", [])
    yield begin
    spool.seek(0)
    while block := spool.read(_BLOCK):
        yield block
    yield b"\n  " + end if head["num_questions"] else end


# ---- predictions and summaries


def places_of(
    folder: Path, agent: str, dataset: str, *, plain_names: bool, force: bool
) -> dict[FileKind, Path]:
    """The names of an agent's files: RAGiCamp's, unless another dataset's results have them. Files that Assay did not
    write are refused. Call it within `shared`."""
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
    """Give an agent's whole files their names. Call it within `shared`."""
    for kind, temporary in files.items():
        try:
            os.replace(temporary, places[kind])
        except OSError as error:
            raise store_error(error, places[kind]) from error
        remember(places[kind])


def _dataset_in(path: Path) -> str | None:
    found = look(path)
    return None if found is None else found.head.get("dataset_name")
