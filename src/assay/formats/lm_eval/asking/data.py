"""The documents of a task, as `datasets` gives them: from a mirror (`ASSAY_DATA`), the cache, the hub, or local files.

A mirror is a folder `<repository>/<config or default>/<split>.parquet` (or `.jsonl`), as `assay benchmarks pull` writes
it, or `<repository>` as it is on the hub. Nothing is asked over the network that a mirror or the cache has.
"""

import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import msgspec

from assay.engine.experiment.dataset import file_stamp
from assay.formats.lm_eval.asking.json_lines import simple_lines
from assay.formats.lm_eval.asking.rows import jsonable, rows
from assay.formats.lm_eval.tasks.definition import Definition
from assay.sdk import (
    AssayError,
    JsonObject,
    UserError,
    install_command,
    make_folder,
    nearest,
    store_error,
    temporary_of,
    write_file,
)


def library() -> ModuleType:
    """The package `datasets`, silent."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import datasets
        import huggingface_hub
    except ModuleNotFoundError:
        raise UserError("benchmarks need the package datasets", fix=install_command("hf")) from None
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    huggingface_hub.logging.set_verbosity_error()
    return datasets


@contextmanager
def made_by_functions() -> Generator[None]:
    """Within, datasets that a task's functions make get any fingerprint: to hash their rows takes longer than to make
    them, and nothing is cached. Warnings of the library are not shown."""
    module = library().arrow_dataset
    before, module.generate_fingerprint = (
        module.generate_fingerprint,
        lambda *_: module.generate_random_fingerprint(),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        module.generate_fingerprint = before


def in_memory(dataset: Any) -> Any:
    """The dataset without its cache files: a task's functions then leave nothing in the cache, and get nothing from it
    that another state of `random` has made. Its columns stay mapped from disk."""
    datasets = library()
    if not isinstance(dataset, datasets.Dataset) or dataset._indices is not None:
        return dataset
    table = datasets.table.InMemoryTable(dataset.data.table)
    return datasets.Dataset(
        table, info=dataset.info, split=dataset.split, fingerprint=dataset._fingerprint
    )


_BUILDERS = {
    "json",
    "csv",
    "parquet",
    "text",
    "arrow",
    "pandas",
    "xml",
    "imagefolder",
    "audiofolder",
}
# what chooses other rows of the same repository and config
_OPTIONS = ("data_files", "data_dir", "revision")
_PART = re.compile(r"-\d{5}-of-\d{5}$")
_COMMIT = re.compile(r"[0-9a-f]{40}")
MANIFEST = "assay.json"


class Data:
    """Splits of a dataset, or what reads them. `source` says where they are from: repository, config, revision, origin."""

    def __init__(self, definition: Definition, splits: JsonObject, **source: str | None) -> None:
        self.definition = definition
        self.splits = splits
        self.source = {name: value for name, value in source.items() if value}

    def split(self, name: str) -> Any:
        if name in self.splits:
            split = self.splits[name]
            return split() if callable(split) else split
        raise UserError(
            f"{self.definition.task} asks for the split {name!r}, which {shown_name(self.definition)} does not have",
            where=self.definition.file,
            fix=nearest(name, list(self.splits)),
        )

    def content(self, split: str) -> str:
        """A hash of the rows of a split, the same wherever they come from."""
        digest = blake2b(digest_size=16)
        encoder = msgspec.json.Encoder(order="sorted")
        for row in rows(self.split(split)):
            digest.update(encoder.encode(jsonable(row)))
            digest.update(b"\n")
        return digest.hexdigest()


def shown_name(definition: Definition) -> str:
    config = f" ({definition.dataset_name})" if definition.dataset_name else ""
    return f"{definition.dataset_path or 'its data'}{config}"


def load(definition: Definition) -> Data:
    options = _options(definition)
    if definition.custom_dataset is not None:
        with made_by_functions():
            splits = definition.custom_dataset.value(**definition.metadata, **options)
        return Data(definition, splits, origin="function")
    path = definition.dataset_path
    if path is None:
        raise UserError(
            f"{definition.task} has neither dataset_path nor custom_dataset", where=definition.file
        )
    if (simple := simple_lines(definition)) is not None:
        return Data(definition, simple, repository=path, origin="files")
    if is_local(path):
        return Data(
            definition, _load_splits(definition, path, options), repository=path, origin="files"
        )
    return _from_mirror(definition, options) or from_hub(definition)


def _options(definition: Definition) -> JsonObject:
    """Without what `datasets` no longer knows, and without streams, which no cache has; their rows are the same."""
    dropped = ("trust_remote_code", "streaming")
    return {
        name: value
        for name, value in (definition.dataset_kwargs or {}).items()
        if name not in dropped
    }


def is_local(path: str) -> bool:
    return path in _BUILDERS or Path(path).exists()


def source_stamp(definition: Definition) -> JsonObject:
    """Equal for equal documents: the files that they are from, or the revision of the repository; else the time."""
    paths: list[Path] = []
    if definition.dataset_path in _BUILDERS and definition.custom_dataset is None:
        files = (definition.dataset_kwargs or {}).get("data_files")
        listed = files.values() if isinstance(files, dict) else [files]
        paths = [
            Path(str(path))
            for part in listed
            for path in (part if isinstance(part, list) else [part])
        ]
    elif (place := mirror_folder(definition)) is not None:
        paths = sorted(path for path in place.rglob("*") if path.is_file())
    if paths and all(path.is_file() for path in paths):
        return {"files": [file_stamp(path) for path in paths], **manifest(paths[0].parent)}
    revision = None if definition.custom_dataset else load(definition).source.get("revision")
    return {"revision": revision} if revision else {"time": time.time_ns()}


def key(definition: Definition) -> str:
    """The folder of a config in a mirror; options that choose other rows are in its name."""
    chosen = {name: (definition.dataset_kwargs or {}).get(name) for name in _OPTIONS}
    name = definition.dataset_name or "default"
    if not any(chosen.values()):
        return name
    return (
        f"{name}+{blake2b(msgspec.json.encode(chosen, order='sorted'), digest_size=4).hexdigest()}"
    )


def mirror_folder(definition: Definition) -> Path | None:
    """The folder of the first mirror that has the config; else of one that has the repository as it is on the hub."""
    copy: Path | None = None
    for root in filter(None, os.environ.get("ASSAY_DATA", "").split(os.pathsep)):
        folder = Path(root, *Path(definition.dataset_path or "").parts)
        for place in (folder / key(definition), folder / (definition.dataset_name or "default")):
            if _files(place) and manifest(place).get("key", key(definition)) == key(definition):
                return place
        if (
            copy is None
            and any(map(Path.is_file, folder.rglob("*")))
            and not any(folder.glob(f"*/{MANIFEST}"))
        ):
            copy = folder
    return copy


def _files(place: Path) -> dict[str, list[Path]]:
    """Splits and their files. Repositories of the hub have parts: `test-00000-of-00002.parquet`."""
    files: dict[str, list[Path]] = {}
    for file in sorted(place.glob("*")):
        if file.suffix in (".parquet", ".jsonl"):
            files.setdefault(_PART.sub("", file.stem), []).append(file)
    return files


def _from_mirror(definition: Definition, options: JsonObject) -> Data | None:
    place = mirror_folder(definition)
    if place is None:
        return None
    files = _files(place)
    if files and place.name.split("+")[0] == (definition.dataset_name or "default"):
        splits = {name: cache(partial(_split_of, several)) for name, several in files.items()}
        return _data(definition, splits, str(place), manifest(place).get("revision"))
    options.pop("revision", None)
    try:
        return _data(definition, _load_splits(definition, str(place), options), str(place))
    except UserError as error:
        raise missing(
            definition, f"{place} has something else: {error.what.rpartition(': ')[2]}"
        ) from error


def _data(
    definition: Definition, splits: JsonObject, origin: str, revision: str | None = None
) -> Data:
    names = {"repository": definition.dataset_path, "config": definition.dataset_name}
    return Data(definition, splits, **names, revision=revision, origin=origin)


def manifest(place: Path) -> JsonObject:
    try:
        return msgspec.json.decode((place / MANIFEST).read_bytes(), type=JsonObject)
    except (OSError, msgspec.DecodeError):
        return {}


def _split_of(files: list[Path]) -> Any:
    """Return a split of a mirror."""
    datasets = library()
    try:
        if files[0].suffix == ".jsonl":
            paths = [*map(str, files)]
            return in_memory(datasets.load_dataset("json", data_files=paths, split="train"))
        import pyarrow.parquet

        tables = [datasets.table.InMemoryTable(pyarrow.parquet.read_table(file)) for file in files]
        fingerprint = blake2b(str(files[0]).encode(), digest_size=8).hexdigest()
        return datasets.Dataset(datasets.table.concat_tables(tables), fingerprint=fingerprint)
    except Exception as error:  # the libraries raise what their many parts raise
        raise UserError(
            f"the data cannot be read: {_reason(error)}", where=str(files[0])
        ) from error


def _load_splits(definition: Definition, path: str, options: JsonObject) -> JsonObject:
    try:
        return _splits(library().load_dataset(path=path, name=definition.dataset_name, **options))
    except Exception as error:  # the library raises what its many parts raise
        what = f"the data of {definition.task} cannot be loaded from {path}: {_reason(error)}"
        raise UserError(what, where=definition.file) from error


def _splits(loaded: Any) -> JsonObject:
    splits = loaded if isinstance(loaded, Mapping) else {str(loaded.split): loaded}
    return {name: in_memory(split) for name, split in splits.items()}


def from_hub(definition: Definition) -> Data:
    """The cache's rows without a question to the network, else the hub's."""
    datasets = library()
    options = _options(definition)
    ask = partial(
        datasets.load_dataset, path=definition.dataset_path, name=definition.dataset_name, **options
    )
    wanted, offline = options.get("revision"), datasets.config.HF_HUB_OFFLINE
    origin = "cache"
    try:
        with _offline(datasets):
            loaded = ask()
        if wanted and not _revision(loaded).startswith(wanted):
            raise FileNotFoundError(f"the cache has the revision {_revision(loaded)}, not {wanted}")
    except Exception as error:
        reason = "it is not in the cache" if isinstance(error, ConnectionError) else _reason(error)
        if offline:
            raise missing(definition, f"HF_HUB_OFFLINE is set, and {reason}") from None
        if not _reachable(datasets.config.HF_ENDPOINT):
            raise missing(
                definition, f"{datasets.config.HF_ENDPOINT} cannot be reached, and {reason}"
            ) from None
        try:
            loaded, origin = ask(), "hub"
        except Exception as failure:
            raise missing(definition, _reason(failure)) from failure
    return _data(definition, _splits(loaded), origin, _revision(loaded))


@cache
def _reachable(endpoint: str) -> bool:
    """Return whether a server answers there: the hub's own client would try for half a minute, for every dataset
    anew."""
    address = urlsplit(endpoint)
    if getproxies():
        return True
    try:
        socket.create_connection((address.hostname or "", address.port or 443), timeout=5).close()
    except OSError:
        return False
    return True


@contextmanager
def _offline(datasets: ModuleType) -> Generator[None]:
    from huggingface_hub import constants

    places: tuple[Any, ...] = (datasets.config, constants)
    before = [place.HF_HUB_OFFLINE for place in places]
    for place in places:
        place.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value


def _revision(loaded: Any) -> str:
    """The folder that the cache keeps the arrow files in is called like their commit."""
    splits = loaded.values() if isinstance(loaded, Mapping) else [loaded]
    places = [Path(file["filename"]).parent.name for split in splits for file in split.cache_files]
    return next((place for place in places if _COMMIT.fullmatch(place)), "")


def missing(definition: Definition, reason: str) -> UserError:
    kinds = ("training", "validation", "test", "fewshot")
    splits = [getattr(definition, f"{kind}_split") for kind in kinds]
    named = ", ".join(dict.fromkeys(filter(None, splits)))
    return UserError(
        f"the data of {definition.task} are not here: {shown_name(definition)}, splits {named} ({reason})",
        where=definition.file,
        fix=f"on a machine with a network `assay benchmarks pull {definition.task} -o DIR`, then ASSAY_DATA=DIR here",
    )


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


class Pulled(msgspec.Struct, kw_only=True):
    """What became of one dataset: rows of each split that the folder has now; `written` are the new ones. `problem`
    says why it, or a split that a task names, is not there."""

    name: str
    tasks: list[str]
    place: str = ""
    rows: dict[str, int] = {}
    written: list[str] = []
    problem: str = ""


def pull(
    definitions: Sequence[Definition],
    folder: Path,
    progress: Callable[[Pulled], None] | None = None,
) -> list[Pulled]:
    """Writes the splits that the tasks name, each dataset once. Splits that an earlier pull has written stay."""
    results: list[Pulled] = []
    for tasks in _by_dataset(definitions):
        result = Pulled(name=shown_name(tasks[0]), tasks=[task.task for task in tasks])
        try:
            _pull(tasks, folder, result)
        except AssayError as error:
            result.problem = error.what
        results.append(result)
        if progress:
            progress(result)
    return results


def _by_dataset(definitions: Sequence[Definition]) -> Iterator[list[Definition]]:
    groups: dict[tuple[str, str], list[Definition]] = {}
    for definition in definitions:
        path = definition.dataset_path or f"function of {definition.task}"
        groups.setdefault((path, key(definition)), []).append(definition)
    yield from groups.values()


def splits(definition: Definition) -> list[str]:
    """All that a task names."""
    shots = [definition.fewshot_split, definition.fewshot_config.split]
    names = [definition.test_split, definition.validation_split, definition.training_split, *shots]
    return list(dict.fromkeys(filter(None, names)))


def _pull(tasks: list[Definition], folder: Path, result: Pulled) -> None:
    task = tasks[0]
    place = folder / _repository(task) / key(task)
    result.place = str(place)
    made: JsonObject = manifest(place)
    wanted = list(dict.fromkeys(split for task in tasks for split in splits(task)))
    lacking = [split for split in wanted if not _is_there(place, made, split)]
    if lacking:
        make_folder(place)
        data = from_hub(task)
        made |= {**data.source, "key": key(task), "splits": made.get("splits", {})}
        made.pop("origin", None)
        for split in [split for split in lacking if split in data.splits]:
            _write(place, made, split, data)
            result.written.append(split)
        absent = [split for split in lacking if split not in data.splits]
        result.problem = f"the dataset has no split {', '.join(absent)}" * bool(absent)
    result.rows = {split: entry["rows"] for split, entry in made.get("splits", {}).items()}


def _repository(task: Definition) -> str:
    path = task.dataset_path or ""
    if task.custom_dataset is not None:
        raise UserError("a function of the task makes its data")
    if is_local(path):
        raise UserError("its data are local files already")
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise UserError(f"{path} is not the name of a repository")
    return path


def _is_there(place: Path, made: JsonObject, split: str) -> bool:
    file, entry = place / f"{split}.parquet", made.get("splits", {}).get(split)
    if not file.exists():
        return False
    if entry is None or file.stat().st_size != entry["bytes"]:
        raise UserError(f"{file} was not written by a pull, and is not replaced")
    return True


def _write(place: Path, made: JsonObject, split: str, data: Data) -> None:
    """The manifest has the split before its file is in place: what is cut off in between is written again."""
    file, dataset = place / f"{split}.parquet", data.split(split)
    temporary = temporary_of(file)
    try:
        dataset.to_parquet(str(temporary))
        size = temporary.stat().st_size
        features = jsonable(dataset.features.to_dict())
        made["splits"][split] = {
            "rows": len(dataset),
            "bytes": size,
            "content": data.content(split),
            "features": features,
        }
        write_file(place / MANIFEST, msgspec.json.format(msgspec.json.encode(made)), private=False)
        os.replace(temporary, file)
    except OSError as error:
        raise store_error(error, file) from error
    finally:
        temporary.unlink(missing_ok=True)
