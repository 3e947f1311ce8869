"""A regular expression, with a time limit: some patterns take for ever on some answers."""

import re
from functools import lru_cache

from assay.scorers._parameters import Texts, reads_answer, verdict
from assay.scorers._regex_child import search
from assay.sdk import Item, Response, Score, scorer
from assay.text.answers import answer_of
from assay.text.expected import accepted, expectation

_LETTERS = {
    "a": re.ASCII,
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
    "u": re.UNICODE,
}


@scorer(reads="ground_truth", params=Texts, version=1)
@reads_answer
def regex_match(
    item: Item,
    response: Response,
    *,
    pattern: str | None = None,
    flags: int | str | list[str] = 0,
    expected: str | None = None,
    full: bool = False,
    response_field: str | None = None,
    seconds: float = 2.0,
    strip_reasoning: bool = True,
) -> Score:
    """The answer matches a regular expression of Python's `re`.

    Score: 1 if the pattern (or one of several in the ground truth) is found, else 0. What was found and its groups
    are in `detailed_results`. A pattern that could take long on an answer is tried in a child process, and is an
    error row after `seconds`; all others run at full speed.

    Parameters:
    pattern: the pattern, for all items; without it each item has its own, in the field `pattern` of its ground
      truth
    flags: a number as in `re`, letters (`im`), or names (`[IGNORECASE, MULTILINE]`)
    expected: another field of the ground truth that has the pattern
    full: the whole answer must match, not a part of it
    seconds: how long one answer may take
    """
    patterns = (
        [pattern] if pattern is not None else accepted(expectation(item, expected, "pattern"))
    )
    compiled = [
        _compile(text, flags if isinstance(flags, (int, str)) else "|".join(flags))
        for text in patterns
    ]
    given = answer_of(response, response_field, strip_reasoning)
    for expression in compiled:
        found = search(expression, given, full, seconds)
        if found is not None:
            return verdict(True, match=found[0], groups=found[1])
    return verdict(False)


@lru_cache(1024)
def _compile(pattern: str, flags: int | str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, _number(flags))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern {pattern!r} is not a regular expression: {error}") from None


def _number(flags: int | str) -> int:
    if isinstance(flags, int):
        return flags
    number = 0
    for name in flags.split("|") if flags else ():
        named = getattr(re, name.upper(), None)
        if isinstance(named, re.RegexFlag):
            number |= named
        elif all(letter in _LETTERS for letter in name.lower()):
            for letter in name.lower():
                number |= _LETTERS[letter]
        else:
            raise ValueError(
                f"{name!r} is not a flag of a regular expression: use letters of `aimsx` or names"
            )
    return number
