"""An experiment's samples as columns, mapped from a file: made of the rows, never the truth. `opening` makes it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from xxhash import xxh3_64

from assay.errors import StoreError
from assay.records import OUTCOMES, Kind
from assay.store.files import sweep, write_file
from assay.store.keys import id_hash, short
from assay.store.log import FileLog
from assay.store.table.labels import labels_apart
from assay.viewer.index.build import Arrays, Coded, Ends

_MAGIC = b"assay index 4 \n"
# what it is, the checksum of all that follows, the header's size
_HEAD = (slice(0, 15), slice(15, 31), slice(32, 48))
KINDS: tuple[Kind, ...] = ("run", "evaluation", "dataset")
_MOST_KEPT = 4 << 30  # bytes of all indexes
_FAILED = [OUTCOMES.index(name) for name in ("errored", "unparsed", "refused")]


_numbers = count()


class IndexedFile(msgspec.Struct):
    """A file of rows as it was; `mark` is a digest of its beginning and of the end of what was read."""

    name: str
    size: int
    mtime_ns: int
    inode: int
    mark: str = ""


class IndexedLog(msgspec.Struct):
    """`hidden`: how many rows did not count."""

    kind: Kind
    path: str
    files: list[IndexedFile]
    hidden: int = 0


class _Header(msgspec.Struct):
    logs: list[IndexedLog]
    ends: Ends
    coded: Coded
    columns: list[tuple[str, str, int]]


class Index:
    """`arrays` by name (see `join.finished`). `plan`: the scorers, and the facets of tasks. `judged`: there are
    labels, but no responses; then its rows are the places that were judged."""

    def __init__(self, logs: list[IndexedLog], ends: Ends, coded: Coded, arrays: Arrays) -> None:
        self.logs, self.ends, self.coded, self.arrays = logs, ends, coded, arrays
        self.judged = "judged" in arrays
        self.files: dict[Kind, list[FileLog]] = {kind: [] for kind in KINDS}
        for log in logs:
            file = FileLog(Path(log.path))
            file.numbered()
            self.files[log.kind].append(file)
        self.plan: tuple[list[str], dict[str, dict[str, Any]]] = [], {}
        self.made = next(_numbers)
        self.searches: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.arrays["response.item"])

    def read(self, kind: Kind, log: int, position: int) -> bytes:
        return self.files[kind][log].read(position)

    def item_id(self, number: int) -> str:
        start, end = int(self.arrays["item.start"][number]), int(self.arrays["item.end"][number])
        return self.arrays["item.ids"][start:end].tobytes().decode("utf-8", "surrogatepass")

    def number(self, id: str) -> int:
        """The number of an item, -1 if there is none of this id."""
        for number in np.flatnonzero(self.arrays["item.hash"] == np.uint64(id_hash(id))).tolist():
            if self.item_id(number) == id:
                return number
        return -1

    def judged_by(self, evaluation: Mapping[str, Any]) -> int:
        """The row that an evaluation is about, -1 if there is none."""
        keys, arrays = evaluation.get("responses"), self.arrays
        rows = np.flatnonzero(arrays["response.item"] == self.number(str(evaluation["item_id"])))
        if keys and not self.judged:
            hit = rows[arrays["response.key"][rows] == np.uint64(short(str(keys[0])))]
            rows = hit if len(hit) else rows[arrays["response.key"][rows] == 0]
            if len(hit):
                return int(hit[0])
        models, model = self.coded.models, str(evaluation.get("model_name") or "")
        rows = rows[arrays["response.sample"][rows] == int(evaluation.get("sample_index") or 0)]
        rows = rows[
            arrays["response.model"][rows] == (models.index(model) if model in models else -1)
        ]
        return int(rows[0]) if len(rows) else -1

    @cached_property
    def models(self) -> list[str]:
        """Those of the rows; what a match calls its players is not a model."""
        return [
            self.coded.models[code]
            for code in np.flatnonzero(np.bincount(self.arrays["response.model"]))
        ]

    def item_ids(self) -> Iterator[str]:
        return map(self.item_id, range(len(self.arrays["item.hash"])))

    def labels(self) -> list[str]:
        """Labels of answers in the order of the scorers' plan, then of the rows; not those that only failures name."""
        order = {scorer: number for number, scorer in enumerate(self.plan[0])}
        labels: dict[str, int] = {}
        own = self.labels_of_scorers()
        for label, scorer, outcome, _, match in self._combinations:
            stands_for_others = (
                label == scorer
                and outcome in _FAILED
                and own.get(scorer)
                and label not in own[scorer]
            )
            if not match and not stands_for_others:
                labels.setdefault(label, order.get(scorer, len(order)))
        return sorted(labels, key=lambda label: labels[label])

    @cached_property
    def _combinations(self) -> list[tuple[str, str, int, int, bool]]:
        """Return those of the rows, with labels that several scorers gave told apart."""
        entries, arrays = self.coded.combinations, self.arrays
        codes, answer = arrays["evaluation.combination"], arrays["evaluation.response"]
        labels = labels_apart(entries, codes[answer >= 0], answer[answer >= 0])
        return [(label, *entry[1:]) for label, entry in zip(labels, entries, strict=True)]

    def labels_of_scorers(self) -> dict[str, set[str]]:
        own: dict[str, set[str]] = {}
        for label, scorer, outcome, _, _ in self._combinations:
            if scorer and outcome == 0:
                own.setdefault(scorer, set()).add(label)
        return own

    def verdicts(self, label: str) -> tuple[Any, Any, Any]:
        """Outcome (its place in OUTCOMES, -1: not judged), passed and score of every row under a label, as the engine
        counts them: a missing score is 1 or 0 by `passed`, a missing `passed` is the score if all are 0 or 1, failures
        have neither. A
        failure before a label was named counts under all labels of its scorer."""
        own = self.labels_of_scorers()
        scorers = {scorer for scorer, labels in own.items() if label in labels}
        entries = self._combinations
        chosen = np.array(
            [
                not match
                and (
                    name == label
                    or (
                        name == scorer in scorers and outcome in _FAILED and name not in own[scorer]
                    )
                )
                for name, scorer, outcome, _, match in entries
            ],
            np.bool_,
        )
        codes = self.arrays["evaluation.combination"]
        rows = (
            np.flatnonzero(chosen[codes] & (self.arrays["evaluation.response"] >= 0))
            if len(entries)
            else codes
        )
        rows = rows[::-1]  # of several labels of one answer the first is assigned last
        at, codes = self.arrays["evaluation.response"][rows], codes[rows]
        outcome = np.full(len(self), -1, np.int8)
        passed, score = np.full(len(self), -1, np.int8), np.full(len(self), np.nan)
        if len(rows):
            outcome[at] = np.array([entry[2] for entry in entries], np.int8)[codes]
            passed[at] = np.array([entry[3] for entry in entries], np.int8)[codes]
            score[at] = self.arrays["evaluation.score"][rows]
        same = self.arrays["response.same"]
        outcome, passed, score = outcome[same], passed[same], score[same]
        scored = outcome == 0
        score = np.where(np.isnan(score) & (passed >= 0), passed, score)
        passed = _with_binary_scores(passed, score)
        return outcome, np.where(scored, passed, np.int8(-1)), np.where(scored, score, np.nan)

    def save(self, path: Path) -> None:
        columns = [(name, column.dtype.str, len(column)) for name, column in self.arrays.items()]
        header = msgspec.json.encode(_Header(self.logs, self.ends, self.coded, columns))
        header += b" " * (-len(header) % 8)
        checksum = xxh3_64(header)
        for part in self._parts():
            checksum.update(part)
        head = _MAGIC + b"%s %015d\n" % (checksum.hexdigest().encode(), len(header))
        try:
            write_file(path, chain([head, header], self._parts()))
        except StoreError:  # without a place for it, it is made again by the next process
            return
        _sweep(path.parent)

    def _parts(self) -> Iterator[bytes]:
        for column in self.arrays.values():
            content = np.ascontiguousarray(column).view(np.uint8)
            for start in range(0, len(content), 1 << 20):
                yield content[start : start + (1 << 20)].tobytes()
            yield bytes(-len(content) % 8)


