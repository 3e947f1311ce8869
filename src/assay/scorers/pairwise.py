"""Relative evaluation: which of two players answers better."""

from typing import Any, Literal

from assay.sdk import Item, Response, Score, UserError, scorer


@scorer(pairwise=True, version=1)
def pairwise(
    item: Item,
    first: Response,
    second: Response,
    *,
    decide: str = "judge_pairwise",
    players: str = "model_name",
    both_seats: bool = True,
    items: Literal["intersection", "refuse"] = "intersection",
    skip_on_any_failure: bool = True,
    **params: Any,
) -> Score:
    """Two players' answers to the same item and sample meet, and a model, a function or people decide who is better.

    All further parameters are those of the decider. Score: 1 if the first player wins, 0.5 for a tie, 0 if it loses;
    the first player is the one whose name comes first in the alphabet, in whichever seat its answer stands. Pairs that
    have met before do not meet again: a model that is added later plays only its own matches. See
    [pairwise](pairwise.md).

    Parameters:
    decide: `judge_pairwise`, the name of another scorer of the form `(item, first, second)`, `file.py:function`, or
      `people`: what they decided in the review of `assay view` (or in the file that `labels` names)
    players: who plays: `model_name`, `prompt_template`, `task`, `run`, or any field of a response or its metadata
    both_seats: whether each pair is shown in both orders, as two rows; people see it once, in an order that is drawn
    items: what happens if players answer different items: each pair meets on the `intersection`, or it is an error
    skip_on_any_failure: a match in which a response failed is `skipped`; if false, its row has the response's outcome
    """
    raise UserError(
        "`pairwise` names a decider and decides nothing itself",
        fix="use it in `evaluation_methods`",
    )
