"""Models as MixEval's judges: a score from 0 to 1 for a free-form answer, the chosen letter for a multiple-choice one.

With our own prompts the texts of others stand between tags, and verdicts are read with care; with the original's, which
the user brings, messages and parsing are the protocol's. A verdict that cannot be read is `unparsed`, never drawn.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from assay.errors import PermanentError, UserError
from assay.formats.mixeval import compat
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE, options_block
from assay.formats.mixeval.judge_prompts import is_original, original_messages
from assay.interfaces import Completion, Context, Message, Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._judge_prompt import Question, check_panel, rendered
from assay.scorers._judging import RAW, SHOWN_AGAIN, Panel, identity
from assay.text.choices import find_choice
from assay.text.fences import without_fenced
from assay.text.reasoning import without_reasoning
from assay.text.verdict_words import FRACTION, Words
from assay.text.verdicts import NoVerdict, is_refusal, read_verdict

_LETTER = Words("the letter of an option", {}, {})
_BRACKETED = re.compile(r"\[\[\s*([A-Za-z]|none)\s*\]\]", re.I)
_AGAIN = "No verdict can be read from that. Reply with {what} between double square brackets and with nothing else."
NO_OPTION = "none"
Reading = Literal["judged", "judged-compat"]
Read = Callable[[str], float | str | None]


class _Asked(NamedTuple):
    """What a judge is sent, how its answer is read, and what it is asked for once more."""

    messages: list[Message]
    read: Read
    again: str
    question: Question


def _check(kind: str, must: tuple[str, ...]) -> Callable[[Mapping[str, Any], str], None]:
    def check(params: Mapping[str, Any], where: str) -> None:
        if len(params["model"]) != 1:
            raise UserError("MixEval has one judge at a time", where=where, fix="use one scorer for each judge")
        shown = (
            " ".join(f"{{{{{name}}}}}" for name in must) if is_original(params["prompt"], kind) else params["prompt"]
        )
        check_panel({**params, "repeats": 1, "prompt": shown}, where, must=must)

    return check


@scorer(name="mixeval.judge_freeform", judge=True, check=_check(FREE_FORM, ("answer", "reference")), version=1)
async def judge_freeform(
    item: Item,
    response: Response,
    *,
    context: Context,
    model: str | list[str] = "",
    prompt: str = "mixeval_freeform",
    tries: int = 3,
    temperature: float | None = 0.0,
    params: dict[str, Any] | None = None,
    trim_base: bool = False,
) -> Score | list[Score]:
    """A model gives a free-form answer a score from 0 to 1, given the question and all accepted answers.

    Parameters:
    model: the name of the model that judges
    prompt: the name of a shipped prompt, a file, or the text; the protocol's own text is asked and read as there
    tries: how often it is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    trim_base: first cut off what a base model continued to ask itself
    """
    if _kind(item) != FREE_FORM:
        return []
    text = compat.trimmed(response.response, multiple_choice=False) if trim_base else response.response
    targets = [str(target) for target in item.ground_truth]
    question = Question({}, {}, FRACTION, 0.5)
    if is_original(prompt, FREE_FORM):
        gold = "; ".join(f"<answer {number}> {target}" for number, target in enumerate(targets, 1))
        messages = original_messages(prompt, FREE_FORM, P=item.data["prompt"], G=gold, R=text)
        asked = _Asked(messages, compat.judged_score, "", question)
    else:
        reference = "\n".join(dict.fromkeys(" ".join(target.split()) for target in targets))
        texts = {"question": item.data["prompt"], "reference": reference, "answer": without_reasoning(text)}
        question = question._replace(texts=texts)
        shown = rendered(prompt, item, question)
        again = _AGAIN.format(what=FRACTION.described)
        asked = _Asked(shown.messages, lambda said: _score_in(said, shown.judged, shown.mark), again, question)
    score = await _judged(context, asked, Panel(model, prompt, 1, "mean", tries, temperature, params, "never"))
    if score.outcome == "scored":
        score.score = float(score.details["verdict"])
        score.passed = score.score >= 0.5
    return score


@scorer(name="mixeval.judge_choice", judge=True, check=_check(MULTIPLE_CHOICE, ("answer", "options")), version=1)
async def judge_choice(
    item: Item,
    response: Response,
    *,
    context: Context,
    model: str | list[str] = "",
    prompt: str = "mixeval_choice",
    tries: int = 3,
    temperature: float | None = 0.0,
    params: dict[str, Any] | None = None,
    trim_base: bool = False,
) -> Score | list[Score]:
    """A model says which option a multiple-choice answer chose, without knowing which one is right.

    Parameters:
    model: the name of the model that judges
    prompt: the name of a shipped prompt, a file, or the text; the protocol's own text is asked and read as there
    tries: how often it is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    trim_base: first cut off what a base model continued to ask itself
    """
    if _kind(item) != MULTIPLE_CHOICE:
        return []
    text = compat.trimmed(response.response, multiple_choice=True) if trim_base else response.response
    options = [str(option) for option in item.data["options"]]
    question = Question({}, {}, _LETTER, 1.0)
    if is_original(prompt, MULTIPLE_CHOICE):
        shown_options = options_block(options)
        messages = original_messages(prompt, MULTIPLE_CHOICE, P=item.data["prompt"], O=shown_options, R=text)
        asked = _Asked(messages, compat.judged_option, "", question)
    else:
        texts = {
            "question": item.data["prompt"],
            "options": options_block(options),
            "answer": without_reasoning(text),
        }
        question = question._replace(texts=texts)
        shown = rendered(prompt, item, question)
        again = _AGAIN.format(what=_LETTER.described)
        asked = _Asked(shown.messages, lambda said: _option_in(said, options, shown.mark), again, question)
    score = await _judged(context, asked, Panel(model, prompt, 1, "mean", tries, temperature, params, "never"))
    if score.outcome == "scored":
        right = score.details["verdict"] == compat.letters(len(options))[item.ground_truth[0]]
        score.score, score.passed = float(right), right
    return score


@scorer(name="mixeval.judged", version=1)
def judged(item: Item, response: Response, *, reading: Reading = "judged") -> Score:
    """The verdict of a judge file, without a call.

    Parameters:
    reading: judged (what the judge's text says, unparsed where it says nothing) or judged-compat (the stored verdict,
      which the original draws where it can read none)
    """
    stored: dict[str, Any] = response.output or {}
    text = str(stored.get("judge_response") or "")
    details = {"judge_response": text[:RAW]}
    if _kind(item) == MULTIPLE_CHOICE:
        options = [str(option) for option in item.data["options"]]
        again = compat.judged_option(text) or _option_in(text, options, "")
        option = stored.get("judge_option") if reading == "judged-compat" else again
        if option in (None, NO_OPTION):
            return Score(outcome="unparsed", error="the judge names no option", details=details)
        right = option == compat.letters(len(options))[item.ground_truth[0]]
        return Score(passed=right, score=float(right), details={**details, "verdict": option})
    score = stored.get("judge_score") if reading == "judged-compat" else compat.judged_score(text)
    if score is None and reading == "judged":
        score = _score_in(text, [response.response], "")
    if not isinstance(score, (int, float)) or not 0 <= score <= 1:
        return Score(outcome="unparsed", error="the judge gives no score from 0 to 1", details=details)
    return Score(passed=score >= 0.5, score=float(score), details=details)


def _kind(item: Item) -> str:
    return str(item.metadata.get("problem_type") or item.data.get("problem_type"))


# ---- asking


async def _judged(context: Context, asked: _Asked, panel: Panel) -> Score:
    """One verdict in `details`, or why there is none. The original's prompt is sent again as it is."""
    model = context.model(panel.models[0])
    details: dict[str, Any] = {"judge": {"model": model.name, **identity(panel, asked.question, model)}}
    messages = list(asked.messages)
    said = Completion()
    for number in range(1, panel.tries + 1):
        if number > 1 and asked.again:
            shown = said.text[:SHOWN_AGAIN].strip() or "(nothing)"
            messages += [{"role": "assistant", "content": shown}, {"role": "user", "content": asked.again}]
        try:
            said = await context.complete(messages, model=model, step="judge", **panel.sent)
        except PermanentError as error:
            return Score(outcome="errored", error=error.what, details=details)
        details["raw"] = said.text[:RAW]
        found = asked.read(said.text)
        if found == NO_OPTION:
            return Score(outcome="unparsed", error="the judge finds no option in the answer", details=details)
        if found is not None:
            return Score(details={**details, "verdict": found})
        if said.refused or is_refusal(said.text):
            return Score(outcome="errored", error="the judge refuses", details=details)
    error = f"no verdict can be read in {panel.tries} tries"
    return Score(outcome="unparsed", error=error, details={**details, "tries": panel.tries})


def _score_in(text: str, judged: list[str], mark: str) -> float | None:
    """Our own reading: the last explicit verdict that is not a repetition of the judged texts."""
    try:
        return float(read_verdict(text, FRACTION, judged=judged, mark=mark).value)
    except NoVerdict:
        return None


def _option_in(text: str, options: list[str], mark: str) -> str | None:
    said = without_fenced(without_reasoning(text), mark)
    known = compat.letters(len(options))
    bracketed = [found.lower() for found in _BRACKETED.findall(said)]
    if bracketed:
        last = bracketed[-1]
        return NO_OPTION if last == NO_OPTION else last.upper() if last.upper() in known else None
    return find_choice(said, known, dict(zip(known, options, strict=True)))
