"""A model's answer to one question about an answer."""

from typing import Any

from assay.scorers._judge_prompt import (
    GradeScale,
    JudgeQuestion,
    answer_text,
    check_panel,
    check_scale,
    scale_of,
    texts_of,
)
from assay.scorers._judging import Panel, ask_one
from assay.sdk import Context, Item, JsonMapping, Response, Score, scorer


def check(params: JsonMapping, where: str) -> None:
    check_scale(params["scale"], params["threshold"], where)
    check_panel(params, where, must=("answer",), may=("criterion",))


@scorer(judge=True, check=check, params=Panel, version=1)
async def judge(
    item: Item,
    response: Response,
    *,
    context: Context,
    prompt: str = "judge",
    criterion: str = "The answer is right and answers what was asked.",
    scale: GradeScale = "yes_no",
    threshold: float | None = None,
    expected: str | None = None,
    strip_reasoning: bool = True,
    **panel: Any,
) -> list[Score]:
    """A model judges the answer by one criterion: yes or no, or a grade.

    Score: 1 for yes and 0 for no; on a scale (grade − lowest) / (highest − lowest), with the grade in
    `detailed_results`. Passes from `threshold` on. What cannot be read is asked again, then unparsed with the raw
    text; a judge that refuses or fails is an error row. The answer is shown between tags that it cannot contain, and
    the judge is instructed that it is data.

    Several verdicts (a panel, or repeats) have a row each, labelled NAME.MODEL or NAME.MODEL.1, and one for all, NAME:
    the verdict that most gave (on a scale, whether most grades pass; a tied vote is 0.5 and fails), the mean, or the
    minimum. Neither the rule nor the threshold is sent: changing them asks nobody again.

    Parameters:
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it may show `question`, `answer`, `reference`, `criterion`, `scale` and `item`
    criterion: what is asked about the answer
    scale: `yes_no`, or the lowest and the highest grade, such as `[1, 5]`
    threshold: the grade from which an answer passes, by default the middle of the scale; with `yes_no` and the rule
      `mean`, the share of yes, by default one half
    """
    reads, passes_from = scale_of(scale, threshold)
    texts = texts_of(item, prompt, expected=expected, answer=answer_text(response, strip_reasoning))
    asked = JudgeQuestion(texts, {"criterion": criterion}, reads, passes_from)
    return await ask_one(context, item, asked, prompt=prompt, **panel)
