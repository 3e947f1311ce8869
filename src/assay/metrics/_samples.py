"""What metrics over k samples of an item share."""

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from assay.interfaces import FloatArray, Values

Positive = Annotated[int, Meta(ge=1)]
Counts = npt.NDArray[np.int64]


def too_few(samples: Counts, k: int, fields: dict[str, Any] | None = None) -> Values | None:
    """A null with its reason where an item has fewer than k samples."""
    fewest = int(samples.min())
    if fewest >= k:
        return None
    return Values(value=None, fields={"k": k, **(fields or {})}, reason=f"k = {k}, but an item has {fewest} samples")


def over_items(per_item: FloatArray, k: int) -> Values:
    """The mean over items."""
    return Values(value=float(per_item.mean()), fields={"k": k}, per_item=per_item)
