"""How far the probabilities of choices are from the truth."""

from assay.metrics._likelihoods import DETAILS, mean_of
from assay.sdk import Group, Values, metric


@metric(columns=[f"{DETAILS}brier"], verdicts=False, lower_is_better=True, scale=(0, 2))
def brier_score(group: Group) -> Values:
    """The mean of Σ(p - o)² over the choices, where o is 1 for the right one and 0 for the others (Brier 1950): 0 for a
    model that is sure and right, 2 for one that is sure and wrong.

    The probabilities are those that `likelihood_choice` or `letter_likelihood` keeps in `detailed_results`.
    """
    return mean_of(group, "brier", "likelihood_choice and letter_likelihood")
