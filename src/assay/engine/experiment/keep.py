"""A dataset that is stored for good: its content never changes under its name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from assay.config import DatasetConfig, load
from assay.datasets.stored import manifests, repository_of
from assay.engine.experiment.dataset import ingest, open_dataset, stamp_of
from assay.errors import UserError
from assay.records import Manifest
from assay.store.shared.mirror import push
from assay.store.stores import FlatStore, directory_of


def dataset_of(source: str, settings: Mapping[str, Any] | None = None) -> DatasetConfig:
    """A dataset as a config would write it: a path, `hf:name`, `file.py:function`, with further keys of `dataset:`."""
    overrides = {f"dataset.{key}": value for key, value in (settings or {}).items()}
    # no model is asked
    config = load({"models": ["demo:none"], "dataset": source}, overrides=overrides, environ={})
    dataset = config.dataset
    assert dataset is not None
    return dataset


def keep(
    source: DatasetConfig,
    *,
    name: str,
    repository: str = "",
    id: str = "",
    labels: Iterable[str] = (),
) -> tuple[Manifest, bool]:
    """Store the rows of a source; a name or an id that is taken by other content is refused with both hashes. Return
    the dataset, and whether it is new: the same content under the same name is not stored again."""
    if not name.strip():
        raise UserError("a dataset needs a name", fix="--name NAME")
    own = id or name
    taken = _taken(repository, name, own)
    if taken is None:
        store = repository_of(repository).store
        with store.lock("dataset", own):
            taken = _taken(repository, name, own)  # another process may have been faster
            if taken is None:
                manifest = ingest(store, own, lambda: open_dataset(source, Path()), name=name)
                manifest.labels = sorted(set(labels))
                manifest.plan = stamp_of(source, Path()) or {"dataset": msgspec.to_builtins(source)}
                store.put_manifest(manifest)
                if folder := directory_of(store, "dataset", own):
                    push(folder)
                return manifest, True
    _compare(taken, source, name)
    return taken, False


def _taken(repository: str, name: str, id: str) -> Manifest | None:
    return next(
        (known for known in manifests(repository) if known.name == name or known.id == id), None
    )


def _compare(taken: Manifest, source: DatasetConfig, name: str) -> None:
    with TemporaryDirectory(prefix="assay-") as folder:
        trial = ingest(FlatStore(folder), "trial", lambda: open_dataset(source, Path()))
    if trial.digest != taken.digest:
        raise UserError(
            f"{name!r} is stored already with other content: its hash is {taken.digest}, this one's {trial.digest}",
            fix="stored datasets do not change: give another --name",
        )
    if taken.name != name:
        raise UserError(
            f"the id {taken.id!r} belongs to the dataset {taken.name!r}", fix="give another --id"
        )
