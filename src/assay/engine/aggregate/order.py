"""An order of rows that depends on nothing but the rows."""

from array import array
from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from assay.engine.aggregate.columns import Codes, Ints
from assay.interfaces import Log
from assay.store.keys import short

Ties = tuple[npt.NDArray[np.uint64], ...]


def sorted_rows(
    group: Codes, item: Codes, sample: Codes, ties: Callable[[], list[npt.NDArray[Any]]]
) -> Ints:
    """The order of rows by group, item and sample.

    Rows may tie, as those of two models without a facet for the model. Then `ties` decides: their keys where their
    order matters, otherwise their scores, so that sums are equal to the last bit; never their place in a file.
    """
    lowest = int(sample.min())
    items, samples = int(item.max()) + 1, int(sample.max()) - lowest + 1
    if (int(group.max()) + 1) * items * samples < 2**62:
        joint = group.astype(np.int64)
        joint *= items
        joint += item
        joint *= samples
        joint += sample - lowest
        found = np.argsort(joint)
        joint.sort()
        if not (joint[1:] == joint[:-1]).any():
            return found
    return np.lexsort((*ties(), sample, item, group))


class _RowKey(msgspec.Struct):
    key: str = ""


def tie_breakers(logs: Iterable[Log]) -> Ties:
    """Columns, the last one first to sort by, that depend on nothing but the row: its text and its key."""
    decode = msgspec.json.Decoder(_RowKey).decode
    texts, keys = array("Q"), array("Q")
    for log in logs:
        for _, line in log.scan():
            if not line.strip():
                continue
            try:
                key = decode(line).key
            except msgspec.DecodeError:
                key = ""
            keys.append(short(key) if key else 0)
            texts.append(crc32(line))
    return np.frombuffer(texts, dtype=np.uint64), np.frombuffer(keys, dtype=np.uint64)
