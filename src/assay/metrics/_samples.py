"""What metrics over k samples of an item share; and expectations over all subsets of k of an item's
n samples, in closed form: no draws, no noise. Of k samples drawn at once from n with c passes, the
number that passes is distributed hypergeometrically.
"""

from collections.abc import Callable
from itertools import compress
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from assay.sdk import FloatArray, Group, IntArray, JsonObject, Mask, Values

Positive = Annotated[int, Meta(ge=1)]
Counts = IntArray
_TABLE = 256  # up to this many samples an item all pairs (n, c) are tabled, which is quicker than finding the distinct


def too_few(
    group: Group, samples: Counts, k: int, fields: JsonObject | None = None
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
        fields={"k": k, **(fields or {})},
        reason=f"k = {k}, but an item has {fewest} samples",
    )


def short_fields(samples: Counts, k: int) -> JsonObject:
    """Return what a row says about items that have fewer than k samples after the policy; nothing
    without any."""
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


def pass_at_k(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """1 - C(n-c, k) / C(n, k) for each item: the chance that k of its n samples, drawn at once, hold a pass (Chen et
    al. 2021, arXiv:2107.03374).

    NaN where an item has fewer than k samples. A product of k ratios in [0, 1] over the distinct pairs (n, c):
    no factorial, nothing that overflows or cancels.
    """
    width = int(samples.max(initial=0)) + 1
    inverse = samples * width
    inverse += passes
    if width <= _TABLE:
        pairs = np.arange(width * width)
    else:
        pairs, inverse = np.unique(inverse, return_inverse=True)
    n, c = np.divmod(pairs, width)
    none_passes = np.ones(len(pairs))
    for drawn in range(k):
        none_passes *= np.maximum(n - c - drawn, 0) / np.maximum(n - drawn, 1)
    return np.where(n >= k, 1 - none_passes, np.nan)[inverse]


def with_short_items(
    at: Callable[[Mask, int], FloatArray], samples: Counts, k: int, highest: float = 1.0
) -> FloatArray:
    """Return what `at` gives for k samples of some items, also for items that have fewer, if others have k: further
    samples close as much of the gap to the highest value as they do for items that have k. So one that has a pass has
    it among any k."""
    full = samples >= k
    found = np.empty(len(samples))
    found[full] = at(full, k)
    for n in np.unique(samples[~full]).tolist():
        reached = float(at(full, n).mean())
        short = samples == n
        gap = highest - reached
        closed = (float(found[full].mean()) - reached) / gap if gap > 0 else 0.0
        own = at(short, n)
        found[short] = own + (highest - own) * closed
    return found


def expected_pass_at_k(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """Return `pass_at_k`, also for items with fewer than k samples, if others have k."""
    return with_short_items(
        lambda items, n: pass_at_k(samples[items], passes[items], n), samples, k
    )
