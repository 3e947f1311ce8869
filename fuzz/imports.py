"""Results of other programs, damaged: cut off, bytes flipped, keys dropped, values of another type, files emptied.

An import ends in an error that says what is wrong, or every row of the source is counted: imported, failed or rejected.
A file that is not whole is never taken without a word.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assay import api, registry
from assay.analysis.look import convert
from assay.errors import AssayError
from fuzz import Attack
from tests.convert_lab import make
from tests.formats.ragicamp import generations
from tests.formats.sygra.originals import write_original

Files = dict[str, bytes]
_Write = Callable[[Path], object]
SOURCES: dict[str, list[_Write]] = {  # small results for every reader
    "ragicamp": [
        generations.five_files,
        generations.three_files,
        lambda folder: (generations.questions_file(folder), generations.three_files(folder)),
        lambda folder: (
            generations.three_files(folder),
            generations.three_files(folder, agent="other"),
        ),
    ],
    "sygra": [write_original],
}
LOGS = Path(__file__).parents[1] / "tests/formats"  # <format>/logs: what other tools really wrote
WHOLE = ("ragicamp",)  # whose readers take every JSON file below the folder
LISTS = ("predictions", "per_question_metrics")
ODD = (
    None,
    True,
    -1,
    10**30,
    1e308,
    "",
    "text",
    "\ud800",
    [],
    [1],
    {},
    {"a": {}},
    [[]],
    "NaN",
    0.5,
)
RAW = (
    b"NaN",
    b"1e999",
    b"1" * 5000,
    b"[" * 3000,
    b"\xff",
    b"\xc3",
    b"\x00",
    b'"',
    b"{",
    b"]",
    b"\xef\xbb\xbf",
)
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a disk would spend its time on fsync


def sources() -> dict[str, list[_Write]]:
    """Small results for every reader: made here, by other tools, or by Assay's own writers."""
    logged = {place.parent.name: _logs(place) for place in sorted(LOGS.glob("*/logs"))}
    written = [name for name in registry.reader.names() if name in convert.formats()]
    converted = {
        name: [_converted(name)] for name in written if name not in SOURCES and name not in logged
    }
    return {**SOURCES, **logged, **converted}


def _suffix(name: str) -> str:
    return next((suffix for suffix, format in convert.suffixes().items() if format == name), "")


def _converted(name: str) -> _Write:
    def write(target: Path) -> object:
        target.mkdir(parents=True)
        own = make(target.parent / f".own-{name}", beside=False)
        try:
            return api.convert(own, target / f"results{_suffix(name)}", to=name)
        finally:
            shutil.rmtree(own)

    return write


@contextmanager
def opened() -> Iterator[Attack]:
    """Attack every reader in turn."""
    every = sources()
    missing = set(registry.reader.names()) - set(every)
    with TemporaryDirectory(prefix="assay-fuzz-", dir=MEMORY) as place:
        folder = Path(place)
        fixtures = [
            (name, _files(write, folder)) for name, writes in every.items() for write in writes
        ]

        def attack(case: int) -> str | None:
            if missing:
                return f"no source for the readers {sorted(missing)}"
            name, files = fixtures[case % len(fixtures)]
            files = damaged(files, random.Random(case))
            return _fault(name, files, folder / "case")

        yield attack


def _logs(folder: Path) -> list[_Write]:
    """Each log of a folder by itself: a file, or a folder of files that belong together."""

    def copied(entry: Path) -> _Write:
        def write(target: Path) -> object:
            target.mkdir(parents=True)
            return (shutil.copytree if entry.is_dir() else shutil.copy)(entry, target / entry.name)

        return write

    return [copied(entry) for entry in sorted(folder.iterdir())]


def _files(write: _Write, folder: Path) -> Files:
    write(folder / "fixture")
    files = read(folder / "fixture")
    shutil.rmtree(folder / "fixture")
    return files


def read(folder: Path) -> Files:
    """Every file below a folder."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def put(files: Files, folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def damaged(files: Files, chance: random.Random) -> Files:
    """The files with one to three faults."""
    files = dict(files)
    for _ in range(chance.choice((1, 1, 2, 3))):
        name = chance.choice(sorted(files))
        files[name] = chance.choice(_WAYS)(files[name], chance)
        if chance.random() < 0.03:
            del files[name]
        if not files or chance.random() < 0.02:
            files[f"more/{name}"] = files.get(name, b"")
    return files


def _bytes(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    end = at + chance.choice((0, 1, 1, 2, 10))
    return (
        content[:at]
        + chance.choice((b"", bytes([chance.randrange(256)]), chance.choice(RAW)))
        + content[end:]
    )


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _values(content: bytes, chance: random.Random) -> bytes:
    """Another value, no value or one twice, somewhere in the JSON."""
    try:
        holder = whole = json.loads(content)
    except (ValueError, RecursionError):
        return _bytes(content, chance)
    while True:
        keys: Any = (
            list(holder)
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        if not keys:
            return content
        key = chance.choice(keys)
        if isinstance(holder[key], (dict, list)) and holder[key] and chance.random() < 0.8:
            holder = holder[key]
            continue
        way = chance.randrange(4)
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = chance.choice(ODD)
        return json.dumps(whole).encode()


_WAYS = (_bytes, _bytes, _cut, _values, _values, _values, lambda content, chance: b"")


def _fault(name: str, files: Files, folder: Path) -> str | None:
    """What is wrong with how an import of these files ends."""
    shutil.rmtree(folder, ignore_errors=True)
    source = put(files, folder / "source")
    source.mkdir(parents=True, exist_ok=True)
    try:
        imported = api.import_(source, folder / "out", format_name=name)
    except AssayError as error:
        return None if str(error).strip() else "an error says nothing"
    except Exception as error:
        return f"internal error: {type(error).__name__}: {error}"
    rows, rejected = (
        sum(sum(one.responses.values()) for one in imported),
        sum(one.rejected for one in imported),
    )
    stored = sum(
        content.count(b"\n")
        for place, content in read(folder / "out").items()
        if "responses.jsonl" in place
    )
    if stored != rows:
        return f"{stored} rows are stored, {rows} are counted"
    if name not in WHOLE:
        return None
    every = [_document(content) for place, content in files.items() if place.endswith(".json")]
    if not rejected and None in every:
        return "a file that is not JSON was taken without a word"
    most = max(
        (len(one[key]) for one in every if one for key in LISTS if isinstance(one.get(key), list)),
        default=0,
    )
    if rows + rejected < most:
        return f"the source has {most} rows; {rows} are imported, {rejected} rejected"
    return None


def _document(content: bytes) -> dict[str, Any] | None:
    """The JSON object, {} for JSON that is none, None for what is not JSON."""
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {}
