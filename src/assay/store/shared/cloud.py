"""Objects in buckets of S3, Google and Azure, and in memory, by obstore: the extra `cloud`.

What is worth another try is tried again here, for writing as well: obstore gives up where it cannot know whether a
request that failed has been carried out, while a caller of `create` finds out by reading. What obstore says is never
shown, because addresses that it quotes may be signed: only the store's own word for the problem is.
"""

import os
import random
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from assay import reading
from assay.errors import StoreError, UserError
from assay.store.files import new_file, temporary_of
from assay.store.shared.aws_profile import FROM_PROGRAMS, aws_profile
from assay.store.shared.objects import Entry, Objects
from assay.store.shared.probe import check

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


T = TypeVar("T")
PARALLEL = 16
# seconds for which what may pass is tried again: a store that restarts needs some 15
PATIENCE = 90.0
FIRST_PATIENCE = 8.0  # until the store has answered once: a wrong address should not take long
_MTIME = "mtimens"  # of the file that an object was made from: `seal` compares times. Azure takes letters only
_ADDRESS = re.compile(r"(s3|gs|az|memory)://([A-Za-z0-9][A-Za-z0-9._-]*)(?:/(.*))?", re.DOTALL)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>|\"reason\": ?\"(\w{1,60})\"")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_NO_CREDENTIALS = (
    "169.254.169.254",
    "metadata.google",
    "MissingAccount",
    "MissingCredential",
    "Failed to get",
)
_WRONG_REGION = {
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
}
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthenticationFailed",
}
_CONFLICT = ("ConditionalRequestConflict", "OperationAborted")
_PASSING = {408, 409, 425, 429, 500, 502, 503, 504}


def open_cloud(address: str, *, probe: bool = False) -> "CloudObjects":
    """The objects below an address; `probe` finds out whether the store keeps its promises."""
    parts = _ADDRESS.fullmatch(address)
    prefix = (parts[3] or "").rstrip("/") if parts else ""
    if (
        parts is None
        or any(part in ("", ".", "..") for part in prefix.split("/") if prefix)
        or "\0" in prefix
    ):
        written = re.sub(r"//[^/]*@", "//…@", address)  # a key that stands there must not be shown
        raise UserError(
            f"{written!r} is not an address",
            fix="s3://bucket/folder, gs://bucket/folder, az://…, file://…",
        )
    scheme, bucket = parts[1], parts[2]
    try:
        store = open_bucket(scheme, bucket)
    except exceptions.BaseError as error:
        raise _complaint(error, address, bucket) from None
    objects = CloudObjects(store, f"{scheme}://{bucket}", prefix)
    if probe:
        check(objects)
    return objects


