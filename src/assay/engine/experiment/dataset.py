"""A config's dataset becomes `items.jsonl`: read, normalised, checked, with its content hash.

Everything that can be wrong with an item is found here, before anything is spent: rows that cannot be read, ids that
repeat, templates that use a field the item does not have. A file that did not change is not read again.
"""

import glob
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import msgspec
from xxhash import xxh3_128

from assay import reading, registry
from assay.config import DatasetConfig, load
from assay.datasets._files import files
from assay.datasets._shape import shape_rows
from assay.engine.run.artefact import close_artefact, new_manifest
from assay.sdk import (
    ConfigError,
    Item,
    JsonMapping,
    JsonObject,
    Manifest,
    Store,
    UserError,
    canonical,
    digest,
    id_hash,
)
from assay.store.items import encode_item, normalise_placed
from assay.store.keyset import Seen
from assay.store.seal import is_unchanged
from assay.store.shared.mirror import named, push
from assay.store.stores import FlatStore, directory_of
from assay.usercode import marks_of

Rows = Callable[[], Iterator[tuple[str, JsonObject]]]
_SHAPING = ("fields", "answer", "filter", "split", "sample", "shuffle")  # of rows
MOST_PROBLEMS = 5
RESTED_NS = 2_000_000_000  # as coarse as the clock of any file system


class Checked(Protocol):
    """A prompt, or the choices of one: `check` says why an item cannot be used, or None."""

    text: str

    def check(self, item: Item) -> str | None: ...


def ingest(
    store: Store,
    id: str,
    rows: Rows,
    *,
    prompts: Sequence[Checked] = (),
    stamp: JsonObject | None = None,
    limit: int | None = None,
    name: str = "",
) -> Manifest:
    """Store the rows as dataset `id`. `stamp` tells whether the source is the one that was read the last time."""
    log = store.log("dataset", id)
    old = store.manifest("dataset", id)
    mark = None
    if stamp is not None:
        mark = source_mark({**stamp, "limit": limit, "prompts": [p.text for p in prompts]})
        if (
            old is not None
            and old.complete
            and old.plan.get("source") == mark
            and is_unchanged(old, log)
            and _are_there(old.metadata.get("media", {}))
        ):
            return old
    job = _Ingest(prompts)
    log.replace(job.lines(lambda: islice(rows(), limit)))
    plan = {"source": mark, **(stamp or {})}
    return put_dataset(
        store, id, job.hash.hexdigest(), job.count, plan=plan, name=name, metadata=job.media()
    )


def source_mark(source: JsonMapping) -> str:
    """Return what tells a dataset's source, with all that decides what becomes of it, from
    others."""
    return digest("source", canonical(dict(source))).hex()


def put_dataset(
    store: Store,
    id: str,
    content: str,
    count: int,
    *,
    plan: JsonObject,
    name: str = "",
    metadata: JsonObject | None = None,
) -> Manifest:
    """The manifest of a dataset whose items are stored; `content` is their hash."""
    old = store.manifest("dataset", id)
    manifest = new_manifest(old, "dataset", id, plan, name=name, digest=content)
    manifest.complete, manifest.planned = True, count
    manifest.counts = {"items": count}
    manifest.metadata = metadata or {}
    return close_artefact(store, manifest)


def file_stamp(path: Path) -> JsonObject:
    """Return what tells that a file is still the one that was read: its times and inode, once it
    has rested. Until then an edit may leave them as they are, because clocks of file systems are
    coarse, and its content is hashed."""
    now = time.time_ns()
    stat = path.stat()
    if max(stat.st_mtime_ns, stat.st_ctime_ns) > now - RESTED_NS:
        return content_stamp(path)
    times = {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns, "inode": stat.st_ino}
    return {"path": named(path), "size": stat.st_size, **times}


def content_stamp(path: Path) -> JsonObject:
    """The same for a file whose rows must not be taken for new ones only because it was touched."""
    if path.is_dir():  # its reader says so
        return {"path": str(path)}
    with reading.opened(path) as file:
        return {"path": named(path), "content": file_digest(file, xxh3_128).hexdigest()}


