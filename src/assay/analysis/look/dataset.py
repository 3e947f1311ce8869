"""`assay dataset`: the stored datasets, with where they came from and how many of their items are alike."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from assay.datasets.stored import find, manifests, repository_of
from assay.records import JsonMapping, JsonObject, Manifest


class Duplicates(msgspec.Struct, kw_only=True):
    """`exact` and `near` count the items that repeat an earlier one; groups hold the ids of items that belong
    together, the largest groups first and not more than asked for."""

    items: int
    exact: int
    near: int
    threshold: float
    exact_groups: list[list[str]]
    near_groups: list[list[str]]


class StoredDataset(msgspec.Struct, kw_only=True):
    """A dataset of the repository. `origin` has the keys of `dataset:` that it was made from; `duplicates`, `head`
    and whether it is `new` are there where they were asked for."""

    name: str
    id: str
    items: int
    hash: str
    labels: list[str]
    stored: str
    origin: JsonObject
    duplicates: Duplicates | msgspec.UnsetType = msgspec.UNSET
    head: list[Any] | msgspec.UnsetType = msgspec.UNSET
    new: bool | msgspec.UnsetType = msgspec.UNSET


def dataset_add(
    source: str,
    *,
    name: str,
    id: str = "",
    labels: Iterable[str] = (),
    settings: JsonMapping | None = None,
    repository: str = "",
) -> StoredDataset:
    """Store the rows of a source (a file, a pattern, `hf:name`, `file.py:function`) under a name,
    once and for all; `settings` are further keys of `dataset:`."""
    from assay.analysis.look.duplicates import duplicates
    from assay.engine.experiment.dataset import dataset_of, keep

    manifest, new = keep(
        dataset_of(source, settings), name=name, repository=repository, id=id, labels=labels
    )
    dataset = _of_manifest(manifest)
    dataset.new = new
    if new:
        dataset.duplicates = duplicates(repository_of(repository).store.log("dataset", dataset.id))
    return dataset


def dataset_ls(*, repository: str = "") -> list[StoredDataset]:
    """The stored datasets."""
    return [_of_manifest(manifest) for manifest in manifests(repository)]


def dataset_show(name: str, *, head: int = 3, repository: str = "") -> StoredDataset:
    """A stored dataset, after a check of its bytes: hash, origin, duplicates, its first items."""
    from assay.analysis.look.duplicates import duplicates

    dataset = dataset_verify(name, repository=repository)
    log = repository_of(repository).store.log("dataset", dataset.id)
    dataset.duplicates = duplicates(log)
    dataset.head = [msgspec.json.decode(line) for _, line in islice(log.scan(), head)]
    return dataset


def dataset_verify(name: str, *, repository: str = "") -> StoredDataset:
    """A stored dataset, after a check that it has the bytes that were stored."""
    manifest = find(name, repository)
    repository_of(repository).verify(manifest.id)
    return _of_manifest(manifest)


def _of_manifest(manifest: Manifest) -> StoredDataset:
    """Return what a manifest tells about its dataset."""
    return StoredDataset(
        name=manifest.name,
        id=manifest.id,
        items=manifest.counts["items"],
        hash=manifest.digest,
        labels=manifest.labels,
        stored=datetime.fromtimestamp(manifest.created, UTC).isoformat(timespec="seconds"),
        origin=_origin(manifest.plan),
    )


def _origin(plan: JsonObject) -> JsonObject:
    """The keys of `dataset:` that are set, and the revision that was read."""
    source = {**plan.get("dataset", {}), "revision": plan.get("revision")}
    keys = {key: value for key, value in source.items() if value not in (None, "", [], {})}
    return {key: value for key, value in keys.items() if (key, value) != ("seed", 0)}
