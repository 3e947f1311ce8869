"""What readers of other programs' results give, and what all of them need: ids from content, what has no place in our
rows, settings without secrets, files told apart by how they begin.

A reader is a function `(path) -> list[Foreign]`: one entry for each experiment at the path, none if nothing there is of
its format. It recognises files by their content and reads nothing else before `cases` is called.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from importlib import import_module
from logging import getLogger
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec

from assay import reading, registry
from assay.sdk import (
    Evaluation,
    JsonMapping,
    JsonObject,
    Response,
    UserError,
    as_object,
    canonical,
    digest,
    id_hash,
)
from assay.store.keyset import Seen
from assay.store.table.decode import row_decoder
from assay.usercode import failing

json_value = row_decoder(cast("type[Any]", Any))
json_row = row_decoder(JsonObject)
_logger = getLogger(__name__)
HEAD = 1 << 16  # bytes of a file that tell its format
_MOST_NAMED = 3
_LARGEST = 64 << 20  # bytes of a file that is read whole
REST = "source"  # the key of a row's metadata that holds what has no place in the row
_SECRET = re.compile(
    r"(api[-_]?key|authorization|auth[-_]?token|access[-_]?token|password|secret|credential|cookie)",
    re.I,
)
_HIDDEN = "[removed]"
_SIDECARS = ".assay.jsonl", "assay_sidecar.jsonl"  # the end of one beside a file, one in a folder
_SIDECAR_MARK = b'{"assay_sidecar":'
_TABLES = ("csv", "hf", "parquet")  # formats that are nobody's own, with a table of samples


class ForeignCase(NamedTuple):
    """A dataset row with its `id`, an answer to it, the answer's labels, and its spans for `assay trace`; any of them
    may be missing. An item that comes again with the same id and content is the same item."""

    item: JsonMapping | None = None
    response: Response | None = None
    evaluations: Sequence[Evaluation] = ()
    spans: Sequence[Any] = ()


class Headline(msgspec.Struct, kw_only=True):
    """A number as the other program reported it, and how it comes from our rows: the mean over items of the `reduce`d
    scores (or of `passed`) of the rows with this label, model and metadata. `failed_as` is the score that the program
    counts for failures; None: it leaves them out. A number that is no such mean has `ours`, computed by the reader
    (`is_mean` if failures would count as 0 in it all the same), or a `reason` why it cannot be computed again."""

    label: str
    metric: str
    value: float | None
    stderr: float | None = None
    where: JsonObject = {}
    of: Literal["score", "passed"] = "score"
    reduce: Literal["mean", "median", "mode", "max", "none"] = "mean"
    failed_as: float | None = None
    ours: float | None = None
    ours_stderr: float | None = None
    is_mean: bool = False
    reason: str = ""


class Foreign(Protocol):
    """The results of one experiment. `source` tells whether they have changed, `facts` goes into the manifest; what is
    known only after reading (`rejected`: rows and files that could not be read, `notes`, `headlines`) is asked for
    after `cases`. `planned` is how many answers the program meant to get, where it says so."""

    dataset: str

    @property
    def planned(self) -> int | None: ...

    @property
    def rejected(self) -> int: ...

    @property
    def source(self) -> JsonMapping: ...

    @property
    def facts(self) -> JsonMapping: ...

    def cases(self) -> Iterator[ForeignCase]:
        """Everything, streamed, in one pass."""
        ...

    def notes(self) -> list[str]: ...

    def headlines(self) -> list[Headline]: ...


# ---- experiments


class Read(NamedTuple):
    """An experiment of another program, and the format it is in."""

    format: str
    foreign: Foreign


def read_foreign(
    path: Path, format_name: str = "", params: JsonMapping | None = None
) -> list[Read]:
    """The experiments of other programs at a path; an error if there are none, or if a file is of two formats."""
    if not os.path.exists(path):
        from assay.config.source import similar_files

        raise UserError(f"there is no file or folder {str(path)!r}", fix=similar_files(path))
    names = [format_name] if format_name else registry.reader.names()
    read = _own_first(_by_format(names, path))
    if not read:
        raise UserError(
            f"{str(path)!r} holds nothing that can be imported",
            fix=f"name a file or folder with results of {' or '.join(names)}; a file of rows needs no import",
        )
    if len(read) > 1 and path.is_file():
        named = " and of ".join(map(repr, read))
        raise UserError(
            f"this file looks like one of {named}",
            where=str(path),
            fix="name its format with --from",
        )
    if params:
        if len(read) > 1:
            raise UserError(
                f"there are results of {', '.join(read)}",
                where=str(path),
                fix="name one with --from",
            )
        read = _by_format(read, path, params)
    return _reads(read)


def _by_format(
    names: Iterable[str], path: Path, params: Mapping[str, Any] = {}
) -> dict[str, list[Foreign]]:
    """Return the experiments at a path of the formats that have any there."""
    return {name: several for name in names if (several := _ask(name, path, params))}


def _reads(read: Mapping[str, list[Foreign]]) -> list[Read]:
    return [Read(name, foreign) for name, several in read.items() for foreign in several]


def _own_first(read: dict[str, list[Foreign]]) -> dict[str, list[Foreign]]:
    """Leave out the files of other formats where experiments of ours are: they are most often
    made of these."""
    others = " and ".join(name for name in read if name != "assay")
    if "assay" not in read or not others:
        return read
    _logger.warning(
        "left out: files of %s beside experiments of Assay; --from imports them", others
    )
    return {"assay": read["assay"]}


def read_known(path: Path) -> list[Read]:
    """The experiments of other tools at a path, by their formats' readers; none if nothing there is one, or nobody can
    tell which format a file has."""
    read = _by_format([*registry.formats("reader"), *_TABLES], path)
    return [] if len(read) > 1 and path.is_file() else _reads(read)


def _ask(name: str, path: Path, params: JsonMapping) -> list[Foreign]:
    read = registry.reader.get(name, base=Path.cwd(), where="--from")
    chosen = registry.check_params(read, params, where="--set")
    with failing(read, f"the format {name!r}", "--from"):
        results: list[Foreign] = read(path, **chosen)
        if not all(callable(getattr(foreign, "cases", None)) for foreign in results):
            raise TypeError("what it gives has no `cases`: docs/import.md says what a reader gives")
    return results


def check_no_sidecar(path: Path) -> None:
    """Refuse results with a sidecar of an earlier `assay convert`: it has what their format could not hold."""
    beside = [path.with_name(path.name + _SIDECARS[0]), path.with_name(_SIDECARS[1])]
    for file in beside if path.is_file() else files_below(path, *_SIDECARS):
        if head_of(file).startswith(_SIDECAR_MARK):
            raise UserError(
                "sidecars are no longer read: what only they hold would be lost",
                where=str(file),
                fix="import or convert with --without-sidecar, or remove it",
            )


# ---- files


def files_below(path: Path, *suffixes: str) -> list[Path]:
    """The file itself, or all files below a folder with one of these suffixes, but hidden ones."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        found += [
            Path(folder, name)
            for name in sorted(names)
            if name[0] != "." and name.endswith(suffixes)
        ]
    return [file for file in found if file.is_file()]


