"""Folders of the original, and repositories of the library, as experiments: one for each dataset, or only what one run
or one evaluation is about. Runs are models: their names are the runs' ids, which the players of matches have as well.
"""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.foreign import (
    Foreign,
    head_of,
    whole_json,
)
from assay.sdk import JsonObject, UserError, reader

if TYPE_CHECKING:
    pass

_KINDS = ("runs", "evaluations")
# what only overviews of this kind have
_FIELDS = {"runs": "dataset_id", "evaluations": "run_overviews"}


@reader
def intelligence_layer(path: Path, *, dataset: str = "") -> list[Foreign]:
    """A folder with datasets, runs and evaluations of the Intelligence Layer, or the folder or overview of one of them.

    Parameters:
    dataset: only the results on the dataset of this id
    """
    place = (path.with_suffix("") if path.suffix == ".json" else path).absolute()
    root, kind, name = path, "", ""
    if place.parent.name in _KINDS and is_overview(
        place.with_name(f"{place.name}.json"), place.parent.name
    ):
        root, kind, name = place.parents[1], place.parent.name, place.name
    elif not path.is_dir() or not is_repository(path):
        return []
    from assay.formats.intelligence_layer.cases import results_in

    try:
        return [each for each in results_in(root, kind, name) if dataset in ("", each.dataset)]
    except (ValueError, TypeError, KeyError) as error:
        fix = "remove the file, or name the folder of one run or evaluation"
        raise UserError(
            f"an overview in this folder cannot be read: {error}", where=str(root), fix=fix
        ) from None


def is_overview(file: Path, kind: str) -> bool:
    """Return whether a file says what a run or an evaluation was."""
    if not file.is_file() or f'"{_FIELDS[kind]}"'.encode() not in head_of(file):
        return False
    found = whole_json(file)
    return (
        isinstance(found, dict)
        and {"id", "description", _FIELDS[kind]} <= cast("JsonObject", found).keys()
    )


def is_repository(folder: Path) -> bool:
    """Return whether there are runs or evaluations of the original, or of the library, below a folder."""
    for kind in _KINDS:
        for entry in (folder / kind).glob("*"):
            if entry.suffix == ".json" and is_overview(entry, kind):
                return True
            if entry.suffix == ".partial_json" or (entry / "manifest.json").is_file():
                return True
    return False
