"""MixEval's data: where its files are, what their entries must have, and the items that they become.

Both files number their entries from "0", so an item's id is `<kind>/<id>`. Repeated entries are intended (they are
weights): each is an item, and `metadata.content` says which are equal.
"""

import ast
import os
import re
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from assay import reading
from assay.engine.experiment.dataset import file_stamp
from assay.formats.mixeval.evaluation_prompts import (
    FREE_FORM,
    MULTIPLE_CHOICE,
    PREFIXES,
    construct_prompt_freeform,
    construct_prompt_multichoice,
    five_shot_prefixes,
)
from assay.sdk import (
    ConfigError,
    JsonObject,
    UserError,
    as_object,
    canonical,
    dataset,
    digest,
    list_of,
    nearest,
)
from assay.text.json_stream import BrokenJson, json_entries

KINDS = (FREE_FORM, MULTIPLE_CHOICE)
BENCHMARKS = {"mixeval": "mixeval", "mixeval_hard": "mixeval-hard"}  # the name, and its folder
_HUB = {"mixeval": "MixEval", "mixeval_hard": "MixEval_Hard"}
_DATE = re.compile(r"|hub|\d{4}-\d\d-\d\d")
_MOST_PROBLEMS = 5
_MOST_OPTIONS = 26  # as there are letters


def benchmark_name(name: str) -> str:
    """The benchmark as the command line and response folders spell it."""
    found = name.strip().lower().replace("-", "_")
    if found not in BENCHMARKS:
        raise UserError(f"unknown benchmark {name!r}", fix=nearest(found, BENCHMARKS))
    return found


def versions_in(data: str) -> list[str]:
    """Return the versions of the data in a folder, which must be there."""
    folder = Path(data).expanduser()
    if not folder.is_dir():
        fix = "name the folder that holds mixeval-<version>"
        raise UserError(f"there is no folder {data!r}", fix=fix)
    found = sorted(path.name for path in folder.glob("mixeval-2*") if path.is_dir())
    return [name.removeprefix("mixeval-") for name in found]


def data_files(data: str, version: str, benchmark: str) -> dict[str, Path]:
    """The two files: below a `data` folder, a `mixeval-<version>` folder, or the benchmark's own folder."""
    folder = BENCHMARKS[benchmark_name(benchmark)]
    versions, base = versions_in(data), Path(data).expanduser()
    tried = [base / f"mixeval-{version}" / folder, base / folder, base]
    if version and base.name.startswith("mixeval-2") and base.name != f"mixeval-{version}":
        raise UserError(
            f"{data!r} holds another version than {version}", fix=f"use --version {base.name[8:]}"
        )
    for place in tried:
        found = {kind: place / f"{kind}.json" for kind in KINDS}
        if all(path.is_file() for path in found.values()):
            return found
    hint = nearest(version, versions) if versions else f"looked for {tried[0] / 'free-form.json'}"
    raise UserError(f"there is no {benchmark} of version {version!r}", where=data, fix=hint)


Placed = tuple[str, str, str, JsonObject]


def entries(data: str, version: str, benchmark: str) -> Generator[Placed]:
    """(place, kind, id, entry) of every entry of both files: one of each in turn, so that the first few are of both."""
    if data.startswith("hf:"):
        both = [_from_hub(data.removeprefix("hf:"), kind, version, benchmark) for kind in KINDS]
    else:
        both = [
            _from_file(path, kind) for kind, path in data_files(data, version, benchmark).items()
        ]
    try:
        yield from (entry for pair in zip_longest(*both) for entry in pair if entry is not None)
    finally:  # an error in one file leaves the other open
        for rows in both:
            rows.close()


def _from_file(path: Path, kind: str) -> Generator[Placed]:
    with reading.opened(path) as file:
        try:
            _, found = json_entries(file)
            for number, (key, value) in enumerate(found):
                place = f"{path} [{key or number}]"
                if not key and value == {}:  # the whole file: there is no entry of this kind
                    continue
                if not isinstance(value, dict):
                    raise UserError(
                        f"an entry must be an object, found {type(value).__name__}", where=place
                    )
                given = key or value.get("id")
                yield place, kind, str(number if given is None else given), value
        except BrokenJson as error:
            raise UserError(f"the file is not whole JSON: {error}", where=str(path)) from None


