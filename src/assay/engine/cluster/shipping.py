"""What travels with a plan: the files that its config names, as objects called by their content.

Code goes with the local modules that it imports, templates of judges, examples and recordings as they are; the dataset
does not, because its items are stored. Keys hold the bytes of these files and not their paths, so a worker may read
them from a folder of its own. What cannot travel (weights, images, a folder) must be where the config says, and what is
there must be the plan's: both are found out before anything is spent. Secrets stay names of variables.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from fnmatch import fnmatch
from hashlib import blake2b, file_digest
from itertools import chain
from pathlib import Path

from assay import reading, usercode
from assay.config import resolved
from assay.config.paths import NamedFile, named_files
from assay.engine.experiment.experiment import Experiment
from assay.engine.experiment.trust import texts_in
from assay.sdk import (
    ROWS_FILE,
    ConfigError,
    JsonMapping,
    JsonObject,
    StoreError,
    UserError,
    write_file,
)
from assay.store.shared.objects import Objects

LARGEST = 256 << 20  # bytes of a file that travels; a larger one must be on every machine
MOST_FILES = 2000  # of a graph's folder
STAYS = "="  # how the entry of a file begins that does not travel; without a digest it only has to exist
_TEXTS = (
    ".py",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".txt",
    ".md",
    ".j2",
    ".jinja",
    ".jinja2",
    ".prompt",
)
_AT_HOME = ("dataset", "benchmarks", "gates")  # parts whose files the workers do not need
_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)")


def ship(experiment: Experiment, objects: Objects) -> dict[str, str]:
    """Put the files of a config into a root; the digest of each by its path, as the config has it."""
    data = resolved(experiment.config)
    shipped: dict[str, str] = {}
    named = chain.from_iterable(_files(place.text) for place in _travelling(data))
    for path in sorted(set(named)):
        if os.path.getsize(path) > LARGEST:
            shipped[path] = STAYS + _digest(path)
            continue
        content = reading.content(path)
        shipped[path] = blake2b(content, digest_size=16).hexdigest()
        objects.create(_object(shipped[path]), content)
    for text in sorted(set(_staying(data)) - shipped.keys()):
        shipped[text] = STAYS + (
            _digest(text) if os.path.isfile(text) and os.path.getsize(text) <= LARGEST else ""
        )
    return shipped


def materialise(files: Mapping[str, str], objects: Objects, folder: Path) -> dict[str, str]:
    """Return where the files of a plan are on this machine: in their own places if all of them are
    there, else below `folder`. Refused by name: a file that is another one here, and one that is
    missing and cannot travel."""
    problems: list[UserError] = []
    missing = False
    for path, entry in files.items():
        digest = entry.removeprefix(STAYS)
        if not os.path.exists(path):
            missing = True
            if entry.startswith(STAYS):
                what = f"{path!r} is not on this machine, and cannot travel with the plan"
                problems.append(
                    UserError(
                        what, where=_machine(), fix="put it there, or where all machines see it"
                    )
                )
        elif digest and (not os.path.isfile(path) or _digest(path) != digest):
            what = f"{path!r} is not the file that the plan was made with"
            fix = "put the plan's version there, or run the config again: that makes a new plan"
            problems.append(UserError(what, where=_machine(), fix=fix))
    if problems:
        raise ConfigError(problems, source=f"the files of {objects.address}")
    travelling = [path for path, entry in files.items() if not entry.startswith(STAYS)]
    if not missing:
        return {path: path for path in travelling}
    return {path: _write(files[path], objects, folder / path.lstrip("/")) for path in travelling}


def with_local_paths(data: JsonMapping, paths: Mapping[str, str]) -> JsonObject:
    """The plain data of a config with the paths of this machine. Examples that are items of the dataset get it as a
    dataset of their own, so that the config's may be another one."""
    local = deepcopy({**data})
    for place in _travelling(local):
        text = place.text
        file, colon, function = text.rpartition(":") if ".py:" in text else (text, "", "")
        covered = next((path for path in paths if _covers(file, path)), None)
        if covered is not None:
            root = paths[covered].removesuffix(covered)
            place.write_text(f"{root}{file}{colon}{function}")
    return local


def variables(config: JsonMapping) -> list[str]:
    """The names of the variables that hold the secrets of the models of a config, as a plan has it."""
    return sorted(
        {name for text in texts_in(config.get("models")) for name in _VARIABLE.findall(text)}
    )


# ---- where a config names files


