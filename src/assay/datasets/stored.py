"""A dataset that `assay dataset add` has kept: named, immutable, checked against its hash whenever it is read."""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from assay.datasets._rows import checked, decoded
from assay.errors import UserError
from assay.records import Manifest
from assay.registry import dataset, nearest
from assay.store.repositories import DatasetRepository
from assay.store.stores import FolderStore

DEFAULT_FOLDER = "assay-data"


def repository_of(folder: str = "") -> DatasetRepository:
    """The repository in a folder; by default $ASSAY_REPOSITORY, else `assay-data` in the current folder."""
    return DatasetRepository(FolderStore(folder or os.environ.get("ASSAY_REPOSITORY") or DEFAULT_FOLDER))


def manifests(repository: DatasetRepository) -> list[Manifest]:
    found = (repository.get(id) for id in repository.ids())
    return sorted((manifest for manifest in found if manifest is not None), key=lambda manifest: manifest.name)


def find(repository: DatasetRepository, name: str) -> Manifest:
    """The dataset of this name or, if none is called so, of this id."""
    known = manifests(repository)
    for manifest in known:
        if manifest.name == name:
            return manifest
    for manifest in known:
        if manifest.id == name:
            return manifest
    root = repository.store.root if isinstance(repository.store, FolderStore) else ""
    fix = nearest(name, [manifest.name for manifest in known]) or "`assay dataset add FILE --name NAME` keeps one"
    raise UserError(f"there is no stored dataset {name!r}", where=str(root), fix=fix)


def stamp(name: str, *, repository: str = "") -> dict[str, Any]:
    """The hash, and the files it was last seen in: bytes that change are read again, and then refused."""
    there = repository_of(repository)
    manifest = find(there, name)
    segments = msgspec.to_builtins(there.store.log("dataset", manifest.id).segments())
    return {"stored": manifest.id, "digest": manifest.digest, "segments": segments}


@dataset(stamp=stamp)
def stored(name: str, *, repository: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a stored dataset, streamed."""
    there = repository_of(repository)
    manifest = find(there, name)
    there.verify(manifest.id)
    for number, (_, line) in enumerate(there.store.log("dataset", manifest.id).scan(), 1):
        place = f"{name}:{number}"
        yield place, checked(decoded(line, place), place)
