"""How fast answers are generated."""

from assay.metrics._responses import STREAM, Statistic, columns, stream_statistics
from assay.sdk import Group, Values, metric


@metric(
    columns=columns(f"{STREAM}.generation_speed"),
    verdicts=False,
    lower_is_better=False,
    scale=(0, None),
)
def generation_speed(group: Group, *, statistic: Statistic = "median") -> Values:
    """The tokens per second of a response, from the first to the last: the median, with mean, sum, min, p95, p99, max
    and std, and `intervals` of the quantiles. The time to the first token is not in it. A proxy that holds tokens back
    and sends them together makes single responses look very fast: hence the median.

    Every streamed response behind the rows counts once; a response that failed does not count.

    Parameters:
    statistic: which number is the value
    """
    return stream_statistics(group, "generation_speed", statistic)
