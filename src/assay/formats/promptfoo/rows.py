"""One result of promptfoo as a response and its evaluations.

Its `error` is also filled when an assertion failed: only `failureReason` 2 is an error. A refused request may have
become an answer ("API error: 400 …"); an answer without text was never given to the assertions.
"""

from typing import Any, NamedTuple

import msgspec

from assay.engine.experiment.imports.foreign import (
    REST,
    Row,
    answer_text,
    count_of,
    evaluation_of,
    fields_of,
    first_text,
    key_of,
    list_of,
    number_of,
    without_secrets,
)
from assay.formats.promptfoo.shapes import (
    KNOWN_OF_COMPONENT,
    KNOWN_OF_REPLY,
    KNOWN_OF_ROW,
    PLACED_OF_COMPONENT,
    PLACED_OF_REPLY,
    PLACED_OF_ROW,
    SCORE,
    VERDICT,
    Component,
    Named,
    PromptfooResult,
    Reply,
    Usage,
    of_results,
    planned,
)
from assay.readers._results import JsonResults
from assay.records import Evaluation, Response, ResponseOutcome

_ERROR = 2  # failureReason
_PLAIN = frozenset({"type", "value", "metric", "weight", "threshold", "transform", "rubricPrompt"})
_NO_REPLY = Reply()


class Place(NamedTuple):
    """What a row belongs to: its item, the model and prompt that were asked, and the how-manieth answer it is."""

    item: str
    model: str
    model_id: str
    prompt: str
    sample: int
    samples: int
    timestamp: float


class Reading(JsonResults):
    """Rows become cases; what is odd about them is counted."""

    def response(self, row: PromptfooResult, raw: Row, place: Place) -> Response:
        reply = row.response or _NO_REPLY
        text, output, calls = _answer(reply.output)
        outcome, error = self._outcome(row, reply)
        usage = reply.token_usage or row.token_usage or Usage()
        read, written = count_of(usage.prompt), count_of(usage.completion)
        if reply.cached and not read and not written:
            read = written = None  # only the sum of a stored answer is known
        metadata: Row = {"model_id": place.model_id, "prompt_template": place.prompt}
        metadata |= {"finish_reason": reply.finish_reason, "response_id": None}
        if reply.cached:
            metadata["cached"] = True
        if rest := self._rest(row, raw):
            metadata[REST] = rest
        latency = reply.latency_ms if reply.latency_ms is not None else row.latency_ms
        return Response(
            item_id=place.item,
            sample_id=f"{place.item}_sample_{place.sample}",
            sample_index=place.sample,
            total_samples=max(place.samples, place.sample + 1),
            model_name=place.model,
            prompt=row.prompt.raw,
            response=text,
            inference_time=(latency or 0.0) / 1000,
            timestamp=place.timestamp,
            metadata=metadata,
            error=error,
            total_tokens=count_of(usage.total),
            prompt_tokens=read,
            completion_tokens=written,
            key=key_of(
                "promptfoo", place.item, place.model, place.prompt, place.sample, raw.get("id")
            ),
            task=f"{place.model}/{place.prompt}",
            outcome=outcome,
            error_kind=_error_kind(reply) if outcome == "errored" else None,
            output=output,
            messages=_messages(row.prompt.raw),
            tool_calls=calls,
            cost=reply.cost if reply.cost is not None else row.cost or None,  # 0: it is not known
            logprobs=reply.log_probs,
        )

    def _outcome(self, row: PromptfooResult, reply: Reply) -> tuple[ResponseOutcome, str | None]:
        if row.failure_reason == _ERROR and (reply.error or reply.output is None):
            return "errored", str(reply.error or row.error or "promptfoo gives no reason")
        if reply.is_refusal:
            rejected = _status(reply) >= 400
            self.odd["rejected"] += rejected
            return "refused", str(reply.output) if rejected else None
        if row.failure_reason is None and reply.error and reply.output is None:  # before version 3
            return "errored", str(reply.error)
        if reply.output is None:
            self.odd["empty"] += 1
        return "ok", None

    def _rest(self, row: PromptfooResult, raw: Row) -> Row:
        """What has no place: the row's own metadata only where they say more than the test and the answer do."""
        rest = self.rest.of(raw, PLACED_OF_ROW, KNOWN_OF_ROW)
        own = rest.pop("metadata", None)
        reply = fields_of(raw.get("response"))
        rest |= self.rest.of(reply, PLACED_OF_REPLY, KNOWN_OF_REPLY, "response.")
        shown = {**(row.test_case.metadata or {}), **fields_of(reply.get("metadata"))}
        more = {
            name: value
            for name, value in fields_of(own).items()
            if value and shown.get(name) != value
        }
        if more:
            rest["row_metadata"] = more
        if row.test_case.vars is not None and row.vars and row.vars != row.test_case.vars:
            rest["vars"] = row.vars
        return without_secrets(rest)

    # ---- labels

    def evaluations(self, row: PromptfooResult, raw: Row, response: Response) -> list[Evaluation]:
        failed = row.failure_reason == _ERROR or response.outcome == "errored"
        grading = row.grading_result
        details = {"explanation": grading.reason} if grading and grading.reason else {}
        if grading and grading.comment:
            details["comment"] = grading.comment
        own = [
            _label(response, Named(VERDICT, ""), row.success, float(row.success), details),
            _label(response, Named(SCORE, ""), None, row.score, {}),
        ]
        reason = str(row.error or response.error or "there is no output")
        variables = row.test_case.vars or row.vars or {}
        if failed:
            own = [_fail(each, reason) for each in own]
        if failed or grading is None:
            if failed or not response.response:
                for name in planned(row.test_case.asserts, variables):
                    own.append(_fail(_label(response, name, None, None, {}), reason))
            return own
        results = grading.component_results or []
        named = of_results(results, variables)
        raws = list_of(raw["gradingResult"].get("componentResults"))
        found = own
        for name, result, given in zip(named, results, raws, strict=True):
            if result is not None:
                found.append(self._assertion(response, name, result, given))
        taken = {row.label for row in found}
        scores = row.named_scores or grading.named_scores or {}
        for metric, score in scores.items():
            if metric not in taken:
                name = Named(metric, "named_score", metric)
                found.append(_label(response, name, None, score, {"weight": row.weight(metric)}))
        return found

    def _assertion(
        self, response: Response, name: Named, result: Component, raw: Row
    ) -> Evaluation:
        asserted = raw.get("assertion") or {}
        if not _PLAIN.issuperset(asserted):
            asserted = without_secrets(asserted)
        details = {"explanation": result.reason, "assertion": asserted}
        if result.metadata:
            details["grading"] = without_secrets(result.metadata)
        if rest := self.rest.of(raw, PLACED_OF_COMPONENT, KNOWN_OF_COMPONENT, "componentResults."):
            details[REST] = rest
        row = _label(response, name, result.passed, result.score, details)
        if (result.metadata or {}).get("graderError") is True:
            self.odd["ungraded"] += 1
            return _fail(row, str(result.reason or "the grader failed"))
        if name.kind == "human":
            self.odd["human"] += 1
        return row


