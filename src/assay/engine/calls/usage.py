"""What rows and the calls inside them used: tokens and dollars, by model."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from assay.interfaces import Completion, Log, Price
from assay.records import JsonObject
from assay.store.table.decode import read_rows

USAGE, CALLS = "usage", "calls"  # where a manifest's metadata has what its rows and its calls used


class Usage(msgspec.Struct):
    """`cost` sums what is known; `unpriced` responses had tokens and no known price; `errors` are among the rows."""

    responses: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Used(msgspec.Struct):
    model_name: str = ""
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cost: float | None = None


class UsedCall(msgspec.Struct):
    owner: str = ""
    model_name: str = ""
    completion: Used = msgspec.field(default_factory=Used)


def usage_of(log: Log) -> JsonObject:
    """Of responses, by model, in order of name."""
    by_model = defaultdict[str, Usage](Usage)
    for _, row in read_rows(log, Used):
        _add(by_model[row.model_name], row)
    return msgspec.to_builtins(dict(sorted(by_model.items())))


def usage_of_calls(log: Log, owners: Iterable[str]) -> dict[str, JsonObject]:
    """Of the calls that some tasks or scorers made themselves: by owner, then by model."""
    wanted = set(owners)
    by_owner = defaultdict[str, defaultdict[str, Usage]](lambda: defaultdict(Usage))
    for _, call in read_rows(log, UsedCall):
        if call.owner in wanted:
            _add(by_owner[call.owner][call.model_name], call.completion)
    return msgspec.to_builtins(by_owner)


def _add(usage: Usage, row: Used) -> None:
    usage.responses += 1
    if row.error is not None:
        usage.errors += 1
    usage.prompt_tokens += row.prompt_tokens or 0
    usage.completion_tokens += row.completion_tokens or 0
    usage.total_tokens += row.total_tokens or 0
    if row.cost is not None:
        usage.cost += row.cost
    elif row.error is None:
        usage.unpriced += 1


def cost_of(price: Price | None, completion: Completion) -> float | None:
    """Return what a call cost in US dollars; what the server itself says wins, and without token
    counts nobody knows."""
    if completion.cost is not None:
        return completion.cost
    if price is None:
        return None
    if price.is_free():
        return 0.0
    if completion.prompt_tokens is None or completion.completion_tokens is None:
        return None
    return price.cost(completion.prompt_tokens, completion.completion_tokens)