class _Ingest:
    def __init__(self, prompts: Sequence[Checked]) -> None:
        self.prompts = prompts
        self.hash = blake2b(digest_size=16)
        self.count = 0
        self.problems: list[UserError] = []
        self.seen, self.repeated = Seen(), set[int]()

    def lines(self, rows: Rows) -> Iterator[bytes]:
        """The stored lines; whatever is wrong is raised before the last one, so that a bad dataset replaces nothing."""
        for place, item in normalise_placed(rows()):
            for prompt in self.prompts:
                problem = prompt.check(item)
                if problem is not None:
                    self.problems.append(UserError(f"item {item.id!r}: {problem}", where=place))
            if len(self.problems) >= MOST_PROBLEMS:
                break
            line = encode_item(item, place) + b"\n"
            self.hash.update(line)
            self.count += 1
            if not self.seen.add(id := id_hash(item.id)):
                self.repeated.add(id)
            yield line
        if self.problems:
            raise ConfigError(self.problems, source="the dataset")
        self._check_ids(rows)

    def media(self) -> JsonObject:
        """The files that items show: a hash of their bytes, and what tells that they are still the same."""
        files = {
            content: path
            for prompt in self.prompts
            for content, path in getattr(prompt, "files", {}).items()
        }
        if not files:
            return {}
        states = {str(path): _state(path) for path in sorted(files.values())}
        return {"media": states, "media_hash": digest("media", canonical(sorted(files))).hex()}

    def _check_ids(self, rows: Rows) -> None:
        """Given ids that repeat are refused, with the places of both."""
        if not self.count:
            raise UserError("the dataset has no items", fix="check its path and `limit`")
        places: dict[str, str] = {}
        for place, item in normalise_placed(rows()) if self.repeated else ():
            if id_hash(item.id) not in self.repeated:
                continue
            if item.id in places:
                raise UserError(
                    f"two items have the id {item.id[:200]!r}",
                    where=f"{places[item.id]} and {place}",
                    fix="give each item its own id, or leave the ids out",
                )
            places[item.id] = place


