"""The buckets of S3, Google and Azure, opened with the credentials that the usual variables and files have."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from assay.errors import StoreError
from assay.store.shared.aws_profile import FROM_PROGRAMS, aws_profile

KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE (docs/storage.md has the others)"
_NAMES = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}
_ONCE: Any = {"max_retries": 0}  # CloudObjects tries again
_memory: dict[str, MemoryStore] = {}
_opened: dict[tuple[object, ...], Any] = {}


def _options(*endpoints: str | None) -> Any:
    insecure = any(endpoint.startswith("http://") for endpoint in endpoints if endpoint)
    timeouts = {"connect_timeout": timedelta(seconds=5), "read_timeout": timedelta(seconds=30)}
    return {"allow_http": insecure, "timeout": timedelta(minutes=30), **timeouts}


def _s3(bucket: str) -> S3Store:
    environ = os.environ
    config: Any = {} if environ.get("AWS_ACCESS_KEY_ID") else _profile()
    if not environ.get("AWS_REGION") and not environ.get("AWS_DEFAULT_REGION"):
        config.setdefault("region", "us-east-1")
    named = [
        environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
    ]
    if any(named):
        config.pop("endpoint", None)
    return S3Store(
        bucket,
        config=config,
        client_options=_options(*named, config.get("endpoint")),
        retry_config=_ONCE,
    )


def _profile() -> dict[str, str]:
    """The keys of a profile in the files of AWS's own tools, which obstore does not read."""
    name, values = aws_profile(os.environ.get("AWS_PROFILE"))
    if "aws_access_key_id" not in values:
        if FROM_PROGRAMS & values.keys():
            fix = 'eval "$(aws configure export-credentials --format env)"'
            raise StoreError(
                f"the keys of the profile {name!r} come from a program",
                where="AWS_PROFILE",
                fix=fix,
            )
        elsewhere = any(
            key.startswith(("AWS_CONTAINER_", "AWS_WEB_IDENTITY_")) for key in os.environ
        )
        if not elsewhere and os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise StoreError(
                "there are no credentials for this store", where="the environment", fix=KEYS
            )
    return {ours: values[theirs] for theirs, ours in _NAMES.items() if theirs in values}


def _google(bucket: str) -> GCSStore:
    return GCSStore(
        bucket, client_options=_options(os.environ.get("GOOGLE_BASE_URL")), retry_config=_ONCE
    )


def _azure(container: str) -> AzureStore:
    names = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURITE_BLOB_STORAGE_URL")
    return AzureStore(
        container, client_options=_options(*map(os.environ.get, names)), retry_config=_ONCE
    )


def _in_memory(name: str) -> MemoryStore:
    return _memory.setdefault(name, MemoryStore())


_WAYS: dict[str, Callable[[str], Any]] = {
    "s3": _s3,
    "gs": _google,
    "az": _azure,
    "memory": _in_memory,
}


def open_bucket(scheme: str, bucket: str) -> Any:
    """The store, which keeps its connections; a process opens each once, as long as no variable changes."""
    variables = [
        item
        for item in os.environ.items()
        if item[0].startswith(("AWS_", "AZUR", "GOOGLE_", "HOME"))
    ]
    key = (os.getpid(), scheme, bucket, *sorted(variables))
    if key not in _opened:
        _opened[key] = _WAYS[scheme](bucket)
    return _opened[key]
