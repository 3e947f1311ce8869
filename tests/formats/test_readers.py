"""Every reader in the registry, on what other tools really wrote and on what nobody wrote.

A reader takes the logs of its tool and no others, opens nothing outside of the path that it was given, and ends on
whatever else it finds with an empty list or an error that is meant for users.
"""

import json
import os
import re
import shutil
import socket
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from assay import registry
from assay.errors import UserError
from assay.foreign import Foreign

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = registry.formats("reader")  # each reads the logs of one tool; other readers take any table
LOGS = {name: HERE / name / "logs" for name in PEERS if (HERE / name / "logs").is_dir()}
SUFFIXES = ("", ".json", ".jsonl", ".eval", ".csv", ".parquet", ".yaml", ".db", ".zip")
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(name: str, path: Path) -> list[Foreign]:
    """What a reader takes at a path, all of it read."""
    found = registry.reader.get(name)(path)
    for foreign in found:
        for _ in foreign.cases():
            pass
        assert foreign.rejected >= 0
        assert foreign.notes() is not None
        assert foreign.headlines() is not None
        assert foreign.facts is not None
        assert foreign.source
    return found


def outcome(name: str, path: Path) -> str:
    """How reading ends: what was taken, or what is wrong; nothing else may happen."""
    try:
        return f"{len(read(name, path))} experiments"
    except UserError as error:
        return str(error)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# ---- its own logs, and no others


@pytest.mark.parametrize("name", LOGS)
def test_a_reader_takes_the_logs_of_its_tool(name: str) -> None:
    found = read(name, LOGS[name])
    assert found
    assert all(foreign.dataset for foreign in found)
    assert sum(1 for foreign in found for _ in foreign.cases()) > 5


@pytest.mark.parametrize("name", PEERS)
def test_a_reader_takes_no_logs_of_another(name: str) -> None:
    taken = [
        f"{path.relative_to(HERE)}"
        for other, logs in LOGS.items()
        if other != name
        for path in (logs, *files(logs))
        if registry.reader.get(name)(path)
    ]
    assert taken == []


# ---- whatever there is


def test_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.json").touch()
    for name in PEERS:
        for path in (
            tmp_path / "empty",
            tmp_path / "empty.json",
            tmp_path / "missing",
            tmp_path / "missing.eval",
        ):
            assert registry.reader.get(name)(path) == []


def survived(content: bytes, suffix: str) -> None:
    """Every reader either takes the file, leaves it, or says what is wrong with it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"log{suffix}")
        path.write_bytes(content)
        for name in PEERS:
            for place in (path, path.parent):
                assert outcome(name, place).strip()


@given(st.binary(max_size=200), st.sampled_from(SUFFIXES))
@QUICK
def test_any_bytes(content: bytes, suffix: str) -> None:
    survived(content, suffix)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"PK\x03\x04" + b"\0" * 40,
        b"PAR1" * 9,
        b'{"results": {"version": 3',
        b"\xff" * 9,
    ],
    ids=["lists", "objects", "zip", "parquet", "begun", "no text"],
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".eval"])
def test_hostile_bytes(content: bytes, suffix: str) -> None:
    survived(content, suffix)


@cache
def known_keys() -> list[str]:
    """The names of fields that the logs have: readers look for them."""
    found: set[str] = set()

    def collect(value: Any, depth: int) -> None:
        for key, inner in value.items() if isinstance(value, dict) else ():
            found.add(key)
            if depth:
                collect(inner, depth - 1)
        for inner in value[:3] if isinstance(value, list) else ():
            collect(inner, depth)

    for path in (
        path for logs in LOGS.values() for path in files(logs) if path.suffix in (".json", ".jsonl")
    ):
        for line in path.read_text().splitlines()[:3]:
            try:
                collect(json.loads(line), 4)
            except ValueError:
                break
    return sorted(found)


def shapes() -> st.SearchStrategy[Any]:
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=6)
        | st.just("\ud800")
    )
    keys = st.sampled_from(known_keys())
    inner = st.recursive(
        leaves,
        lambda deep: st.lists(deep, max_size=3) | st.dictionaries(keys, deep, max_size=6),
        max_leaves=12,
    )
    return st.dictionaries(keys, inner, max_size=8) | st.lists(inner, max_size=3)


@given(st.lists(shapes(), min_size=1, max_size=3), st.sampled_from(SUFFIXES))
@QUICK
def test_json_of_any_shape(values: list[Any], suffix: str) -> None:
    survived(b"\n".join(json.dumps(value).encode() for value in values), suffix)


@pytest.mark.parametrize("name", LOGS)
@given(data=st.data())
@settings(QUICK, max_examples=25)
def test_logs_that_were_cut_off_or_changed(name: str, data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(sorted(LOGS[name].iterdir())))
    with TemporaryDirectory() as folder:
        copied = Path(folder, entry.name)
        shutil.copytree(entry, copied) if entry.is_dir() else shutil.copy(entry, copied)
        path = data.draw(st.sampled_from(files(Path(folder))))
        content = path.read_bytes()
        at = data.draw(st.integers(0, len(content)))
        more = data.draw(st.sampled_from([b"", b"\0", b'"', b"{", b"\xff", content[:99]]))
        path.write_bytes(
            content[:at] + more + (content[at + 1 :] if data.draw(st.booleans()) else b"")
        )
        for other in PEERS:
            assert outcome(other, copied).strip()


# ---- nothing outside of its path

_OPENED: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        _OPENED is not None
        and event in ("open", "os.listdir", "os.scandir")
        and isinstance(arguments[0], (str, bytes))
    ):
        _OPENED.append(os.path.realpath(os.fsdecode(arguments[0])))


@contextmanager
def opened() -> Iterator[list[str]]:
    """The files and folders that are opened meanwhile. A hook can't be taken off: it looks away."""
    global _OPENED
    if not getattr(sys, "_assay_hooked", False):
        sys.addaudithook(_hook)
        sys._assay_hooked = True  # pyright: ignore
    _OPENED = []
    try:
        yield _OPENED
    finally:
        _OPENED = None


