"""How many rows there are."""

from assay.sdk import Group, Values, metric


@metric(scale=(0, None))
def count(group: Group) -> Values:
    """The number of rows that count under the policy, and how many of them passed."""
    fields = {"passed_count": None if group.only_scores else int(group.passed.sum())}
    return Values(value=len(group.score), fields=fields, reason="a count is not a mean over items")
