"""Whether a place keeps the promises on which many writers rely, found out by trying, before a row is written to it."""

from collections.abc import Callable
from uuid import uuid4

from assay.errors import StoreError
from assay.store.shared.objects import Objects

PREFIX = ".probe/"


def check(objects: Objects) -> None:
    """Refuse a place that does not create once, shows old content, or does not list or delete, and say which."""
    name = f"{PREFIX}{uuid4().hex}"
    for promise, holds in _PROMISES.items():
        if not holds(objects, name):
            objects.delete(name)
            raise StoreError(
                f"this store cannot be shared: {promise}",
                where=objects.address,
                fix="use a store with conditional writes (S3, Google, Azure, SeaweedFS, MinIO), or write to it with "
                "one process at a time and say so with ASSAY_SINGLE_WRITER=1",
            )


def _creates_once(objects: Objects, name: str) -> bool:
    return objects.create(name, b"first") and not objects.create(name, b"second")


_PROMISES: dict[str, Callable[[Objects, str], bool]] = {
    "it overwrites an object that it was asked to create only if there is none": _creates_once,
    "what was created is not what is read": lambda objects, name: objects.read(name) == b"first",
    "what was created is not listed": lambda objects, name: any(
        entry.name == name and entry.size == 5 for entry in objects.names(PREFIX)
    ),
    "an overwritten object shows its old content": lambda objects, name: (
        objects.write(name, b"third word") is None and objects.read(name) == b"third word"
    ),
    "a deleted object can still be read": lambda objects, name: (
        objects.delete(name) is None and objects.read(name) is None
    ),
}