def _with_binary_scores(passed: Any, score: Any) -> Any:
    """Return `passed`; where it is missing, the score if all such are 0 or 1."""
    bare = (passed < 0) & ~np.isnan(score)
    binary = np.isin(score[bare], (0, 1)).all()
    return np.where(bare, score, passed).astype(np.int8) if binary else passed


def _sweep(folder: Path) -> None:
    """Forget the indexes that were made longest ago where all together are too large."""
    sweep(folder)
    with suppress(OSError):  # another process sweeps as well
        files = [
            (entry.stat().st_mtime, entry.stat().st_size, entry.path)
            for entry in os.scandir(folder)
        ]
        kept = 0
        for _, size, path in sorted(files, reverse=True):
            kept += size
            if kept > _MOST_KEPT:
                os.unlink(path)


def load(path: Path) -> Index | None:
    """The index in a file, its columns mapped; None if there is none, or not a whole one."""
    try:
        content = np.memmap(path, np.uint8, "r")
        magic, checksum, size = (content[part].tobytes() for part in _HEAD)
        if (
            magic != _MAGIC
            or xxh3_64(content[_HEAD[-1].stop :].data).hexdigest().encode() != checksum
        ):
            return None
        start = _HEAD[-1].stop
        at = start + int(size)
        header = msgspec.json.decode(content[start:at].tobytes(), type=_Header)
        arrays: Arrays = {}
        for name, kind, count in header.columns:
            width = np.dtype(kind).itemsize * count
            arrays[name] = content[at : at + width].view(kind).view(np.ndarray)
            at += width + -width % 8
    except (OSError, ValueError, RecursionError, TypeError):
        return None
    return Index(header.logs, header.ends, header.coded, arrays)
