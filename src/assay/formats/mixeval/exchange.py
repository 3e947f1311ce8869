"""Items of any experiment ⇄ entries of MixEval, rows of its files ⇄ responses and evaluations.

An entry needs a question and accepted answers, or options and the number of the right one. What a row has no field for
is kept in it as `assay`, which the original passes on; `item_id` is the id of an item that is not called
`<kind>/<id>`.
"""

import json
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import Rest, key_of
from assay.engine.experiment.imports.kept import KEPT
from assay.formats.mixeval import compat
from assay.formats.mixeval.dataset import (
    Row,
    content_of,
    formatted,
    item_row,
    problem_of,
    read_target,
)
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.records import Item, Response
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
_NONE = "there is no response"
_OUTCOMES = ("ok", "refused", "errored", "skipped")


# ---- items and entries


def entry_of(item: Item, benchmark: str) -> tuple[str, Row]:
    """The kind and the entry of an item; `benchmark` is its name where the item says none. `problem_of` tells whether
    MixEval can score it."""
    data = cast("Row", item.data) if isinstance(item.data, dict) else {}
    options = data.get("options")
    target = (
        _number(item.ground_truth, len(cast("list[Any]", options)))
        if isinstance(options, list)
        else None
    )
    kind = FREE_FORM if target is None else MULTIPLE_CHOICE
    context = data.get("context")
    name = item.metadata.get("benchmark_name") or data.get("benchmark_name")
    entry: Row = {
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
    listed = cast("list[Any]", truth) if isinstance(truth, list) else []
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


def can_score(entry: Row, kind: str) -> bool:
    return problem_of(entry, kind) is None


def kind_of(row: Row) -> str:
    return MULTIPLE_CHOICE if isinstance(row.get("options"), list) else FREE_FORM


def id_of(row: Row) -> str:
    """The id of the item that a row or an entry is about."""
    own = row.get(OWN_ID)
    return own if isinstance(own, str) and own else f"{kind_of(row)}/{row['id']}"


def data_entry(item: Item, kind: str, entry: Row, file_id: str, benchmark: str) -> Row:
    """The entry in the data file of its kind, where its key says which it is."""
    made = {**entry, **own_id(item.id, kind, file_id)}
    if normalise(item_from({**made, "id": file_id}, benchmark, whole=True)) != item:
        made[KEPT] = {"item": msgspec.json.decode(encode_item(item))}
    return made


def own_id(item_id: str, kind: str, file_id: str) -> Row:
    return {} if item_id == f"{kind}/{file_id}" else {OWN_ID: item_id}


def item_from(row: Row, benchmark: str, *, whole: bool = False) -> Row:
    """The dataset row of an entry of a data file (`whole`), or of a row of responses."""
    kept = row.get(KEPT)
    own = cast("Row", kept).get("item") if isinstance(kept, dict) else None
    if isinstance(own, dict):
        return {**cast("Row", own), "id": id_of(row)}
    kind = kind_of(row)
    fields = (
        [name for name in row if name not in (KEPT, OWN_ID)]
        if whole
        else [name for name in _ENTRY if name in row]
    )
    entry = {name: row[name] for name in fields}
    entry["target"] = read_target(entry.get("target"), kind)
    if not isinstance(entry.get("prompt"), str):
        entry["prompt"] = str(row.get("formated_input") or "")
    entry.setdefault("benchmark_name", benchmark)
    try:
        made = item_row(entry, kind, "", benchmark=benchmark)
    except (NotImplementedError, TypeError):  # the protocol has no prompt for it
        shown = {name: value for name, value in entry.items() if name not in ("target", "id")}
        metadata = {
            "benchmark_name": entry["benchmark_name"],
            "problem_type": kind,
            "benchmark": benchmark,
        }
        made = {
            "data": shown,
            "ground_truth": entry["target"],
            "metadata": {**metadata, "content": content_of(entry)},
        }
    return {**made, "id": id_of(row)}


# ---- responses


def response_row(response: Row, kind: str, entry: Row, file_id: str) -> Row:
    """A response (a row as it stands on disk) as a row of a response file, with every key of its entry."""
    item_id, prompt = str(response["item_id"]), response.get("prompt")
    asks, outcome = _asked(entry, kind), response.get("outcome") or "ok"
    return {
        **entry,
        "formated_input": prompt if isinstance(prompt, str) and asks in prompt else asks,
        **own_id(item_id, kind, file_id),
        "id": file_id,
        "response": str(response.get("response") or ""),
        **({} if outcome == "ok" else {"outcome": outcome, "error": response.get("error")}),
    }


def _asked(entry: Row, kind: str) -> str:
    try:
        return formatted(entry, kind)
    except NotImplementedError:
        return entry["prompt"]


def response_from(row: Row, item_id: str, model: str, rest: Rest) -> Response:
    """A row of a response file or of verdicts as a response of ours."""
    said = row.get("response")
    text = said if isinstance(said, str) else "" if said is None else json.dumps(said)
    metadata: Row = {"model_id": model, "prompt_template": "mixeval"}
    unplaced = rest.of(row, _PLACED, ()) if row.keys() - _PLACED else {}
    if unplaced:
        metadata["source"] = unplaced
    error: Any = _NONE if said is None else None
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


def is_verdict(row: Row) -> bool:
    return "eval_result" in row or "judge_response" in row
