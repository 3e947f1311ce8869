"""Whose word a result folder is: what a stranger's folder names is neither run nor read before the user says so.

A config that the user names is the user's word. The `config.yaml` of a result folder is that only if the user's Assay
wrote these very bytes: a digest of them, and of the `.env` beside it, is in the state directory; so are the places of
rows that a manifest remembers. A folder stays one's own when it is moved, and one that comes back changed is foreign.
`--trust` is remembered for this folder, these bytes and the files that they name.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay import registry, usercode
from assay.config import Config, Need, load, resolved, to_yaml
from assay.config.paths import named_files
from assay.config.source import dotted_key
from assay.errors import UserError, shown
from assay.reading import is_remote
from assay.store.files import state_folder, write_file
from assay.store.stores import EXPERIMENT_FILES, MANIFEST

CONFIG, _MOST_SHOWN = "config.yaml", 10
_USED: dict[str, tuple[str, ...]] = {  # the parts of a config that act
    "aggregate": ("metrics", "outputs", "logging", "env_vars"),
    "evaluate": (
        "metrics",
        "outputs",
        "logging",
        "env_vars",
        "evaluation_methods",
        "models",
        "dataset",
    ),
    "gate": ("metrics", "gates"),
}
_FILES = (MANIFEST, *EXPERIMENT_FILES, "calls.jsonl", "traces.jsonl", "labels.jsonl")


class Reach(NamedTuple):
    """What a folder would do beyond its own rows: run, read, load, write to, call or set what `name` says."""

    verb: str
    name: str
    place: str = ""
    file: str = ""


class _Process:
    """What this process knows: whether the user trusts what it reads, which configs are foreign, what was said."""

    trusts = said = False
    foreign: set[str] = set()


def trust() -> None:
    """Trust the folders that this process reads from now on, and remember them: what `--trust` does."""
    _Process.trusts = True


def stored_config(
    folder: Path,
    need: Need,
    overrides: Mapping[str, Any] = {},
    *,
    used: Iterable[str] | None = None,
) -> Config:
    """The config of a result folder. `used` names the parts that will act, by default those of `need`."""
    if not is_own(folder):
        # Prompts are not asked by what uses a stored config; those of a stranger are not even read.
        config = load(folder / CONFIG, overrides={"prompts": [], **overrides}, need=need)
        parts = [
            part
            for part in (_USED[need or "gate"] if used is None else used)
            if part not in overrides
        ]
        if not is_trusted(folder, config, parts):
            return config
    return load(folder / CONFIG, overrides=overrides, need=need)


def is_own(folder: Path) -> bool:
    """Return whether the config in a folder, as it is now, is the user's word."""
    return _is_remembered(_digest("own", _content(folder)))


def is_trusted(folder: Path, config: Config, parts: Iterable[str]) -> bool:
    """Return whether what a folder's config reaches is the user's word or trusted, or else refused;
    False if it is nothing."""
    reaches = (reach for part in parts for reach in _WAYS[part](config, folder))
    if is_own(folder) or _accept(folder, [*reaches]):
        return True
    _Process.foreign.add(config.source)
    return False


def check_rows(folder: Path, elsewhere: Iterable[Path]) -> None:
    """Refuse a foreign folder whose rows are outside it: behind links, or where its manifest says."""
    outside = _outside(folder, elsewhere)
    if outside and _is_remembered(_digest("rows", *map(os.fsencode, outside))):
        outside = []
    segments = [path for part in folder.glob("*.d") for path in (part, *part.glob("*.jsonl"))]
    paths = [
        path for path in (*(folder / name for name in _FILES), *segments) if os.path.islink(path)
    ]
    outside += _outside(folder, paths)
    _accept(folder, [Reach("reads", path, file=path) for path in dict.fromkeys(outside)])


def write_config(folder: Path, config: Config | bytes) -> str:
    """Put a config into a result folder; it is the user's word, unless a foreign folder's was taken over. A note if
    that cannot be remembered."""
    text = config if isinstance(config, bytes) else to_yaml(resolved(config)).encode()
    write_file(folder / CONFIG, text)
    foreign = isinstance(config, Config) and config.source in _Process.foreign
    return "" if foreign else _remember(_digest("own", _content(folder)), str(folder))


def vouch_rows(folder: Path, elsewhere: Iterable[Path]) -> str:
    """Remember that the user named these rows. A note if that cannot be done."""
    outside = _outside(folder, elsewhere)
    return _remember(_digest("rows", *map(os.fsencode, outside)), str(folder)) if outside else ""


