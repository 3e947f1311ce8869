"""Labels of any experiment ⇄ verdicts of MixEval: a judge's score of a free-form answer, an option that it read in one
to a multiple-choice entry, or what the rule found.

The original's `score.json` from single verdicts: the mean of each kind and benchmark rounded to three places, then
weighted by the kinds' shares of the entries.
"""

import math
import re
from collections.abc import Iterator
from typing import cast

from assay.engine.experiment.imports.kept import labelled
from assay.formats.mixeval import compat
from assay.formats.mixeval.dataset import Row, read_target
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.exchange import kind_of
from assay.formats.mixeval.plans import COMPATIBLE
from assay.records import Evaluation, Response, verdict_of

OVERALL = "overall"


class Tally:
    """What verdicts counted, by label, benchmark and kind, added up in the order of their rows."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, dict[str, list[float]]]] = {}

    def add(self, label: str, kind: str, benchmark: str, counted: float) -> None:
        of = self._cells.setdefault(label, {})
        for name in (OVERALL, benchmark):
            cell = of.setdefault(name, {}).setdefault(kind, [0.0, 0])
            cell[0] += counted
            cell[1] += 1

    def labels(self) -> Iterator[str]:
        return iter(self._cells)

    def scores(self, label: str) -> dict[str, float]:
        """What `score.json` has of a label."""
        return {name: _weighted(kinds) for name, kinds in self._cells.get(label, {}).items()}


def _weighted(kinds: dict[str, list[float]]) -> float:
    total = sum(count for _, count in kinds.values())
    return sum(round(added / count, 3) * (count / total) for added, count in kinds.values())


_NUMBER, _WORD = re.compile(r"\d+\.\d+|\d+"), re.compile(r"\b[A-Z]\b")


def verdict_row(row: Row, evaluation: Row, kind: str, letter: str) -> Row | None:
    """The row of a response with a label as a judge's verdict, whose text says it as the protocol reads it; None for a
    score that is none of MixEval's. `letter` is that of the right option."""
    outcome, passed, score = verdict_of(evaluation)
    details = evaluation.get("detailed_results")
    explained = cast("Row", details) if isinstance(details, dict) else {}
    said = next(
        (
            str(explained[name])
            for name in ("explanation", "reasoning", "raw")
            if explained.get(name)
        ),
        "",
    )
    if outcome != "scored":
        found: Row = {"judge_score": None} if kind == FREE_FORM else {"judge_option": None}
        return {
            **row,
            "judge_response": "",
            **found,
            "outcome": outcome,
            "error": evaluation.get("error"),
        }
    value = float(bool(passed)) if math.isnan(score) else score
    if not 0 <= value <= 1 or (math.isnan(score) and passed is None):
        return None
    if kind == FREE_FORM:
        text = (
            said
            if said and compat.judged_score(said) == value
            else f"{said} [[{_plain_number(value)}]]".strip()
        )
        return {**row, "judge_response": text, "judge_score": value}
    if value not in (0, 1):
        return None
    parsed = explained.get("verdict") or explained.get("parsed")
    option = (
        parsed
        if isinstance(parsed, str) and (parsed == letter) == (value > 0)
        else letter
        if value > 0
        else "Z"
    )
    text = said if said and compat.judged_option(said) == option else f"{said} [[{option}]]".strip()
    return {**row, "judge_response": text, "judge_option": option}


def _plain_number(value: float) -> str:
    """Without an exponent: the protocol reads digits and a point."""
    return f"{value:.20f}".rstrip("0").rstrip(".") if "e" in repr(value) else repr(value)


def evaluation_from(row: Row, response: Response, label: str) -> tuple[Evaluation, float | None]:
    """The verdict of a row and what it counted for the original, which draws where nothing could be read: such rows
    are unparsed here."""
    kind = kind_of(row)
    made = labelled("mixeval", response, label)
    made.metadata = {
        **response.metadata,
        "benchmark_name": row.get("benchmark_name"),
        "problem_type": kind,
    }
    right = right_letter(row)
    if "eval_result" in row:
        made.scorer = COMPATIBLE
        counted, drawn, made.detailed_results = _by_rule(row, kind)
    else:
        counted, drawn, made.detailed_results = _by_judge(row, kind, right)
    if row.get("outcome") in ("unparsed", "refused", "errored", "skipped"):
        made.outcome, made.error = row["outcome"], row.get("error")
        return made, counted
    if counted is None:
        made.outcome, made.error = "errored", "the row has no verdict"
    elif drawn:
        made.outcome, made.error = (
            "unparsed",
            "nothing was read in the text: the original draws a verdict",
        )
    else:
        made.score, made.passed = counted, counted > 0
    return made, counted


def _by_rule(row: Row, kind: str) -> tuple[float | None, bool, Row]:
    result, parsed = row.get("eval_result"), row.get("parsed_result")
    drawn = bool(row.get("guessed"))
    if kind == MULTIPLE_CHOICE and not drawn:
        text = row.get("response_extracted") or row.get("response")
        drawn = (
            isinstance(text, str)
            and compat.choose(text, [str(option) for option in row["options"]]) is None
        )
    return None if result is None else float(bool(result)), drawn, {"parsed": parsed}


def _by_judge(row: Row, kind: str, right: str) -> tuple[float | None, bool, Row]:
    text = str(row.get("judge_response") or "")
    details: Row = {"explanation": text}
    if kind == FREE_FORM:
        score = row.get("judge_score")
        number = float(score) if isinstance(score, (int, float)) and math.isfinite(score) else None
        said = {float(digits) for digits in _NUMBER.findall(text)}
        return (
            number,
            number is not None and compat.judged_score(text) is None and number not in said,
            details,
        )
    option = row.get("judge_option")
    if not isinstance(option, str):
        return None, False, details
    drawn = compat.judged_option(text) is None and option not in _WORD.findall(text)
    return float(option == right), drawn, {**details, "verdict": option}


def right_letter(row: Row) -> str:
    target = read_target(row.get("target"), MULTIPLE_CHOICE)
    number = target[0] if isinstance(target, list) and target else None
    return chr(ord("A") + number) if type(number) is int and 0 <= number < 26 else ""