def _on_hub(kind: str, version: str, benchmark: str) -> dict[str, str]:
    """Return the place of a kind's entries in the dataset. The hub has no versions of the data, only revisions of its own."""
    revision = "" if _DATE.fullmatch(version) else version
    return {
        "subset": _HUB[benchmark_name(benchmark)],
        "split": kind.replace("-", "_"),
        "revision": revision,
    }


def _from_hub(name: str, kind: str, version: str, benchmark: str) -> Generator[Placed]:
    rows = dataset.get("hf")(name, **_on_hub(kind, version, benchmark))
    for number, (place, row) in enumerate(rows):
        id = row.get("id")
        yield place, kind, str(number if id is None else id), row


# ---- items


@dataset(name="mixeval", stamp=lambda name, **params: stamp(name, **params))
def mixeval(
    name: str,
    *,
    version: str = "",
    benchmark: str = "mixeval",
    base: bool = False,
    five_shot: str = "",
    corrections: str = "",
) -> Iterator[tuple[str, JsonObject]]:
    """MixEval's items, with the protocol's prompt as `formated_input`.

    Parameters:
    version: the data's version, such as 2024-08-11; not needed if the folder says it
    benchmark: mixeval or mixeval_hard
    base: put the original's five examples before each prompt, for base models
    five_shot: the file that has them
    corrections: a file of entries to leave out, or to give other targets
    """
    prefixes = five_shot_prefixes(five_shot or None) if base else None
    corrected = read_corrections(corrections)
    problems: list[UserError] = []
    with closing(entries(name, version, benchmark)) as found:
        for place, kind, id, entry in found:
            address = f"{kind}/{id}"
            change = corrected.pop(address, _NO_CHANGE)
            if change is None:
                continue
            entry = {**entry, **change}
            entry["target"] = read_target(entry.get("target"), kind)
            problem = problem_of(entry, kind)
            if problem is not None:
                problems.append(UserError(f"entry {address!r}: {problem}", where=place))
                if len(problems) >= _MOST_PROBLEMS:
                    break
                continue
            prefix = prefixes[PREFIXES[kind]] if prefixes else ""
            yield (
                place,
                item_row(entry, kind, id, benchmark=benchmark_name(benchmark), prefix=prefix),
            )
    if problems:
        raise ConfigError(problems, source="MixEval's data")
    if corrected:
        unknown = sorted(corrected)[0]
        raise UserError(
            f"a correction is for {unknown!r}, which is not an entry", where=corrections
        )


def stamp(name: str, *, version: str = "", benchmark: str = "mixeval", **params: Any) -> JsonObject:
    """Return what tells that the files are still those that were read."""
    if name.startswith("hf:"):
        of_rows = vars(dataset.get("hf"))["__assay__"]["stamp"]
        return {
            "hub": [
                of_rows(name.removeprefix("hf:"), **_on_hub(kind, version, benchmark))
                for kind in KINDS
            ]
        }
    files = [*data_files(name, version, benchmark).values()]
    files += [Path(params[key]) for key in ("five_shot", "corrections") if params.get(key)]
    return {"files": [file_stamp(path) for path in files if path.exists()]}


def item_row(
    entry: JsonObject, kind: str, id: str, *, benchmark: str, prefix: str = ""
) -> JsonObject:
    made = plain_row(entry, kind, f"{kind}/{id}", benchmark)
    made["data"]["formated_input"] = prompt_text(entry, kind, prefix)
    return made


def plain_row(entry: JsonObject, kind: str, id: str, benchmark: str) -> JsonObject:
    """Return the row of an entry without its prompt: every key of it is in `data`, but for the
    target, which is the ground truth."""
    return {
        "id": id,
        "data": {key: value for key, value in entry.items() if key not in ("target", "id")},
        "ground_truth": entry["target"],
        "metadata": {
            "benchmark_name": entry["benchmark_name"],
            "problem_type": kind,
            "benchmark": benchmark,
            "content": content_of(entry),
        },
    }


