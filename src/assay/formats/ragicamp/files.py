"""RAGiCamp's JSON files as they are found: what each is, and its rows one at a time.

A file of a writer that crashed ends in the middle: what is whole before that is read.
"""

import csv
import io
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from assay import reading
from assay.records import decode_json
from assay.sdk import JsonObject, UserError
from assay.text.json_extents import extents
from assay.text.json_stream import BrokenJson, json_parts, storable

Kind = Literal["questions", "predictions", "scores", "facts", "other"]
Broken = Callable[[str], None]
_LISTS: dict[str, Kind] = {
    "questions": "questions",
    "predictions": "predictions",
    "per_question_metrics": "scores",
}
_FACTS = {"overall_metrics", "metrics", "metric_statistics"}
_ROWS = ("questions.json", "predictions.json")  # how the names of files with rows end
_FACT_FILES = ("_summary.json", "_metrics.json", "_per_question.json", "results.json")
_PER_QUESTION = "_per_question"
_FAILED = "failed"  # the list beside `predictions` of answers that failed
_NO_ROWS = "there is no list of questions or predictions in it"
_START = 64  # bytes that tell a list from an object


class RagicampFile(msgspec.Struct):
    """One file: the fields before its list, the list's name, and, once the rows were read, the fields after it.
    `facts`: a file without rows; `other`: none that can be read. `problem` is what is wrong with either."""

    path: Path
    kind: Kind
    list_name: str = ""
    head: JsonObject = {}
    tail: JsonObject = {}
    problem: str = ""

    def rows(self, broken: Broken = lambda what: None) -> Iterator[tuple[str, int, JsonObject]]:
        """(place, number, row) of each; what is not a row, or not JSON, is reported to `broken`."""
        if self.path.suffix == ".csv":
            yield from _table(self.path, broken)
            return
        self.tail = {}
        try:
            with reading.opened(self.path) as file:
                for key, number, row in json_parts(file):
                    if key not in (self.list_name, _FAILED):
                        self._keep(key, number, row)
                    elif number is None:
                        continue
                    elif isinstance(row, dict):
                        yield (
                            f"{self.path} {key} [{number}]",
                            number,
                            storable(cast("JsonObject", row)),
                        )
                    else:
                        broken(f"{self.path} [{number}] is not an object and is left out")
        except BrokenJson as error:
            broken(f"{self.path} is not whole, what follows is not read: {error}")
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def _keep(self, key: str, number: int | None, value: Any) -> None:
        if key in self.head:
            return
        if number is None:
            self.tail[key] = value
        else:
            self.tail[key].append(value)


def documents(path: Path) -> list[RagicampFile]:
    """The files of ours at a path: the file itself, or all below a folder."""
    if path.is_file():
        beside = [other for other in sorted(path.parent.iterdir()) if _is_part(other, path)]
        return [*filter(None, map(look, [path, *beside]))]
    found: list[RagicampFile] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name[0] != "." and not name.endswith(".d"))
        visible = sorted(name for name in names if name[0] != ".")
        found += filter(None, [look(Path(folder, name)) for name in visible])
    return found


def _is_part(other: Path, main: Path) -> bool:
    """Return whether a file belongs to the one that was named."""
    if other == main or not other.is_file():
        return False
    return other.name.endswith("_questions.json") or other.name.startswith(f"{stem_of(main)}_")


def stem_of(path: Path) -> str:
    """Return what the names of one run's old five files have in common."""
    stem = path.stem
    for suffix in (_PER_QUESTION, "_metrics", "_predictions", "_summary"):
        stem = stem.removesuffix(suffix)
    return stem


def look(path: Path) -> RagicampFile | None:
    """Return a file as what its first fields tell; None if it is nothing of ours."""
    if not path.is_file():
        return None
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(
            "the file's name is not UTF-8", where=ascii(str(path)), fix="rename it"
        ) from None
    if path.suffix == ".csv" and path.stem.endswith(_PER_QUESTION):
        return RagicampFile(path, "scores")
    if path.suffix == ".txt" and path.stem.endswith("_metrics"):
        return RagicampFile(path, "facts", head=_text_facts(path))
    if path.suffix != ".json" or path.name == "manifest.json":
        return None
    try:
        return _look_inside(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _look_inside(path: Path) -> RagicampFile | None:
    """Return what a JSON file is, by the fields before its list."""
    head: JsonObject = {}
    problem = _NO_ROWS if path.name.endswith(_ROWS) else ""
    try:
        with reading.opened(path) as file:
            is_list = file.peek(_START)[:_START].lstrip().startswith(b"[")
            if is_list and not path.name.endswith((*_ROWS, *_FACT_FILES)):
                return None
            for key, _, data in extents(file, skip=None):
                if not data and key in _LISTS:
                    return RagicampFile(path, _LISTS[key], key, storable(head))
                head[key] = value = decode_json(data or b"[]")
                if key in _LISTS and not isinstance(value, (int, float)):
                    problem = f"{key!r} is not a list"
    except ValueError as error:
        problem = f"it is not whole: {error}"
    return _without_rows(path, head, problem)


def _without_rows(path: Path, head: JsonObject, problem: str) -> RagicampFile | None:
    is_summary = path.stem.endswith("_summary") and "agent_name" in head
    if is_summary or head.keys() & _FACTS:
        return RagicampFile(path, "facts", head=storable(head), problem=problem)
    return RagicampFile(path, "other", problem=problem) if problem else None


def timestamp_of(text: Any, path: Path | None = None) -> float:
    """Unix time of an ISO date, which counts as UTC if it does not say; without one, the file's own time."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return 0.0 if path is None else path.stat().st_mtime
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def date_of(timestamp: float) -> str:
    """A Unix time as text, with the microseconds that RAGiCamp writes."""
    try:
        moment = datetime.fromtimestamp(timestamp, UTC)
    except (OverflowError, ValueError, OSError):  # no time of this world
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="microseconds")


def _table(path: Path, broken: Broken) -> Iterator[tuple[str, int, JsonObject]]:
    try:
        with io.TextIOWrapper(reading.opened(path), "utf-8-sig", newline="") as file:
            for number, found in enumerate(csv.DictReader(file)):
                row: JsonObject = {
                    name: _number(text)
                    for name, text in found.items()
                    if name and name != "question"
                }
                if "question" in found:
                    row["question"] = found["question"]
                index = row.get("question_index")
                yield (
                    f"{path} [{number}]",
                    number,
                    {**row, "question_index": number if index is None else int(index)},
                )
    except (csv.Error, ValueError, OverflowError) as error:
        broken(f"{path} is not whole, what follows is not read: {error}")
    except OSError as error:
        raise _unreadable(path, error) from None


def _number(text: Any) -> Any:
    try:
        return None if text in (None, "") else float(text)
    except (TypeError, ValueError):
        return {"True": True, "False": False}.get(str(text), text)


def _text_facts(path: Path) -> JsonObject:
    """Agent, dataset and time out of the old text summary."""
    names = {"agent": "agent_name", "dataset": "dataset_name", "timestamp": "timestamp"}
    facts: JsonObject = {}
    try:
        lines = reading.text(path, errors="replace").splitlines()[:20]
    except OSError as error:
        raise _unreadable(path, error) from None
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() in names:
            facts[names[name.strip().lower()]] = value.strip()
    return facts


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"the file cannot be read: {error.strerror}", where=str(path))
