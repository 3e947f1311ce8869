"""How many calls a lane keeps in flight: as many as the server takes, found by trying.

Doubling until the first overload, then additive increase and halving, with two refinements. After a cut the limit
returns quickly to just below where it failed and stays there, probing rarely, so that a server of fixed capacity is
kept busy with few refusals. And a cut that does not help is undone: refusals that come at random, whatever the
number of calls in flight, are remembered as noise and no longer slow the lane down.
"""


class Adaptive:
    """Told of every finished call, it keeps `limit`."""

    START = 8
    PROBE_AFTER = 12  # quiet windows at the plateau before it tries one more

    def __init__(self, ceiling: int) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(self.START, self.ceiling))
        self.noise = 0.0
        self._plateau = float("inf")  # below it the limit grows fast
        self._calls = self._overloads = self._quiet = 0
        self._epoch = 0  # calls sent before the last cut say nothing about the limit after it
        self._before = 0.0
        self._share_before = 0.0
        self._testing = False

    def sent(self) -> int:
        """A token to hand back to `finished`."""
        return self._epoch

    def finished(self, token: int, overloaded: bool) -> None:
        if token != self._epoch:
            return
        self._calls += 1
        self._overloads += overloaded
        if overloaded and not self._testing and not self._is_noise():
            self._cut()
        elif self._calls >= max(8, self.limit):
            self._turn()

    def _is_noise(self) -> bool:
        if not self.noise:
            return False
        share = self._overloads / max(self._calls, 20)
        return share <= 2 * self.noise + 0.05

    def _cut(self) -> None:
        self._before = self.limit
        self._share_before = self._overloads / self._calls
        self._plateau = max(1.0, self.limit * 0.95)
        self.limit = max(1.0, self.limit / 2)
        self._testing = self.limit > 1
        self._next_epoch()

    def _turn(self) -> None:
        """A window is over: judge the last cut, or grow."""
        share = self._overloads / self._calls
        if self._testing:
            self._testing = False
            if share > 0.5 and not self._is_noise():
                self._cut()
                return
            if share >= 0.4 * min(self._share_before, 0.5) and self._overloads > 1:
                self.noise = max(self.noise, share)
                self.limit = self._before
        self._grow()
        self._calls = self._overloads = 0

    def _grow(self) -> None:
        if self.limit < self._plateau:
            fast = self.limit * (2.0 if self._plateau == float("inf") else 1.25)
            self.limit = min(fast, self._plateau)
        else:
            self._quiet += 1
            if self._quiet >= self.PROBE_AFTER:
                self._quiet = 0
                self._plateau = self.limit = self.limit + 1
        self.limit = min(self.limit, float(self.ceiling))

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._calls = self._overloads = self._quiet = 0
