"""What the responses cost."""

from assay.metrics._responses import columns, once, statistics
from assay.sdk import Group, Values, metric


@metric(columns=columns("cost"), verdicts=False, lower_is_better=True, scale=(0, None))
def cost(group: Group) -> Values:
    """The mean cost of a response, with its sum, min, median, p95, p99, max, std, and the cost of one pass.

    Every response behind the rows counts once; a response that failed, or whose price is unknown, does not count.
    `cost_per_pass` is the sum over the number of rows that passed. What scorers paid is not in it.
    """
    _, values = once(group, "cost")
    passes = int(group.passed.sum())
    return statistics(
        group, "cost", {"cost_per_pass": float(values.sum()) / passes if passes else None}
    )
