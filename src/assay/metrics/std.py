"""The standard deviation of the scores."""

from typing import Annotated

from msgspec import Meta

from assay.sdk import Group, Values, metric


@metric(scale=(0, None))
def std(group: Group, *, ddof: Annotated[int, Meta(ge=0)] = 1) -> Values:
    """How far the scores of all rows lie from their mean: √(Σ(x - x̄)² / (n - ddof)).

    Parameters:
    ddof: 1 estimates the deviation behind the sample, 0 describes the rows themselves
    """
    n = len(group.score)
    if n <= ddof:
        return Values(fields={"ddof": ddof}, reason=f"{n} rows are too few for ddof = {ddof}")
    value = float(group.score.std(ddof=ddof))
    return Values(
        value=value, fields={"ddof": ddof}, reason="a standard deviation is not a mean over items"
    )
