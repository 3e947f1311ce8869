"""How many tokens the responses used."""

from typing import Literal

from assay.metrics._responses import columns, once, statistics
from assay.sdk import Group, JsonObject, Values, metric

KINDS = ("prompt_tokens", "completion_tokens", "total_tokens")


@metric(columns=columns(*KINDS), verdicts=False, lower_is_better=True, scale=(0, None))
def tokens(
    group: Group,
    *,
    of: Literal["prompt_tokens", "completion_tokens", "total_tokens"] = "total_tokens",
) -> Values:
    """The mean number of tokens of a response, with sum, min, median, p95, p99, max, std, and the sums of all kinds.

    Every response behind the rows counts once; a response that failed, or whose server did not tell, does not count.

    Parameters:
    of: which tokens
    """
    sums: JsonObject = {kind: int(once(group, kind)[1].sum()) for kind in KINDS}
    return statistics(group, of, {"of": of, **sums})
