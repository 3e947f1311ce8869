"""MixEval's scorers: rule parsers (`rule-compat` is the protocol's, `rule` reads multiple choice and never guesses),
and judges, which give a free-form answer a score from 0 to 1 and find the letter of a multiple-choice one.

With our own prompts the texts of others stand between tags, and verdicts are read with care; with the original's, which
the user brings, messages and parsing are the protocol's. A verdict that cannot be read is `unparsed`, never drawn.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from assay.formats.mixeval import compat
from assay.formats.mixeval.evaluation_prompts import (
    FREE_FORM,
    MULTIPLE_CHOICE,
    is_original,
    options_block,
    original_messages,
)
from assay.scorers._judge_prompt import JudgeQuestion, Rendered, check_panel, render_question
from assay.scorers._judging import RAW, SHOWN_AGAIN, Panel, identity
from assay.sdk import (
    Completion,
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Message,
    PermanentError,
    Response,
    Score,
    UserError,
    scorer,
)
from assay.text.answers import without_reasoning
from assay.text.choices import find_choice
from assay.text.fences import without_fenced
from assay.text.verdict_words import FRACTION, Words
from assay.text.verdicts import NoVerdict, is_refusal, read_verdict

_LETTER = Words("the letter of an option", {}, {})
_BRACKETED = re.compile(r"\[\[\s*([A-Za-z]|none)\s*\]\]", re.I)
_AGAIN = "No verdict can be read from that. Reply with {what} between double square brackets and with nothing else."
NO_OPTION = "none"
Parser = Literal["rule", "rule-compat"]
Reading = Literal["judged", "judged-compat"]
Read = Callable[[str], float | str | None]


class Judge(msgspec.Struct, frozen=True):
    """Which model judges, and how it is asked.

    Parameters:
    model: the name of the model that judges
    prompt: the name of a shipped prompt, a file, or the text; the protocol's own text is asked and read as there
    tries: how often it is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    trim_base: first cut off what a base model continued to ask itself
    """

    model: str | list[str] = ""
    prompt: str = ""
    tries: int = 3
    temperature: float | None = 0.0
    params: JsonObject | None = None
    trim_base: bool = False


@scorer(name="mixeval.choice", version=1)
def choice(
    item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False
) -> Score | list[Score]:
    """A multiple-choice answer names the right option. An answer that names none is unparsed.

    Parameters:
    parser: rule (reads through markdown, brackets, boxes, reasoning, lower case and option texts) or rule-compat (the
      protocol's own steps; where it draws a letter at random, the row is unparsed and the score draws)
    trim_base: first cut off what a base model continued to ask itself
    """
    return (
        _choice(item, _answer(response, trim_base, True), parser)
        if _kind(item) == MULTIPLE_CHOICE
        else []
    )


def _refuse_rule(params: JsonMapping, where: str) -> None:
    """Raise for `rule`, by which 0.1 read free-form answers."""
    if params["parser"] == "rule":
        raise UserError(
            compat.NO_RULE,
            where=where,
            fix="use `parser: rule-compat` or mixeval.judge_freeform; mixeval.choice has `rule`",
        )


@scorer(name="mixeval.freeform", version=2, check=_refuse_rule)
def freeform(
    item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False
) -> Score | list[Score]:
    """A free-form answer holds one of the accepted answers.

    Parameters:
    parser: rule-compat (the protocol's own steps: any accepted answer inside the text behind a cue); rule is refused
    trim_base: first cut off what a base model continued to ask itself
    """
    return (
        _freeform(item, _answer(response, trim_base, False), parser)
        if _kind(item) == FREE_FORM
        else []
    )


@scorer(name="mixeval.answer", version=2, check=_refuse_rule)
def answer(
    item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False
) -> Score:
    """Either kind of entry, by its own rule.

    Parameters:
    parser: rule-compat; rule is refused
    trim_base: first cut off what a base model continued to ask itself
    """
    multiple = _kind(item) == MULTIPLE_CHOICE
    text = _answer(response, trim_base, multiple)
    return _choice(item, text, parser) if multiple else _freeform(item, text, parser)


def _kind(item: Item) -> str:
    return str(item.metadata.get("problem_type") or item.data.get("problem_type"))


def _options(item: Item) -> list[str]:
    return [str(option) for option in item.data["options"]]


def _is_right(item: Item, letter: Any) -> bool:
    return letter == compat.letters(len(item.data["options"]))[item.ground_truth[0]]


def _answer(response: Response, trim_base: bool, multiple: bool) -> str:
    return (
        compat.first_answer(response.response, multiple_choice=multiple)
        if trim_base
        else response.response
    )


def _choice(item: Item, text: str, parser: Parser) -> Score:
    options = _options(item)
    known = compat.letters(len(options))
    if parser == "rule":
        found = find_choice(text, known, dict(zip(known, options, strict=True)))
    else:
        found = compat.choose(text, options)
    if found is None:
        return _unparsed("the answer names no option, or more than one", {})
    return _score_of(_is_right(item, found), {"parsed": found})


def _freeform(item: Item, text: str, parser: Parser) -> Score:
    _refuse_rule({"parser": parser}, "")
    return _score_of(compat.is_right(text, item.ground_truth), {})


def _check(kind: str, shown: str) -> Callable[[JsonMapping, str], None]:
    def check(params: JsonMapping, where: str) -> None:
        if len(params["model"]) != 1:
            raise UserError(
                "MixEval has one judge at a time", where=where, fix="use one scorer for each judge"
            )
        must = ("answer", shown)
        prompt = params["prompt"]
        if is_original(prompt, kind):
            prompt = " ".join(f"{{{{{name}}}}}" for name in must)
        check_panel({**params, "repeats": 1, "prompt": prompt}, where, must=must)

    return check


@scorer(
    name="mixeval.judge_freeform",
    judge=True,
    check=_check(FREE_FORM, "reference"),
    params=Judge,
    version=1,
)
async def judge_freeform(
    item: Item,
    response: Response,
    *,
    context: Context,
    prompt: str = "mixeval_freeform",
    **judge: Any,
) -> Score | list[Score]:
    """A model gives a free-form answer a score from 0 to 1, given the question and all accepted answers."""
    if _kind(item) != FREE_FORM:
        return []
    targets = [str(target) for target in item.ground_truth]
    asks = _Asks(
        kind=FREE_FORM,
        question=JudgeQuestion({}, {}, FRACTION, 0.5),
        gold="; ".join(f"<answer {number}> {target}" for number, target in enumerate(targets, 1)),
        shown={
            "reference": "\n".join(dict.fromkeys(" ".join(target.split()) for target in targets))
        },
        read_original=compat.judged_score,
        read=lambda shown, said: _score_in(said, shown.judged, shown.mark),
    )
    score = await _verdict_by_judge(item, response, context, Judge(prompt=prompt, **judge), asks)
    if score.outcome == "scored":
        score.score = float(score.details["verdict"])
        score.passed = score.score >= 0.5
    return score


@scorer(
    name="mixeval.judge_choice",
    judge=True,
    check=_check(MULTIPLE_CHOICE, "options"),
    params=Judge,
    version=1,
)
async def judge_choice(
    item: Item,
    response: Response,
    *,
    context: Context,
    prompt: str = "mixeval_choice",
    **judge: Any,
) -> Score | list[Score]:
    """A model says which option a multiple-choice answer chose, without knowing which one is right."""
    if _kind(item) != MULTIPLE_CHOICE:
        return []
    options = _options(item)
    asks = _Asks(
        kind=MULTIPLE_CHOICE,
        question=JudgeQuestion({}, {}, _LETTER, 1.0),
        gold=options_block(options),
        shown={"options": options_block(options)},
        read_original=compat.judged_option,
        read=lambda shown, said: _option_in(said, options, shown.mark),
    )
    score = await _verdict_by_judge(item, response, context, Judge(prompt=prompt, **judge), asks)
    if score.outcome == "scored":
        score.passed = _is_right(item, score.details["verdict"])
        score.score = float(score.passed)
    return score


@scorer(name="mixeval.judged", version=1)
def judged(item: Item, response: Response, *, reading: Reading = "judged") -> Score:
    """The verdict of a judge file, without a call.

    Parameters:
    reading: judged (what the judge's text says, unparsed where it says nothing) or judged-compat (the stored verdict,
      which the original draws where it can read none)
    """
    stored: JsonObject = response.output or {}
    text = str(stored.get("judge_response") or "")
    details = {"judge_response": text[:RAW]}
    if _kind(item) == MULTIPLE_CHOICE:
        again = compat.judged_option(text) or _option_in(text, _options(item), "")
        option = stored.get("judge_option") if reading == "judged-compat" else again
        if option in (None, NO_OPTION):
            return _unparsed("the judge names no option", details)
        return _score_of(_is_right(item, option), {**details, "verdict": option})
    score = stored.get("judge_score") if reading == "judged-compat" else compat.judged_score(text)
    if score is None and reading == "judged":
        score = _score_in(text, [response.response], "")
    if not isinstance(score, (int, float)) or not 0 <= score <= 1:
        return _unparsed("the judge gives no score from 0 to 1", details)
    return Score(passed=score >= 0.5, score=float(score), details=details)


def _unparsed(error: str, details: JsonObject) -> Score:
    return Score(outcome="unparsed", error=error, details=details)


def _score_of(right: bool, details: JsonObject) -> Score:
    return Score(passed=right, score=float(right), details=details)


class _Asks(NamedTuple):
    """What the judges of the two kinds differ in: `gold` for the original's prompt, `shown` for ours, and how the
    answers to each are read."""

    kind: str
    question: JudgeQuestion
    gold: str
    shown: dict[str, str]
    read_original: Read
    read: Callable[[Rendered, str], float | str | None]


async def _verdict_by_judge(
    item: Item, response: Response, context: Context, judge: Judge, asks: _Asks
) -> Score:
    """One verdict in `details`, or why there is none. The original's prompt is sent again as it is."""
    text = _answer(response, judge.trim_base, asks.kind == MULTIPLE_CHOICE)
    question, read, again = asks.question, asks.read_original, ""
    if is_original(judge.prompt, asks.kind):
        values = {"P": item.data["prompt"], "G": asks.gold, "O": asks.gold, "R": text}
        messages = original_messages(judge.prompt, asks.kind, **values)
    else:
        texts = {"question": item.data["prompt"], **asks.shown, "answer": without_reasoning(text)}
        question = question._replace(texts=texts)
        shown = render_question(judge.prompt, item, question)
        messages, read = shown.messages, partial(asks.read, shown)
        again = _AGAIN.format(what=question.scale.described)
    return await _verdict(context, judge, question, messages, read, again)


async def _verdict(
    context: Context,
    judge: Judge,
    question: JudgeQuestion,
    messages: list[Message],
    read: Read,
    again: str,
) -> Score:
    panel = Panel(
        judge.model, judge.prompt, 1, "mean", judge.tries, judge.temperature, judge.params, "never"
    )
    model = context.model(panel.models[0])
    details: JsonObject = {"judge": {"model": model.name, **identity(panel, question, model)}}
    said: Completion | None = None
    for _ in range(panel.tries):
        if said is not None and again:
            messages = [*messages, *_asked_again(said, again)]
        try:
            said = await context.complete(messages, model=model, step="judge", **panel.sampling)
        except PermanentError as error:
            return Score(outcome="errored", error=error.what, details=details)
        details["raw"] = said.text[:RAW]
        found = read(said.text)
        if found == NO_OPTION:
            return _unparsed("the judge finds no option in the answer", details)
        if found is not None:
            return Score(details={**details, "verdict": found})
        if said.refused or is_refusal(said.text):
            return Score(outcome="errored", error="the judge refuses", details=details)
    error = f"no verdict can be read in {panel.tries} tries"
    return _unparsed(error, {**details, "tries": panel.tries})


def _asked_again(said: Completion, again: str) -> list[Message]:
    """Return the turns that ask for a verdict after an answer without one."""
    shown = said.text[:SHOWN_AGAIN].strip() or "(nothing)"
    return [{"role": "assistant", "content": shown}, {"role": "user", "content": again}]


def _score_in(text: str, judged: list[str], mark: str) -> float | None:
    """Our own reading: the last explicit verdict that is not a repetition of the judged texts."""
    try:
        return float(read_verdict(text, FRACTION, judged=judged, mark=mark).value)
    except NoVerdict:
        return None


def _option_in(text: str, options: list[str], mark: str) -> str | None:
    said = without_fenced(without_reasoning(text), mark)
    known = compat.letters(len(options))
    if bracketed := _BRACKETED.findall(said):
        last = bracketed[-1].upper()
        if last.lower() == NO_OPTION:
            return NO_OPTION
        return last if last in known else None
    return find_choice(said, known, dict(zip(known, options, strict=True)))
