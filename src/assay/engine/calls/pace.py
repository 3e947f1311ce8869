"""How many calls a lane may make, per minute and at once.

The limits of a config are those of a whole run. Where several workers make it, each has a share of them, which may
change while calls wait: whoever waits looks again when its time has come.
"""

import threading
import time

from assay.interfaces import Limits

BURST = 1.0  # seconds' worth that may go at once
ROUNDING = 1e-4  # shares are rounded down: three thirds of three places are three places
NEVER = float("inf")


class Bucket:
    """Amounts flow out at a steady rate; a call that comes early has to wait. Order of asking is order of going."""

    def __init__(self, per_minute: float, share: float = 1.0, *, full: bool = True) -> None:
        self._whole = per_minute / 60
        self._rate = self._whole * share
        self._lock = threading.Lock()  # a share is changed by another thread
        self._at = time.monotonic()
        self._taken = 0.0
        self._flowed = 0.0 if full else -self._burst()

    def take(self, amount: float) -> float:
        """A place in the queue, for `wait`."""
        with self._lock:
            self._flow()
            self._taken += amount
            return self._taken

    def wait(self, place: float) -> float:
        """Seconds, as far as is known now, before what was taken may go."""
        with self._lock:
            self._flow()
            missing = place - self._burst() - self._flowed
            if missing <= 1e-9:
                return 0.0
            return missing / self._rate if self._rate else NEVER

    def give_back(self, amount: float) -> None:
        """Give back what was not used; a negative amount was used on top."""
        with self._lock:
            self._flowed += amount

    def resize(self, share: float) -> None:
        """From now on, flow at this share of the whole rate. What may go at once grows with time, not by itself."""
        with self._lock:
            self._flow()
            before = self._burst()
            self._rate = self._whole * share
            self._flowed -= max(0.0, self._burst() - before)

    def _burst(self) -> float:
        return max(BURST * self._rate, 1.0)

    def _flow(self) -> None:
        now = time.monotonic()
        self._flowed = min(self._taken, self._flowed + self._rate * (now - self._at))
        self._at = now


class Pace:
    """The limits of one lane. Where they are shared, it outlives the lanes of the several shards, so that no shard
    begins with what another has used."""

    def __init__(
        self, limits: Limits, share: float = 1.0, until: float = NEVER, *, full: bool = True
    ) -> None:
        requests, tokens = limits.requests_per_minute, limits.tokens_per_minute
        self.requests = Bucket(requests, share, full=full) if requests else None
        self.tokens = Bucket(tokens, share, full=full) if tokens else None
        self.in_flight = 0
        self.until = until  # by the clock of this process: a share that was not confirmed by then is not ours any more
        self._most = max(1, limits.max_concurrency)
        self._places = 0
        self.resize(share)

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.tokens is not None

    @property
    def places(self) -> int:
        """Return how many calls may be in flight."""
        return self._places if self.until == NEVER or time.monotonic() < self.until else 0

    def resize(self, share: float) -> None:
        self._places = int(self._most * share + ROUNDING)
        for bucket in (self.requests, self.tokens):
            if bucket is not None:
                bucket.resize(share)

    def take(self, tokens: int) -> tuple[float, float]:
        """Places in the queues for one request of this many tokens."""
        requests = self.requests.take(1) if self.requests is not None else 0.0
        return requests, self.tokens.take(tokens) if self.tokens is not None else 0.0

    def wait(self, places: tuple[float, float]) -> float:
        """Seconds before the request may go."""
        requests = self.requests.wait(places[0]) if self.requests is not None else 0.0
        return max(requests, self.tokens.wait(places[1]) if self.tokens is not None else 0.0)
