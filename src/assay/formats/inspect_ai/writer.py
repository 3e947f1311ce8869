"""`assay export --format inspect_ai`: an experiment as a log that `inspect view` opens and `read_eval_log` reads, one
for each model. Rows are streamed; equal rows give equal files."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from assay.analysis.look.export import Export, Tables
from assay.engine.aggregate.join import response_key
from assay.errors import UserError
from assay.formats.inspect_ai.samples import named, sample_of
from assay.formats.inspect_ai.written_events import events_of
from assay.formats.inspect_ai.written_header import Totals, header_row
from assay.formats.inspect_ai.zipped import Zipped
from assay.records import Evaluation, Item, Response, tolerant_json
from assay.registry import writer
from assay.store.files import make_folder, safe_name
from assay.store.index import ItemIndex
from assay.store.keys import digest
from assay.store.written import write_named

SUFFIX = ".eval"
_encode = msgspec.json.Encoder().encode
_SUMMARIES = 1_000
_SHORT = 1_024  # characters of a text in a summary
_SUMMARY = (
    "id",
    "epoch",
    "input",
    "choices",
    "target",
    "metadata",
    "scores",
    "model_usage",
    "started_at",
)
_MORE = ("completed_at", "total_time", "working_time", "uuid", "turn_count")


class Part(NamedTuple):
    """The rows of one log."""

    model: str
    task: str


@writer(name="inspect_ai", whole="log.eval")
def inspect_ai(export: Export) -> list[str]:
    """inspect_ai's log: one `.eval` file; with several models, a folder with a file for each."""
    if export.path is None:
        raise UserError("inspect_ai writes a file", fix="name it with -o")
    export.tables.log("responses")  # an error where there are none
    rows = _Rows(export.tables)
    parts = rows.parts()
    name = export.tables.source.name
    experiment = digest("inspect_ai", name.encode(), *(_encode(part) for part in parts)).hex()
    if len(parts) == 1:
        write_named(export.path, _log(rows, parts[0], name, experiment), force=export.force)
        return rows.notes()
    if export.path.is_file():
        raise UserError(
            "there are several models, each of which needs a file", fix="name a folder with -o"
        )
    make_folder(export.path)
    for part, file in zip(parts, _names(parts), strict=True):
        write_named(export.path / file, _log(rows, part, name, experiment), force=export.force)
    return [f"{len(parts):,} logs, one for each model, in a folder", *rows.notes()]


def _names(parts: list[Part]) -> list[str]:
    several = len({part.model for part in parts}) < len(parts)
    names = [safe_name(f"{part.model}-{part.task}" if several else part.model) for part in parts]
    return [
        f"{name}{SUFFIX}" if names.count(name) == 1 else f"{name}-{at}{SUFFIX}"
        for at, name in enumerate(names)
    ]


def _log(rows: "_Rows", part: Part, name: str, experiment: str) -> Iterator[bytes]:
    """The bytes of a log."""
    zipped, totals = Zipped(), Totals(part.model)
    for response in rows.responses(part):
        totals.plan(response)
    start = header_row(rows.tables.source, name, part, experiment, totals)
    yield zipped.member(
        "_journal/start.json", _encode({key: start[key] for key in ("version", "eval", "plan")})
    )
    summaries: list[bytes] = []
    journals = 0
    for response, item, labels in rows.joined(part):
        sample = sample_of(item, response, labels)
        sample["events"] = events_of(sample, part.model)
        totals.count(response, labels)
        yield zipped.member(f"samples/{_file_name(sample)}.json", _encode(sample))
        summaries.append(_encode(_summary(sample)))
        if len(summaries) == _SUMMARIES:
            journals += 1
            yield zipped.member(f"_journal/summaries/{journals}.json", _listed(summaries))
            summaries.clear()
    if summaries:
        journals += 1
        yield zipped.member(f"_journal/summaries/{journals}.json", _listed(summaries))
    yield from zipped.spooled("summaries.json", _lists(_all_summaries(rows, part)))
    if reductions := totals.reductions():
        yield zipped.member("reductions.json", _encode(reductions))
    yield zipped.member(
        "header.json", _encode(header_row(rows.tables.source, name, part, experiment, totals))
    )
    yield zipped.end()


def _file_name(sample: dict[str, Any]) -> str:
    """The name of a sample's member, by which inspect_ai finds it; one that could leave a folder is made safe."""
    name = f"{sample['id']}_epoch_{sample['epoch']}"
    return safe_name(name) if ".." in name or name.startswith("/") else name


