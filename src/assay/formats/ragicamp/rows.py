"""One question ⇄ one item, one prediction ⇄ one response with its evaluations.

RAGiCamp's fields hold less than our rows. On request, what reading them back would not give again is written beside
them, under `item`, `response` and `evaluations`: nothing is lost, and readers of the old fields need not care.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from assay.engine.aggregate.bind import Policy
from assay.engine.experiment.imports.kept import completed, difference
from assay.foreign import evaluation_of, failure
from assay.sdk import (
    OUTCOMES,
    Evaluation,
    EvaluationOutcome,
    Item,
    JsonObject,
    Response,
    UserError,
    as_object,
    canonical,
    digest,
    list_of,
)
from assay.store.items import encode_item, normalise
from assay.text.expected import accepted
from assay.text.template import question, variables

ERROR_MARK = "[ERROR"
OURS = ("model_id", "prompt_template", "finish_reason", "response_id")  # of metadata
OVERALL = "overall_metrics"  # also of metric rows of 0.1: what an object's `compute` gave
IDS = ("question_id", "id", "idx", "question_index")
_ANSWERS = ("all_acceptable_answers", "references", "expected_answers", "expected", "answers")
_QUESTION_FIELDS = {*IDS, *_ANSWERS, "expected_answer", "question", "item", "metadata"}
_PREDICTION_FIELDS = {
    *_QUESTION_FIELDS, "prediction", "metrics", "prompt", "outcome", "error", "response", "evaluations",
}  # fmt: skip
_VERDICT = ("score", "outcome", "error", "error_kind")
_NO_NUMBER = "the stored score is not a number"
_NOT_THERE = "the files have no prediction for this question"


class Agent(msgspec.Struct, frozen=True):
    """Whose answers a file holds, and what is true of all of them. `timestamp` is Unix time."""

    name: str
    model_name: str = ""
    task: str = ""
    sample_index: int = 0
    total_samples: int = 1
    timestamp: float = 0.0
    template: str = ""

    def facets(self) -> JsonObject:
        """Return what the rows of a run have, for configs that group by it."""
        template = {"prompt_template": self.template} if self.template else {}
        return {"model_id": self.model_name or self.name, **template}


def id_of(row: JsonObject, number: int) -> str:
    """The id of a question or of a prediction's question; a row without one is known by its place."""
    return next((str(row[name]) for name in IDS if row.get(name) not in (None, "")), str(number))


def _others(row: JsonObject) -> JsonObject:
    """Return the fields that are not RAGiCamp's."""
    return {key: value for key, value in row.items() if key not in _PREDICTION_FIELDS}


# ---- questions


def item_row(row: JsonObject, id: str) -> JsonObject:
    """The dataset row of a question, or of a prediction that holds its question."""
    if kept := as_object(row.get("item")):
        return {**kept, "id": id}
    made: JsonObject = {
        "id": id,
        "data": {"question": row.get("question") or "", **_others(row)},
        "ground_truth": answers_in(row),
    }
    if isinstance(row.get("metadata"), dict):
        made["metadata"] = row["metadata"]
    return made


def question_fields(row: JsonObject) -> JsonObject:
    """Return what a prediction says about its question, as a row of a questions file."""
    return {
        key: row[key] for key in ("question", "item", "expected_answer", *_ANSWERS) if key in row
    }


def answers_in(row: JsonObject) -> list[Any]:
    """The accepted answers of a question, the expected one first."""
    found: Any = next((row[name] for name in _ANSWERS if row.get(name) is not None), [])
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    first = row.get("expected_answer")
    return listed if first in (None, "") or first in listed else [first, *listed]


def question_of(item: Item) -> str:
    """The text that an item asks."""
    return question(variables(item))


def question_row(item: Item) -> JsonObject:
    """An item as a row of a questions file."""
    try:
        answers: list[Any] = list(accepted(item.ground_truth))
    except LookupError:
        answers = []
    row: JsonObject = {
        "id": item.id,
        "question": question_of(item),
        "expected_answer": answers[0] if answers else None,
        "all_acceptable_answers": answers,
    }
    row |= _others(as_object(item.data))
    if item.metadata:
        row["metadata"] = item.metadata
    if normalise(item_row(row, item.id)) != item:
        row["item"] = msgspec.json.decode(encode_item(item))
    return row


# ---- predictions


def read_prediction(
    row: JsonObject, item_id: str, agent: Agent, place: str
) -> tuple[Response, list[Evaluation]]:
    """A prediction as a response of ours, and its metrics as evaluations."""
    response = _plain_response(row, item_id, agent)
    if kept := as_object(row.get("response")):
        response = completed(response, kept, place)
    return response, list(_evaluations(row, response, place))


def _plain_response(row: JsonObject, item_id: str, agent: Agent) -> Response:
    said = row.get("prediction")
    text = said if isinstance(said, str) else "" if said is None else json.dumps(said)
    outcome, error = _outcome_in(row, text)
    place = (item_id.encode(), b"%d" % agent.sample_index, text.encode("utf-8", "replace"))
    has_error = outcome == "errored"
    return Response(
        item_id=item_id,
        sample_id=f"{item_id}_sample_{agent.sample_index}",
        sample_index=agent.sample_index,
        total_samples=agent.total_samples,
        model_name=agent.model_name or agent.name,
        prompt=str(row.get("prompt") or row.get("question") or ""),
        response="" if has_error and text.startswith(ERROR_MARK) else text,
        timestamp=agent.timestamp,
        metadata={**agent.facets(), **_others(row), **as_object(row.get("metadata"))},
        error=None if error is None else str(error),
        key=digest("ragicamp", agent.name.encode(), *place).hex(),
        task=agent.task or agent.name,
        outcome=outcome,
        error_kind="permanent" if has_error else None,
    )


