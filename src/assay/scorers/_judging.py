"""What the judges share: how a question reaches the models of a panel, and how their verdicts become labels.

Each verdict is a call of its own in the log, keyed by its messages: what only changes how verdicts are read or counted
(a threshold, a rule, the parser) asks nobody again.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from assay.scorers._judge_prompt import AGAIN, GUARD, JudgeQuestion, Rendered, render_question
from assay.sdk import (
    BudgetError,
    Completion,
    Context,
    Item,
    JsonObject,
    LaneError,
    Message,
    Model,
    PermanentError,
    Score,
    canonical,
    digest,
)
from assay.text.verdict_words import Range, Scale
from assay.text.verdicts import NoVerdict, Verdict, is_refusal, read_verdict

Rule = Literal["majority", "mean", "minimum"]
Structured = Literal["auto", "always", "never"]

RAW = 4000  # letters of an unreadable answer that a row keeps
SHOWN_AGAIN = 2000  # letters of it that are shown to the judge when it is asked again

_NO_SCHEMAS = re.compile(
    r"response_format|json_schema|schema|structured|grammar|guided|extra (?:inputs|fields)"
    r"|(?:not|un)[ -]?(?:support|recogni[sz]ed|known|expected|permitted|allowed)",
    re.I,
)
# models whose servers refused one; kept until the process ends
_without_schemas: set[bytes] = set()


class Panel(msgspec.Struct, frozen=True):
    """Who judges, from which prompt, how often, and what becomes of several verdicts. These are parameters of every
    judge; those that are described here without being fields are some judges' own.

    Parameters:
    model: the name of the model that judges, or several: a panel; by default the only `helper`, or the only model
    repeats: how often each model is asked
    rule: what becomes of several verdicts
    tries: how often a model is asked in all if its answer cannot be read
    temperature: sent with each call; null sends none
    params: further sampling parameters, such as `max_tokens`
    structured: whether a JSON schema is sent: `auto` sends one where a server may take it, and continues without if not
    verdicts: what a verdict may be
    expected: the field of the ground truth that has the references, for a prompt that shows `reference`
    strip_reasoning: judge only what follows `</think>`
    """

    model: str | list[str] = ""
    prompt: str = ""
    repeats: int = 1
    rule: Rule = "majority"
    tries: int = 2
    temperature: float | None = 0.0
    params: JsonObject | None = None
    structured: Structured = "auto"

    @property
    def models(self) -> list[str]:
        return [self.model] if isinstance(self.model, str) else self.model

    @property
    def sampling(self) -> JsonObject:
        """The sampling parameters of each call."""
        first = {} if self.temperature is None else {"temperature": self.temperature}
        return {**first, **(self.params or {})}


class _Vote(NamedTuple):
    name: str
    score: Score


# ---- asking


async def ask_judges(
    context: Context, item: Item, panel: Panel, questions: Sequence[JudgeQuestion]
) -> list[list[Score]]:
    """For each question its label and, of a panel, one for each verdict, the panel's own first.

    All are asked side by side, and all are waited for: what was paid is in the log even if one of them fails.
    """
    prompts = [render_question(panel.prompt, item, asked) for asked in questions]
    seats = [(model, repeat) for model in panel.models for repeat in range(1, panel.repeats + 1)]
    calls = [
        _member(context, panel, asked, prompt, model, repeat)
        for asked, prompt in zip(questions, prompts, strict=True)
        for model, repeat in seats
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in sorted(
        failures, key=lambda error: not isinstance(error, (LaneError, BudgetError))
    ):
        raise failure
    scores = iter([result for result in results if isinstance(result, Score)])
    names = [model if panel.repeats == 1 else f"{model}.{repeat}" for model, repeat in seats]
    votes = [[_Vote(name, next(scores)) for name in names] for _ in questions]
    return [_labels(panel, asked, cast) for asked, cast in zip(questions, votes, strict=True)]


async def ask_one(context: Context, item: Item, asked: JudgeQuestion, **panel: Any) -> list[Score]:
    """Return the labels of a single question."""
    (labels,) = await ask_judges(context, item, Panel(**panel), [asked])
    return labels


async def _member(
    context: Context,
    panel: Panel,
    asked: JudgeQuestion,
    prompt: Rendered,
    model_name: str,
    repeat: int,
) -> Score:
    """One verdict. An error that another try would not mend is this member's alone."""
    model = context.model(model_name)
    details: JsonObject = {"judge": {"model": model_name, **identity(panel, asked, model)}}
    step = f"{asked.label.removeprefix('.')} {repeat if repeat > 1 else ''}".strip()
    messages = list(prompt.messages)
    text, problem = "", ""
    for number in range(1, panel.tries + 1):
        if number > 1:
            shown = text[:SHOWN_AGAIN].strip() or "(nothing)"
            again = AGAIN.format(scale=asked.scale.described)
            messages += [
                {"role": "assistant", "content": shown},
                {"role": "user", "content": again},
            ]
        try:
            completion = await _complete(context, panel, asked.scale, model, messages, step)
        except PermanentError as error:
            return Score(outcome="errored", error=error.what, details=details)
        text = completion.text
        try:
            if not completion.refused:
                found = read_verdict(text, asked.scale, judged=prompt.judged, mark=prompt.mark)
                return _verdict_score(asked, found, details)
        except NoVerdict as error:
            problem = f"{error}{', and is cut off' if completion.finish_reason == 'length' else ''}"
        if completion.refused or is_refusal(text):
            why = text.strip()[:200] or completion.finish_reason or "no text"
            return Score(
                outcome="errored",
                error=f"the judge refuses: {why}",
                details={**details, "raw": text[:RAW]},
            )
    return Score(
        outcome="unparsed",
        error=problem,
        details={**details, "raw": text[:RAW], "tries": panel.tries},
    )


