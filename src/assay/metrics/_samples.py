"""What metrics over k samples of an item share."""

from itertools import compress
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from assay.interfaces import FloatArray, Group, Values

Positive = Annotated[int, Meta(ge=1)]
Counts = npt.NDArray[np.int64]


def too_few(
    group: Group, samples: Counts, k: int, fields: dict[str, Any] | None = None
) -> Values | None:
    """A null with its reason where an item has fewer than k samples; not if it had more, and the policy left them out,
    as long as other items have k."""
    short = samples < k
    if not short.any():
        return None
    left_out = [] if group.left_out is None else group.left_out
    if not short.all() and np.isin(np.unique(group.item)[short], left_out).all():
        return None
    fewest = int(samples.min())
    return Values(
        value=None,
        fields={"k": k, **(fields or {})},
        reason=f"k = {k}, but an item has {fewest} samples",
    )


def short_fields(samples: Counts, k: int) -> dict[str, Any]:
    """What a row says about items that have fewer than k samples after the policy; nothing without any."""
    short = int(np.count_nonzero(samples < k))
    if not short:
        return {}
    named = "1 item has" if short == 1 else f"{short:,} items have"
    return {
        "short_item_count": short,
        "warning": f"{named} fewer than {k} samples that count: see the bounds",
    }


def with_k(group: Group, samples: Counts, k: int) -> Group:
    """The group without the items that have fewer than k samples."""
    if samples.min() >= k:
        return group
    kept = np.repeat(samples >= k, samples)
    return msgspec.structs.replace(
        group,
        item=group.item[kept],
        sample=group.sample[kept],
        passed=group.passed[kept],
        score=group.score[kept],
        columns={name: list(compress(column, kept)) for name, column in group.columns.items()},
    )


def over_items(per_item: FloatArray, k: int, samples: Counts) -> Values:
    """The mean over items that have this many samples."""
    return Values(
        value=float(per_item.mean()), fields={"k": k, **short_fields(samples, k)}, per_item=per_item
    )
