"""How long the responses took."""

from assay.interfaces import Group, Values
from assay.metrics._responses import columns, statistics
from assay.registry import metric


@metric(columns=columns("inference_time"), verdicts=False)
def latency(group: Group) -> Values:
    """The mean time of a response in seconds (`inference_time`), with sum, min, median, p95, p99, max and std.

    Every response behind the rows counts once; a response that failed does not count.
    """
    return statistics(group, "inference_time", {})
