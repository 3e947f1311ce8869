"""MixEval's rule parsers as scorers: `rule` reads as much as can be read and never guesses, `rule-compat` is the
protocol's own. `mixeval.answer` takes both kinds of entries, `mixeval.choice` and `mixeval.freeform` one each."""

from typing import Literal

from assay.formats.mixeval import compat
from assay.formats.mixeval import judging as judging  # registers the judges
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.freeform.answers import holds_answer
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.choices import find_choice

Parser = Literal["rule", "rule-compat"]


@scorer(name="mixeval.choice", version=1)
def choice(item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False) -> Score | list[Score]:
    """A multiple-choice answer names the right option. An answer that names none is unparsed.

    Parameters:
    parser: rule (reads through markdown, brackets, boxes, reasoning, lower case and option texts) or rule-compat (the
      protocol's own steps; where it draws a letter at random, the row is unparsed and the score draws)
    trim_base: first cut off what a base model continued to ask itself
    """
    return _choice(item, _answer(response, trim_base, True), parser) if _kind(item) == MULTIPLE_CHOICE else []


@scorer(name="mixeval.freeform", version=1)
def freeform(
    item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False
) -> Score | list[Score]:
    """A free-form answer holds one of the accepted answers.

    Parameters:
    parser: rule (normalised matching of names, numbers, units, dates and lists) or rule-compat (the protocol's own
      steps: any accepted answer inside the text behind a cue)
    trim_base: first cut off what a base model continued to ask itself
    """
    return _freeform(item, _answer(response, trim_base, False), parser) if _kind(item) == FREE_FORM else []


@scorer(name="mixeval.answer", version=1)
def answer(item: Item, response: Response, *, parser: Parser = "rule", trim_base: bool = False) -> Score:
    """Either kind of entry, by its own rule.

    Parameters:
    parser: rule or rule-compat
    trim_base: first cut off what a base model continued to ask itself
    """
    multiple = _kind(item) == MULTIPLE_CHOICE
    text = _answer(response, trim_base, multiple)
    return _choice(item, text, parser) if multiple else _freeform(item, text, parser)


def _kind(item: Item) -> str:
    return str(item.metadata.get("problem_type") or item.data.get("problem_type"))


def _answer(response: Response, trim_base: bool, multiple: bool) -> str:
    return compat.trimmed(response.response, multiple_choice=multiple) if trim_base else response.response


def _choice(item: Item, text: str, parser: Parser) -> Score:
    options = [str(option) for option in item.data["options"]]
    known = compat.letters(len(options))
    if parser == "rule":
        found = find_choice(text, known, dict(zip(known, options, strict=True)))
    else:
        found = compat.choose(text, options)
    if found is None:
        return Score(outcome="unparsed", error="the answer names no option, or more than one")
    right = found == known[item.ground_truth[0]]
    return Score(passed=right, score=float(right), details={"parsed": found})


def _freeform(item: Item, text: str, parser: Parser) -> Score:
    if parser == "rule-compat":
        right = compat.is_right(text, item.ground_truth)
        return Score(passed=right, score=float(right))
    found = holds_answer(text, item.ground_truth)
    if found is None:
        return Score(outcome="unparsed", error="the answer says nothing, refuses, or gives more than one answer")
    return Score(passed=found, score=float(found))
