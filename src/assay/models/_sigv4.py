"""AWS's signature of a request, version 4: a key derived from the secret, the day, the region and the service."""

import hmac
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit


class Keys(NamedTuple):
    access_key_id: str
    secret_access_key: str
    session_token: str | None = None


def signature_headers(
    method: str,
    url: str,
    body: bytes,
    keys: Keys,
    *,
    region: str,
    service: str,
    now: datetime | None = None,
) -> dict[str, str]:
    """The headers that prove who asks; the path is signed as it is written in `url`, encoded once more."""
    time = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-amz-date": time}
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    lines = sorted({"host": urlsplit(url).netloc.rpartition("@")[2], **headers}.items())
    names = ";".join(name for name, _ in lines)
    fields = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in lines)
    digest = sha256(body).hexdigest()
    request = "\n".join([method, *_path_and_query(url), fields, names, digest])
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, sha256(request.encode()).hexdigest()])
    signature = _signature(text, keys.secret_access_key, scope)
    credential = f"Credential={keys.access_key_id}/{scope}"
    signed = f"{credential}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {signed}"}


def _signature(text: str, secret: str, scope: str) -> str:
    key = f"AWS4{secret}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _path_and_query(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    path = "/".join(map(_quote_strictly, (parts.path or "/").split("/")))
    given = parse_qsl(parts.query, keep_blank_values=True)
    pairs = sorted((_quote_strictly(name), _quote_strictly(value)) for name, value in given)
    return path, "&".join(f"{name}={value}" for name, value in pairs)


def _quote_strictly(text: str) -> str:
    return quote(text, safe="-_.~")
