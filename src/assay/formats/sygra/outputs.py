"""Output files as projections of the engine's rows: one record for each item, in the order of the dataset.

Memory holds the places of an item and its row, and no records: a million of them are written in flat memory. A record
that failed keeps its id, has null in every mapped field, and says why in `error`. An image or another medium, a data
URL in a record, becomes a file beside the output; its path takes its place.

`graph_post_process` looks at all output records after the run, each processor with a file of its own. One of the user's
gets a list as long as the records are few, and beyond that a sequence that reads them from disk; one of ours always
gets the sequence. One that fails keeps no other from running.
"""

import asyncio
import base64
import binascii
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from assay.formats.sygra.eval_utils import COLLATOR, MetricCollatorPostProcessor
from assay.formats.sygra.graph.called import Load
from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import IntArray, Log, Mask, UserError, nearest, safe_name, write_file
from assay.store.table.columns import Table
from assay.store.table.join import Lookup
from assay.usercode import raised

if TYPE_CHECKING:
    from assay.formats.sygra.scoring import Scoring

_MARK = b";base64,"
_URL = re.compile(r"data:[\w.+-]+/([\w.+-]+)(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/=\s]+)")


def _with_files(value: Any, folder: Path, name: str = "value") -> Any:
    """A record's values with paths for its data URLs; equal content is one file."""
    if isinstance(value, dict):
        return {key: _with_files(entry, folder, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_files(entry, folder, name) for entry in value]
    url = _URL.fullmatch(value) if isinstance(value, str) and value.startswith("data:") else None
    if url is None:
        return value
    try:
        content = base64.b64decode(url[2], validate=False)
    except binascii.Error:  # text that only looks like one
        return value
    kind = re.sub(r"\W.*", "", url[1]) or "bin"
    path = folder / f"{safe_name(name)}-{blake2b(content, digest_size=8).hexdigest()}.{kind}"
    if not path.exists():
        write_file(path, content)
    return str(path)


Format = Literal["json", "jsonl"]
# more records than this are written as JSON lines unless a format is asked for
LARGEST_JSON = 25_000
_ABSENT, _LEFT_OUT = -1, -2


class _ItemData(msgspec.Struct, gc=False):
    id: str
    data: Row = {}


class _Row(msgspec.Struct, gc=False):
    outcome: str = "ok"
    error: str | None = None
    output: msgspec.Raw = msgspec.Raw(b"null")


class Records(Sequence[Row]):
    """The output records in input order, read from disk each time they are asked for. Those that a generator left out
    are not among them; `fields` are those of the output map, for records that failed; media in records become files
    in the folder `media`. `failed` counts the responses that are errors."""

    def __init__(
        self, items: Log, responses: Log, fields: Sequence[str], media: Path | None = None
    ) -> None:
        self._media = media
        self._items = items
        self._responses = responses
        self._fields = dict.fromkeys(field for field in fields if field != "id")
        self._item_places, self._row_places = self._places()
        self._decode_row = msgspec.json.Decoder(_Row).decode
        self._decode_item = msgspec.json.Decoder(_ItemData).decode

    def _places(self) -> tuple[IntArray, IntArray]:
        """Return where each item and its row are, in the order of the items and without those that a generator left
        out."""
        items = Table([self._items], {"id": "id"}, item=True)
        rows = Table([self._responses], {"item_id": "id", "outcome": "code", "error": "code"})
        self.failed = int(_rows_with(rows, "error", lambda error: error is not None).sum())
        left_out = _rows_with(rows, "outcome", "skipped".__eq__)
        at = Lookup(items["id"]).first(rows["item_id"])
        row_places = np.full(len(items), _ABSENT, np.int64)
        row_places[at[at >= 0]] = np.where(left_out, _LEFT_OUT, rows.position)[at >= 0]
        kept = row_places != _LEFT_OUT
        return items.position[kept], row_places[kept]

    def __len__(self) -> int:
        return len(self._item_places)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = at + len(self) if at < 0 else at
        if not 0 <= number < len(self):
            raise IndexError(at)
        return msgspec.json.decode(self._line(number))

    def __iter__(self) -> Iterator[Row]:
        return (msgspec.json.decode(line) for line in self.lines())

    def lines(self) -> Iterator[bytes]:
        """Each record as JSON, in order."""
        return (self._line(number) for number in range(len(self)))

    def _line(self, number: int) -> bytes:
        place = int(self._row_places[number])
        row = (
            _Row(error="it was not run")
            if place == _ABSENT
            else self._decode_row(self._responses.read(place))
        )
        if row.error is None:
            line = bytes(row.output)
            if self._media is None or _MARK not in line:
                return line
            return msgspec.json.encode(_with_files(msgspec.json.decode(line), self._media))
        item = self._decode_item(self._items.read(int(self._item_places[number])))
        return msgspec.json.encode(
            {"id": item.data.get("id", item.id), **self._fields, "error": row.error}
        )


def _rows_with(rows: Table, name: str, holds: Callable[[Any], bool]) -> Mask:
    """Return which rows have a value of a coded field for which this holds."""
    wanted = [code for code, value in enumerate(rows.values[name]) if holds(value)]
    return np.isin(rows[name], wanted)


def write_records(path: Path, records: Iterable[bytes], format: Format) -> None:
    """The output file, complete or not at all."""
    write_file(path, _array(records) if format == "json" else (line + b"\n" for line in records))


def _array(records: Iterable[bytes]) -> Iterator[bytes]:
    start = b"["
    for line in records:
        yield start + b"\n    " + msgspec.json.format(line, indent=4).replace(b"\n", b"\n    ")
        start = b","
    yield b"[]" if start == b"[" else b"\n]"


def json_value(value: Any) -> Any:
    """Return what a post-processor returned as plain JSON: NaN and infinities are null, objects of
    classes their fields."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Iterable):
        return list(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_PREVIOUS = "use_previous_output"


class Processor(msgspec.Struct):
    """An entry of `graph_post_process`, resolved. `collator` has the aggregators that it is
    configured with, whoever wrote its class; `where` is the place of those, if no other columns
    than the records' can be meant."""

    name: str
    made: Any
    params: Row
    is_ours: bool
    collator: MetricCollatorPostProcessor | None = None
    where: str = ""


class Processed(msgspec.Struct):
    """What one processor did: its file, or why there is none. `report` is its first object, if that is a report."""

    name: str
    file: str = ""
    error: str | None = None
    report: Row | None = None

    @property
    def status(self) -> str:
        if self.error is not None:
            return "failed"
        return (
            "" if self.report is None else str(self.report["evaluation_summary"].get("status", ""))
        )


def bind_processors(
    entries: Any, load: Load, source: Path, *, report_keys: str | None
) -> list[Processor]:
    """The processors of a graph's YAML, made before anything is spent."""
    listed = YamlPlace([] if entries is None else entries, f"{source}: graph_post_process")
    listed.require(list, "graph_post_process must be a list")
    return [_bind(entry, load, report_keys) for entry in listed.entries()]


def _bind(at: YamlPlace, load: Load, report_keys: str | None) -> Processor:
    dotted, params = _name_and_params(at)
    made = load(dotted, f"{at.where}.processor")
    is_ours = str(getattr(made, "__module__", "")).startswith("assay.")
    styled: Row = {**params, **({"report_keys": report_keys} if report_keys else {})}
    place = f"{at.where}.params"
    try:
        instance = made(**_arguments(made, styled if is_ours else params))
    except Exception as error:
        what = f"{dotted} cannot be made: {type(error).__name__}: {error}"
        raise UserError(what, where=place) from error
    if not callable(getattr(instance, "process", None)):
        raise at.error(f"{dotted} has no method `process(data, metadata)`")
    bound = Processor(dotted.rpartition(".")[2], instance, params, is_ours)
    if isinstance(instance, MetricCollatorPostProcessor):
        bound.collator = instance
    elif isinstance(params.get("aggregator_metrics_map"), list):
        bound.collator = MetricCollatorPostProcessor(**styled)
    place += ".aggregator_metrics_map"
    if bound.collator is instance or dotted == COLLATOR:
        _check_made(bound.collator, place)
    if type(instance) is MetricCollatorPostProcessor or dotted == COLLATOR:
        bound.where = place
    return bound


def _name_and_params(at: YamlPlace) -> tuple[str, Row]:
    """Return the name of an entry's processor, and its parameters."""
    entry = {"processor": at.value} if isinstance(at.value, str) else at.value
    if not isinstance(entry, dict) or not isinstance(entry.get("processor"), str):
        raise at.error("an entry names no processor", "write `- processor: dotted.Class`")
    params = YamlPlace(entry, at.where)("params")
    params.require(dict | None, "params must be a mapping")
    return entry["processor"], dict(params.value or {})


def _arguments(made: Any, params: Config) -> Row:
    """Return those that a processor takes of the parameters that are ours to read."""
    arguments = dict(params)
    try:
        parameters = inspect.signature(made).parameters
    except (TypeError, ValueError):
        return arguments
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for name in {_PREVIOUS, "report_keys"} - parameters.keys():
            arguments.pop(name, None)
    return arguments


def _check_made(collator: MetricCollatorPostProcessor | None, where: str) -> None:
    """Refuse aggregators that cannot be made: it would be said after all calls were paid."""
    for entry in collator.entries()[0] if collator is not None else ():
        if entry.problem is not None:
            raise UserError(entry.problem, where=where)


def check_columns(
    processors: Sequence[Processor], columns: Iterable[str], can_have: Callable[[str], bool]
) -> None:
    """Refuse an aggregator over a column that no record can have; `columns` are those there are."""
    for number, processor in enumerate(processors):
        is_previous = number and processor.params.get(_PREVIOUS)
        if processor.collator is None or not processor.where or is_previous:
            continue
        for entry in processor.collator.entries()[0]:
            if not can_have(entry.field):
                names = nearest(entry.field, filter(can_have, columns))
                raise UserError(
                    f"{entry.shown!r} is over the column {entry.field!r}, which no record can have",
                    where=processor.where,
                    fix=f"{names}; a node sets what its output_keys declare",
                )


async def run_processors(
    processors: Sequence[Processor],
    records: Sequence[Row],
    output: Path,
    path_of: Callable[[str], Path],
    scoring: "Scoring | None" = None,
) -> list[Processed]:
    """Run them one after the other; `path_of(name)` is where the file of a processor goes. With `scoring`, a collator's
    report is a view of the rows that it makes; a user's collator makes its own, beside the rows."""
    previous: Any = None
    done: list[Processed] = []
    for processor in processors:
        result = Processed(processor.name)
        before = done[-1] if done and processor.params.get(_PREVIOUS) else Processed("")
        done.append(result)
        if before.error is not None:
            result.error = f"it needs the output of {before.name}, which failed"
            continue
        data = previous if before.name else records
        report: Any = None
        if scoring is not None and processor.collator is not None:
            report = await scoring.report(processor.collator, data, before.name)
        try:
            if report is None or type(processor.made) is not MetricCollatorPostProcessor:
                previous = await asyncio.to_thread(_run_processor, processor, data, output)
            else:
                previous = [report]
        except Exception as error:  # user code: the records are written, and the others still run
            result.error = raised(error)
            continue
        _write_result(result, json_value(previous), path_of(processor.name))
    return done


def _write_result(result: Processed, plain: Any, path: Path) -> None:
    write_file(path, json.dumps(plain, indent=4).encode())
    result.file = str(path)
    first = plain[0] if isinstance(plain, list) and plain else None
    if isinstance(first, dict) and isinstance(first.get("evaluation_summary"), dict):
        result.report = first if "results" in first else None


def _run_processor(processor: Processor, data: Any, output: Path) -> Any:
    if isinstance(data, Records) and not processor.is_ours and len(data) <= LARGEST_JSON:
        data = list(data)
    made = processor.made.process(data, {"output_file": str(output), "params": processor.params})
    made = made if isinstance(made, Sequence | Mapping) else list(made or [])
    json_value(made)
    return made