def prompt_text(entry: JsonObject, kind: str, prefix: str = "") -> str:
    make = construct_prompt_freeform if kind == FREE_FORM else construct_prompt_multichoice
    return f"{prefix}{make(entry)}\n" if prefix else make(entry)


def read_target(target: Any, kind: str) -> Any:
    """The target as a list, which the hub may have as a text: "Paris", "['Paris', 'City of Light']", ["2"], "2"."""
    if isinstance(target, str) and target.strip().startswith("["):
        with suppress(ValueError, SyntaxError):
            target = ast.literal_eval(target.strip())
    if isinstance(target, str):
        target = [target]
    if kind == MULTIPLE_CHOICE and isinstance(target, list):
        return [
            int(one) if isinstance(one, str) and one.strip().isdecimal() else one for one in target
        ]
    return target


def content_of(entry: JsonObject) -> str:
    """Equal for entries that ask the same: the protocol repeats items, and repeats add no evidence."""
    parts = [entry.get(key) for key in ("benchmark_name", "context", "prompt", "options", "target")]
    return digest("mixeval-content", canonical(parts)).hex()[:16]


def problem_of(entry: JsonObject, kind: str) -> str | None:
    """Return what is wrong with an entry, or None."""
    for key in ("prompt", "benchmark_name"):
        if not isinstance(entry.get(key), str):
            return f"it has no `{key}`"
    if entry["benchmark_name"] == "QuAc" and kind == FREE_FORM:
        return "the protocol has no prompt for QuAc"
    target: Any = entry.get("target")
    if not isinstance(target, list) or not target:
        return "`target` must be a list with at least one answer"
    if kind == MULTIPLE_CHOICE:
        return _problem_of_options(list_of(entry.get("options")), target)
    return None if all(isinstance(one, str) for one in target) else "its targets must be texts"


def _problem_of_options(options: list[Any], target: list[Any]) -> str | None:
    count = len(options)
    if not 2 <= count <= _MOST_OPTIONS:
        what = "1 option" if count == 1 else f"{count} options"
        return f"it has {what}, two to {_MOST_OPTIONS} are needed; leave it out with a corrections file"
    if type(target[0]) is not int or not 0 <= target[0] < count:
        return f"its target {target!r} is none of its {count} options (counted from 0)"
    return None


# ---- corrections

_NO_CHANGE: JsonObject = {}
_CORRECTED = ("target", "options", "prompt", "context")


def read_corrections(path: str) -> dict[str, JsonObject | None]:
    """By item id: the changed keys, or None to leave the entry out. The file is a JSON list, an object by id, or
    lines: {"id": "free-form/12", "exclude": true} or {"id": "multiple-choice/3", "target": [1]}."""
    if not path:
        return {}
    found: dict[str, JsonObject | None] = {}
    try:
        with reading.opened(os.path.expanduser(path)) as file:
            for key, row in json_entries(file)[1]:
                id = str(key or as_object(row).get("id", ""))
                found[id] = _correction(id, row, path)
    except OSError as error:
        raise UserError(f"the corrections cannot be read: {error.strerror}", where=path) from None
    except BrokenJson as error:
        raise UserError(f"the corrections are not JSON: {error}", where=path) from None
    return found


def _correction(id: str, row: Any, path: str) -> JsonObject | None:
    """Return the changed keys of an entry; None for one that is left out."""
    if not isinstance(row, dict) or id.partition("/")[0] not in KINDS:
        what = f"a correction needs an id such as free-form/12, found {id!r}"
        raise UserError(what, where=path)
    fields = cast("JsonObject", row)
    if fields.get("exclude"):
        return None
    changed = {key: value for key, value in fields.items() if key in _CORRECTED}
    if not changed:
        what = f"the correction of {id!r} changes nothing"
        raise UserError(what, where=path, fix="add `target`")
    return changed