def head_of(path: Path) -> bytes:
    """Return how a file begins; empty for one that cannot be read."""
    try:
        stat = path.stat()
    except OSError:
        return b""
    return _head_of(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)  # every reader looks at every file
def _head_of(path: str, mtime_ns: int, size: int) -> bytes:
    try:
        with reading.opened(path) as file:
            return file.read(HEAD)
    except OSError:
        return b""


def whole_json(path: Path) -> Any:
    """Return what a JSON file holds; None for any other, and for one that is too large."""
    try:
        small = path.stat().st_size <= _LARGEST
        return msgspec.json.decode(reading.content(path)) if small else None
    except (OSError, ValueError, RecursionError):
        return None


def unknown_version(what: str, version: Any, path: Path, fields: Collection[str] = ()) -> UserError:
    """The error for a file of a newer version than its reader knows."""
    named = f"; fields that are not understood: {', '.join(sorted(fields))}" if fields else ""
    return UserError(
        f"this is {what} of version {version!r}, which this Assay does not know{named}",
        where=str(path),
        fix="update Assay, or write the file with the older version",
    )


# ---- rows


def content_id(*content: Any) -> str:
    """The id of an item that has none: the same content has the same, wherever it stands."""
    return digest("item", *map(canonical, content)).hex()[:16]


def key_of(format: str, *parts: Any) -> str:
    """The key of a foreign row, from all that identifies it."""
    return digest(format, canonical(parts)).hex()


def evaluation_of(response: Response, label: str, **fields: Any) -> Evaluation:
    """A label of a response: the fields that both have, and those given."""
    shared: JsonObject = {
        "item_id": response.item_id,
        "sample_id": response.sample_id,
        "sample_index": response.sample_index,
        "model_name": response.model_name,
        "timestamp": response.timestamp,
        "metadata": {"model_id": response.model_name},
        "responses": [response.key],
        "scorer": label,
    }
    return Evaluation(label=label, **{**shared, **fields})


