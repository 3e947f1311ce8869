"""How many bits a model needs for a byte of text."""

import math

from assay.interfaces import Group, Values
from assay.metrics.perplexity import COLUMNS, weighed
from assay.registry import metric


@metric(columns=COLUMNS, verdicts=False, lower_is_better=True)
def bits_per_byte(group: Group) -> Values:
    """-Σ log₂ p / Σ bytes over all texts of a group: the size of the texts as the model could compress them.

    The label is that of `text_likelihood`. It can be compared between models with different tokenizers. Intervals are
    made by the bootstrap over items.
    """
    return weighed(group, "byte", lambda nats: nats / math.log(2))
