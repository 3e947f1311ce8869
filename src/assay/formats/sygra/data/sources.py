"""One source of a `data_config` as raw records, through the engine's own readers: a file, or a Hugging Face dataset.

A CSV file has only text. A column of numbers holds numbers, and so on, by the rules of pandas, with which task folders
were written, but for two that lose data: a gap does not turn whole numbers into fractions, and texts such as `NA` or
`None` are gaps among numbers only. A gap is null.

Paths count from the task's base folder, as they do for the original. A dataset that lies there as a folder is read from
there, by the front matter of its README: files that our own readers know need neither the package `datasets` nor its
cache, which may hold an older content. The hub is asked only for what does not lie there.
"""

import codecs
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from assay import registry
from assay.datasets._files import files, open_file
from assay.formats.sygra.data.transforms import Record, Records
from assay.formats.sygra.types import Config
from assay.sdk import UserError, as_list, nearest


def data_files(folder: Path, subset: str, split: str, where: str) -> list[Path] | None:
    """The files of a split; None if the README does not tell."""
    configs = _configs(folder / "README.md")
    if not configs:
        return None
    by_name = {str(config.get("config_name") or "default"): config for config in configs}
    marked = (
        config for config in by_name.values() if config.get("default") is True or len(by_name) == 1
    )
    chosen = by_name.get(subset) if subset else next(marked, by_name.get("default"))
    if chosen is None:
        what = (
            f"{folder.name!r} has no config {subset!r}"
            if subset
            else f"{folder.name!r} has several configs"
        )
        raise UserError(what, where=f"{where}.config_name", fix=nearest(subset, by_name))
    patterns: dict[str, list[str]] = {}
    for name, pattern in _patterns(chosen.get("data_files")):
        patterns.setdefault(name, []).append(pattern)
    if not patterns:
        return None
    if split not in patterns:
        raise UserError(
            f"{folder.name!r} has no split {split!r}",
            where=f"{where}.split",
            fix=nearest(split, patterns),
        )
    inside = folder / str(chosen.get("data_dir") or "")
    return files(
        [str(inside / pattern) for pattern in patterns[split]], where=str(folder / "README.md")
    )


def _configs(readme: Path) -> list[Config]:
    import yaml

    try:
        begin, _, rest = readme.read_text("utf-8").partition("---\n")
    except (OSError, UnicodeError):
        return []
    front, end, _ = rest.partition("\n---")
    if begin.strip() or not end:
        return []
    try:
        front_matter: Any = yaml.safe_load(front)
    except yaml.YAMLError as error:
        raise UserError(f"the front matter is not YAML: {error}", where=str(readme)) from None
    configs: Any = front_matter.get("configs") if isinstance(front_matter, dict) else None
    return (
        [config for config in configs if isinstance(config, dict)]
        if isinstance(configs, list)
        else []
    )


def _patterns(written: Any) -> Iterator[tuple[str, str]]:
    """(split, pattern) of the ways that `data_files` may be written: a pattern, a list, a mapping, a list of
    `{split, path}`."""
    if isinstance(written, str):
        yield "train", written
    elif isinstance(written, dict):
        for split, paths in written.items():
            yield from ((str(split), str(path)) for path in as_list(paths))
    elif isinstance(written, list):
        for entry in written:
            if isinstance(entry, dict):
                yield from _patterns({entry.get("split") or "train": entry.get("path")})
            else:
                yield "train", str(entry)


FORMATS = ("json", "jsonl", "csv", "tsv", "parquet")
_PACKED = {".gz", ".zst"}
_UTF8 = {"utf-8", "ascii", "utf-8-sig"}
_SPLIT = re.compile(r"\s*(\w[\w.-]*)\s*(?:\[\s*(\d*)\s*:\s*(\d*)\s*\])?\s*")


