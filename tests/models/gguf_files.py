"""Small GGUF files, written by the format's description."""

import struct
from typing import Any

STRING, ARRAY, U32 = 8, 9, 4
F32, Q4_1 = 0, 3


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, type: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", type) + value


def number(key: str, value: int) -> bytes:
    return entry(key, U32, struct.pack("<I", value))


def texts(key: str, values: list[str]) -> bytes:
    return entry(key, ARRAY, struct.pack("<IQ", STRING, len(values)) + b"".join(map(text, values)))


ENTRIES = [
    entry("general.architecture", STRING, text("llama")),
    number("llama.context_length", 2048),
    texts("tokenizer.ggml.tokens", ["a", "bé", ""]),
    entry("tokenizer.ggml.scores", ARRAY, struct.pack("<IQ3f", 6, 3, 0.5, 1.0, 2.0)),
    entry("odd", 12, struct.pack("<d", 1.5)),
    entry("yes", 7, b"\1"),
]
TENSORS = [("first", [64, 2], Q4_1, 128 // 32 * 20), ("second", [3], F32, 12)]


def gguf_file(
    entries: list[bytes] | None = None,
    tensors: Any = None,
    *,
    version: int = 3,
    alignment: int = 32,
    data: bool = True,
) -> bytes:
    """A whole file; its last tensor ends where it ends."""
    entries = ENTRIES if entries is None else entries
    tensors = TENSORS if tensors is None else tensors
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries)
    offset = end = 0
    for name, dimensions, type, size in tensors:
        shape = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        head += text(name) + shape + struct.pack("<IQ", type, offset)
        end = offset + size
        offset = end + -end % alignment
    head += b"\0" * (-len(head) % alignment)
    return head + b"\7" * (end if data else 0)
