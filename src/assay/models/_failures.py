"""What an HTTP answer other than success means for the call, the same for every provider."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from assay.models._secrets import Secrets
from assay.models._transport import HttpReply
from assay.sdk import CallError, JsonObject, LaneError, PermanentError, TransientError

# not JSON, not UTF-8, a number beyond all bounds, nested too deeply
UNREADABLE = (ValueError, RecursionError)
LONGEST_WAIT = 3600.0  # seconds that a server may ask for at a time
_RETRY = (408, 409, 425, 429)
_OVERLOAD = (429, 503, 529)
_TEXTS = ("message", "Message", "detail", "error")  # where servers say what is wrong
_LISTS = ("data", "models", "publisherModels", "modelSummaries")  # where providers put them
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|exceed_context|maximum context|prompt is too long|(input|prompt) (is )?too long",
    re.I,
)
_USER = re.compile(r"//[^/?#@]*@")
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient_quota", re.I)
_NO_KEY = re.compile(r"api key (not valid|expired)", re.I)  # what Gemini says with a 400
# where Gemini says how long to wait
_DELAY = re.compile(rb'"retryDelay": ?"(\d{1,6}(?:\.\d{1,9})?)s"')
NO_MODEL = re.compile(
    r"model_not_found|(invalid|unknown) model|model\b.{0,100}\b(not found|not exist|unknown|not available)"
    r"|model identifier is invalid",
    re.I | re.S,
)


def failure(
    reply: HttpReply, *, model_name: str, where: str, key_fix: str, secrets: Secrets
) -> CallError:
    """The error for a status that is not 2xx. `key_fix` says how to give this provider its key."""
    status = reply.status
    code, message = server_message(secrets.scrub(reply.body))
    summary = secrets.text(f"HTTP {status}: {message}".removesuffix(": "))
    if status == 402 or _NO_CREDIT.search(f"{code} {message}"):
        return LaneError(f"the account has no credit left ({summary})", where=where)
    if status in (400, 413, 422, 500) and _TOO_LONG.search(f"{code} {message}"):
        what = f"the prompt is too long for the model ({summary})"
        fix = "shorten the prompt, lower `max_tokens`, or use a model with more context"
        return PermanentError(what, where=where, fix=fix)
    if status in _RETRY or status >= 500:
        overload = status in _OVERLOAD
        return TransientError(summary, where=where, overload=overload, retry_after=_wait(reply))
    what = fix = ""
    if status in (401, 403) or (status == 400 and _NO_KEY.search(message)):
        what, fix = f"the server refused the API key ({summary})", key_fix
    elif status == 404:
        what = f"the server does not know the model {model_name!r} ({summary})"
        fix = "check `model_name` and the path of `endpoint`"
    elif 300 <= status < 400:
        target = excerpt(secrets.scrub(reply.headers.get("location", "nowhere").encode()))
        what = f"the server redirects to {_USER.sub('//', target)}"
        fix = "put the new address into `endpoint`"
    error = LaneError if what else PermanentError
    return error(what or summary, where=where, fix=fix)


def model_names(body: bytes) -> list[str]:
    """The names in a server's list of models; providers put them under different keys."""
    try:
        content: Any = msgspec.json.decode(body)
        rows = _first_of(content, _LISTS) if isinstance(content, dict) else content
        names = (_first_of(row, ("id", "name", "modelId")) for row in rows)
        return [
            excerpt(re.sub(r"^(publishers/google/)?models/", "", name).encode()) for name in names
        ]
    except (*UNREADABLE, LookupError, TypeError, AttributeError, StopIteration, RuntimeError):
        raise TransientError(
            f"the server's answer is not a list of models: {excerpt(body)}"
        ) from None


def _wait(reply: HttpReply) -> float | None:
    delay = _DELAY.search(reply.body)
    seconds = retry_after(reply.headers)
    return min(float(delay[1]), LONGEST_WAIT) if seconds is None and delay else seconds


def _first_of(fields: JsonObject, names: tuple[str, ...]) -> Any:
    return next(fields[name] for name in names if name in fields)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks us to wait; it may give seconds, milliseconds or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value)
        if seconds is not None and seconds == seconds:  # NaN is not
            return min(max(0.0, seconds), LONGEST_WAIT)
    return None


def _until(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def server_message(body: bytes) -> tuple[str, str]:
    """The code and the text of a server's error, wherever it put them; else the beginning of what it sent."""
    try:
        content: Any = msgspec.json.decode(body)
        error: Any = content.get("error", content) if isinstance(content, dict) else content
        if not isinstance(error, dict):
            return "", excerpt(str(error).encode(), 1000)
        fields: JsonObject = error
        text = next((fields[key] for key in _TEXTS if isinstance(fields.get(key), str)), None)
        return str(fields.get("code") or fields.get("type") or ""), excerpt(
            (text or str(fields)).encode(), 1000
        )
    except UNREADABLE:
        return "", excerpt(body)


def excerpt(body: bytes, length: int = 200) -> str:
    """The beginning of what a server sent, on one line, without control characters."""
    text = body[: length * 4].decode(errors="replace")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[
        :length
    ]