def _label(
    response: Response,
    name: Named,
    passed: bool | None,
    score: float | None,
    details: Row,
) -> Evaluation:
    row = evaluation_of(
        response,
        name.label,
        passed=passed,
        score=number_of(score),
        detailed_results=details,
        metadata={name: response.metadata[name] for name in ("model_id", "prompt_template")},
        key=key_of("promptfoo", response.key, name.label),
        scorer=f"promptfoo.{name.kind}" if name.kind else "promptfoo",
    )
    if row.passed is None and row.score is None:
        return _fail(row, "promptfoo gives no score")
    return row


def _fail(row: Evaluation, reason: str) -> Evaluation:
    """An evaluation without a score; the 0 that promptfoo gives for it is kept beside the reason."""
    if row.score is not None:
        row.detailed_results = {**row.detailed_results, "counted_as": row.score}
    row.outcome, row.error, row.passed, row.score = "errored", reason, None, None
    return row


def _answer(output: Any) -> tuple[str, Any, list[Any] | None]:
    """The text of an answer, what it is if it is not a text, and the calls of tools that it consists of."""
    if output is None or isinstance(output, str):
        return output or "", None, None
    fields = fields_of(output)
    calls = list_of(fields.get("tool_calls") if fields else output)
    if calls and all("function" in fields_of(call) for call in calls):
        return first_text(fields, ["content"]), output, calls
    return answer_text(output), output, None


def _messages(prompt: str) -> list[Row] | None:
    """The messages of a prompt that is a chat in JSON."""
    if not prompt.startswith("["):
        return None
    try:
        found = msgspec.json.decode(prompt, type=list[Row])
    except (ValueError, RecursionError):
        return None
    return found if found and all("role" in message for message in found) else None


def _status(reply: Reply) -> int:
    status = fields_of((reply.metadata or {}).get("http")).get("status")
    return status if isinstance(status, int) else 0


def _error_kind(reply: Reply) -> Any:
    status = _status(reply)
    if not status:
        return None
    return "transient" if status >= 500 or status in (408, 429) else "permanent"
