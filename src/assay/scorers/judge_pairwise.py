"""Which of two answers a model prefers."""

from typing import Any, Literal

from assay.scorers._judge_prompt import JudgeQuestion, answer_text, check_panel, texts_of
from assay.scorers._judging import Panel, ask_one
from assay.sdk import Context, Item, JsonMapping, Response, Score, scorer
from assay.text.verdict_words import PREFERENCE


def check(params: JsonMapping, where: str) -> None:
    check_panel(params, where, must=("first", "second"), may=("criterion",))


@scorer(judge=True, check=check, params=Panel, version=1)
async def judge_pairwise(
    item: Item,
    first: Response,
    second: Response,
    *,
    context: Context,
    prompt: str = "pairwise",
    criterion: str = "The better answer is right, answers what was asked and helps the one who asked.",
    expected: str | None = None,
    rule: Literal["majority", "mean"] = "majority",
    strip_reasoning: bool = True,
    **panel: Any,
) -> list[Score]:
    """A model judges which of two answers to one item is better; each pair is shown in both orders.

    Score: 1 if the first player wins, 0.5 for a tie, 0 if it loses. Each order is a row of its own, with `seat` and the
    verdict as it was shown (`first`, `second`, `tie`); a panel's `votes` are as shown as well. Panels, repeats and
    failures are as for [judge](#judge); a panel without a majority is a tie.

    Parameters:
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `first` and `second`, and may show `question`, `reference`, `criterion`, `scale`, `item`
    criterion: what makes an answer the better one
    """
    answers = {
        "first": answer_text(first, strip_reasoning),
        "second": answer_text(second, strip_reasoning),
    }
    texts = texts_of(item, prompt, expected=expected, **answers)
    asked = JudgeQuestion(texts, {"criterion": criterion}, PREFERENCE, 0.75)
    return await ask_one(context, item, asked, prompt=prompt, rule=rule, **panel)