def test_the_hook_sees_files(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with opened() as seen:
        (tmp_path / "a").read_bytes()
        list(tmp_path.iterdir())
    assert {str(tmp_path / "a"), str(tmp_path)} <= set(seen)


def pointing(content: bytes, target: str) -> bytes:
    """JSON in which every text that could be the name of a file names another one."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: changed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [changed(inner) for inner in value]
        return target if isinstance(value, str) and re.search(r"[/\\]|\.\w{2,5}$", value) else value

    lines = content.splitlines(keepends=True)
    try:
        return b"\n".join(
            json.dumps(changed(json.loads(line))).encode() for line in lines if line.strip()
        )
    except ValueError:
        return content


@pytest.mark.parametrize(
    "secret", ["../outside/secret.json", "file://{}/outside/secret.json", "{}/outside/secret.json"]
)
@pytest.mark.parametrize("name", LOGS)
def test_a_reader_opens_nothing_outside_of_its_path(name: str, secret: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.json").write_text("{}")
    inside = Path(os.path.realpath(tmp_path)) / "inside"
    shutil.copytree(LOGS[name], inside)
    read(name, inside)  # modules that are imported on the way are open by now
    for path in files(inside):
        path.write_bytes(pointing(path.read_bytes(), secret.format(tmp_path)))
    with opened() as seen:
        outcome(name, inside)
    assert str(inside) in seen
    code = (str(ROOT / "src"), sys.prefix, sys.base_prefix)
    assert [path for path in seen if not path.startswith((str(inside), *code))] == []


# ---- what is committed


def texts(path: Path) -> Iterator[str]:
    """The text of a file, or of the files in it."""
    content = path.read_bytes()
    if not zipfile.is_zipfile(path):
        yield content.decode("utf-8", "replace")
    else:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                yield f"{member.filename}\n{unpacked(content, member).decode('utf-8', 'replace')}"


def unpacked(content: bytes, member: zipfile.ZipInfo) -> bytes:
    """A member of an archive, whose method (zstandard) Python's own module may not know."""
    begin = member.header_offset
    name, extra = struct.unpack("<HH", content[begin + 26 : begin + 30])
    packed = content[begin + 30 + name + extra :][: member.compress_size]
    if member.compress_type == zipfile.ZIP_STORED:
        return packed
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompress(packed, -15)
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read()


KEYS = re.compile(
    r"\b(sk-(?!not-a-real-)[A-Za-z0-9_-]{8,}|AKIA[A-Z0-9]{16}|gh[pousr]_\w{20,}|hf_\w{20,}|eyJ\w{20,}\.)"
    r"|Bearer [\w.-]{8,}"
)
PLACES = re.compile(
    r"(?<![\w.])/(?:tmp|home|root|work|Users|opt|usr|var|mnt|private)/[\w.-]+|[A-Z]:\\+Users\\"
)
HOSTS = re.compile(r"\bhttps?://(?:[^@\s\"/]*@)?([\w.-]+)")
LOCAL = ("127.0.0.1", "localhost", "example.com", "example.org")


@pytest.mark.parametrize("name", LOGS)
def test_logs_name_no_machine_and_hold_no_key(name: str) -> None:
    """They were made here, for everybody."""
    found: set[tuple[str, str]] = set()
    host = socket.gethostname()
    # or it may be a word
    here = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])" if len(host) > 4 else "(?!)")
    for path in files(LOGS[name]):
        for text in texts(path):
            for pattern in (KEYS, PLACES, here):
                found |= {(path.name, match[0]) for match in pattern.finditer(text)}
            found |= {(path.name, host) for host in HOSTS.findall(text) if host not in LOCAL}
    assert found == set()


@pytest.mark.parametrize("name", LOGS)
def test_logs_are_small(name: str) -> None:
    sizes = {path.name: path.stat().st_size for path in files(LOGS[name])}
    assert {file: size for file, size in sizes.items() if size > 60_000} == {}
    assert sum(sizes.values()) < 300_000


@pytest.mark.parametrize(
    "text",
    [
        '"/home/me/x"',
        "sk-abcdefghijkl",
        "https://registry.internal/simple",
        '"C:\\\\Users\\\\me"',
        "Bearer abcdefghij",
    ],
)
def test_what_must_not_be_in_logs_is_seen(text: str) -> None:
    hosts = [host for host in HOSTS.findall(text) if host not in LOCAL]
    assert KEYS.search(text) or PLACES.search(text) or hosts
