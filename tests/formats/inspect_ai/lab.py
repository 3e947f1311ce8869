"""Logs of inspect_ai for tests: those that it made itself, in `logs/`, and small ones of any shape."""

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from struct import pack
from typing import Any

import msgspec
import zstandard

from assay.engine.experiment.imports.results import Imported, import_results
from assay.foreign import ForeignCase
from assay.formats.inspect_ai.reader import inspect_ai

LOGS = Path(__file__).parent / "logs"
Row = dict[str, Any]


def spec(**more: Any) -> Row:
    """What a header says about the run."""
    plain: Row = {
        "eval_id": "e1",
        "run_id": "r1",
        "task_id": "t1",
        "created": "2026-01-01T00:00:00+00:00",
    }
    plain |= {
        "task": "sums",
        "model": "some/model",
        "dataset": {"samples": 1},
        "config": {"epochs": 1},
    }
    return {**plain, **more}


def header(**more: Any) -> Row:
    return {"version": 2, "status": "success", "eval": spec(), "plan": {"steps": []}, **more}


def sample(id: Any = "a", epoch: int = 1, value: Any = "C", **more: Any) -> Row:
    message = {"role": "assistant", "content": "The answer is 5."}
    plain: Row = {
        "id": id,
        "epoch": epoch,
        "input": f"What is {id}?",
        "target": "5",
        "messages": [{"role": "user", "content": f"What is {id}?"}, message],
        "output": {
            "model": "served",
            "choices": [{"message": message, "stop_reason": "stop"}],
            "completion": "5",
        },
        "scores": {"match": {"value": value}},
        "metadata": {},
        "events": [],
    }
    return {**plain, **more}


def write_eval(
    path: Path, head: Mapping[str, Any] | None, samples: Iterable[Row], start: Row | None = None
) -> Path:
    """An archive with deflated members, as older versions wrote them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        if start is not None or head is None:
            file.writestr(
                "_journal/start.json",
                json.dumps(start or {"version": 2, "eval": spec(), "plan": {}}),
            )
        for number, row in enumerate(samples):
            name = f"samples/{number}_epoch_{row.get('epoch', 1)}.json"
            file.writestr(name, json.dumps(row))
        if head is not None:
            file.writestr("header.json", json.dumps(head))
    return path


def write_json(
    path: Path, head: Mapping[str, Any], samples: Iterable[Row], indent: int | None = None
) -> Path:
    path.write_text(json.dumps({**head, "samples": list(samples)}, indent=indent))
    return path


def frames(*parts: bytes) -> bytes:
    """One member in several frames."""
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)


class Zipped:
    """An archive with members of zstandard, as inspect_ai writes them, piece by piece."""

    def __init__(self) -> None:
        self.directory: list[bytes] = []
        self._offset = 0

    def member(self, name: str, *parts: bytes) -> bytes:
        """Each part is a frame of its own."""
        data, packed, encoded = b"".join(parts), frames(*parts), name.encode()
        sizes = zlib.crc32(data), len(packed), len(data), len(encoded)
        common = pack("<HHHHHIIIHH", 45, 0x800, 93, 0, 33, *sizes, 0)
        rest = pack("<HHHII", 0, 0, 0, 0, self._offset)
        self.directory.append(b"PK\x01\x02" + pack("<H", 45) + common + rest + encoded)
        entry = b"PK\x03\x04" + common + encoded + packed
        self._offset += len(entry)
        return entry

    def end(self) -> bytes:
        count, directory = len(self.directory), b"".join(self.directory)
        numbers = 0, 0, count, count, len(directory), self._offset, 0
        return directory + b"PK\x05\x06" + pack("<HHHHIIH", *numbers)


def cases(path: Path) -> list[ForeignCase]:
    (log,) = inspect_ai(path)
    return list(log.cases())


def plain(several: list[ForeignCase]) -> Any:
    """Cases as JSON values: what is only passed on is bytes until it is written."""
    return msgspec.json.decode(msgspec.json.encode(several))


def imported(source: Path, folder: Path) -> Imported:
    (only,) = import_results(source, folder)
    return only


def rows(folder: Path, name: str) -> list[Row]:
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
