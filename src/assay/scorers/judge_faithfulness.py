"""Whether an answer says only what the retrieved passages say, by a model's judgement."""

from typing import Any, Literal

from assay.scorers._judge_prompt import (
    JudgeQuestion,
    answer_text,
    check_panel,
    check_threshold,
    texts_of,
)
from assay.scorers._judging import Panel, ask_one
from assay.scorers._parameters import unparsed_score
from assay.scorers._retrieved import retrieved, texts
from assay.sdk import Context, Item, JsonMapping, Response, Score, scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.verdict_words import FRACTION, YES_NO, Scale

Verdicts = Literal["binary", "fractional"]
_SCALES: dict[Verdicts, Scale] = {"binary": YES_NO, "fractional": FRACTION}


def check(params: JsonMapping, where: str) -> None:
    check_threshold(params["threshold"], 0, 1, where)
    check_panel(params, where, must=("answer", "context"))


@scorer(judge=True, check=check, params=Panel, version=1)
async def judge_faithfulness(
    item: Item,
    response: Response,
    *,
    context: Context,
    prompt: str = "faithfulness",
    verdicts: Verdicts = "binary",
    measure: Literal["faithfulness", "hallucination"] = "faithfulness",
    threshold: float = 0.5,
    documents: str | None = None,
    response_field: str | None = None,
    most_documents: int | None = None,
    strip_reasoning: bool = True,
    **panel: Any,
) -> list[Score]:
    """A model judges whether the retrieved passages support everything that the answer says.

    Score: yes 1 and no 0; `fractional` is the supported share of its claims, from 0 to 1. Passes from `threshold` on.
    With `measure: hallucination` the score is 1 − that, and passes where it passed before. Nothing retrieved is not
    asked about: the answer is unfaithful. Panels, repeats and failures are as for [judge](#judge). Where passages come
    from is on [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `answer` and `context`, and may show `question`, `reference`, `scale` and `item`
    measure: what the score says: how faithful the answer is, or how much of it is made up
    threshold: the faithfulness from which an answer passes
    documents: the field that has the passages, such as `item.data.context`; by default a usual one
    response_field: judge this field (a dotted path) of the JSON in the answer
    most_documents: show only this many passages, the best ranked ones; all if null
    """
    passages = texts(retrieved(item, response, documents))[:most_documents]
    try:
        field = answer_of(response, response_field, strip_reasoning) if response_field else None
    except Unparsed as error:
        return [unparsed_score(error)]
    if passages:
        shown = texts_of(
            item, prompt, answer=answer_text(response, strip_reasoning) if field is None else field
        )
        asked = JudgeQuestion(
            {**shown, "context": "\n\n".join(passages)}, {}, _SCALES[verdicts], threshold
        )
        labels = await ask_one(context, item, asked, prompt=prompt, **panel)
    else:
        labels = [Score(score=0.0, passed=False, details={"reason": "nothing was retrieved"})]
    if measure == "hallucination":
        for label in labels:
            label.score = None if label.score is None else 1.0 - label.score
    return labels
