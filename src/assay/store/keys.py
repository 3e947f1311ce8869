"""What identifies a row: blake2b-128 over a canonical encoding.

Keys depend on what determines a row and on nothing else: not on the machine, the package's version, the order of
a mapping's keys, or whether a number was written 1 or 1.0.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from assay.records import JsonMapping

FORMAT = b"assay-key-1\0"
_PRIME = 2**64 - 59
_MOST_IDENTITIES = 64
_SIZES = [b"%d:" % size for size in range(256)]  # of most parts: four digests are made for each row
_encode = msgspec.json.Encoder(order="sorted").encode
_identities: dict[int, tuple[JsonMapping, bytes]] = {}


def canonical(value: Any) -> bytes:
    """One encoding for equal JSON values. Only floats that are whole numbers, which are written with `.0`, and what is
    no plain JSON need another look: walking through a value takes ten times as long as encoding it."""
    try:
        plain = _encode(value)
    except TypeError:
        return _encode(_normal(value))
    return _encode(_normal(value)) if b".0" in plain else plain


def _normal(value: Any) -> Any:
    if type(value) is str:  # most values are: the checks below take longer than the encoding
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if type(value) is dict or isinstance(value, Mapping):
        return {str(key): _normal(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normal(entry) for entry in value]
    return value


def digest(kind: str, *parts: bytes) -> bytes:
    """16 bytes for a kind of thing and its parts; parts are length-prefixed, so they cannot run into each other."""
    whole = [FORMAT, kind.encode()]
    for part in parts:
        size = len(part)
        whole.append(_SIZES[size] if size < len(_SIZES) else b"%d:" % size)
        whole.append(part)
    return blake2b(b"".join(whole), digest_size=16).digest()


def address(item_id: str, task: str, sample_index: int) -> bytes:
    """Where a row stands in an experiment, whatever its content."""
    return _encode((item_id, task, sample_index))


def response_key(item_id: str, task: str, sample_index: int, fingerprint: bytes) -> bytes:
    return digest("response", address(item_id, task, sample_index), fingerprint)


def evaluation_key(
    scorer: bytes, expected: bytes, responses: Sequence[tuple[str, bytes]], seat: int | None
) -> bytes:
    """`scorer`: its identity; `expected`: digest of what it reads of the item; `responses`: their keys and contents."""
    place = b"" if seat is None else b"%d" % seat
    if len(responses) == 1:
        return digest(
            "evaluation", scorer, expected, place, responses[0][0].encode(), responses[0][1]
        )
    parts = [part for key, content in responses for part in (key.encode(), content)]
    return digest("evaluation", scorer, expected, place, *parts)


def call_key(
    owner: bytes, step: str, ordinal: int, messages: Any, model: JsonMapping, params: Any
) -> bytes:
    """A paid call inside a task or a scorer. `ordinal` counts equal calls of one owner and step."""
    content = b"[%b,%b,%b]" % (canonical(messages), _settled(model), canonical(params))
    return digest("call", owner, step.encode(), b"%d" % ordinal, content)


def _settled(identity: JsonMapping) -> bytes:
    """The encoding of a model's identity, which is the same object in call after call."""
    known = _identities.get(id(identity))
    if known is None or known[0] is not identity:
        if len(_identities) >= _MOST_IDENTITIES:
            _identities.clear()
        known = _identities[id(identity)] = identity, canonical(identity)
    return known[1]


def seed_of(run_seed: int, address: bytes) -> int:
    """The random seed of one row: 63 bits, derived from the run's seed and the row's address."""
    return int.from_bytes(digest("seed", b"%d" % run_seed, address)[:8], "big") >> 1


def id_hash(id: str) -> int:
    """64 bits of an id, the same in every process; for hundreds of millions of lookups, hence no digest."""
    text = id.encode("utf-8", "surrogatepass")
    return (int.from_bytes(text, "big") * 257 + len(text)) % _PRIME


def short(key: bytes | str) -> int:
    """The first 64 bits of a key (bytes, or the hex of a row): what memory holds for each row."""
    if isinstance(key, str):
        try:
            number = int(key[:16], 16)
        except ValueError:
            number = -1
        return (
            number
            if number >= 0
            else int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
        )
    return int.from_bytes(key[:8], "big")
