"""Which requests fail, and how: a pure function of the seed and the request's number."""

from assay.server.options import RATES, Options

_MASK = 2**64 - 1


def uniform(seed: int, number: int) -> float:
    """A draw from [0, 1) for one request (splitmix64: well mixed and cheap)."""
    state = (seed * 0xD1342543DE82EF95 + number * 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (state ^ (state >> 31)) / 2**64


class Faults:
    """Draws the fault of each request: a rate's name without its prefix, or an empty string."""

    def __init__(self, options: Options) -> None:
        self.seed = options.seed
        self.steps: list[tuple[float, str]] = []
        total = 0.0
        for name in RATES:
            rate: float = getattr(options, name)
            if rate:
                total += rate
                self.steps.append((total, name.removeprefix("rate_")))

    def draw(self, number: int) -> str:
        if not self.steps:
            return ""
        at = uniform(self.seed, number)
        for below, fault in self.steps:
            if at < below:
                return fault
        return ""
