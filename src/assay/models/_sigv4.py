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
    parts = urlsplit(url)
    headers = {"x-amz-date": time}
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    lines = sorted({"host": parts.netloc.rpartition("@")[2], **headers}.items())
    names = ";".join(name for name, _ in lines)
    path = "/".join(quote(part, safe="-_.~") for part in (parts.path or "/").split("/"))
    pairs = sorted(
        (_quote_strictly(name), _quote_strictly(value))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    query = "&".join(f"{name}={value}" for name, value in pairs)
    fields = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in lines)
    request = "\n".join([method, path, query, fields, names, sha256(body).hexdigest()])
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, sha256(request.encode()).hexdigest()])
    key = f"AWS4{keys.secret_access_key}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys.access_key_id}/{scope}"
    return {
        **headers,
        "authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}",
    }


def _quote_strictly(text: str) -> str:
    return quote(text, safe="-_.~")
