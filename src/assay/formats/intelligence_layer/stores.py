"""Artefacts of different kinds in different stores, as one store: repositories need not share a folder."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from assay.interfaces import Log, Store
from assay.records import Kind, Manifest


class StoreByKind:
    """Hands everything to the store of the artefact's kind."""

    def __init__(self, stores: Mapping[Kind, Store]) -> None:
        self._stores = stores

    def ids(self, kind: Kind) -> list[str]:
        return self._stores[kind].ids(kind)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        return self._stores[kind].manifest(kind, id)

    def put_manifest(self, manifest: Manifest) -> None:
        self._stores[manifest.kind].put_manifest(manifest)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return self._stores[kind].log(kind, id, name)

    def delete(self, kind: Kind, id: str) -> None:
        self._stores[kind].delete(kind, id)

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        return self._stores[kind].lock(kind, id)
