"""Our rows as samples of inspect_ai: the way back of `rows.py` and `messages.py`."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from assay.engine.experiment.imports.foreign import REST
from assay.records import Evaluation, Item, Response
from assay.text.expected import NoExpectation, accepted
from assay.text.template import DEFAULT_FIELDS

Row = dict[str, Any]
SCORER = "assay_scorer"  # in the metadata of a score: who gave the label
NOT_A_NUMBER = msgspec.Raw(b"NaN")  # how inspect_ai says that there is no score
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_KEPT = ("id", "source", "metadata")
_OF_ROLE = {
    "assistant": ("model",),
    "tool": ("tool_call_id", "function", "error"),
    "user": (),
    "system": (),
}
_STOPS = {"length": "max_tokens", "function_call": "tool_calls"}
_STOPPED = {"stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown"}
_REASONS = {
    "unparsed": "invalid_response_format",
    "refused": "refusal",
    "errored": "scoring_failed",
}
_AGAIN = (
    *(
        "store",
        "timelines",
        "role_usage",
        "model_fallbacks",
        "uuid",
        "invalidation",
        "error_retries",
        "limit",
    ),
    *(
        "token_limit",
        "token_limit_type",
        "token_limit_usage",
        "message_limit",
        "time_limit",
        "turn_count",
    ),
)
_OF_ITEM = ("description", "sandbox", "files", "setup")
_DATA = re.compile(r"data:[\w/+.-]+;base64,")


def sample_of(item: Item | None, response: Response, labels: Mapping[str, Evaluation]) -> Row:
    """The sample of a response, with its evaluations by the names of their scores."""
    source = _dict(response.metadata.get(REST))
    metadata = {
        name: value
        for name, value in (item.metadata if item is not None else {}).items()
        if name != REST
    }
    of_item = _dict(item.metadata.get(REST)) if item is not None else {}
    model, failed = response.model_name, response.outcome in ("errored", "skipped")
    answered = not failed and _is_answered(response)
    answer = _answer(response)
    messages = [
        message
        for row in response.messages or _asked(item, response)
        for message in [_message(row)]
    ]
    usage = _usage(response)
    ended = time_text(response.timestamp)
    sample: Row = {
        "id": response.item_id,
        "epoch": response.sample_index + 1,
        "input": _input(item, response),
        "target": _target(item),
        "messages": [*messages, answer] if answered else messages,
        "output": _output(response, source, answer, usage, answered),
        "scores": _scores(labels, response.response),
        "metadata": source.get("metadata")
        if isinstance(source.get("metadata"), dict)
        else metadata,
        "store": {},
        "events": [],
        "model_usage": {**_dict(source.get("model_usage")), **({model: usage} if usage else {})},
        "role_usage": {},
        "started_at": source.get("started_at")
        or time_text(response.timestamp - response.inference_time),
        "completed_at": ended,
        "total_time": source.get("total_time") or response.inference_time,
        "working_time": source.get("working_time") or response.inference_time,
        "attachments": {},
    }
    choices = item.data.get("choices") if item is not None and isinstance(item.data, dict) else None
    if isinstance(choices, list) and all(
        isinstance(each, str) for each in cast("list[Any]", choices)
    ):
        sample["choices"] = choices
    if failed:
        why = response.error or "the answer was skipped"
        traceback = str(source.get("traceback") or "")
        sample["error"] = {
            "message": why,
            "traceback": traceback,
            "traceback_ansi": traceback or why,
        }  # which is shown
    sample |= {name: source[name] for name in _AGAIN if source.get(name) is not None}
    return sample | {name: of_item[name] for name in _OF_ITEM if of_item.get(name) is not None}


def time_text(seconds: float) -> str | None:
    """A time as logs have it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def _dict(value: Any) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def text_of(value: Any) -> str:
    """A value as text: JSON, if it is not text already."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _asked(item: Item | None, response: Response) -> list[Row]:
    return [{"role": "user", "content": response.prompt or _question(item)}]


def _question(item: Item | None) -> str:
    if item is None:
        return ""
    data = _dict(item.data)
    usual = next(
        (data[name] for name in ("input", *DEFAULT_FIELDS) if isinstance(data.get(name), str)), None
    )
    return usual if usual is not None else text_of(item.data)


def _input(item: Item | None, response: Response) -> Any:
    """The question: as text, or as messages, if the item has these."""
    if item is None:
        return response.prompt
    messages = _dict(item.data).get("messages")
    if isinstance(messages, list) and all(
        isinstance(row, dict) for row in cast("list[Any]", messages)
    ):
        return [_message(row) for row in cast("list[Row]", messages)]
    return _question(item)


def _target(item: Item | None) -> str | list[str]:
    truth = item.ground_truth if item is not None else None
    if truth is None:
        return ""
    if isinstance(truth, str):
        return truth
    try:
        texts = accepted(truth)
    except (NoExpectation, LookupError):
        return text_of(truth)
    return texts if len(texts) > 1 or isinstance(truth, list) else texts[0]


# ---- messages


def _message(row: Any) -> Row:
    fields = _dict(row)
    role = _ROLES.get(str(fields.get("role")), "user")
    content = fields.get("content")
    parts = (
        [_part(part) for part in cast("list[Any]", content)]
        if isinstance(content, list)
        else content
    )
    message: Row = {
        "role": role,
        "content": parts if isinstance(parts, (list, str)) else text_of(parts or ""),
    }
    message |= {
        name: fields[name] for name in (*_KEPT, *_OF_ROLE[role]) if fields.get(name) is not None
    }
    if message.get("source") not in (None, "input", "generate", "operator"):
        del message["source"]
    if role == "assistant" and isinstance(fields.get("tool_calls"), list):
        message["tool_calls"] = [
            _call(call, number) for number, call in enumerate(fields["tool_calls"])
        ]
    return message


def _part(part: Any) -> Row:
    fields = _dict(part)
    kind = fields.get("type")
    if isinstance(part, str) or (kind == "text" and isinstance(fields.get("text"), str)):
        return {"type": "text", **fields} if fields else {"type": "text", "text": part}
    if kind == "image_url":
        media = fields.get("image_url")
        address = _dict(media).get("url") if isinstance(media, dict) else media
        detail = _dict(media).get("detail")
        if isinstance(address, str):
            return {
                "type": "image",
                "image": address,
                "detail": detail if detail in ("low", "high") else "auto",
            }
    if kind == "reasoning" and isinstance(fields.get("reasoning"), str):
        return fields
    audio = _dict(fields.get("input_audio"))
    if isinstance(audio.get("data"), str) and audio.get("format") in ("wav", "mp3"):
        return {"type": "audio", "audio": audio["data"], "format": audio["format"]}
    return {"type": "data", "data": fields or {"value": part}}


def _call(call: Any, number: int) -> Row:
    fields = _dict(call)
    function = _dict(fields.get("function")) or fields
    arguments, problem = function.get("arguments", {}), None
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            problem = f"the arguments are not JSON: {arguments}"
    row: Row = {
        "id": str(fields.get("id") or f"call_{number}"),
        "function": str(function.get("name") or ""),
        "arguments": arguments if isinstance(arguments, dict) else {},
        "type": "function",
    }
    problem = problem or fields.get("parse_error")
    return {**row, "parse_error": str(problem)} if problem else row


def _answer(response: Response) -> Row:
    content: Any = response.response
    if response.reasoning:
        content = [
            {"type": "reasoning", "reasoning": response.reasoning},
            {"type": "text", "text": response.response},
        ]
    row: Row = {"role": "assistant", "content": content, "source": "generate"}
    if response.served_model:
        row["model"] = response.served_model
    if response.tool_calls:
        row["tool_calls"] = [_call(call, number) for number, call in enumerate(response.tool_calls)]
    return row


def _is_answered(response: Response) -> bool:
    """Whether the model has said anything, even if it is empty."""
    said = response.response or response.tool_calls or response.served_model
    return bool(said or response.metadata.get("finish_reason"))


def _usage(response: Response) -> Row:
    counts = (response.prompt_tokens, response.completion_tokens, response.total_tokens)
    if counts == (None, None, None):
        return {}
    prompt, completion, total = (count or 0 for count in counts)
    usage: Row = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": total or prompt + completion,
    }
    return {**usage, "total_cost": response.cost} if response.cost is not None else usage


def _output(response: Response, source: Row, answer: Row, usage: Row, answered: bool) -> Row:
    model = response.served_model or response.model_name
    if not answered:
        return {
            "model": model,
            "choices": [],
            "completion": "",
            **({"usage": usage} if usage else {}),
        }
    finish = str(response.metadata.get("finish_reason") or "stop")
    stop = _STOPS.get(finish, finish)
    choice: Row = {"message": answer, "stop_reason": stop if stop in _STOPPED else "unknown"}
    if isinstance(source.get("stop_details"), dict):
        choice["stop_details"] = source["stop_details"]
    elif response.outcome == "refused":
        choice["stop_reason"] = "content_filter"
    output: Row = {"model": model, "choices": [choice], "completion": response.response}
    if usage:
        output["usage"] = usage
    if response.inference_time:
        output["time"] = response.inference_time
    if isinstance(id := response.metadata.get("response_id"), str):
        output["response_id"] = id
    return output


# ---- scores


def named(labels: Sequence[Evaluation], scorers: Mapping[str, str]) -> dict[str, Evaluation]:
    """The evaluations that a sample can hold, by the names of their scores: the label, with the scorer where another
    one, which `scorers` has, gives the same label."""
    names: dict[str, Evaluation] = {}
    for row in labels:
        if row.outcome != "skipped":
            one_of_several = scorers.get(row.label, row.scorer) != row.scorer
            names.setdefault(f"{row.label} ({row.scorer})" if one_of_several else row.label, row)
    return names


def _scores(labels: Mapping[str, Evaluation], said: str) -> Row:
    scores: Row = {}
    for name, row in labels.items():
        details = row.detailed_results
        metadata = {**_dict(details.get("metadata"))}
        metadata |= {name: value for name, value in details.items() if name not in _DETAILS}
        if row.scorer != name:
            metadata[SCORER] = row.scorer
        score: Row = {"value": value_of(row)}
        answer, why = details.get("answer", said or None), details.get("explanation", row.error)
        score |= {"answer": answer} if isinstance(answer, str) else {}
        score |= {"explanation": why} if isinstance(why, str) else {}
        reason = details.get("reason") if row.outcome != "scored" else None
        if row.outcome != "scored":
            score["reason"] = reason if isinstance(reason, str) else _REASONS[row.outcome]
        score["metadata"] = metadata
        score["history"] = details["history"] if isinstance(details.get("history"), list) else []
        scores[name] = score
    return scores


_DETAILS = ("answer", "explanation", "reason", "metadata", "history")


def value_of(row: Evaluation) -> Any:
    """The value of a score: what the row has of another program, else C or I for a verdict, else the number. What
    could not be read, or was refused, is wrong, as it is in our metrics; what failed has no value."""
    if isinstance(row.value, (str, int, float)) and row.outcome != "errored":
        return row.value
    if row.outcome in ("unparsed", "refused"):
        return "I"
    if row.outcome == "errored":
        return NOT_A_NUMBER
    if row.passed is not None and row.score in (None, float(row.passed)):
        return "C" if row.passed else "I"
    return row.score if row.score is not None else NOT_A_NUMBER
