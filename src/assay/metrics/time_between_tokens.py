"""How evenly answers come."""

from assay.metrics._responses import STREAM, Statistic, columns, stream_statistics
from assay.sdk import Group, Values, metric


@metric(
    columns=columns(f"{STREAM}.time_between_tokens"),
    verdicts=False,
    lower_is_better=True,
    scale=(0, None),
)
def time_between_tokens(group: Group, *, statistic: Statistic = "mean") -> Values:
    """The mean time between the tokens of a response in seconds, from the first to the last; over the responses mean,
    sum, min, median, p95, p99, max and std, and `intervals` of the quantiles.

    Every streamed response behind the rows counts once; a response that failed does not count.

    Parameters:
    statistic: which number is the value
    """
    return stream_statistics(group, "time_between_tokens", statistic)