def raw_records(source: Config, base: Path, where: str) -> Records:
    """The records of a source as they stand there; a source that cannot be read is refused at once."""
    kind = source.get("type")
    if kind == "disk":
        if not source.get("file_path"):
            raise UserError(
                "a source of type disk needs 'file_path'",
                where=where,
                fix="add `file_path: data.jsonl`",
            )
        path = base / str(source["file_path"])
        if not path.is_file():
            what = f"there is no file {str(source['file_path'])!r}"
            raise UserError(what, where=f"{where}.file_path", fix=f"looked for {path}")
        format = format_of(path, str(source.get("file_format") or ""), where)
        return _file(path, format, str(source.get("encoding") or "utf-8"), where)
    if kind == "hf":
        if not source.get("repo_id"):
            raise UserError(
                "a source of type hf needs 'repo_id'", where=where, fix="add `repo_id: owner/name`"
            )
        return _hub(source, base, where)
    if kind == "servicenow":
        fix = "export the table to a file and name it with `type: disk`, `file_path:`"
        raise UserError("ServiceNow tables cannot be read", where=f"{where}.type", fix=fix)
    raise UserError(
        f"unknown source type {kind!r}",
        where=f"{where}.type",
        fix=nearest(str(kind), ["hf", "disk"]),
    )


def format_of(path: Path, otherwise: str, where: str) -> str:
    """The format that a file's name tells, or else the config."""
    names = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    ending = names[-1].removeprefix(".") if names else ""
    format = ending if ending in FORMATS else otherwise
    if format not in FORMATS:
        what = f"the format of {path.name!r} is unknown"
        raise UserError(what, where=where, fix=f"name the file with one of: .{', .'.join(FORMATS)}")
    return format


def _file(path: Path, format: str, encoding: str, where: str) -> Records:
    try:
        codec = codecs.lookup(encoding).name
    except LookupError:
        raise UserError(f"unknown encoding {encoding!r}", where=f"{where}.encoding") from None
    if codec in _UTF8 or format == "parquet":
        return _rows(path, format)
    return _rows_as_utf8(path, format, codec)


def _rows(path: Path, format: str) -> Records:
    read = registry.dataset.get(format)
    if format == "json":
        _check_list(path)

    def rows() -> Iterator[Record]:
        return (row for _, row in read(path))

    return typed_rows(rows) if format in ("csv", "tsv") else rows()


def _check_list(path: Path) -> None:
    """The engine takes further shapes of JSON for datasets; here a file that is not a list is a mistake."""
    with open_file(path) as file:
        begin = file.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin and not begin.startswith(b"["):
        fix = "write `[{…}, {…}]`, or one object a line in a .jsonl file"
        raise UserError("the dataset is not a list of records", where=str(path), fix=fix)


