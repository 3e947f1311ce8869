"""How many calls a lane keeps in flight: as many as the server takes, found by trying.

It doubles until the first refusal. A refused call was one too many, so it takes its place with it: of a burst, as many
calls stay in flight as the server accepted, and that level is held. From there one more is tried, ever more rarely
while that fails and in growing steps while it works. More than a few refusals at a level that had been fine are put to
a test: the limit is halved. If that helps, the server has become slower; if it does not, refusals come at random,
whatever the number of calls in flight, and are not a reason to slow down.
"""

INFINITE = float("inf")


class Adaptive:
    """Told of every call sent and finished, it keeps `limit`."""

    START = 8
    # windows (as many calls as the limit allows) at the plateau before it tries one more
    PATIENCE = 8
    MOST_PATIENCE = 32
    FORGIVEN = 0.03  # share of refusals that is always put up with
    DOUBTS = 3  # refusals at a level that had been fine before the limit is halved to see whether that helps

    def __init__(self, ceiling: int) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(self.START, self.ceiling))
        self.noise = 0.0  # share of refusals that come whatever the limit is
        self._plateau = INFINITE  # the level that was held after the last refusal; below it the limit grows fast
        self._patience = self.PATIENCE
        self._step = 1
        self._quiet = 0
        # raised with every cut: calls sent before it say nothing about the limit after it
        self._epoch = 0
        self._calls = self._refusals = self._most = 0  # of the current window
        # the epoch that ended with a refusal; its further refusals belong to the same burst
        self._burst = -1
        self._doubts = self._calls_in_doubt = 0
        self._undoubted = self.limit
        self._share_before_test: float | None = None
        self._credit = 1.0

    def begin(self, in_flight: int) -> int:
        """A token to hand back to `finished`; `in_flight` counts this call too."""
        self._most = max(self._most, in_flight)
        return self._epoch

    def end(self, token: int, overloaded: bool, cheap: bool = True) -> None:
        """`cheap`: refusals cost nothing but themselves; where each one stops the lane for a while, none is risked."""
        if token != self._epoch:
            if overloaded and token == self._burst:
                self._take_place()
            return
        self._calls += 1
        self._refusals += overloaded
        self._credit = min(self._credit + self.FORGIVEN, 3.0)
        if self._share_before_test is not None:
            self._judge(self._share_before_test)
        elif overloaded and not self._is_noise() and not (cheap and self._forgive()):
            self._note_refusal()
        elif self._calls >= max(20 if self.noise else 8, self.limit):
            self._end_window(cheap)

    def _is_noise(self) -> bool:
        allowed = min(2 * self.noise + 0.05, 0.5) * max(self._calls, 20, self.limit)
        return self.noise > 0 and self._refusals <= allowed

    def _forgive(self) -> bool:
        """Rare refusals change nothing. A limit that is too high shows at once: the next call is refused too."""
        proved = self.limit <= self._plateau < INFINITE
        forgiven = self._credit >= 1 and (proved or self._refusals == 1)
        self._credit -= forgiven
        return forgiven

    def _note_refusal(self) -> None:
        if self.limit > self._plateau or self._plateau == INFINITE:
            self._patience = min(2 * self._patience, self.MOST_PATIENCE)
        if self._plateau != INFINITE and self.limit <= self._plateau:
            if not self._doubts:
                self._undoubted, self._calls_in_doubt = self.limit, 0
            self._doubts += 1
        self._calls_in_doubt += self._calls
        self._step = 1
        self._burst = self._epoch
        self.limit = min(self.limit, float(max(self._most, 1)))
        self._next_epoch()
        self._take_place()
        if self._doubts >= self.DOUBTS:
            self._share_before_test = self._doubts / self._calls_in_doubt
            self._halve()

    def _take_place(self) -> None:
        """One of the calls in flight was refused: do with one less."""
        if self._share_before_test is None:
            self.limit = self._plateau = max(1.0, self.limit - 1)

    def _halve(self) -> None:
        self._plateau = self.limit
        self.limit = max(1.0, self.limit / 2)
        self._next_epoch()

    def _judge(self, share_before: float) -> None:
        """The limit was halved: has it helped? As many calls are looked at as should hold five refusals."""
        if self._calls < max(8, self.limit, min(100, 5 / share_before)):
            return
        share = self._refusals / self._calls
        if share > 0.5 and self.limit > 1:
            self._halve()
            return
        self._share_before_test = None
        self._doubts = 0
        self._patience = self.PATIENCE
        if self._refusals > 1 and 0.4 * share_before <= share <= 0.5:
            self.noise = max(self.noise, share)
            self.limit, self._plateau = self._undoubted, INFINITE
        self._next_epoch()

    def _end_window(self, may_probe: bool) -> None:
        share = self._refusals / self._calls
        self.noise = 0.8 * self.noise + 0.2 * share if self.noise > 0.01 else 0.0
        if self._doubts:
            self._calls_in_doubt += self._calls
        if self._most >= int(self.limit):  # a limit that nobody reached has proved nothing
            self._grow(may_probe)
        self._calls = self._refusals = self._most = 0

    def _grow(self, may_probe: bool) -> None:
        if self.limit > self._plateau and self._refusals and not self.noise:
            self.limit = self._plateau
        elif self.limit > self._plateau:  # one more was tried, and it worked
            self._plateau = self.limit
            self._step *= 2
            self._patience, self._quiet = self.PATIENCE, self.PATIENCE
        if self.limit < self._plateau:
            self.limit = min(
                self.limit * (2.0 if self._plateau == INFINITE else 1.25), self._plateau
            )
        else:
            self._quiet += 1
            if self._quiet >= self._patience and may_probe:
                self._quiet = 0
                self.limit += self._step
        self.limit = min(self.limit, float(self.ceiling))

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._calls = self._refusals = self._most = self._quiet = 0
