"""What the mock server can be asked to do. Every field is a flag of `assay mock-server` of the same name."""

import msgspec

from assay.errors import UserError

RATES = (
    "rate_429", "rate_500", "rate_drop", "rate_torn", "rate_huge",
    "rate_garbage", "rate_unfinished", "rate_error_event",
)  # fmt: skip


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Rates are shares (0 to 1) of requests that fail so, drawn from the seed and the request's number; the last three
    spoil streams alone. `token_ms` is the pause between the pieces of a stream."""

    port: int = 0
    seed: int = 0
    skill: float = 0.8
    latency_ms: float = 0.0
    token_ms: float = 0.0
    capacity: int = 0
    retry_after: float = 1.0
    rate_429: float = 0.0
    rate_500: float = 0.0
    rate_drop: float = 0.0
    rate_torn: float = 0.0
    rate_huge: float = 0.0
    rate_garbage: float = 0.0
    rate_unfinished: float = 0.0
    rate_error_event: float = 0.0
    answers: str = ""
    processes: int = 1

    def __post_init__(self) -> None:
        rates = {name: getattr(self, name) for name in RATES}
        for name, value in {**rates, "skill": self.skill}.items():
            if not 0 <= value <= 1:
                raise UserError(
                    f"{name} is {value!r}, not a share", fix="give a number from 0 to 1"
                )
        if sum(rates.values()) > 1:
            raise UserError(
                f"the fault rates add up to {sum(rates.values()):g}", fix="keep their sum at most 1"
            )
        if not 0 <= self.port < 65536:
            raise UserError(
                f"port {self.port} does not exist", fix="give 0 (any free one) to 65535"
            )
        for name in ("latency_ms", "token_ms", "retry_after"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} is {getattr(self, name)!r}", fix="give 0 or more")
        if self.processes < 1 or self.capacity < 0:
            raise UserError("processes must be at least 1, capacity at least 0 (0 = no limit)")


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
