"""What the responses of a run used: tokens and dollars by model, read from the rows themselves."""

import msgspec

from assay.interfaces import Log


class Usage(msgspec.Struct):
    """`cost` sums what is known; `unpriced` responses had tokens and no known price; `errors` are among the rows."""

    responses: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class _Row(msgspec.Struct):
    model_name: str = ""
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cost: float | None = None


def usage_of(log: Log) -> dict[str, Usage]:
    """By model, in order of name."""
    decode = msgspec.json.Decoder(_Row).decode
    found: dict[str, Usage] = {}
    for _, line in log.scan():
        try:
            row = decode(line)
        except msgspec.DecodeError:  # a blank or foreign line used nothing
            continue
        usage = found.get(row.model_name)
        if usage is None:
            usage = found[row.model_name] = Usage()
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
    return dict(sorted(found.items()))
