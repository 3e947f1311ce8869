"""A folder with the data of tasks, to be carried to a machine without network (`ASSAY_DATA`)."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import AssayError, UserError
from assay.formats.lm_eval.asking.data import (
    MANIFEST,
    Data,
    from_hub,
    is_local,
    key,
    manifest,
    shown_name,
)
from assay.formats.lm_eval.asking.rows import jsonable
from assay.formats.lm_eval.tasks.definition import Definition
from assay.store.files import make_folder, store_error, temporary_of, write_file


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
    path = task.dataset_path or ""
    if task.custom_dataset is not None:
        raise UserError("a function of the task makes its data")
    if is_local(path):
        raise UserError("its data are local files already")
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise UserError(f"{path} is not the name of a repository")
    place = folder / path / key(task)
    result.place = str(place)
    made: dict[str, Any] = manifest(place)
    wanted = list(dict.fromkeys(split for task in tasks for split in splits(task)))
    missing = [split for split in wanted if not _is_there(place, made, split)]
    if missing:
        make_folder(place)
        data = from_hub(task)
        made |= {**data.source, "key": key(task), "splits": made.get("splits", {})}
        made.pop("origin", None)
        for split in [split for split in missing if split in data.splits]:
            _write(place, made, split, data)
            result.written.append(split)
        absent = [split for split in missing if split not in data.splits]
        result.problem = f"the dataset has no split {', '.join(absent)}" if absent else ""
    result.rows = {split: entry["rows"] for split, entry in made.get("splits", {}).items()}


def _is_there(place: Path, made: dict[str, Any], split: str) -> bool:
    file, entry = place / f"{split}.parquet", made.get("splits", {}).get(split)
    if not file.exists():
        return False
    if entry is None or file.stat().st_size != entry["bytes"]:
        raise UserError(f"{file} was not written by a pull, and is not replaced")
    return True


def _write(place: Path, made: dict[str, Any], split: str, data: Data) -> None:
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