def _all_summaries(rows: "_Rows", part: Part) -> Iterator[bytes]:
    for response, item, labels in rows.joined(part):
        yield _encode(_summary(sample_of(item, response, labels)))


def _listed(entries: list[bytes]) -> bytes:
    return b"[" + b",".join(entries) + b"]"


def _lists(entries: Iterable[bytes]) -> Iterator[bytes]:
    """A list of entries, in chunks."""
    chunk, sign = bytearray(), b"["
    for entry in entries:
        chunk += sign + entry
        sign = b","
        if len(chunk) > 1 << 20:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk) + (b"[]" if sign == b"[" else b"]")


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    """What lists of samples show."""
    row = {name: sample[name] for name in (*_SUMMARY, *_MORE) if sample.get(name) is not None}
    if isinstance(row["input"], str):
        row["input"] = row["input"][:_SHORT]
    scores: dict[str, dict[str, Any]] = sample["scores"]
    row["scores"] = {
        name: {
            "value": score["value"],
            **({"answer": score["answer"][:_SHORT]} if "answer" in score else {}),
        }
        for name, score in scores.items()
    }
    row["metadata"] = {
        name: value
        for name, value in sample["metadata"].items()
        if isinstance(value, (str, int, float)) or value is None
    }
    if error := sample.get("error"):
        row["error"] = error["message"]
    if isinstance(limit := sample.get("limit"), dict):
        row["limit"] = limit.get("type")
    return {**row, "completed": True, "message_count": len(sample["messages"])}


class _Rows:
    """The responses of an experiment with their items and labels. Memory holds 17 bytes for each label."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._items = ItemIndex(tables.log("items")) if "items" in tables else None
        self._logs = tables.logs("evaluations") if "evaluations" in tables else []
        self._scorers: dict[str, str] = {}  # the first of each label
        hashes, self._positions, self._numbers = array("Q"), array("Q"), array("B")
        for number, log in enumerate(self._logs):
            for position, line in log.scan():
                if line and not line.isspace():
                    row: Evaluation = _decoded(line, Evaluation)
                    self._scorers.setdefault(row.label, row.scorer)
                    hashes.append(_owner(row))
                    self._positions.append(position)
                    self._numbers.append(number)
        keys = np.frombuffer(hashes, np.uint64) if hashes else np.zeros(0, np.uint64)
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._skipped: dict[Part, int] = {}
        self._again: dict[Part, int] = {}

    def parts(self) -> list[Part]:
        """Every model and task, in order of appearance."""
        return list(dict.fromkeys(Part(row.model_name, row.task) for row in self._responses()))

    def responses(self, part: Part) -> Iterator[Response]:
        return (row for row in self._responses() if (row.model_name, row.task) == part)

    def _responses(self) -> Iterator[Response]:
        for _, line in self.tables.lines("responses"):
            yield _decoded(line, Response)

    def joined(self, part: Part) -> Iterator[tuple[Response, Item | None, dict[str, Evaluation]]]:
        """Every sample, with its evaluations by the names of their scores."""
        self._skipped[part] = self._again[part] = 0
        for response in self.responses(part):
            if response.outcome == "skipped":
                self._skipped[part] += 1
                continue
            item = self._items.get(response.item_id) if self._items is not None else None
            labels = self._labels(response)
            names = named(labels, self._scorers)
            self._again[part] += sum(row.outcome != "skipped" for row in labels) - len(names)
            yield response, item, names

    def _labels(self, response: Response) -> list[Evaluation]:
        place = (response.item_id, response.sample_index, response.model_name)
        key = np.uint64(response_key(response.key, place))
        start, stop = (int(self._keys.searchsorted(key, side)) for side in ("left", "right"))
        found: list[Evaluation] = []
        for at in self._order[start:stop].tolist():
            row = _decoded(self._logs[self._numbers[at]].read(self._positions[at]), Evaluation)
            if len(row.responses) < 2 and not row.players:
                found.append(row)
        return found

    def notes(self) -> list[str]:
        skipped, again = sum(self._skipped.values()), sum(self._again.values())
        notes: list[str] = []
        if skipped:
            notes.append(
                f"{skipped:,} skipped answers are not in the log: inspect_ai has no such samples"
            )
        if again:
            notes.append(
                f"{again:,} further scores of the same scorer and label are not in the log"
            )
        return notes


def _owner(row: Evaluation) -> int:
    place = (row.item_id, row.sample_index, row.model_name)
    return response_key(row.responses[0] if row.responses else None, place)


def _decoded(line: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, RecursionError):
        return msgspec.convert(tolerant_json(line), kind)
