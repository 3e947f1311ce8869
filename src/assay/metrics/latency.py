"""How long the responses took."""

from assay.metrics._responses import Statistic, columns, statistics
from assay.sdk import Group, Values, metric


@metric(columns=columns("inference_time"), verdicts=False, lower_is_better=True, scale=(0, None))
def latency(group: Group, *, statistic: Statistic = "mean") -> Values:
    """The time of a response in seconds (`inference_time`): mean, sum, min, median, p95, p99, max and std, and
    `intervals` of the quantiles.

    Every response behind the rows counts once; a response that failed does not count.

    Parameters:
    statistic: which number is the value
    """
    return statistics(group, "inference_time", {}, statistic)
