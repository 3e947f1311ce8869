"""Labels of any experiment ⇄ verdicts of MixEval: a judge's score of a free-form answer, an option that it read in one
to a multiple-choice entry, or what the rule found.

The original's `score.json` from single verdicts: the mean of each kind and benchmark rounded to three places, then
weighted by the kinds' shares of the entries.

Items of any experiment ⇄ entries of MixEval, rows of its files ⇄ responses and evaluations.

An entry needs a question and accepted answers, or options and the number of the right one. What a row has no field for
is kept in it as `assay`, which the original passes on; `item_id` is the id of an item that is not called
`<kind>/<id>`.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.kept import KEPT, labelled
from assay.foreign import Rest, key_of
from assay.formats.mixeval import compat
from assay.formats.mixeval.dataset import plain_row, problem_of, prompt_text, read_target
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.formats.mixeval.plans import COMPATIBLE
from assay.sdk import Evaluation, Item, JsonObject, Response, as_object, list_of, verdict_of
from assay.store.items import encode_item, normalise
from assay.text.expected import accepted
from assay.text.template import question, variables

OWN_ID = "item_id"
_ENTRY = ("problem_type", "context", "prompt", "options", "target", "benchmark_name")
_VERDICT = (
    "judge_response", "judge_score", "judge_option", "parsed_result", "eval_result", "guessed", "outcome", "error",
    "response_extracted",
)  # fmt: skip
_PLACED = {*_ENTRY, *_VERDICT, "formated_input", "id", "response", KEPT, OWN_ID}
NO_RESPONSE = "there is no response"
_OUTCOMES = ("ok", "refused", "errored", "skipped")


# ---- items and entries


def entry_of(item: Item, benchmark: str) -> tuple[str, JsonObject]:
    """The kind and the entry of an item; `benchmark` is its name where the item says none. `problem_of` tells whether
    MixEval can score it."""
    data = as_object(item.data)
    options = data.get("options")
    target = (
        _number(item.ground_truth, len(cast("list[Any]", options)))
        if isinstance(options, list)
        else None
    )
    kind = FREE_FORM if target is None else MULTIPLE_CHOICE
    context = data.get("context")
    name = item.metadata.get("benchmark_name") or data.get("benchmark_name")
    entry: JsonObject = {
        "problem_type": kind,
        "context": context if isinstance(context, str) else None,
        "prompt": question(variables(item)),
    }
    if target is not None:
        entry["options"] = [
            option if isinstance(option, str) else json.dumps(option) for option in options or ()
        ]
    entry["target"] = _texts(item) if target is None else [target]
    entry["benchmark_name"] = name if isinstance(name, str) else benchmark
    return kind, entry


def _number(truth: Any, count: int) -> int | None:
    """Return the number of the right option, which a ground truth gives as such or as a letter;
    of several numbers the first, as the protocol does."""
    listed = list_of(truth)
    if len(listed) == 1 or (listed and type(listed[0]) is int):
        truth = listed[0]
    if isinstance(truth, str) and len(truth) == 1 and truth in compat.letters(min(count, 26)):
        truth = ord(truth) - ord("A")
    return truth if type(truth) is int and 0 <= truth < count else None


def _texts(item: Item) -> list[str]:
    try:
        return list(accepted(item.ground_truth))
    except LookupError:
        return []


def can_score(entry: JsonObject, kind: str) -> bool:
    return problem_of(entry, kind) is None


def kind_of(row: JsonObject) -> str:
    return MULTIPLE_CHOICE if isinstance(row.get("options"), list) else FREE_FORM


def id_of(row: JsonObject) -> str:
    """The id of the item that a row or an entry is about."""
    own = row.get(OWN_ID)
    return own if isinstance(own, str) and own else f"{kind_of(row)}/{row['id']}"


def data_entry(
    item: Item, kind: str, entry: JsonObject, file_id: str, benchmark: str
) -> JsonObject:
    """The entry in the data file of its kind, where its key says which it is."""
    made = {**entry, **own_id(item.id, kind, file_id)}
    if normalise(item_from({**made, "id": file_id}, benchmark, whole=True)) != item:
        made[KEPT] = {"item": msgspec.json.decode(encode_item(item))}
    return made


def own_id(item_id: str, kind: str, file_id: str) -> JsonObject:
    return {} if item_id == f"{kind}/{file_id}" else {OWN_ID: item_id}


def item_from(row: JsonObject, benchmark: str, *, whole: bool = False) -> JsonObject:
    """The dataset row of an entry of a data file (`whole`), or of a row of responses."""
    kept = row.get(KEPT)
    own = as_object(kept).get("item")
    if isinstance(own, dict):
        return {**cast("JsonObject", own), "id": id_of(row)}
    kind = kind_of(row)
    placed = row if whole else _ENTRY
    entry = {name: row[name] for name in placed if name in row and name not in (KEPT, OWN_ID)}
    entry["target"] = read_target(entry.get("target"), kind)
    if not isinstance(entry.get("prompt"), str):
        entry["prompt"] = str(row.get("formated_input") or "")
    entry.setdefault("benchmark_name", benchmark)
    made = plain_row(entry, kind, id_of(row), benchmark)
    with suppress(NotImplementedError, TypeError):  # the protocol has no prompt for it
        made["data"]["formated_input"] = prompt_text(entry, kind)
    return made


# ---- responses


def response_row(response: JsonObject, kind: str, entry: JsonObject, file_id: str) -> JsonObject:
    """A response (a row as it stands on disk) as a row of a response file, with every key of its entry."""
    item_id, prompt = str(response["item_id"]), response.get("prompt")
    asks, outcome = _prompt_of(entry, kind), response.get("outcome") or "ok"
    return {
        **entry,
        "formated_input": prompt if isinstance(prompt, str) and asks in prompt else asks,
        **own_id(item_id, kind, file_id),
        "id": file_id,
        "response": str(response.get("response") or ""),
        **({} if outcome == "ok" else {"outcome": outcome, "error": response.get("error")}),
    }


def _prompt_of(entry: JsonObject, kind: str) -> str:
    try:
        return prompt_text(entry, kind)
    except NotImplementedError:
        return entry["prompt"]


def response_from(row: JsonObject, item_id: str, model: str, rest: Rest | None = None) -> Response:
    """A row of a response file or of verdicts as a response of ours; `rest` keeps its other fields."""
    said = row.get("response")
    text: Any = "" if said is None else said
    text = text if isinstance(text, str) else json.dumps(text)
    metadata: JsonObject = {"model_id": model, "prompt_template": "mixeval"}
    if rest is not None and (unplaced := rest.of(row, _PLACED, ())):
        metadata["source"] = unplaced
    error: Any = NO_RESPONSE if said is None else None
    outcome: Any = "errored" if error else "ok"
    if row.get("outcome") in _OUTCOMES and not is_verdict(row):
        outcome, error = row["outcome"], row.get("error")
    return Response(
        item_id=item_id,
        sample_id=f"{item_id}_sample_0",
        model_name=model,
        prompt=str(row.get("formated_input") or ""),
        response=text,
        metadata=metadata,
        error=None if error is None else str(error),
        key=key_of("mixeval", item_id, model, text),
        task=model,
        outcome=outcome,
        error_kind="permanent" if outcome == "errored" else None,
    )


def is_verdict(row: JsonObject) -> bool:
    return "eval_result" in row or "judge_response" in row


OVERALL = "overall"


class VerdictTally:
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
        """Return what `score.json` has of a label."""
        return {name: _weighted_mean(kinds) for name, kinds in self._cells.get(label, {}).items()}


def _weighted_mean(kinds: dict[str, list[float]]) -> float:
    total = sum(count for _, count in kinds.values())
    return sum(round(added / count, 3) * (count / total) for added, count in kinds.values())


_NUMBER, _WORD = re.compile(r"\d+\.\d+|\d+"), re.compile(r"\b[A-Z]\b")


def verdict_row(
    row: JsonObject, evaluation: JsonObject, kind: str, letter: str
) -> JsonObject | None:
    """The row of a response with a label as a judge's verdict, whose text says it as the protocol reads it; None for a
    score that is none of MixEval's. `letter` is that of the right option."""
    outcome, passed, score = verdict_of(evaluation)
    explained = as_object(evaluation.get("detailed_results"))
    name = "judge_score" if kind == FREE_FORM else "judge_option"
    if outcome != "scored":
        failed = {name: None, "outcome": outcome, "error": evaluation.get("error")}
        return {**row, "judge_response": "", **failed}
    value = score
    if math.isnan(score):
        value = math.nan if passed is None else float(passed)
    if not 0 <= value <= 1 or (kind != FREE_FORM and value not in (0, 1)):
        return None
    if kind == FREE_FORM:
        found, shown, judged = value, _plain_number(value), compat.judged_score
    else:
        found = shown = _option_of(explained, letter, right=value > 0)
        judged = compat.judged_option
    reasons = (explained.get(name) for name in ("explanation", "reasoning", "raw"))
    said = str(next(filter(None, reasons), ""))
    if not said or judged(said) != found:
        said = f"{said} [[{shown}]]".strip()
    return {**row, "judge_response": said, name: found}


