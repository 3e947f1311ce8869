"""What an HTTP answer other than success means for the call, the same for every provider."""

import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.models._transport import Reply, Transport
from assay.registry import nearest

WANTED_HEADERS = ("retry-after", "retry-after-ms", "location")
_RETRY = (408, 409, 425)
_OVERLOAD = (503, 529)
_LISTED = 20  # model names in an error
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|exceed_context|maximum context|prompt is too long|(input|prompt) (is )?too long",
    re.I,
)
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient_quota", re.I)
_NO_MODEL = re.compile(
    r"model_not_found|(invalid|unknown) model|model\b.{0,100}\b(not found|not exist|unknown|not available)", re.I | re.S
)


def failure(reply: Reply, *, model_name: str, where: str, key_fix: str, secrets: Iterable[str]) -> CallError:
    """The error for a status that is not 2xx. `key_fix` says how to give this provider its key."""
    status = reply.status
    secrets = list(secrets)
    code, message = server_message(scrub_body(reply.body, secrets))
    summary = scrub(f"HTTP {status}: {message}" if message else f"HTTP {status}", secrets)
    if status == 402 or _NO_CREDIT.search(f"{code} {message}"):
        return LaneError(f"the account has no credit left ({summary})", where=where)
    if status in (400, 413, 422, 500) and _TOO_LONG.search(f"{code} {message}"):
        fix = "shorten the prompt, lower `max_tokens`, or use a model with more context"
        return PermanentError(f"the prompt is too long for the model ({summary})", where=where, fix=fix)
    if status == 429 or status in _OVERLOAD:
        return TransientError(summary, where=where, overload=True, retry_after=retry_after(reply.headers))
    if status in _RETRY or status >= 500:
        return TransientError(summary, where=where, retry_after=retry_after(reply.headers))
    if status in (401, 403):
        return LaneError(f"the server refused the API key ({summary})", where=where, fix=key_fix)
    if status == 404:
        return LaneError(
            f"the server does not know the model {model_name!r} ({summary})",
            where=where,
            fix="check `model_name` and the path of `endpoint`",
        )
    if 300 <= status < 400:
        return LaneError(
            f"the server redirects to {scrub(reply.headers.get('location', 'nowhere'), secrets)}",
            where=where,
            fix="put the new address into `endpoint`",
        )
    return PermanentError(summary, where=where)


async def unknown_model(reply: Reply, transport: Transport, base: str, model_name: str, error: CallError) -> CallError:
    """The error of a server that knows no such model, with the names that it does know, if it tells them.

    Proxies say 400 where the API says 404: what they mean is believed only if their list lacks the name too.
    """
    if reply.status != 404 and not (reply.status == 400 and _NO_MODEL.search(error.what)):
        return error
    try:
        listed = await transport.get(f"{base}/models", timeout=10)
        content: Any = msgspec.json.decode(listed.body)
        names = [excerpt(entry["id"].encode()) for entry in content["data"]]
    except (CallError, msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return error
    if model_name in names:
        return error
    fix = nearest(model_name, names[:_LISTED]) if names else "it has no models at all: load one"
    summary = error.what if reply.status == 404 else f"the server does not know the model {model_name!r} ({error.what})"
    return LaneError(summary, where=error.where, fix=fix)


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
        if seconds is not None and seconds < 1e9:  # also refuses NaN
            return max(0.0, seconds)
    return None


def _until(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return None


def server_message(body: bytes) -> tuple[str, str]:
    """The code and the text of a server's error, wherever it put them; else the beginning of what it sent."""
    try:
        content: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return "", excerpt(body)
    error: Any = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(error, dict):
        found: dict[str, Any] = error
        text = next((found[key] for key in ("message", "detail", "error") if isinstance(found.get(key), str)), None)
        return str(found.get("code") or found.get("type") or ""), excerpt((text or str(found)).encode(), 1000)
    return "", excerpt(str(error).encode(), 1000)


def excerpt(body: bytes, length: int = 200) -> str:
    """The beginning of what a server sent, on one line, without control characters."""
    text = body[: length * 4].decode(errors="replace")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:length]


def scrub_body(body: bytes, secrets: Iterable[str]) -> bytes:
    """The same for raw bytes, to be done before they are cut to an excerpt: half a key is a leak too."""
    for secret in secrets:
        body = body.replace(secret.encode(), b"[secret]")
    return body


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without any of these secrets: servers like to repeat the key that they refuse."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text