def _outcome_in(row: JsonObject, text: str) -> tuple[Any, Any]:
    """Return how a prediction came out, and its error."""
    error = row.get("error") or (_error_text(text) if text.startswith(ERROR_MARK) else None)
    outcome = row.get("outcome")
    if outcome == "ok":
        return outcome, None  # the error is of a score
    if outcome not in ("refused", "errored", "skipped"):
        missing = "ok" if row.get("prediction") is not None else "skipped"
        outcome = "errored" if error else missing
    return outcome, error or (_NOT_THERE if outcome == "skipped" else None)


def _error_text(text: str) -> str:
    """The error in `[ERROR: …]`, however often it was put into one."""
    while text.startswith(ERROR_MARK):
        text = text.removeprefix(ERROR_MARK).removeprefix(":").strip().removesuffix("]")
    return text


def _evaluations(row: JsonObject, response: Response, place: str) -> Iterable[Evaluation]:
    metrics = as_object(row.get("metrics"))
    told: set[str] = set()
    for entry in list_of(row.get("evaluations")):
        if isinstance(entry, dict):
            fields = dict(cast("JsonObject", entry))
            name = str(fields.pop("metric", fields.get("label", "")))
            told.add(name)
            yield completed(_plain_evaluation(name, metrics.get(name), response), fields, place)
        else:
            yield _plain_evaluation("unknown", entry, response)
    for name, value in metrics.items():
        if name not in told:
            yield _plain_evaluation(name, value, response)


def _plain_evaluation(name: str, value: Any, response: Response) -> Evaluation:
    number = float(value) if isinstance(value, (int, float)) else None
    missing = number is None or not math.isfinite(number)
    key = digest(
        "ragicamp-metric",
        response.key.encode(),
        name.encode(),
        b"" if missing else canonical(value),
    )
    return evaluation_of(
        response,
        name,
        passed=value if isinstance(value, bool) else None,
        score=None if missing else number,
        metadata=response.metadata,
        key=key.hex(),
        value=value if number is None else None,
        **failure(_NO_NUMBER if missing else None),
    )


def prediction_row(
    response: JsonObject,
    asks: str,
    agent: Agent,
    evaluations: Sequence[tuple[str, JsonObject]],
    metrics: JsonObject,
    *,
    extras: bool = False,
) -> JsonObject:
    """Return a response (a row as it stands on disk) as a prediction with these metrics, and why
    something failed; with `extras`, with all that a reader of these fields would not know."""
    if "item_id" not in response:
        raise UserError(
            "a response has no item_id", fix="remove its line, or run the experiment again"
        )
    row: JsonObject = {
        "question_id": str(response["item_id"]),
        "question": asks,
        "prediction": str(response.get("response") or ""),
        "metrics": metrics,
        "metadata": _agents_own(as_object(response.get("metadata"))),
        **_failure(response, evaluations, metrics),
    }
    plain = _plain_response(row, row["question_id"], agent)
    if extras and (kept := difference(response, plain)):
        row["response"] = kept
        plain = completed(plain, kept, "")
    if entries := list(_evaluation_entries(evaluations, metrics, plain, extras)):
        row["evaluations"] = entries
    return row


def _failure(
    response: JsonObject, evaluations: Sequence[tuple[str, JsonObject]], metrics: JsonObject
) -> JsonObject:
    """Return why the answer, or a score of it, is missing; nothing if none is."""
    error = response.get("error")
    outcome = response.get("outcome") or ("errored" if error else "ok")
    if outcome == "ok":
        reasons = {
            name: f"{name}: {evaluation.get('error') or outcome_of(evaluation)}"
            for name, evaluation in evaluations
            if metrics.get(name, 0) is None
        }
        error = "; ".join(reasons.values())
    return {"outcome": outcome, "error": error or outcome} if error or outcome != "ok" else {}


def is_failed(row: JsonObject) -> bool:
    """Return whether a prediction's answer, or a score of it, is missing."""
    return row.get("outcome") in ("errored", "skipped") or None in row["metrics"].values()


def _agents_own(metadata: JsonObject) -> JsonObject:
    """Return the metadata without what the engine adds to every row."""
    ours = (*OURS, "sampling") if "prompt_template" in metadata else OURS
    return {name: value for name, value in metadata.items() if name not in ours}


def _evaluation_entries(
    evaluations: Sequence[tuple[str, JsonObject]],
    metrics: JsonObject,
    response: Response,
    extras: bool,
) -> Iterator[JsonObject]:
    """Yield how evaluations failed; with `extras`, all that the metrics do not tell of each."""
    for name, evaluation in evaluations:
        if extras or outcome_of(evaluation) != "scored":
            plain = _plain_evaluation(name, metrics.get(name), response)
            changed = difference(evaluation, plain)
            kept = (field for field in changed if extras or field in _VERDICT)
            yield {"metric": name, **{field: changed[field] for field in kept}}


def outcome_of(evaluation: JsonObject) -> EvaluationOutcome:
    outcome: Any = evaluation.get("outcome")
    return outcome if outcome in OUTCOMES else "errored" if evaluation.get("error") else "scored"


def counted_score(evaluation: JsonObject, policy: Policy) -> float | None:
    """The number that an evaluation counts with: that of a wrong answer, or none, where the policy says so."""
    outcome = outcome_of(evaluation)
    if outcome != "scored":
        ways = {
            "errored": policy.on_error,
            "unparsed": policy.on_unparsed,
            "refused": policy.on_refused,
        }
        return 0.0 if ways.get(outcome) == "wrong" else None
    score, passed = evaluation.get("score"), evaluation.get("passed")
    if isinstance(score, (int, float)) and math.isfinite(score):
        return float(score)
    return float(passed) if isinstance(passed, bool) else None