def _option_of(explained: JsonObject, letter: str, *, right: bool) -> str:
    """Return the option that a label says was chosen, or one that is as right or wrong."""
    parsed = explained.get("verdict") or explained.get("parsed")
    if isinstance(parsed, str) and (parsed == letter) == right:
        return parsed
    return letter if right else "Z"


def _plain_number(value: float) -> str:
    """Without an exponent: the protocol reads digits and a point."""
    return f"{value:.20f}".rstrip("0").rstrip(".") if "e" in repr(value) else repr(value)


def evaluation_from(
    row: JsonObject, response: Response, label: str
) -> tuple[Evaluation, float | None]:
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


def _by_rule(row: JsonObject, kind: str) -> tuple[float | None, bool, JsonObject]:
    result, parsed = row.get("eval_result"), row.get("parsed_result")
    drawn = bool(row.get("guessed"))
    if kind == MULTIPLE_CHOICE and not drawn:
        text = row.get("response_extracted") or row.get("response")
        drawn = (
            isinstance(text, str)
            and compat.choose(text, [str(option) for option in row["options"]]) is None
        )
    return None if result is None else float(bool(result)), drawn, {"parsed": parsed}


def _by_judge(row: JsonObject, kind: str, right: str) -> tuple[float | None, bool, JsonObject]:
    text = str(row.get("judge_response") or "")
    details: JsonObject = {"explanation": text}
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


def right_letter(row: JsonObject) -> str:
    target = read_target(row.get("target"), MULTIPLE_CHOICE)
    number = target[0] if isinstance(target, list) and target else None
    return chr(ord("A") + number) if type(number) is int and 0 <= number < 26 else ""