class Rejected:
    """How many rows and files could not be read, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, what: str) -> None:
        self.count += 1
        if len(self._first) < _MOST_NAMED:
            self._first.append(what)

    def notes(self) -> list[str]:
        first = "; ".join(self._first)
        return [f"what could not be read, {self.count:,} in all: {first}"] if self.count else []


class Oddities:
    """What is odd about files: how often each thing was met, and the first place. `texts` say it,
    with `{count}` and `{first}`."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self.found: dict[str, tuple[int, str]] = {}

    def note(self, what: str, first: str, count: int = 1) -> None:
        before, first = self.found.get(what, (0, first))
        self.found[what] = before + count, first

    def count(self, what: str) -> int:
        return self.found.get(what, (0, ""))[0]

    def notes(self) -> dict[str, str]:
        """Return what to say of each thing that was met."""
        return {
            what: self._texts[what].format(count=count, first=first)
            for what, (count, first) in self.found.items()
        }


class Rest:
    """What has no place in our rows: each row keeps it under `metadata.source`; fields that the reader has not heard of
    are counted, for a note."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()

    def of(
        self,
        row: JsonMapping,
        placed: Collection[str],
        known: Collection[str],
        where: str = "",
    ) -> JsonObject:
        """The fields that are not `placed` elsewhere; those that are not `known` either are counted."""
        rest = {
            name: value
            for name, value in row.items()
            if name not in placed and value not in (None, "", [], {})
        }
        for name in rest.keys() - known if rest else ():
            self.unknown[f"{where}{name}"] += 1
        return rest

    def notes(self) -> list[str]:
        if not self.unknown:
            return []
        named = ", ".join(f"{name} ({count:,})" for name, count in self.unknown.most_common(10))
        return [f"fields that were not understood stay under metadata.source: {named}"]


# ---- values: what is not of the wanted kind is empty, or None


def seconds_of(time: Any, zone: tzinfo | None = None) -> float | None:
    """Return the seconds since 1970 of a time in ISO's format; one that names no zone is of this
    one, else local."""
    try:
        moment = datetime.fromisoformat(str(time))
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return None


def answer_text(answer: Any) -> str:
    """Return an answer as text: JSON, unless it is text."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    return msgspec.json.encode(answer).decode()


def failure(error: str | None) -> JsonObject:
    """Return the fields of an answer or a label that has failed for good; none if there is no
    error."""
    if error is None:
        return {}
    return {"outcome": "errored", "error": error, "error_kind": "permanent"}


def free_name(name: str, taken: Collection[str], sign: str = "_") -> str:
    """Return the name, with a number from the second on."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{sign}{number}"
    return free


class Repeats:
    """How often each of many things has come."""

    def __init__(self) -> None:
        self._seen = Seen()
        self.again: Counter[str] = Counter()

    def count(self, *thing: str) -> int:
        """Return how often it has come before; this time counts from now on."""
        name = "\0".join(thing)
        if not self._seen.add(id_hash(name)):
            self.again[name] += 1
        return self.again[name]


def encoded_names(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return what the fields of a shape are called in JSON."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(shape))


# ---- spans and settings


def unpacked_spans(spans: Iterable[Any]) -> Iterator[Any]:
    """The spans; those that a reader has passed on as the program's own events, under `packed` the format's name, are
    made into spans here, where somebody looks at them."""
    for span in spans:
        packed = as_object(span).get("packed")
        if packed in registry.formats("spans"):
            yield from import_module(f"assay.formats.{packed}.spans").unpacked(span)
        else:
            yield span


def without_secrets(value: Any) -> Any:
    """Settings as they may be stored: values under names of secrets, and credentials in addresses, are removed."""
    if isinstance(value, Mapping):
        fields = cast("JsonMapping", value)
        return {
            name: _HIDDEN
            if _SECRET.search(str(name)) and inner not in (None, "", False)
            else without_secrets(inner)
            for name, inner in fields.items()
        }
    if isinstance(value, list):
        return [without_secrets(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, str) and "://" in value and ("@" in value or "=" in value):
        return _plain_address(value)
    return value


def _plain_address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(_HIDDEN if _SECRET.search(pair) else pair for pair in parts.query.split("&"))
    return urlunsplit((parts.scheme, host, parts.path, query, parts.fragment))
