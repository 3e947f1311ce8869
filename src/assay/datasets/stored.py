"""A dataset that `assay dataset add` has kept: named, immutable, checked against its hash whenever it is read.

Names are looked up in the manifests alone; the store, which is slower to import, is opened to read rows.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from assay import reading
from assay.datasets._files import json_value, row_of
from assay.records import manifest_sections
from assay.sdk import JsonObject, Manifest, StoreError, UserError, dataset, nearest

if TYPE_CHECKING:
    from assay.store.repositories import DatasetRepository

DEFAULT_FOLDER = "assay-data"


def folder_of(repository: str = "") -> Path:
    """The repository's folder; by default $ASSAY_REPOSITORY, else `assay-data` in the current folder."""
    place = repository or os.environ.get("ASSAY_REPOSITORY") or DEFAULT_FOLDER
    if not reading.is_remote(place):
        return Path(place)
    from assay.store.shared.mirror import remembered

    return remembered(place)


def repository_of(repository: str = "") -> "DatasetRepository":
    from assay.store.repositories import DatasetRepository
    from assay.store.stores import FolderStore

    return DatasetRepository(FolderStore(folder_of(repository)))


def manifests(repository: str = "") -> list[Manifest]:
    """All datasets of a repository, by name."""
    stored_ones: list[Manifest] = []
    for path in folder_of(repository).glob("datasets/*/manifest.json"):
        try:
            section = manifest_sections(reading.content(path), path).get("dataset")
            if section is not None:
                stored_ones.append(msgspec.json.decode(section, type=Manifest))
        except (OSError, ValueError) as error:
            fix = "restore it, or move the dataset's folder away"
            raise StoreError(
                f"the manifest cannot be read: {error}", where=str(path), fix=fix
            ) from None
    return sorted(stored_ones, key=lambda manifest: (manifest.name, manifest.id))


def find(name: str, repository: str = "") -> Manifest:
    """The dataset of this name or, if none is called so, of this id."""
    known = manifests(repository)
    matching = [manifest for manifest in known if manifest.name == name]
    matching += [manifest for manifest in known if manifest.id == name]
    if matching:
        return matching[0]
    fix = (
        nearest(name, [manifest.name for manifest in known])
        or "`assay dataset add FILE --name NAME` keeps one"
    )
    raise UserError(
        f"there is no stored dataset {name!r}", where=str(folder_of(repository)), fix=fix
    )


def stamp(name: str, *, repository: str = "") -> JsonObject:
    """The hash, and the files it was last seen in: bytes that change are read again, and then refused."""
    manifest = find(name, repository)
    log = repository_of(repository).store.log("dataset", manifest.id)
    return {
        "stored": manifest.id,
        "digest": manifest.digest,
        "segments": msgspec.to_builtins(log.segments()),
    }


@dataset(stamp=stamp)
def stored(name: str, *, repository: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Rows of a stored dataset, streamed."""
    manifest = find(name, repository)
    there = repository_of(repository)
    there.verify(manifest.id)
    for number, (_, line) in enumerate(there.store.log("dataset", manifest.id).scan(), 1):
        place = f"{name}:{number}"
        yield place, row_of(json_value(line, place), place)