def _rows_as_utf8(path: Path, format: str, encoding: str) -> Records:
    """The readers know UTF-8 only: they get a copy."""
    with TemporaryDirectory(prefix="assay-") as folder:
        copy = Path(folder) / path.name
        try:
            with (
                path.open(encoding=encoding, newline="") as file,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                copyfileobj(file, out, 1 << 20)
            yield from _rows(copy, format)
        except UnicodeError as error:
            raise UserError(
                f"the file is not {encoding}: {error}", where=str(path), fix="correct `encoding`"
            ) from None
        except UserError as error:
            error.where = error.where.replace(str(copy), str(path))
            raise


def _hub(source: Config, base: Path, where: str) -> Records:
    name, subset = str(source["repo_id"]), str(source.get("config_name") or "")
    splits = _splits(source.get("split") or "train", where)
    folder = base / name
    if source.get("shard"):
        return _files(_shards(folder, subset, splits, source["shard"], where), where)
    parts = [_split(name, folder, subset, split, source, where) for split, _, _ in splits]
    return chain.from_iterable(
        islice(part, *bounds) for part, (_, *bounds) in zip(parts, splits, strict=True)
    )


def _files(paths: Sequence[Path], where: str) -> Records:
    return chain.from_iterable(_rows(path, format_of(path, "", where)) for path in paths)


def _split(name: str, folder: Path, subset: str, split: str, source: Config, where: str) -> Records:
    local = folder.is_dir()
    files = data_files(folder, subset, split, where) if local else None
    known = {f".{format}" for format in FORMATS}
    if files is not None and all(known.intersection(path.suffixes) for path in files):
        return _files(files, where)
    return _rows_of_library(
        str(folder) if local else name, subset, split, str(source.get("token") or ""), where
    )


def _rows_of_library(name: str, subset: str, split: str, token: str, where: str) -> Records:
    rows = registry.dataset.get("hf")(name, subset=subset, split=split)
    try:
        with _token(token):
            first = next(rows, None)  # the reader loads when it is first asked
    except UserError as error:
        error.where = where
        raise
    if first is not None:
        yield first[1]
        yield from (row for _, row in rows)


@contextmanager
def _token(token: str) -> Generator[None]:
    """The library looks for its key in HF_TOKEN: the source's own, else SYGRA_HF_TOKEN, stands there meanwhile."""
    key = token or os.environ.get("SYGRA_HF_TOKEN", "")
    before = os.environ.get("HF_TOKEN")
    if not key:
        yield
        return
    os.environ["HF_TOKEN"] = key
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_TOKEN"]
        else:
            os.environ["HF_TOKEN"] = before


def _splits(written: Any, where: str) -> list[tuple[str, int, int | None]]:
    """`train`, `train[:100]`, `train+test` or a list of them, as (name, start, stop); each once."""
    texts: Sequence[Any] = written if isinstance(written, list) else str(written).split("+")
    splits: dict[tuple[str, int, int | None], None] = {}
    for text in texts:
        match = _SPLIT.fullmatch(str(text))
        if match is None:
            what = f"the split {text!r} is not understood"
            raise UserError(
                what, where=f"{where}.split", fix="write `train`, `train[:100]` or `[train, test]`"
            )
        splits[match[1], int(match[2] or 0), int(match[3]) if match[3] else None] = None
    return list(splits)


def _shards(
    folder: Path, subset: str, splits: Sequence[tuple[Any, ...]], shard: Any, where: str
) -> list[Path]:
    """Some of the files of a dataset that lies in a folder: those whose names fit, or of these the given numbers."""
    if not folder.is_dir():
        fix = "leave `shard` out, or put the dataset's folder below the task's base folder"
        raise UserError("shards can be read from a folder only", where=f"{where}.shard", fix=fix)
    pattern = str(shard.get("regex") or "*")
    paths = [
        path
        for split, _, _ in splits
        for path in sorted((folder / subset).glob(f"{split}{pattern}"))
    ]
    chosen = [
        path
        for number, path in enumerate(paths)
        if not shard.get("index") or number in shard["index"]
    ]
    if not chosen:
        fix = f"files there: {', '.join(sorted(path.name for path in (folder / subset).glob('*'))[:10]) or 'none'}"
        raise UserError(f"no shard matches {pattern!r}", where=f"{where}.shard", fix=fix)
    return chosen


# Longer numbers stay text: neither JSON nor a fraction holds them exactly.
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,19}\s*", re.ASCII)
_NUMBER = re.compile(
    r"\s*[-+]?(?:[0-9]{1,19}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?\s*", re.ASCII
)
_BOOLEAN = re.compile(r"True|TRUE|true|False|FALSE|false")
_GAPS = frozenset(
    {"", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)


_KINDS = ((_WHOLE, int), (_NUMBER, float), (_BOOLEAN, lambda text: text.lower() == "true"))


def typed_rows(rows: Callable[[], Records]) -> Records:
    """The rows with typed values; they are read twice, because a column's type is known at its end."""
    kinds: dict[str, Sequence[tuple[re.Pattern[str], Callable[[str], Any]]]] = {}
    for row in rows():
        for name, text in row.items():
            fitting = kinds.setdefault(name, _KINDS)
            if fitting and text not in _GAPS:
                kinds[name] = [kind for kind in fitting if kind[0].fullmatch(text)]

    def value(name: str, text: str) -> Any:
        if not kinds[name]:
            return text or None
        return None if text in _GAPS else kinds[name][0][1](text)

    for row in rows():
        yield {name: value(name, text) for name, text in row.items()}
