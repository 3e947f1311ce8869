"""The memory that all answers of this process may take while they are read: each is bounded, and they are together.

`ASSAY_BODY_MEMORY` sets it, in megabytes. An answer that does not fit waits, with its server held back by TCP, until
others are done. One at a time may go beyond the limit, so none waits for ever: neither one that is larger than the
limit, nor several that have begun and wait for each other. Small answers are not counted.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from functools import cache

DEFAULT_MEGABYTES = 256
SMALL = 64 * 1024


class Allowance:
    """Bytes that may be in flight together. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._beyond: Share | None = None  # the one that may go beyond the limit
        self._waiting: deque[Share] = deque()
        self._guard = threading.RLock()

    def take(self, share: "Share", received: int, expected: int) -> bool:
        """Return whether to read on. What was received is counted in any case; what is expected only if there is room, and
        `share.proceed` is called when there is."""
        with self._guard:
            if received > share.held:
                self._count_held(share, received)
            elif expected <= share.held:
                return True
            share.wanted = max(expected, share.held)
            if self._admit(share):
                return True
            self._waiting.append(share)
            return False

    def give_back(self, share: "Share") -> None:
        with self._guard:
            self._count_held(share, 0)
            if self._beyond is share:
                self._beyond = None
            if share in self._waiting:
                self._waiting.remove(share)
            while self._waiting and self._admit(self._waiting[0]):
                self._waiting.popleft().proceed()

    def _admit(self, share: "Share") -> bool:
        if self.held - share.held + share.wanted > self.limit:
            if self._beyond not in (None, share):
                return False
            self._beyond = share
        self._count_held(share, share.wanted)
        return True

    def _count_held(self, share: "Share", size: int) -> None:
        self.held += size - share.held
        share.held = size


class Share:
    """The part of one answer. `proceed` may be called from another thread."""

    proceed: Callable[[], object]

    def __init__(self) -> None:
        self.held = self.wanted = 0


@cache
def allowance() -> Allowance:
    """The one of this process."""
    try:
        limit = int(float(os.environ.get("ASSAY_BODY_MEMORY") or DEFAULT_MEGABYTES) * 1e6)
    except (ValueError, OverflowError):
        limit = DEFAULT_MEGABYTES * 1_000_000
    return Allowance(max(1_000_000, limit))
