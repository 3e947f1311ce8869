"""Whether an answer means the same as the expected one, mathematically."""

import re
import time
from typing import Any

from assay.scorers._math.answers import AnswerWords, Verdict, answer_in, compare
from assay.scorers._math.expressions import NotMath, Tree
from assay.scorers._math.symbolic import equal
from assay.scorers._parameters import Texts, reads_answer, verdict
from assay.sdk import Item, Response, Score, scorer
from assay.text.answers import last_box, without_markdown
from assay.text.numbers import ANSWER_CUE, answer_number

_LONGEST = 2_000  # letters of an answer without a box
_FORMULA = re.compile(
    r"\$\$?(?!\s)([^$]{1,500}?)(?<!\s)\$|\\\(([^$]{1,500}?)\\\)|\\\[([^$]{1,500}?)\\\]"
)
_FEW_WORDS = 4
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_SENTENCE = re.compile(r"\.(?=\s|$)")


@scorer(reads="ground_truth", params=Texts, version=1)
@reads_answer
def math_equivalence(
    item: Item,
    response: Response,
    *,
    tolerance: float = 0.0,
    symbolic: bool = True,
    seconds: float = 3.0,
    **texts: Any,
) -> Score:
    r"""The answer is mathematically equal to an accepted one: `\frac{1}{2}`, `0.5`, `1/2` and `50\%` are the same.

    Score: 1 or 0. Taken is the last `\boxed{}`, else what follows "the answer is" or `####`, else the whole answer, its
    last formula or its last number; `detailed_results.answer` has it. Numbers, fractions, mixed numbers, roots, π,
    powers, polynomials and their quotients are compared exactly: `1/(1+\sqrt2)` equals `\sqrt2-1`, and 0.33 is not 1/3.
    `1,000` is a thousand; in `(100,200)` it is a pair. Sets and lists are compared in any order, tuples, intervals and
    matrices in order and with their brackets; `x > 3` is the interval (3, ∞), `\pm 2` both values. `x = 5` equals 5,
    and equations equal their multiples. Units are dropped if only one side has one; 1 m equals 100 cm. Words are
    compared as text. `log` is the natural logarithm; variables are positive.

    What this cannot decide is left to sympy (`pip install 'assay-eval[math]'`), which is handed
    trees, never text, in a process of its own. What is not decided then, or cannot be read, is unparsed.

    Parameters:
    tolerance: the greatest difference of two numbers, as a share of the expected one (but of 1 at least)
    symbolic: use sympy; if false, what is not decided without it is unparsed
    seconds: time for sympy, for all parts of an answer together
    """
    compared = Texts(**texts)
    pair = compared.pair(item, response)

    deadline = time.monotonic() + seconds

    def decide(first: Tree, second: Tree) -> Verdict:
        left = deadline - time.monotonic()
        return equal(first, second, left) if symbolic and left > 0 else None

    text = taken(pair.answer)
    if text is None:
        return Score(outcome="unparsed", error="the answer gives no result")
    details = {"answer": text[:200]}
    verdicts = [
        _verdict(_reference_result(reference), text, tolerance, decide)
        for reference in pair.references
    ]
    if True not in verdicts and (
        undecided := [verdict for verdict in verdicts if isinstance(verdict, str)]
    ):
        return Score(outcome="unparsed", error=undecided[0], details=details)
    return verdict(True in verdicts, **details)


def _verdict(reference: str, text: str, tolerance: float, decide: Any) -> bool | str:
    """Return whether the two are equal, or why that is not known."""
    if "".join(reference.split()) == "".join(text.split()):
        return True
    try:
        wanted = answer_in(reference)
    except (NotMath, RecursionError) as error:
        return f"the expected answer cannot be read: {error}"
    try:
        verdict = compare(wanted, answer_in(text), tolerance, decide)
    except (NotMath, RecursionError) as error:
        return f"the answer {text[:80]!r} cannot be read: {error}"
    return verdict if verdict is not None else f"whether {text[:80]!r} is right is not decided"


def _reference_result(reference: str) -> str:
    """A reference may be worked out before its result, as in MATH and GSM8K."""
    if "\\boxed" in reference or "####" in reference:
        return taken(reference) or reference
    return reference


def taken(answer: str) -> str | None:
    """The part of an answer that is its result; None if there is none."""
    box = last_box(answer)
    if box is not None:
        return box
    for cue in reversed([*ANSWER_CUE.finditer(answer)][-3:]):
        after = answer[cue.end() : cue.end() + _LONGEST].lstrip(": *\n").split("\n", 1)[0]
        sentence = _bare(_SENTENCE.split(after, maxsplit=1)[0])
        if sentence:
            return _last_formula(sentence) or (
                sentence if _is_readable(sentence) else _number(sentence) or sentence
            )
    if formula := _last_formula(answer[-_LONGEST:]):
        return formula
    if len(answer) <= _LONGEST and "\n" not in answer.strip() and _is_readable(_bare(answer)):
        return _bare(answer)
    return _number(answer[-10 * _LONGEST :])


def _last_formula(text: str) -> str | None:
    formulas = (
        _bare("".join(filter(None, match.groups())))
        for match in reversed([*_FORMULA.finditer(text)])
    )
    return next(filter(_is_readable, formulas), None)


def _number(text: str) -> str | None:
    number = answer_number(text)
    return str(number.value) + ("%" if number.percent else "") if number else None


def _bare(text: str) -> str:
    return without_markdown(text).strip().rstrip(".").strip()


def _is_readable(text: str) -> bool:
    """Return whether it is an answer by itself, and no sentence around one."""
    try:
        answer = answer_in(text)
    except (NotMath, RecursionError):
        return False
    return len(_WORD.findall(text)) <= _FEW_WORDS and not (
        isinstance(answer, AnswerWords) and re.search(r"\d", text)
    )