async def _complete(
    context: Context, panel: Panel, scale: Scale, model: Model, messages: list[Message], step: str
) -> Completion:
    """The answer, with a schema for it where the server takes one."""
    complete = partial(context.complete, messages, model=model, step=step)
    recall = partial(context.recall, messages, model=model, step=step)
    plain = panel.sampling
    offered = panel.structured == "always" or getattr(model, "schemas", False)
    if panel.structured == "never" or not offered:
        return await complete(**plain)
    with_schema: JsonObject = {**plain, "response_format": _response_format(scale)}
    key = canonical(model.identity)
    if panel.structured == "auto" and recall(**with_schema) is None:
        refused_before = recall(**plain) is not None
        if refused_before or key in _without_schemas:
            return await complete(**plain)
    try:
        return await complete(**with_schema)
    except PermanentError as error:
        if panel.structured == "always" or not _NO_SCHEMAS.search(error.what):
            raise
    completion = await complete(**plain)
    _without_schemas.add(key)
    return completion


def _response_format(scale: Scale) -> JsonObject:
    fields = {"reason": {"type": "string"}, "verdict": scale.schema()}
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": schema},
    }


def identity(panel: Panel, asked: JudgeQuestion, model: Model) -> dict[str, str]:
    """Who judges by which words: 16 digits of all that is sent beside the texts, 12 of the prompt's text."""
    prompt = panel.prompt.encode()
    beside = (asked.words, asked.scale.described, panel.sampling)
    whole = digest("judge", canonical(model.identity), prompt, GUARD.encode(), canonical(beside))
    return {"id": whole.hex()[:16], "prompt": digest("judge-prompt", prompt).hex()[:12]}


# ---- from verdicts to labels


def _verdict_score(asked: JudgeQuestion, verdict: Verdict, details: JsonObject) -> Score:
    score = asked.scale.score(verdict.value)
    grade = {"grade": verdict.value} if isinstance(asked.scale, Range) else {}
    details = {**details, "verdict": verdict.value, **grade, "reason": verdict.reason}
    return Score(score=score, passed=score >= asked.threshold - 1e-9, details=details)


def _labels(panel: Panel, asked: JudgeQuestion, votes: Sequence[_Vote]) -> list[Score]:
    for name, score in votes:
        score.label = asked.label if len(votes) == 1 else f"{asked.label}.{name}"
    scores = [score for _, score in votes]
    if len(scores) == 1:
        return scores
    details = {
        "votes": {name: score.score for name, score in votes},
        "rule": panel.rule,
        "judge": {"models": panel.models, "id": joint_id(scores, panel.rule)},
    }
    valid = [score for score in scores if score.outcome == "scored"]
    if not valid:
        return [missing(scores, asked.label, details), *scores]
    value, passed = _panel_verdict(panel.rule, valid, asked)
    return [Score(label=asked.label, score=value, passed=passed, details=details), *scores]


def _panel_verdict(rule: Rule, scores: Sequence[Score], asked: JudgeQuestion) -> tuple[float, bool]:
    """The verdict of those who gave one. Grades have no majority, but whether they pass has; a tied vote fails."""
    values = [float(score.score or 0.0) for score in scores]
    if rule != "majority":
        value = min(values) if rule == "minimum" else sum(values) / len(values)
        return value, value >= asked.threshold - 1e-9
    if isinstance(asked.scale, Range):
        values = [float(bool(score.passed)) for score in scores]
    counts = Counter(values)
    most = max(counts.values())
    first = sorted(value for value, count in counts.items() if count == most)
    value = first[0] if len(first) == 1 else 0.5
    least = 1.0 if isinstance(asked.scale, Range) else asked.threshold
    return value, len(first) == 1 and value >= least - 1e-9


def missing(scores: Iterable[Score], label: str, details: JsonObject) -> Score:
    """The label of several verdicts where those that it needs are not there."""
    failed = [score for score in scores if score.outcome != "scored"]
    outcome = "unparsed" if any(score.outcome == "unparsed" for score in failed) else "errored"
    errors = "; ".join(dict.fromkeys(str(score.error) for score in failed))
    return Score(label=label, outcome=outcome, error=f"no verdict: {errors}", details=details)


def joint_id(scores: Iterable[Score], *beside: Any) -> str:
    """The identity of several verdicts that are counted together."""
    ids = [score.details["judge"]["id"] for score in scores]
    return digest("judges", canonical((ids, beside))).hex()[:16]
