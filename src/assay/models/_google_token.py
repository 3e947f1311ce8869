"""Access tokens of Google Cloud from the files that its own tools write: a service account's key, or a person's login.

A service account signs its request for a token with RSA. That is one power of large numbers over a padded digest
(RFC 8017, 8.2.1), for which the standard library is enough.
"""

import asyncio
import time
from base64 import b64decode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from assay import reading
from assay.models._failures import excerpt
from assay.models._transport import Transport
from assay.sdk import CallError, LaneError, TransientError, UserError

DEFAULT_FILE = "~/.config/gcloud/application_default_credentials.json"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URI = "https://oauth2.googleapis.com/token"
_EARLY = 120.0  # seconds before its end that a token is replaced
# what says in the signature that it is SHA-256
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30


class Credentials(msgspec.Struct):
    """The file; a person's login has the second group of fields, a service account the third."""

    type: str
    project_id: str | None = None
    quota_project_id: str | None = None

    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""

    client_email: str = ""
    private_key: str = ""
    private_key_id: str = ""
    token_uri: str = _TOKEN_URI


def read_credentials(path: str, where: str) -> Credentials:
    """Raises UserError for a file that is not such a one."""
    try:
        found = msgspec.json.decode(reading.text(Path(path).expanduser()), type=Credentials)
    except OSError as error:
        raise UserError(
            f"the credentials cannot be read: {error.strerror}", where=f"{where}, {path}"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UserError(
            "this is not a file of Google's credentials", where=f"{where}, {path}"
        ) from None
    if found.type not in ("service_account", "authorized_user"):
        raise UserError(
            f"credentials of the type {excerpt(found.type.encode(), 40)!r} cannot be used",
            where=f"{where}, {path}",
            fix="export GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token)",
        )
    if found.type == "service_account":
        try:
            private_numbers(found.private_key)
        except (ValueError, IndexError):
            raise UserError("the private key is not an RSA key", where=f"{where}, {path}") from None
    return found


class AccessTokens:
    """The access token of some credentials, fetched when it is needed and again before it ends."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._token = ""
        self._end = 0.0
        self._fetching = asyncio.Lock()
        self._transport = Transport(
            credentials.token_uri, {"content-type": "application/x-www-form-urlencoded"}
        )

    async def token(self) -> str:
        async with self._fetching:
            if time.time() > self._end - _EARLY:
                await self._fetch()
        return self._token

    async def _fetch(self) -> None:
        reply = await self._transport.post(urlencode(self._form()).encode(), timeout=30)
        try:
            answer: Any = msgspec.json.decode(reply.body)
        except ValueError:
            answer = {}
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if reply.status != 200 or not isinstance(token, str):
            raise self._refusal(reply.status, answer)
        seconds: Any = answer.get("expires_in")
        self._token, self._end = (
            token,
            time.time() + (seconds if isinstance(seconds, int) else 3600),
        )

    def secrets(self) -> dict[str, str]:
        """Return what nothing may repeat, beside the token."""
        found = self.credentials
        return {"client secret": found.client_secret, "refresh secret": found.refresh_token}

    def _refusal(self, status: int, answer: Any) -> CallError:
        reason = (
            str(answer.get("error_description") or answer.get("error"))
            if isinstance(answer, dict)
            else ""
        )
        what = f"Google gave no access token (HTTP {status}): {excerpt(reason.encode())}"
        if status >= 500 or status == 429:
            return TransientError(what, where=self._transport.shown)
        return LaneError(
            what, where=self._transport.shown, fix="gcloud auth application-default login"
        )

    def _form(self) -> dict[str, str]:
        found = self.credentials
        if found.type == "authorized_user":
            keys = ("client_id", "client_secret", "refresh_token")
            return {"grant_type": "refresh_token", **{key: getattr(found, key) for key in keys}}
        return {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": assertion(found, time.time()),
        }

    async def close(self) -> None:
        await self._transport.close()


def assertion(account: Credentials, now: float) -> str:
    """The signed request of a service account for a token (RFC 7523)."""
    head = {"alg": "RS256", "typ": "JWT", "kid": account.private_key_id}
    times = {"iat": int(now), "exp": int(now) + 3600}
    claims = {"iss": account.client_email, "scope": _SCOPE, "aud": account.token_uri, **times}
    text = b".".join(_base64(msgspec.json.encode(part)) for part in (head, claims))
    return (text + b"." + _base64(signature(text, account.private_key))).decode()


def signature(data: bytes, private_key: str) -> bytes:
    """RSASSA-PKCS1-v1_5 with SHA-256."""
    modulus, exponent = private_numbers(private_key)
    size = (modulus.bit_length() + 7) // 8
    digest = _SHA256 + sha256(data).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    return pow(int.from_bytes(padded, "big"), exponent, modulus).to_bytes(size, "big")


def private_numbers(pem: str) -> tuple[int, int]:
    """Modulus and private exponent of a key in PKCS 8. ValueError or IndexError: it is not one."""
    lines = [line for line in pem.strip().splitlines() if not line.startswith("-----")]
    data = b64decode("".join(lines), validate=True)
    _, algorithm, key, *_ = _values(_content(data, _SEQUENCE))
    if algorithm[0] != _SEQUENCE:
        raise ValueError("it has no algorithm")
    _, modulus, _, exponent, *_ = _values(_content(_content_of(key, _OCTETS), _SEQUENCE))
    return _number(modulus), _number(exponent)


def _number(value: tuple[int, bytes]) -> int:
    return int.from_bytes(_content_of(value, _INTEGER), "big")


def _content(data: bytes, tag: int) -> bytes:
    return _content_of(_values(data)[0], tag)


def _content_of(value: tuple[int, bytes], tag: int) -> bytes:
    if value[0] != tag:
        raise ValueError("another type was expected")
    return value[1]


def _values(data: bytes) -> list[tuple[int, bytes]]:
    """Tags and contents of the DER values that follow one another."""
    values: list[tuple[int, bytes]] = []
    at = 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            width = size & 0x7F
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        values.append((tag, data[at : at + size]))
        at += size
    return values


def _base64(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
