"""A manifest seals the rows of its artefact: sizes of their files, a checksum for every block, the sum of the lines'.

A byte that changes afterwards is found, and rows that only change places are not mistaken for damage. Checksums are
kept as rows are appended; they are XXH3-64, which costs less than reading the bytes.
"""

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Iterator
from pathlib import Path

from xxhash import xxh3_64, xxh3_64_digest, xxh3_64_intdigest

from assay import reading
from assay.interfaces import Log
from assay.records import Damage, Manifest
from assay.store.files import store_error

BLOCK = 1 << 16  # bytes; the rows of a damaged block cannot be trusted
_WIDTH = 8
_LINE_FEED = 10
_MASK = 2**64 - 1


class Checksums:
    """Those of the first `size` bytes of a file. `lines` is the sum of the lines' checksums, None if not known yet."""

    def __init__(self, lines: int | None = 0) -> None:
        self.size = 0
        self.lines = lines
        self._whole = bytearray()
        self._last = xxh3_64()

    def update(self, data: bytes | bytearray) -> None:
        """Further bytes of the file."""
        room = BLOCK - self.size % BLOCK
        self.size += len(data)
        if len(data) == room == BLOCK:
            self._whole += xxh3_64_digest(data)
            return
        if len(data) < room:
            self._last.update(data)
            return
        view = memoryview(data)
        while len(view) >= room:
            self._last.update(view[:room])
            self._whole += self._last.digest()
            self._last.reset()
            view, room = view[room:], BLOCK
        self._last.update(view)

    def add(self, lines: bytes) -> None:
        """Further whole lines of the file."""
        self.update(lines)
        if self.lines is not None:
            self.lines += sum(map(xxh3_64_intdigest, lines[:-1].split(b"\n")))

    @property
    def blocks(self) -> bytes:
        """Those of the whole blocks."""
        return bytes(self._whole)

    def extend(self, size: int, blocks: bytes) -> None:
        """Further bytes, the whole blocks of which have these checksums: enough for `damaged`, not for `text`."""
        self.size += size
        self._whole += blocks

    def of(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks of a file that is written, each of whole lines, as they come."""
        for chunk in chunks:
            self.add(chunk)
            yield chunk

    def text(self, path: Path) -> str:
        """All of them, as a manifest keeps them: the blocks' in Base64, the lines' sum in hexadecimal."""
        if self.lines is None:
            self.lines = _sum_of_lines(path)
        return f"{self.encoded} {self.lines & _MASK:016x}"

    @property
    def encoded(self) -> str:
        """Those of all blocks, in Base64."""
        last = self._last.digest() if self.size % BLOCK else b""
        return b64encode(self._whole + last).decode()

    def damaged(self, size: int, text: str, path: Path) -> list[range]:
        """The blocks, as ranges of bytes, that are not as they were when the file was closed with this size and these
        checksums. None is if the file was edited so that lines have moved: then its rows have to tell."""
        encoded, _, lines = text.partition(" ")
        try:
            sealed = _split(b64decode(encoded, validate=True))
        except Error:  # the manifest's own text is damaged: it tells nothing about the rows
            return []
        whole = min(size, self.size) // BLOCK
        now = _split(self._whole)[:whole]
        if size <= self.size and size % BLOCK:  # the last block, which may have grown since
            with reading.opened(path, 0) as file:
                file.seek(whole * BLOCK)
                now.append(xxh3_64_digest(file.read(size % BLOCK)))
        damaged = [
            at
            for at, (before, after) in enumerate(zip(sealed, now, strict=False))
            if before != after
        ]
        blocks = [range(at * BLOCK, min((at + 1) * BLOCK, size)) for at in damaged]
        if damaged and size == self.size:
            return [] if f"{_sum_of_lines(path) & _MASK:016x}" == lines else blocks
        if damaged and damaged[0] == len(now) - len(damaged):
            alone = len(damaged) == 1 and size < self.size
            if not alone or _was_edited(path, blocks[0], self.size - size, sealed[damaged[0]]):
                return []
        return blocks


def _was_edited(path: Path, block: range, more: int, checksum: bytes) -> bool:
    """Whether the last sealed block differs because a person edited the file, which has `more` bytes now: no line ends
    where the seal ended, or taking out lines of that size makes the block what it was."""
    with reading.opened(path, 0) as file:
        file.seek(block.start)
        head = file.read(len(block))
        file.seek(block.start + more)
        tail = file.read(len(block))
    cuts = [0, *(at + 1 for at, byte in enumerate(head) if byte == _LINE_FEED)]
    return cuts[-1] != len(head) or any(
        xxh3_64_digest(head[:cut] + tail[cut:]) == checksum for cut in cuts
    )


def _sum_of_lines(path: Path) -> int:
    with reading.opened(path, 1 << 20) as file:
        return sum(xxh3_64_intdigest(line.removesuffix(b"\n")) for line in file)


def _split(checksums: bytes | bytearray) -> list[bytes]:
    return [bytes(checksums[at : at + _WIDTH]) for at in range(0, len(checksums), _WIDTH)]


def read_checksums(path: Path) -> Checksums:
    """The checksums of a file as it is now."""
    checksums, buffer = Checksums(lines=None), bytearray(BLOCK)
    try:
        with reading.opened(path, 0) as file:
            while size := file.readinto(buffer):
                checksums.update(buffer if size == BLOCK else buffer[:size])
    except OSError as error:
        raise store_error(error, path) from error
    return checksums


def seal(manifest: Manifest, log: Log) -> None:
    """Have the manifest remember the rows as they are now."""
    manifest.segments, manifest.checksums = log.segments(), log.checksums()


def is_unchanged(manifest: Manifest, log: Log) -> bool:
    """Whether the rows are those that were sealed: by their bytes, or, sealed by an Assay that kept no checksums, by
    the times of their files."""
    sealed, now = manifest.segments, log.segments()
    if not manifest.checksums:
        return sealed == now
    sizes = [[(segment.name, segment.size) for segment in segments] for segments in (sealed, now)]
    return sizes[0] == sizes[1] and not log.damage(manifest)


def is_damaged(position: int, size: int, damage: Iterable[Damage]) -> bool:
    """Whether a line has bytes in a damaged block."""
    return any(
        position < each.position + each.stop - each.start and each.position <= position + size
        for each in damage
    )


def describe(damage: Damage) -> str:
    """One damaged block, for people."""
    number = damage.start // BLOCK + 1
    return f"block {number} of {damage.name} (bytes {damage.start:,} to {damage.stop - 1:,}) is damaged"
