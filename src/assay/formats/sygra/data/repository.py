"""A Hugging Face dataset that lies in a folder: which files are which split, by the front matter of its README.

Files that our own readers know need neither the package `datasets` nor its cache, which may hold an older content.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.datasets._files import files
from assay.errors import UserError
from assay.registry import nearest


def data_files(folder: Path, subset: str, split: str, where: str) -> list[Path] | None:
    """The files of a split; None if the README does not tell."""
    configs = _configs(folder / "README.md")
    if not configs:
        return None
    known = {str(config.get("config_name") or "default"): config for config in configs}
    chosen = known.get(subset) if subset else _default(known)
    if chosen is None:
        what = f"{folder.name!r} has no config {subset!r}" if subset else f"{folder.name!r} has several configs"
        raise UserError(what, where=f"{where}.config_name", fix=nearest(subset, known))
    patterns: dict[str, list[str]] = {}
    for name, pattern in _patterns(chosen.get("data_files")):
        patterns.setdefault(name, []).append(pattern)
    if not patterns:
        return None
    if split not in patterns:
        raise UserError(f"{folder.name!r} has no split {split!r}", where=f"{where}.split", fix=nearest(split, patterns))
    inside = folder / str(chosen.get("data_dir") or "")
    return files([str(inside / pattern) for pattern in patterns[split]], where=str(folder / "README.md"))


def _configs(readme: Path) -> list[Mapping[str, Any]]:
    import yaml

    try:
        begin, _, rest = readme.read_text("utf-8").partition("---\n")
    except (OSError, UnicodeError):
        return []
    front, end, _ = rest.partition("\n---")
    if begin.strip() or not end:
        return []
    try:
        found: Any = yaml.safe_load(front)
    except yaml.YAMLError as error:
        raise UserError(f"the front matter is no YAML: {error}", where=str(readme)) from None
    configs: Any = found.get("configs") if isinstance(found, dict) else None
    return [config for config in configs if isinstance(config, dict)] if isinstance(configs, list) else []


def _default(known: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(known) == 1:
        return next(iter(known.values()))
    return next((config for config in known.values() if config.get("default") is True), known.get("default"))


def _patterns(written: Any) -> Iterator[tuple[str, str]]:
    """(split, pattern) of the ways that `data_files` may be written: a pattern, a list, a mapping, a list of
    `{split, path}`."""
    if isinstance(written, str):
        yield "train", written
    elif isinstance(written, dict):
        for split, paths in written.items():
            yield from ((str(split), str(path)) for path in (paths if isinstance(paths, list) else [paths]))
    elif isinstance(written, list):
        for entry in written:
            if isinstance(entry, dict):
                yield from _patterns({entry.get("split") or "train": entry.get("path")})
            else:
                yield "train", str(entry)
