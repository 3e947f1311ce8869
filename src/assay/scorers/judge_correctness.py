"""Whether an answer agrees with the references, by a model's judgement."""

from typing import Any, Literal

from assay.scorers._judge_prompt import (
    JudgeQuestion,
    answer_text,
    check_panel,
    check_threshold,
    texts_of,
)
from assay.scorers._judging import Panel, ask_one
from assay.sdk import Context, Item, JsonMapping, Response, Score, scorer
from assay.text.verdict_words import CORRECTNESS, FRACTION, TERNARY, Scale

Verdicts = Literal["binary", "ternary", "fractional"]
_SCALES: dict[Verdicts, tuple[Scale, float]] = {
    "binary": (CORRECTNESS, 0.5),
    "ternary": (TERNARY, 1.0),
    "fractional": (FRACTION, 0.5),
}


def check(params: JsonMapping, where: str) -> None:
    check_threshold(params["threshold"], 0, 1, where)
    check_panel(params, where, must=("answer", "reference"))


@scorer(judge=True, check=check, params=Panel, version=1)
async def judge_correctness(
    item: Item,
    response: Response,
    *,
    context: Context,
    prompt: str = "correctness",
    verdicts: Verdicts = "binary",
    threshold: float | None = None,
    expected: str | None = None,
    strip_reasoning: bool = True,
    **panel: Any,
) -> list[Score]:
    """A model judges whether the answer says the same as one of the references.

    Score: correct 1 and incorrect 0; `ternary` knows partly correct, 0.5; `fractional` is a number from 0 to 1. Passes
    from `threshold` on. References are the accepted answers, as for [exact_match](#exact_match); an item without one is
    an error row, and nobody is asked. Panels, repeats and failures are as for [judge](#judge).

    Parameters:
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `answer` and `reference`, and may show `question`, `scale` and `item`
    threshold: the score from which an answer passes; by default 0.5, with `ternary` 1
    expected: the field of the ground truth that has the references
    """
    reads, usual = _SCALES[verdicts]
    texts = texts_of(item, prompt, expected=expected, answer=answer_text(response, strip_reasoning))
    asked = JudgeQuestion(texts, {}, reads, usual if threshold is None else threshold)
    return await ask_one(context, item, asked, prompt=prompt, **panel)