def with_list(what: str, lines: Sequence[str], most: int, count: int = 0) -> str:
    """Return a text that lists the first of these lines, and says how many more there are of `count`, by default of
    them all."""
    more = max(count, len(lines)) - most
    ends = [f"and {more:,} more"] if more > 0 else []
    return "\n  - ".join([what, *lines[:most], *ends])


def _accept(folder: Path, reaches: list[Reach]) -> bool:
    """Return whether what a foreign folder reaches is trusted; False if there is nothing to
    trust."""
    if not reaches:
        return False
    key = _digest(
        "trusted", os.fsencode(folder.resolve()), _content(folder), *map(_reach_bytes, reaches)
    )
    if os.environ.get("ASSAY_TRUST", "").lower() in ("1", "true", "yes") or _is_remembered(key):
        return True
    if _Process.trusts:
        _remember(key, str(folder))
        return True
    lines = [
        f"{reach.verb} {reach.name}{f' ({reach.place})' if reach.place else ''}"
        for reach in reaches
    ]
    what = "this folder is not of your Assay's making, and this command"
    raise UserError(
        with_list(what, lines, _MOST_SHOWN),
        where=f"{folder}, which belongs to {_owner(folder)}",
        fix="look at what it names, then add --trust (ASSAY_TRUST=1 in CI, assay.trust() in Python), or name a config "
        "of your own with -c",
    )


# ---- what a config reaches


def _plug_ins(kind: registry.Registry, part: str, config: Config, folder: Path) -> Iterator[Reach]:
    models = {model.name for model in config.models}
    for number, entry in enumerate(getattr(config, part)):
        place = f"{part}[{number}]"
        name = entry.function_name if entry.type == "custom" and entry.function_name else entry.type
        if entry.path:
            yield Reach("runs", f"{entry.path}:{entry.function_name}", place, entry.path)
        elif entry.module:
            yield Reach("runs", f"{entry.module}.{entry.function_name}", place)
        else:
            yield from _code(kind, name, place)
        weights = [text for text in texts_in(entry.params.get("model")) if text not in models]
        yield from (Reach("loads", f"the model {text}", place, text) for text in weights)
        yield from _in_params(entry.params, place, folder, dotted_key="." in entry.type)


def _code(kind: registry.Registry, name: str, place: str) -> Iterator[Reach]:
    """Only a name with a dot can be a stranger's code: a file's, or an importable module's."""
    if (
        "." in name
        and not name.startswith(registry.INLINE)
        and name not in kind.names()
        and not kind.of_format(name)
    ):
        yield Reach("runs", name, place, name.rpartition(":")[0] if ".py:" in name else "")


def _in_params(
    params: Any, place: str, folder: Path, *, dotted_key: bool = False
) -> Iterator[Reach]:
    """Folders of code; values that look like files or, for plug-ins of formats, classes to import."""
    yield from (
        Reach("runs", f"code in {path}", place, path)
        for path in dict(params).get("task_folders", ())
    )
    for text in (text for text in texts_in(params) if not any(map(str.isspace, text))):
        if ".py:" in text or text.endswith(".py"):
            yield Reach("runs", text, place, text.removesuffix(".py").partition(".py:")[0] + ".py")
        elif "/" in text and _is_outside(folder, text):
            yield Reach("reads", text, place, text)
        elif dotted_key and "." in text and all(part.isidentifier() for part in text.split(".")):
            yield Reach("runs", text, place)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)


def _models(config: Config, folder: Path) -> Iterator[Reach]:
    """Servers are called where scorers ask models, or where nothing but models is used; what is on this machine is
    opened when it is bound."""
    named = {text for method in config.evaluation_methods for text in texts_in(method.params)}
    asked = not config.evaluation_methods or any(
        "judge" in method.type for method in config.evaluation_methods
    )
    for number, model in enumerate(config.models):
        place = f"models[{number}]"
        yield from _code(registry.model, model.type, place)
        verb = registry.model.marks(model.type).get("reach", "calls")
        file = str(model.params.get("path", "")) if verb == "runs" else ""
        if verb == "runs" or (verb and (asked or model.name in named)):
            yield Reach(verb, " ".join([model.type, *texts_in(model.params)]), place, file)


