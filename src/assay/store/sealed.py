"""Every file of an experiment's folder is sealed, so that a bit that flips anywhere in it is found and named.

Rows are sealed by their manifests (`seal.py`). `manifest.json` ends with a checksum of its own text, and has those of
the other files that Assay keeps in a folder, taken when a step ends. What grows afterwards is sealed up to there.
"""

from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from xxhash import xxh3_64_digest, xxh3_64_hexdigest

from assay import reading
from assay.errors import LockedError, UserError
from assay.records import ROWS_FILE, JsonMapping, Manifest, manifest_sections
from assay.store.files import write_file
from assay.store.ledger import LEDGER, was_written, written_names
from assay.store.seal import BLOCK, read_checksums

MANIFEST, LOCK, SEAL = "manifest.json", ".lock", "seal"
_KEPT = (
    *ROWS_FILE.values(),
    "config.yaml",
    "metrics.json",
    "status.json",
    "calls.jsonl",
    "traces.jsonl",
)
_CALLS = "calls.jsonl"
_BESIDE = ("labels.jsonl", LEDGER)  # what people and verbs add to
_ASIDE = ("superseded", "rejected", "calls.d", "traces.d")
_OPEN = ("config.yaml", "status.json", "metrics.json")
_WIDTH = 8
_DOUBTFUL = "it is not as the manifest has it, which is damaged itself"


class Fault(msgspec.Struct):
    """A file that is not as it was sealed; `unsealed` is what nothing tells about."""

    file: str
    what: str
    kind: Literal["damaged", "missing", "unsealed"] = "damaged"


class _RunState(msgspec.Struct):
    state: str = ""


class _SealedFile(msgspec.Struct):
    size: int
    blocks: str


class _Seal(msgspec.Struct):
    files: dict[str, _SealedFile] = {}
    manifest: str = ""


# ---- sealing


def manifest_text(sections: JsonMapping) -> bytes:
    """The text of a manifest file with these sections, the seal at its end."""
    parts = {name: section for name, section in sections.items() if name != SEAL}
    files = _sealed_files(sections)
    whole = {
        **parts,
        SEAL: {"files": {name: files[name] for name in sorted(files)}, "manifest": ""},
    }
    text = msgspec.json.format(msgspec.json.encode(whole), indent=2)
    head, _, tail = text.rpartition(b'""')
    return b'%b"%b"%b\n' % (head, xxh3_64_hexdigest(head).encode(), tail)


def seal_files(folder: Path, *, anew: bool = True) -> None:
    """Have the manifest of a folder remember its other files as they are now, or else those that it does not know yet.
    Calls that were paid are only added to: what is damaged of them stays so. Call it under the folder's lock."""
    file = folder / MANIFEST
    if not file.is_file():
        return
    sections = manifest_sections(reading.content(file), file)
    rows = set[str]().union(*(manifest.checksums for manifest in _manifests(sections)))
    own = [name for name in _own_files(folder) if name not in rows]
    before = _sealed_files(sections)
    kept = {} if anew else {name: before[name] for name in own if name in before}
    if _CALLS in before:
        faults = _check_file(folder, _CALLS, before[_CALLS], grows=True)
        if any(fault.kind == "damaged" for fault in faults):
            kept[_CALLS] = before[_CALLS]
    files = {name: kept.get(name) or _sums(folder / name) for name in own}
    text = manifest_text({**sections, SEAL: msgspec.json.encode(_Seal(files))})
    if text != reading.content(file):
        write_file(file, text)


def seal_folder(folder: Path) -> None:
    """Seal what a verb has written into a folder, unless a process works there, which seals it."""
    from assay.store.lock import FolderLock  # it needs this module

    with suppress(LockedError), FolderLock(folder):
        seal_files(folder)


def sealed_line(line: bytes) -> bytes:
    """An object on one line with its own checksum at its end."""
    return b'%b,"seal":"%b"}\n' % (line[:-1], xxh3_64_hexdigest(line).encode())


def _sealed_files(sections: JsonMapping) -> dict[str, _SealedFile]:
    """The files that a manifest has sealed; a section that is not one has sealed none."""
    try:
        return msgspec.json.decode(sections[SEAL], type=_Seal).files if SEAL in sections else {}
    except (ValueError, RecursionError):
        return {}


def _own_files(folder: Path) -> Iterator[str]:
    """The names of the files that Assay keeps or wrote in a folder, but the manifest and the lock."""
    names = dict.fromkeys((*_KEPT, *_BESIDE))
    if (folder / LEDGER).is_file():
        names |= dict.fromkeys(written_names(folder))
    own = (name for name in names if name not in (MANIFEST, LOCK))
    yield from (name for name in own if (folder / name).is_file())
    for name in _ASIDE:
        yield from sorted(
            str(path.relative_to(folder))
            for path in (folder / name).rglob("*.jsonl")
            if path.is_file()
        )


def _sums(file: Path) -> _SealedFile:
    checksums = read_checksums(file)
    return _SealedFile(checksums.size, checksums.encoded)


def _blocks(file: Path) -> Iterator[bytes]:
    with reading.opened(file, 0) as stream:
        while block := stream.read(BLOCK):
            yield block


def _manifests(sections: JsonMapping) -> Iterator[Manifest]:
    for kind in ROWS_FILE:
        if kind in sections:
            yield msgspec.json.decode(sections[kind], type=Manifest)


# ---- checking


