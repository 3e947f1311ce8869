"""How undecided a model is between choices."""

from assay.metrics._likelihoods import DETAILS, mean_of
from assay.sdk import Group, Values, metric


@metric(columns=[f"{DETAILS}entropy"], verdicts=False, scale=(0, None))
def entropy(group: Group) -> Values:
    """The mean of -Σ p ln p over the choices, in nats: 0 for a model that is sure, ln n for one that finds all n equal.

    The probabilities are those that `likelihood_choice` or `letter_likelihood` keeps in `detailed_results`.
    """
    return mean_of(group, "entropy", "likelihood_choice and letter_likelihood")