def _travelling(data: JsonObject) -> Iterator[NamedFile]:
    """Yield the texts that may name a file that travels; none of them is part of a key."""
    for prompt in data.get("prompts") or ():
        if (few_shot := prompt.get("few_shot")) and data.get("dataset"):
            few_shot.setdefault("dataset", {**data["dataset"]})
    for named in named_files(data):
        if named.kind not in ("written", "placed") and named.key[0] not in _AT_HOME:
            yield named


def _staying(data: JsonObject) -> Iterator[str]:
    """Yield what must be on every machine at the same path: weights, stored datasets, images, and files that the
    parameters of user code name. The rows, or their keys, hold these paths."""
    for named in named_files(data):
        if named.kind == "placed" and named.key != ("dataset", "repository"):
            yield named.text
    for params in (model.get("params", {}) for model in data.get("models") or ()):
        named = (params.get("model_path"), (params.get("docker") or {}).get("models_volume"))
        yield from (text for text in named if isinstance(text, str) and os.path.exists(text))
    for prompt in data.get("prompts") or ():
        for path in (*_images(prompt), *_images(prompt.get("few_shot") or {})):
            yield os.path.dirname(path.partition("{")[0]) if "{" in path else path
    coded = [*(data.get("tasks") or ()), *_plug_ins(data)]
    texts = texts_in([entry.get("params", {}) for entry in coded])
    yield from filter(_is_file, texts)


def _plug_ins(data: JsonObject) -> list[JsonObject]:
    return [*(data.get("evaluation_methods") or ()), *(data.get("metrics") or ())]


def _is_file(text: str) -> bool:
    return os.path.isabs(text) and "\0" not in text and os.path.isfile(text)


def _images(template: JsonMapping) -> Iterator[str]:
    for content in (turn.get("content") for turn in template.get("messages") or ()):
        yield from (
            (part["path"] for part in content if "path" in part)
            if isinstance(content, list)
            else ()
        )


# ---- from a text to files


def _files(text: str) -> Iterable[str]:
    """The files that a text of a config stands for; none if it is a name, or the prompt itself."""
    path = text.rpartition(":")[0] if ".py:" in text else text
    if not os.path.isabs(path) or "\n" in path or "\0" in path:
        return []
    if os.path.basename(path) == "graph_config.yaml":
        return _graph(Path(path))
    if path.endswith(".py") and os.path.isfile(path):
        return _code(path)
    if os.path.isdir(path):
        rows = os.path.join(path, ROWS_FILE["run"])  # a recording may be named by its folder
        return [rows] if os.path.isfile(rows) else []
    if os.path.isfile(path):
        return [path]
    return (
        [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
        if glob.has_magic(path)
        else []
    )


def _code(path: str) -> list[str]:
    """The file and the local modules that it imports, beside it as they are on this machine."""
    real = os.path.realpath(path)
    if os.path.basename(real) != os.path.basename(path):
        fix = f"name {os.path.basename(real)!r} in the config"
        raise UserError(
            f"{path!r} is a link to a file of another name, and cannot travel with the plan",
            fix=fix,
        )
    folder, outer = os.path.dirname(path), os.path.dirname(real)
    return [
        os.path.normpath(os.path.join(folder, os.path.relpath(file, outer)))
        for file in usercode.sources(Path(real))
    ]


def _graph(file: Path) -> list[str]:
    """The texts and code below the folder that holds `tasks/`, or below the graph's own."""
    folder = next((parent for parent in file.parents if parent.name == "tasks"), file.parent)
    files = [
        str(path) for path in sorted(folder.rglob("*")) if path.suffix in _TEXTS and path.is_file()
    ]
    if len(files) > MOST_FILES:
        what = f"{folder} has {len(files):,} files, and more than {MOST_FILES:,} do not travel with a plan"
        raise UserError(what, fix="put the graph's task into a folder of its own")
    return files


def _covers(text: str, path: str) -> bool:
    """Return whether a text of a config means this file, among others."""
    if not os.path.isabs(text):
        return False
    return (
        text == path
        or path.startswith(f"{text}/")
        or (glob.has_magic(text) and fnmatch(path, text))
    )


def _write(digest: str, objects: Objects, path: Path) -> str:
    content = objects.read(_object(digest))
    if content is None or blake2b(content, digest_size=16).hexdigest() != digest:
        what = "a file of the plan is missing or damaged"
        raise StoreError(
            what, where=f"{objects.address}/{_object(digest)}", fix="run the config again"
        )
    write_file(path, content)
    return str(path)


def _object(digest: str) -> str:
    return f"files/{digest}"


def _digest(path: str) -> str:
    with reading.opened(path) as content:
        return file_digest(content, lambda: blake2b(digest_size=16)).hexdigest()


def _machine() -> str:
    return f"the machine {os.uname().nodename}"
