"""Which of two answers a model prefers."""

from collections.abc import Mapping
from typing import Any, Literal

from assay.interfaces import Context, Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._judge_checks import check_panel
from assay.scorers._judge_prompt import Question, answer_text, texts_of
from assay.scorers._judging import Panel, Structured, judged
from assay.text.verdict_words import PREFERENCE


def check(params: Mapping[str, Any], where: str) -> None:
    check_panel(params, where, must=("first", "second"), may=("criterion",))


@scorer(judge=True, check=check, version=1)
async def judge_pairwise(
    item: Item,
    first: Response,
    second: Response,
    *,
    context: Context,
    model: str | list[str] = "",
    prompt: str = "pairwise",
    criterion: str = "The better answer is right, answers what was asked and helps the one who asked.",
    expected: str | None = None,
    repeats: int = 1,
    rule: Literal["majority", "mean"] = "majority",
    tries: int = 2,
    temperature: float | None = 0.0,
    params: dict[str, Any] | None = None,
    structured: Structured = "auto",
    strip_reasoning: bool = True,
) -> list[Score]:
    """A model judges which of two answers to one item is better; each pair is shown in both orders.

    Score: 1 if the first player wins, 0.5 for a tie, 0 if it loses. Each order is a row of its own, with `seat` and the
    verdict as it was shown (`first`, `second`, `tie`); a panel's `votes` are as shown as well. Panels, repeats and
    failures are as for [judge](#judge); a panel without a majority is a tie.

    Parameters:
    model: the name of the model that judges, or several: a panel; by default the only `helper`, or the only model
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `first` and `second`, and may show `question`, `reference`, `criterion`, `scale`, `item`
    criterion: what makes an answer the better one
    expected: the field of the ground truth that has the references, for a prompt that shows `reference`
    repeats: how often each model is asked
    rule: what becomes of several verdicts
    tries: how often a model is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    structured: whether a JSON schema is sent: `auto` does where a server may take it, and goes on without if not
    strip_reasoning: compare only what follows `</think>`
    """
    panel = Panel(model, prompt, repeats, rule, tries, temperature, params, structured)
    answers = {"first": answer_text(first, strip_reasoning), "second": answer_text(second, strip_reasoning)}
    texts = texts_of(item, prompt, expected=expected, **answers)
    (labels,) = await judged(context, item, panel, [Question(texts, {"criterion": criterion}, PREFERENCE, 0.75)])
    return labels
