"""A config's dataset becomes the experiment's `items.jsonl`: normalised, checked, with its content hash.

Everything that can be wrong with an item is found here, before anything is spent: rows that cannot be read, ids that
repeat, templates that use a field the item does not have. A file that did not change is not read again.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import ConfigError, UserError
from assay.interfaces import Prompt, Store
from assay.records import Manifest
from assay.store.items import encode_item, normalise_placed
from assay.store.keys import canonical, digest

Rows = Callable[[], Iterator[tuple[str, dict[str, Any]]]]
MOST_PROBLEMS = 5


def ingest(
    store: Store,
    id: str,
    rows: Rows,
    *,
    prompts: Sequence[Prompt] = (),
    stamp: dict[str, Any] | None = None,
    limit: int | None = None,
    name: str = "",
) -> Manifest:
    """Store the rows as dataset `id`. `stamp` tells whether the source is the one that was read the last time."""
    log = store.log("dataset", id)
    old = store.manifest("dataset", id)
    mark = None
    if stamp is not None:
        mark = digest("source", canonical({**stamp, "limit": limit, "prompts": [p.text for p in prompts]})).hex()
        if old is not None and old.complete and old.plan.get("source") == mark and old.segments == log.segments():
            return old
    job = _Ingest(prompts)
    log.replace(job.lines(lambda: islice(rows(), limit)))
    manifest = Manifest(
        kind="dataset",
        id=id,
        name=old.name if old else name,
        created=old.created if old else time.time(),
        started=time.time(),
        ended=time.time(),
        complete=True,
        digest=job.hash.hexdigest(),
        planned=job.count,
        counts={"items": job.count},
        plan={"source": mark, **(stamp or {})},
        segments=log.segments(),
    )
    store.put_manifest(manifest)
    return manifest


def file_stamp(path: Path) -> dict[str, Any]:
    """What tells that a file is still the one that was read."""
    stat = path.stat()
    return {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


class _Ingest:
    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.prompts = prompts
        self.hash = blake2b(digest_size=16)
        self.count = 0
        self.problems: list[UserError] = []
        self.ids = array("Q")

    def lines(self, rows: Rows) -> Iterator[bytes]:
        """The stored lines; whatever is wrong is raised before the last one, so that a bad dataset replaces nothing."""
        for place, item in normalise_placed(rows()):
            for prompt in self.prompts:
                problem = prompt.check(item)
                if problem is not None:
                    self.problems.append(UserError(f"item {item.id!r}: {problem}", where=place))
            if len(self.problems) >= MOST_PROBLEMS:
                break
            line = encode_item(item, place) + b"\n"
            self.hash.update(line)
            self.count += 1
            self.ids.append(_hash_of(item.id))
            yield line
        if self.problems:
            raise ConfigError(self.problems, source="the dataset")
        if not self.count:
            raise UserError("the dataset has no items", fix="check its path and `limit`")
        self._check_ids(rows)

    def _check_ids(self, rows: Rows) -> None:
        """Given ids that repeat are refused, with the places of both."""
        ids = np.sort(np.frombuffer(self.ids, np.uint64))
        repeated = set(ids[1:][ids[1:] == ids[:-1]].tolist())
        if not repeated:
            return
        places: dict[str, str] = {}
        for place, item in normalise_placed(rows()):
            if _hash_of(item.id) not in repeated:
                continue
            if item.id in places:
                raise UserError(
                    f"two items have the id {item.id[:200]!r}",
                    where=f"{places[item.id]} and {place}",
                    fix="give each item its own id, or leave the ids out",
                )
            places[item.id] = place


def _hash_of(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "big")
