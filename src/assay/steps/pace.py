"""Requests and tokens per minute: a bucket says how long a call has to wait."""

import time

BURST = 1.0  # seconds' worth that may go at once


class Bucket:
    """Amounts flow out at a steady rate; a call that comes early is told to wait. Order of asking is order of going."""

    def __init__(self, per_minute: float) -> None:
        self._rate = per_minute / 60
        self._burst = max(BURST, 1 / self._rate)
        self._next = 0.0  # when everything that was taken has flowed out

    def take(self, amount: float) -> float:
        """Seconds to wait before this amount may go."""
        now = time.monotonic()
        start = max(self._next, now)
        self._next = start + amount / self._rate
        return max(0.0, self._next - self._burst - now)

    def give_back(self, amount: float) -> None:
        """What was taken and not used; a negative amount was used on top."""
        self._next -= amount / self._rate