def check_folder(folder: Path) -> tuple[int, list[Fault]]:
    """Count the files that are as they were sealed, and tell what is wrong with the others. Files that are not Assay's are none
    of its business."""
    doubtful = _check_manifest(folder)
    faults = [*doubtful, *_check_lock(folder)]
    intact = 1 + (folder / LOCK).is_file() - len(faults)
    try:
        sections = manifest_sections(reading.content(folder / MANIFEST), folder / MANIFEST)
        files, growing = _files_with_rows(folder, sections)
    except UserError as error:
        return 0, [Fault(MANIFEST, error.what, "unsealed")]
    except (ValueError, RecursionError) as error:
        return max(0, intact), faults or [Fault(MANIFEST, f"it cannot be read: {error}")]
    for name, sealed in files.items():
        found = _check_file(folder, name, sealed, name in growing)
        intact += not found
        faults += [Fault(name, _DOUBTFUL, "unsealed")] if found and doubtful else found
    for name in _own_files(folder):
        if name not in files and (folder / name).stat().st_size:
            is_told = was_written(folder / name)  # by the ledger
            intact += is_told
            faults += [] if is_told else [Fault(name, "nothing has sealed it", "unsealed")]
    return intact, faults


def _files_with_rows(
    folder: Path, sections: JsonMapping
) -> tuple[dict[str, _SealedFile], set[str]]:
    """Return all files that a manifest file has sealed, and the names of those that may have grown since."""
    files = dict(msgspec.json.decode(sections.get(SEAL, b"{}"), type=_Seal).files)
    growing = {name for name in files if name.endswith((".jsonl", LEDGER))}
    for manifest in _manifests(sections):
        sizes = {segment.name: segment.size for segment in manifest.segments}
        names = [name for name in sizes if name in manifest.checksums]
        for name in names:
            files[name] = _SealedFile(sizes[name], manifest.checksums[name].partition(" ")[0])
        growing.update(() if manifest.complete else names)
    for name in _OPEN if files and _is_running(folder) else ():
        files.pop(name, None)
    return files, growing


def _is_running(folder: Path) -> bool:
    """Return whether a run has not ended, or was killed: its files have changed since they were sealed."""
    try:
        return (
            msgspec.json.decode(reading.content(folder / "status.json"), type=_RunState).state
            == "running"
        )
    except (ValueError, OSError, RecursionError):
        return False


def _check_manifest(folder: Path) -> list[Fault]:
    content = reading.content(folder / MANIFEST)
    tail = b'"\n  }\n}\n'
    head, digest = (
        content[: -len(tail) - 2 * _WIDTH - 1],
        content[-len(tail) - 2 * _WIDTH : -len(tail)],
    )
    if (
        content.endswith(tail)
        and digest == xxh3_64_hexdigest(head).encode()
        and content[len(head)] == ord('"')
    ):
        return []
    if b'"seal"' in content or b'"manifest": "' in content:
        return [Fault(MANIFEST, "its text is not the one that was sealed")]
    return [Fault(MANIFEST, "an Assay that kept no seals has written it", "unsealed")]


def _check_lock(folder: Path) -> list[Fault]:
    if not (folder / LOCK).is_file() or not (line := reading.content(folder / LOCK)):
        return []
    head, mark, _ = line.rpartition(b',"seal":"')
    if mark and line == sealed_line(head + b"}"):
        return []
    if b"seal" not in line and line[-3:] != b'"}\n':
        return [Fault(LOCK, "an Assay that kept no seals has written it", "unsealed")]
    return [Fault(LOCK, "its text is not the one that was sealed")]


def _check_file(folder: Path, name: str, sealed: _SealedFile, grows: bool) -> list[Fault]:
    file = folder / name
    if not file.is_file():
        return [Fault(name, "it is gone", "missing")]
    try:
        digests = b64decode(sealed.blocks, validate=True)
    except Error:
        return [Fault(name, "its checksums in the manifest cannot be read")]
    damaged, size = _damaged_blocks(file, sealed.size, digests), file.stat().st_size
    if (damaged or size != sealed.size) and was_written(file):
        return []  # replaced by Assay, which keeps a ledger of such files
    faults = [Fault(name, _place(file, block)) for block in damaged]
    if size < sealed.size:
        faults.append(Fault(name, f"it has {size:,} of {sealed.size:,} bytes"))
    elif size > sealed.size and not damaged:
        more = (
            f"{size - sealed.size:,} bytes were added after the first {sealed.size:,} were sealed"
        )
        faults.append(Fault(name, more, "unsealed" if grows else "damaged"))
    return faults


def _damaged_blocks(file: Path, size: int, digests: bytes) -> list[range]:
    """Return the blocks of the first `size` bytes that do not have these digests."""
    damaged: list[range] = []
    start = 0
    for at, block in enumerate(_blocks(file)):
        own = block[: size - start]
        if not own:
            break
        if xxh3_64_digest(own) != digests[at * _WIDTH : (at + 1) * _WIDTH]:
            damaged.append(range(start, start + len(own)))
        start += len(own)
    return damaged


def _place(file: Path, block: range) -> str:
    """Describe the place of a damaged block, in bytes and in lines."""
    before = within = at = 0
    with reading.opened(file, 0) as stream:
        while at < block.start:
            part = stream.read(min(BLOCK, block.start - at))
            before, at = before + part.count(b"\n"), at + len(part)
        within = stream.read(len(block)).removesuffix(b"\n").count(b"\n")
    lines = (
        f"line {before + 1:,}" if not within else f"lines {before + 1:,} to {before + within + 1:,}"
    )
    return f"block {block.start // BLOCK + 1} (bytes {block.start:,} to {block.stop - 1:,}, {lines}) is damaged"