class CloudObjects(Objects):
    """The objects below a prefix of a bucket; threads may share it."""

    def __init__(self, store: Any, root: str, prefix: str) -> None:
        self.address = f"{root}/{prefix}" if prefix else root
        self.bucket = root.partition("://")[2]
        self.single_writer = os.environ.get("ASSAY_SINGLE_WRITER") == "1"
        self._store = store
        self._start = f"{prefix}/" if prefix else ""
        self._reached = False

    def create(self, name: str, content: bytes) -> bool:
        if self.single_writer:
            if self.entry(name) is not None:
                return False
            self.write(name, content)
            return True
        try:
            self._try(name, lambda key: obstore.put(self._store, key, content, mode="create"))
        except exceptions.AlreadyExistsError:
            return False
        return True

    def read(self, name: str) -> bytes | None:
        def whole(key: str) -> bytes:
            result = obstore.get(self._store, key)
            content = bytes(result.bytes())
            if len(content) != result.meta["size"]:
                raise _CutError
            return content

        return self._found(name, whole)

    def read_many(self, names: Iterable[str]) -> Iterator[bytes | None]:
        waiting: deque[Future[bytes | None]] = deque()
        with ThreadPoolExecutor(PARALLEL) as pool:
            try:
                for name in names:
                    waiting.append(pool.submit(self.read, name))
                    if len(waiting) > 2 * PARALLEL:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def write(self, name: str, content: bytes) -> None:
        self._try(name, lambda key: obstore.put(self._store, key, content))

    def names(self, prefix: str) -> Iterator[Entry]:
        def listed(key: str) -> list[Any]:
            return [
                meta
                for chunk in obstore.list(self._store, key or None, chunk_size=1000)
                for meta in chunk
            ]

        entries = map(self._entry, self._try(prefix, listed))
        return iter(sorted(entries, key=lambda entry: entry.name))

    def level(self, prefix: str) -> tuple[list[Entry], list[str]]:
        listed = self._try(
            prefix, lambda key: obstore.list_with_delimiter(self._store, key or None)
        )
        folders = [f"{folder[len(self._start) :]}/" for folder in listed["common_prefixes"]]
        return [self._entry(meta) for meta in listed["objects"]], sorted(folders)

    def entry(self, name: str) -> Entry | None:
        return self._found(name, lambda key: self._entry(obstore.head(self._store, key)))

    def delete(self, name: str) -> None:
        self._found(name, lambda key: obstore.delete(self._store, key))

    def fetch(self, name: str, path: Path) -> Entry | None:
        def copied(key: str) -> Entry:
            result = obstore.get(self._store, key)
            temporary, size = temporary_of(path), 0
            try:
                with open(new_file(temporary, path), "wb") as file:
                    for chunk in result:
                        size += file.write(chunk)
                if size != result.meta["size"]:
                    raise _CutError
                entry = self._entry(result.meta)
                mtime = int(result.attributes.get(_MTIME) or entry.mtime_ns)
                os.utime(temporary, ns=(mtime, mtime))
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            return entry

        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._found(name, copied)

    def swap(self, name: str, path: Path, before: str | None) -> str | None:
        if self.single_writer:
            return super().swap(name, path, before)
        e_tag, _, version = (before or "").partition(" ")
        mode: Any = (
            {"e_tag": f'"{e_tag}"', **({"version": version} if version else {})}
            if before
            else "create"
        )
        attributes = {_MTIME: str(path.stat().st_mtime_ns)}

        def put(key: str) -> str:
            written = obstore.put(
                self._store, key, path, mode=mode, attributes=attributes, use_multipart=False
            )
            return self._stamp(written)

        try:
            return self._try(name, put)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError):
            entry = self.entry(name)  # ours, if only the reply was lost
            same = (
                entry is not None
                and entry.size == path.stat().st_size
                and self.read(name) == reading.content(path)
            )
            return entry.stamp if entry is not None and same else None

    def _entry(self, meta: Any) -> Entry:
        modified = meta["last_modified"]
        mtime = int(modified.timestamp()) * 1_000_000_000 + modified.microsecond * 1000
        return Entry(meta["path"][len(self._start) :], meta["size"], self._stamp(meta), mtime)

    def _stamp(self, meta: Any) -> str:
        """Google compares versions, others ETags, which not all stores quote everywhere; a bucket of S3 with versions
        lists none."""
        version = meta["version"] if isinstance(self._store, GCSStore) else None
        e_tag = (meta["e_tag"] or "").strip('"')
        return f"{e_tag} {version}" if version else e_tag

    def _found(self, name: str, ask: Callable[[str], T]) -> T | None:
        try:
            return self._try(name, ask)
        except FileNotFoundError:
            return None

    def _try(self, name: str, ask: Callable[[str], T]) -> T:
        """What the store answers about an object, asked again while it is overloaded or out of reach."""
        started, pause = time.monotonic(), 0.1
        while True:
            try:
                answer = ask(self._start + name)
            except ValueError as error:
                raise self._unusable(name) from error
            except (exceptions.BaseError, OSError, _CutError) as error:
                # the disk's complaint, not the store's
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                if _is_answer(error):
                    self._reached = True
                    raise
                patience = PATIENCE if self._reached else FIRST_PATIENCE
                if not _may_pass(error) or time.monotonic() - started + pause > patience:
                    raise _complaint(
                        error, f"{self.address}/{name}".rstrip("/"), self.bucket
                    ) from None
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, 5.0)
            else:
                self._reached = True
                return answer

    def _unusable(self, name: str) -> StoreError:
        return StoreError(
            "this name cannot be an object's",
            where=f"{self.address}/{name}",
            fix="choose another name",
        )


class _CutError(Exception):
    """Fewer bytes came than were announced."""


# ---- what went wrong


def _says(error: Exception, words: Iterable[str]) -> bool:
    text = str(error)
    return any(word in text for word in words)


def _is_answer(error: Exception) -> bool:
    """Whether an error says that there is an object, another one, or none. Two that create at the same time may both
    be turned away without either having won: then neither is answered."""
    if isinstance(error, FileNotFoundError):
        return not _says(error, _NO_BUCKET)
    conditions = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
    return isinstance(error, conditions) and not _says(error, _CONFLICT)


def _facts(error: Exception) -> tuple[int, str]:
    """The status and the code of the store's answer; 0 where there was none."""
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    return int(status[1]) if status else 0, (code[1] or code[2]) if code else ""


def _may_pass(error: Exception) -> bool:
    status, code = _facts(error)
    if isinstance(error, (FileNotFoundError, PermissionError)) or _says(error, _NO_CREDENTIALS):
        return False
    return (
        status in _PASSING or (status == 0 and not code) or code in ("SlowDown", "RequestTimeout")
    )


def _complaint(error: Exception, where: str, bucket: str) -> StoreError:
    """In our words: nothing of what obstore says but the status and the code."""
    status, code = _facts(error)
    said = " ".join(filter(None, [str(status or ""), code]))
    fix = "docs/storage.md has the variables that each store needs"
    if _says(error, _NO_BUCKET):
        what, fix = (
            f"there is no bucket {bucket!r}",
            "make it, or correct its name; AWS_ENDPOINT_URL names the server",
        )
    elif (status == 0 and _says(error, _NO_CREDENTIALS)) or _says(error, _NO_CREDENTIALS[:2]):
        what, fix = "there are no credentials for this store", KEYS
    elif code in _WRONG_KEY or status == 401:
        what = f"the store does not accept these credentials ({said})"
    elif code in _WRONG_REGION:
        what, fix = (
            f"the bucket is in another region ({said})",
            "set AWS_REGION to that of the bucket",
        )
    elif status == 403 or isinstance(error, PermissionError):
        what, fix = (
            f"these credentials may not do this here ({said})",
            "allow reading, writing, listing and deleting",
        )
    elif status in _PASSING:
        what, fix = (
            f"the store is overloaded or out of order ({said})",
            "run again later: what was committed is kept",
        )
    elif status:
        what = f"the store refused ({said})"
    else:
        what, fix = (
            "the store cannot be reached",
            "check the network, AWS_ENDPOINT_URL and AWS_REGION",
        )
    return StoreError(what, where=where, fix=fix)
