"""Whether an answer agrees with the references, as a model sees it."""

from collections.abc import Mapping
from typing import Any, Literal

from assay.interfaces import Context, Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._judge_checks import check_panel, check_threshold
from assay.scorers._judge_prompt import Question, answer_text, texts_of
from assay.scorers._judging import Panel, Rule, Structured, judged
from assay.text.verdict_words import CORRECTNESS, FRACTION, TERNARY, Scale

Verdicts = Literal["binary", "ternary", "fractional"]
_SCALES: dict[Verdicts, tuple[Scale, float]] = {
    "binary": (CORRECTNESS, 0.5),
    "ternary": (TERNARY, 1.0),
    "fractional": (FRACTION, 0.5),
}


def check(params: Mapping[str, Any], where: str) -> None:
    check_threshold(params["threshold"], 0, 1, where)
    check_panel(params, where, must=("answer", "reference"))


@scorer(judge=True, check=check, version=1)
async def judge_correctness(
    item: Item,
    response: Response,
    *,
    context: Context,
    model: str | list[str] = "",
    prompt: str = "correctness",
    verdicts: Verdicts = "binary",
    threshold: float | None = None,
    expected: str | None = None,
    repeats: int = 1,
    rule: Rule = "majority",
    tries: int = 2,
    temperature: float | None = 0.0,
    params: dict[str, Any] | None = None,
    structured: Structured = "auto",
    strip_reasoning: bool = True,
) -> list[Score]:
    """A model judges whether the answer says the same as one of the references.

    Score: correct 1 and incorrect 0; `ternary` knows partly correct, 0.5; `fractional` is a number from 0 to 1. Passes
    from `threshold` on. References are the accepted answers, as for [exact_match](#exact_match); an item without one is
    an error row, and nobody is asked. Panels, repeats and failures are as for [judge](#judge).

    Parameters:
    model: the name of the model that judges, or several: a panel; by default the only `helper`, or the only model
    prompt: the name of a shipped prompt, a file, or the text itself, with parts `[system]` and `[user]`;
      it must show `answer` and `reference`, and may show `question`, `scale` and `item`
    verdicts: what a verdict may be
    threshold: the score from which an answer passes; by default 0.5, with `ternary` 1
    expected: the field of the ground truth that has the references
    repeats: how often each model is asked
    rule: what becomes of several verdicts
    tries: how often a model is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    structured: whether a JSON schema is sent: `auto` does where a server may take it, and goes on without if not
    strip_reasoning: judge only what follows `</think>`
    """
    panel = Panel(model, prompt, repeats, rule, tries, temperature, params, structured)
    reads, usual = _SCALES[verdicts]
    texts = texts_of(item, prompt, expected=expected, answer=answer_text(response, strip_reasoning))
    asked = Question(texts, {}, reads, usual if threshold is None else threshold)
    (labels,) = await judged(context, item, panel, [asked])
    return labels
