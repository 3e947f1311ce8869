"""Hugging Face datasets: from the hub, from its cache (HF_HUB_OFFLINE=1), or from a local folder.

A revision that is a whole commit is pinned: the cache is refused if it holds another one.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.sdk import JsonObject, UserError, dataset, install_command, nearest

_COMMIT = re.compile(r"[0-9a-f]{40}")
_TRUE = {"1", "ON", "YES", "TRUE"}


def stamp(name: str, *, subset: str = "", split: str = "", revision: str = "") -> JsonObject:
    """Return which data these are: the commit, or for a local folder the fingerprint of its content."""
    if _COMMIT.fullmatch(revision):
        return {"revision": revision}
    return {"revision": _revision(_load(name, subset, split, revision))}


@dataset(stamp=stamp)
def hf(
    name: str, *, subset: str = "", split: str = "", revision: str = ""
) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a dataset of the hub or of a folder, streamed from the arrow files of the cache."""
    for number, row in enumerate(_load(name, subset, split, revision), 1):
        yield f"{name} row {number}", row


def _load(name: str, subset: str, split: str, revision: str) -> Any:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import datasets
    except ModuleNotFoundError:
        raise UserError(
            "Hugging Face datasets need the package datasets",
            where=name,
            fix=install_command("hf"),
        ) from None
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    try:
        if (Path(name) / "dataset_dict.json").is_file() or (Path(name) / "state.json").is_file():
            found = datasets.load_from_disk(name)
        else:
            found = datasets.load_dataset(name, subset or None, revision=revision or None)
    except Exception as error:  # the library raises what its many parts raise
        raise _failure(name, error) from error
    chosen = _split(found, name, split) if isinstance(found, datasets.DatasetDict) else found
    there = _revision(chosen)
    if _COMMIT.fullmatch(revision) and _COMMIT.fullmatch(there) and there != revision:
        raise UserError(
            f"the cache has the revision {there} of {name!r}, not {revision}",
            where="dataset.revision",
            fix="load it once while online, or name the revision that is stored here",
        )
    return chosen


def _split(found: Any, name: str, split: str) -> Any:
    if split in found:
        return found[split]
    if not split and len(found) == 1:
        return next(iter(found.values()))
    what = f"{name!r} has no split {split!r}" if split else f"{name!r} has several splits"
    raise UserError(what, where="dataset.split", fix=nearest(split, found))


def _revision(found: Any) -> str:
    """The folder that the cache keeps the arrow files in is called like their commit."""
    places = [Path(file["filename"]).parent.name for file in found.cache_files]
    return next((place for place in places if _COMMIT.fullmatch(place)), str(found._fingerprint))


def _failure(name: str, error: Exception) -> UserError:
    lines = str(error).splitlines() or [type(error).__name__]
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE
    if offline and isinstance(error, ConnectionError | FileNotFoundError):
        return UserError(
            f"the Hugging Face dataset {name!r} is not in the cache, and HF_HUB_OFFLINE is set",
            where="dataset",
            fix="run once without HF_HUB_OFFLINE, or name a local folder",
        )
    return UserError(
        f"the Hugging Face dataset {name!r} cannot be loaded: {lines[0]}",
        where="dataset",
        fix="check its name, `subset` and `revision`, and that the hub can be reached",
    )
