"""How soon answers begin."""

from assay.metrics._responses import STREAM, Statistic, columns, stream_statistics
from assay.sdk import Group, Values, metric


@metric(columns=columns(f"{STREAM}.ttft"), verdicts=False, lower_is_better=True, scale=(0, None))
def ttft(group: Group, *, statistic: Statistic = "mean") -> Values:
    """The time to the first token of a response in seconds, from sending the request: mean, sum, min, median, p95, p99,
    max and std, and `intervals` of the quantiles.

    Every streamed response behind the rows counts once; a response that failed does not count.

    Parameters:
    statistic: which number is the value
    """
    return stream_statistics(group, "ttft", statistic)
