"""Several runs taken together: those that are named and those behind earlier evaluations, with their items and with the
rows that earlier evaluations have; and a folder that shows rows of other places."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from assay.engine.calls.progress import Note
from assay.engine.experiment.dataset import file_stamp, ingest
from assay.engine.experiment.resolve import find_source, name_apart
from assay.engine.experiment.sources import Source, elsewhere
from assay.sdk import Item, JsonObject, Manifest, Store, UserError, canonical, digest, short
from assay.store.index import content_hash
from assay.store.items import decode_item, encode_item
from assay.store.keyset import Seen
from assay.store.log import FileLog
from assay.store.stores import FlatStore
from assay.store.table.decode import read_rows

_ONE_DATASET = (
    "compare runs over one dataset, or name the one that counts with `dataset:` in the config of -c"
)


def runs_of(sources: Iterable[Source], folder: Path | None = None) -> list[Source]:
    """The runs behind some sources, each once, and those behind the evaluation that is in a folder already. A source
    that is an evaluation stands for the runs that it was made from."""
    found: dict[Path, Source] = {}
    named = list(sources)
    if folder is not None and FlatStore(folder).ids("evaluation"):
        named.insert(0, find_source(folder))
    for source in named:
        for log in source.logs("run"):
            if log.path.resolve() not in found:
                found[log.path.resolve()] = _run(source, log.path)
    return name_apart(list(found.values()))


def refuse_lost_runs(folders: Iterable[Path]) -> None:
    """An evaluation whose responses are gone cannot be continued: the plan would no longer have its matches."""
    for folder in folders:
        for file in elsewhere(folder).get("run", []):
            if not file.exists():
                raise UserError(
                    "the responses of an earlier run are gone, and its matches would go with them",
                    where=str(file),
                    fix="put them back, or evaluate the runs that are left into another folder with -o",
                )


def _run(source: Source, file: Path) -> Source:
    if source.files["run"] == file and not source.more.get("run"):
        return msgspec.structs.replace(source)  # a copy: it may be named anew
    one = find_source(file, "run")
    items = one.files.get("dataset") or source.files.get("dataset")
    files = {"run": file, **({"dataset": items} if items else {})}
    return msgspec.structs.replace(one, files=files, more={})  # type: ignore[arg-type]


# ---- items


def items_of(runs: Iterable[Source]) -> list[Path]:
    """The files of the runs' items, one of each content."""
    files = dict.fromkeys(run.files["dataset"] for run in runs if "dataset" in run.files)
    if len(files) < 2:
        return list(files)
    return list({content_hash(FileLog(file)): file for file in reversed(files)}.values())[::-1]


def unite_items(store: Store, id: str, files: Sequence[Path], fix: str = _ONE_DATASET) -> Manifest:
    """Store the items of several datasets as one. Runs over parts of one dataset can be compared, runs over different
    datasets cannot: items of one id must be equal. `fix` is what to do about those that are not."""
    stamp = {"united": [file_stamp(file.absolute()) for file in files]}
    return ingest(store, id, lambda: _united_rows(files, fix), stamp=stamp)


def _united_rows(files: Sequence[Path], fix: str) -> Iterator[tuple[str, JsonObject]]:
    ids, items = Seen(), Seen()
    for file in files:
        for number, (_, line) in enumerate(FileLog(file).scan(), 1):
            if not line.strip():
                continue
            place = f"{file}, line {number}"
            item = decode_item(line, place)
            is_new = ids.add(short(digest("id", item.id.encode())))
            if (
                items.add(short(digest("item", canonical(msgspec.to_builtins(item)))))
                and not is_new
            ):
                raise _different(item, place, files, fix)
            if is_new:
                yield place, msgspec.json.decode(encode_item(item, place))


def _different(item: Item, place: str, files: Sequence[Path], fix: str) -> UserError:
    return UserError(
        f"the runs are over different datasets: they have two different items {item.id!r}",
        where=f"{place}, and another of {', '.join(map(str, files))}",
        fix=fix,
    )


# ---- existing rows


class _EvaluationRow(msgspec.Struct):
    key: str = ""
    scorer: str = ""


def take_over(
    store: Store,
    id: str,
    sources: Iterable[Source],
    scorers: Sequence[str],
    note: Note,
) -> None:
    """Lay the rows of earlier evaluations beside those of evaluation `id`, from where the evaluator takes what it
    needs: a match that was decided elsewhere is not decided again."""
    aside = store.log("evaluation", id, "superseded")
    seen = Seen()
    for log in (store.log("evaluation", id), aside):
        for _, row in read_rows(log, _EvaluationRow):
            seen.add(short(row.key))
    files = dict.fromkeys(
        source.files["evaluation"] for source in sources if "evaluation" in source.files
    )
    for file in files:
        taken, last, is_new, log = 0, "", False, FileLog(file)
        for position, row in read_rows(log, _EvaluationRow):
            if row.key != last:  # the labels of one call are neighbours
                last, is_new = row.key, row.scorer in scorers and seen.add(short(row.key))
            if is_new and row.key:
                aside.append(log.read(position) + b"\n")
                taken += 1
        if taken:
            note(f"{taken:,} rows of an earlier evaluation are used where they fit: {file}")
    aside.sync()


# ---- rows of other places


class _WithField(FileLog):
    """Rows with one more `field`, as JSON, unless they have one of that name."""

    def __init__(self, path: Path, field: Callable[[bytes], bytes]) -> None:
        super().__init__(path)
        self._field = field

    raw = False

    def scan(self) -> Iterator[tuple[int, bytes]]:
        return ((position, self._with_field(line)) for position, line in super().scan())

    def blocks(self) -> Iterator[bytes]:
        lines = (line + b"\n" for _, line in self.scan())
        while block := b"".join(islice(lines, 256)):
            yield block

    def read(self, position: int) -> bytes:
        return self._with_field(super().read(position))

    def read_many(self, positions: Iterable[int]) -> Iterator[bytes]:
        return map(self._with_field, super().read_many(positions))

    def _with_field(self, line: bytes) -> bytes:
        """The field comes first: of two fields of one name, readers take the last."""
        start = line.find(b"{") + 1
        rest = line[start:].lstrip()
        if not start or line[: start - 1].strip() or not rest:
            return line
        return b"{" + self._field(line) + (rest if rest[:1] == b"}" else b"," + rest)


def named_log(path: Path, name: str) -> FileLog:
    """The rows of one of several sources, each with the name of that in `source`."""
    field = b'"source":' + msgspec.json.encode(name)
    return _WithField(path, lambda line: field)


def keyed_log(path: Path) -> FileLog:
    """Responses from elsewhere with the keys by which their evaluations name them."""
    return _WithField(path, lambda line: b'"key":"%s"' % digest("line", line).hex().encode())


def answers_of(source: Source) -> FileLog:
    """The responses as evaluations that are ours refer to them."""
    file = source.files["run"]
    return source.evidence("run").log if source.manifest("run") is not None else keyed_log(file)