def _state(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _are_there(media: Mapping[str, list[int]]) -> bool:
    """Return whether files are as they were."""
    try:
        return all(_state(Path(path)) == list(state) for path, state in media.items())
    except OSError:
        return False


def media_folder(source: DatasetConfig | None) -> str | None:
    """Return what the paths in a dataset's rows count from: the folder that the config names, else
    that of its files; None where these are in several folders, or elsewhere."""
    if source is None or source.media:
        return source.media if source is not None else ""
    paths = source.path if isinstance(source.path, list) else [source.path]
    if not any(paths):
        return None if source.name else ""
    folders = {os.path.dirname(path) for path in paths}
    folder = folders.pop()
    return None if folders or glob.has_magic(folder) or reading.is_remote(folder) else folder


def open_dataset(source: DatasetConfig, base: Path) -> Iterator[tuple[str, JsonObject]]:
    """(place, row) of every row of a config's dataset, one file after the other, then shaped as the config says."""
    rows = _rows_of(source, base)
    # a shuffle may have the seed 0
    is_shaped = type(source.shuffle) is int or any(getattr(source, name) for name in _SHAPING)
    return shape_rows(rows, source) if is_shaped else rows


def stamp_of(source: DatasetConfig, base: Path) -> JsonObject | None:
    """Equal stamps mean equal rows; None where nothing can tell, as for a function."""
    read = registry.dataset.get(source.type, base=base, where="dataset.type")
    own = marks_of(read).get("stamp")
    if source.type == "function":
        return None
    if own is not None:
        found = own(_name(source), **_params(read, source))
    else:
        paths = files(source.path or source.name)
        if not all(path.is_file() for path in paths):
            return None
        found = {"files": [file_stamp(path) for path in paths]}
    return {**found, "dataset": msgspec.to_builtins(source)}


def _rows_of(source: DatasetConfig, base: Path) -> Iterator[tuple[str, JsonObject]]:
    read = registry.dataset.get(source.type, base=base, where="dataset.type")
    if source.type == "function":
        function = _function(source, base)
        params = registry.check_params(function, source.params, where="dataset.params", given=0)
        yield from read(function, params=params)
    elif _takes_name(read):
        yield from read(_name(source), **_params(read, source))
    else:
        params = _params(read, source)
        for path in files(source.path or source.name):
            yield from read(path, **params)


def _function(source: DatasetConfig, base: Path) -> Callable[..., Any]:
    path = str(source.path or "")
    return plug_in_of(
        registry.dataset, source.function_name, path, source.module, base, where="dataset"
    )


def plug_in_of(
    kind: registry.Registry, name: str, path: str, module: str, base: Path, *, where: str = ""
) -> Callable[..., Any]:
    """Return the function that a config names: one of a file, of a module, or any other."""
    if path:
        return registry.load_function(path, name, base=base, where=where)
    return kind.get(f"{module}.{name}" if module else name, base=base, where=where)


def _takes_name(read: Callable[..., Any]) -> bool:
    """A format's first argument is the `path` of one file; a source's is the `name` of the whole."""
    return next(iter(inspect.signature(read).parameters), "") == "name"


def _name(source: DatasetConfig) -> str:
    name = source.name or source.path
    if isinstance(name, list):
        raise UserError(
            f"a {source.type} dataset is one, not a list",
            where="dataset.path",
            fix="name one of them",
        )
    return name


def _params(read: Callable[..., Any], source: DatasetConfig) -> JsonObject:
    keys = {"subset": source.subset, "revision": source.revision, "repository": source.repository}
    if source.split is not None and not source.split.ratio:
        keys["split"] = source.split.name
    given = {**source.params, **{key: value for key, value in keys.items() if value}}
    return registry.check_params(read, given, where="dataset")


# ---- datasets that are stored for good


def dataset_of(source: str, settings: JsonMapping | None = None) -> DatasetConfig:
    """A dataset as a config would write it: a path, `hf:name`, `file.py:function`, with further keys of `dataset:`."""
    overrides = {f"dataset.{key}": value for key, value in (settings or {}).items()}
    # no model is asked
    config = load({"models": ["demo:none"], "dataset": source}, overrides=overrides, environ={})
    dataset = config.dataset
    assert dataset is not None
    return dataset


def keep(
    source: DatasetConfig,
    *,
    name: str,
    repository: str = "",
    id: str = "",
    labels: Iterable[str] = (),
) -> tuple[Manifest, bool]:
    """Store the rows of a source; a name or an id that is taken by other content is refused with both hashes. Return
    the dataset, and whether it is new: the same content under the same name is not stored again."""
    from assay.datasets.stored import manifests, repository_of  # few steps store one

    if not name.strip():
        raise UserError("a dataset needs a name", fix="--name NAME")
    own = id or name
    taken = _taken(manifests(repository), name, own)
    if taken is None:
        store = repository_of(repository).store
        with store.lock("dataset", own):
            taken = _taken(manifests(repository), name, own)  # another process may have been faster
            if taken is None:
                manifest = ingest(store, own, lambda: open_dataset(source, Path()), name=name)
                manifest.labels = sorted(set(labels))
                manifest.plan = stamp_of(source, Path()) or {"dataset": msgspec.to_builtins(source)}
                store.put_manifest(manifest)
                if folder := directory_of(store, "dataset", own):
                    push(folder)
                return manifest, True
    _compare(taken, source, name)
    return taken, False


def _taken(stored: Iterable[Manifest], name: str, id: str) -> Manifest | None:
    return next((known for known in stored if known.name == name or known.id == id), None)


def _compare(taken: Manifest, source: DatasetConfig, name: str) -> None:
    with TemporaryDirectory(prefix="assay-") as folder:
        trial = ingest(FlatStore(folder), "trial", lambda: open_dataset(source, Path()))
    if trial.digest != taken.digest:
        raise UserError(
            f"{name!r} is stored already with other content: its hash is {taken.digest}, this one's {trial.digest}",
            fix="stored datasets do not change: give another --name",
        )
    if taken.name != name:
        raise UserError(
            f"the id {taken.id!r} belongs to the dataset {taken.name!r}", fix="give another --id"
        )