def _dataset(config: Config, folder: Path) -> Iterator[Reach]:
    source = config.dataset
    if source is None:
        return
    file = source.path if isinstance(source.path, str) else "".join(source.path[:1])
    if source.function_name or source.module or source.type == "function":
        yield Reach("runs", f"{source.module or file}:{source.function_name}", "dataset", file)
        return
    yield from _marked_reaches("dataset", config, folder)
    if source.name and not source.repository:
        yield Reach("reads", f"{source.type} {source.name}", "dataset")
    yield from _in_params(source.params, "dataset", folder)


def _marked_reaches(part: str, config: Config, folder: Path) -> Iterator[Reach]:
    """Yield the code and the files outside the folder that the marks of a part's types tell."""
    data = {part: msgspec.to_builtins(getattr(config, part))}
    for named in named_files(data):
        place, text = dotted_key(named.key[: 1 + isinstance(named.key[1], int)]), named.text
        if named.kind == "given":
            yield from _code(_KINDS[part], text, place)
        elif named.key[-1] != "media" and _is_outside(folder, text):
            writes = part in ("outputs", "logging")
            yield Reach("writes to" if writes else "reads", text, place, "" if writes else text)


def _outputs(config: Config, folder: Path) -> Iterator[Reach]:
    yield from _marked_reaches("outputs", config, folder)
    for number, output in enumerate(config.outputs):
        yield from _in_params(output.params, f"outputs[{number}]", folder)


def _environment(config: Config, folder: Path) -> Iterator[Reach]:
    if config.env_vars:
        yield Reach("sets", " ".join(config.env_vars), "env_vars")
    if (folder / ".env").exists():
        yield Reach("sets", "environment variables", ".env")


_KINDS = {"dataset": registry.dataset, "outputs": registry.writer, "gates": registry.metric}
_WAYS = {
    "metrics": partial(_plug_ins, registry.metric, "metrics"),
    "evaluation_methods": partial(_plug_ins, registry.scorer, "evaluation_methods"),
    "models": _models,
    "dataset": _dataset,
    "outputs": _outputs,
    "gates": partial(_marked_reaches, "gates"),
    "logging": partial(_marked_reaches, "logging"),
    "env_vars": _environment,
}


# ---- digests, and where they are remembered


def _content(folder: Path) -> bytes:
    """The config's bytes and those of the `.env` that its variables come from."""
    contents = [
        file.read_bytes() if file.is_file() else b"" for file in (folder / CONFIG, folder / ".env")
    ]
    return b"%d:%s" % (len(contents[0]), b"".join(contents))


def _reach_bytes(reach: Reach) -> bytes:
    """Return what is reached, with the bytes of code and the times of other files."""
    file, content = Path(reach.file), b""
    if reach.file and file.is_file():
        if file.suffix == ".py":
            content = b"".join(path.read_bytes() for path in usercode.sources(file.resolve()))
        else:
            content = b"%d %d" % ((status := file.stat()).st_size, status.st_mtime_ns)
    return f"{reach.verb} {reach.name} {reach.place}\n".encode("utf-8", "surrogateescape") + content


def _digest(*parts: str | bytes) -> str:
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    return blake2b(
        b"".join(b"%d:%b" % (len(part), part) for part in encoded), digest_size=20
    ).hexdigest()


def _outside(folder: Path, paths: Iterable[Path]) -> list[str]:
    inside = Path(os.path.realpath(folder))  # `resolve` raises where links run in a circle
    return [str(path) for path in paths if not Path(os.path.realpath(path)).is_relative_to(inside)]


def _is_outside(folder: Path, text: str) -> bool:
    if is_remote(text):
        return not text.startswith(f"{shown(str(folder.absolute()))}/")
    return bool(_outside(folder, [folder / os.path.expanduser(text)]))


def _owner(path: Path) -> str:
    with suppress(KeyError):
        return path.owner()
    return f"user {path.stat().st_uid}"


def _is_remembered(key: str) -> bool:
    return os.path.isfile(state_folder() / "trust" / key)


def _remember(key: str, folder: str) -> str:
    """Keep a digest; a note, the first time, if the state directory cannot be written."""
    file = state_folder() / "trust" / key
    try:
        if not os.path.isfile(file):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.write_bytes(os.fsencode(folder) + b"\n")
    except OSError as error:
        if not _Process.said:
            _Process.said = True
            return f"{file.parent} cannot be written ({error}): later commands take this folder for a foreign one"
    return ""
