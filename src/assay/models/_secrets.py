"""Keys and headers of a model in what its server says: found in any case and encoding, and masked.

What is compared is the letters and digits alone, in lower case, with escapes undone (per cent, JSON, HTML): so a key is
found that was split over lines or quoted in any way. It is looked for as it is, in base64 and in hexadecimal. Where
it is found, a pattern masks it; where that does not help, all of the text is masked.
"""

import html
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from assay.config.environment import PLACEHOLDERS, FromEnvironment, names_secret
from assay.sdk import Completion

MARK = "[secret]"
SHORTEST = 6
_MARK = MARK.encode()
_LONGEST = 1 << 18  # bytes that are searched for the place; of a longer text nothing is kept
_RUN = 8  # letters in a row that are looked for first
_PIECE = 6  # a beginning of a key, at the end of what was cut off there, that is a leak
_LOWER = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_OTHERS = bytes(code for code in range(128) if not chr(code).isalnum())
_ESCAPE = re.compile(rb"\\+u00([0-9a-fA-F]{2})|\\+x([0-9a-fA-F]{2})")
_NESTED = 4  # escapes of escapes that are undone
_TOKEN = re.compile(
    rb"\\+(?:u00|x)([0-9a-fA-F]{2})|%(?:25)*([0-9a-fA-F]{2})|&#0*(\d{1,3});|&#[xX]0*([0-9a-fA-F]{1,2});"
    rb"|(\\+[nrt]|&[a-zA-Z]{2,8};)|.",
    re.S,
)


class Secrets:
    """What must not be seen. What is too short to be told from a word, or stands for no key at all, is left out."""

    def __init__(self, values: Iterable[str]) -> None:
        keys = dict.fromkeys(map(_bare, values))
        self._values = tuple(
            key for key in keys if len(key) >= SHORTEST and key.lower() not in PLACEHOLDERS
        )
        needles = (
            _letters(form)
            for value in self._values
            for form in _forms(value, value.lower(), value.upper())
        )
        self._needles = tuple(
            dict.fromkeys(needle for needle in needles if len(needle) >= SHORTEST)
        )
        self._odd = tuple(
            value.encode() for value in self._values if len(_letters(value.encode())) < SHORTEST
        )
        self._runs = tuple(
            dict.fromkeys(_run(form) for value in self._values for form in _forms(value))
        )

    def __bool__(self) -> bool:
        return bool(self._values)

    def may_be_in(self, answer: bytes) -> bool:
        """A quick no for the many answers that hold none and escape nothing."""
        if b"\\" not in answer and b"%" not in answer and b"&#" not in answer:
            answer = answer.lower()
            if not any(run in answer for run in self._runs):
                return False
        return self.are_in(answer)

    def are_in(self, data: bytes) -> bool:
        if any(value in data for value in self._odd):
            return True
        letters = _letters(data) if self._needles else b""
        return any(needle in letters for needle in self._needles)

    def mask(self, data: bytes) -> bytes:
        """The same with a mark for each of them."""
        for value in self._odd:
            data = data.replace(value, _MARK)
        if not self.are_in(data):
            return data
        if len(data) <= _LONGEST:
            data = self._cut(data)
        return _MARK if len(data) > _LONGEST or self.are_in(data) else data

    def scrub(self, data: bytes) -> bytes:
        """Masked, and without the beginning of one that was cut off at the end."""
        data = self.mask(data)
        end = data[-512:].lower()
        for value in self._values:
            start = value.encode().lower()
            for size in range(len(start) - 1, _PIECE - 1, -1):
                if end.endswith(start[:size]):
                    return data[:-size] + _MARK
        return data

    def text(self, text: str) -> str:
        return self.mask(text.encode(errors="replace")).decode(errors="replace") if self else text

    def hidden(self, completion: Completion, body: bytes) -> Completion:
        """The answer that was read from there; one that repeats a secret is masked and marked."""
        is_parted = b'"text"' in body or b'"thinking"' in body
        if self.may_be_in(body) or (
            is_parted and self.are_in(f"{completion.text} {completion.reasoning}".encode())
        ):
            return self._hidden(completion)
        return completion

    def _hidden(self, completion: Completion) -> Completion:
        """Its tokens would spell it: they are left out."""
        completion.logprobs = None
        fields: Any = self._walk(msgspec.to_builtins(completion))
        hidden = msgspec.convert({**fields, "masked": True}, Completion)
        if self.are_in(msgspec.json.encode(hidden)):
            texts = dict.fromkeys(name for name, value in fields.items() if isinstance(value, str))
            hidden = msgspec.structs.replace(hidden, **{**texts, "text": MARK, "tool_calls": None})
        return hidden

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(part) for part in value]
        if isinstance(value, dict):
            return {self._walk(key): self._walk(part) for key, part in value.items()}
        return value

    def _cut(self, data: bytes) -> bytes:
        """With a mark for each place that is found by its letters; not where escapes are escaped again."""
        letters, places = bytearray(), list[tuple[int, int]]()
        for match in _TOKEN.finditer(data):
            kind = match.lastindex
            if kind == 5:  # what stands between letters
                continue
            base = 10 if kind == 3 else 16
            code = int(match[kind], base) if kind else data[match.start()]
            letter = bytes([code]).translate(_LOWER, _OTHERS) if code < 256 else b""
            if letter:
                letters += letter
                places.append(match.span())
        covered = self._cover(letters)
        parts, end = list[bytes](), 0
        for run in re.finditer(b"\1+", covered):
            parts += [data[end : places[run.start()][0]], _MARK]
            end = places[run.end() - 1][1]
        return b"".join([*parts, data[end:]])

    def _cover(self, letters: bytearray) -> bytearray:
        """Return a 1 for each of the letters that is part of a secret."""
        covered = bytearray(len(letters))
        for needle in self._needles:
            at = letters.find(needle)
            while at >= 0:
                covered[at : at + len(needle)] = b"\1" * len(needle)
                at = letters.find(needle, at + 1)
        return covered


def is_secret(name: str, value: str) -> bool:
    """Return whether a header is masked in answers: a key by its name or because a variable gave it, not a word."""
    return not is_word(value) and (names_secret((name,)) or isinstance(value, FromEnvironment))


def is_word(value: str) -> bool:
    """Return whether an answer may well say this without having seen it."""
    bare = _bare(value)
    return len(bare) < 16 and not (len(bare) >= 8 and any(letter.isdigit() for letter in bare))


def _bare(value: str) -> str:
    """Of `Bearer KEY` the key."""
    return value.strip().rpartition(" ")[2]


def _forms(*cases: str) -> Iterator[bytes]:
    """As it is, in hexadecimal, and in base64 with none, one or two bytes before it."""
    for value in cases:
        data = value.encode()
        yield from (data, data.hex().encode())
        for before in range(3):
            text = b64encode(b"\0" * before + data)
            end = (before + len(data)) * 8 // 6  # whole letters that do not depend on what follows
            yield text[(0, 2, 3)[before] : end]


def _run(form: bytes) -> bytes:
    """Letters and digits that stay together in every alphabet of base64; none: every answer is looked at."""
    return max(re.findall(rb"[0-9a-z]*", form.lower()), key=len)[-_RUN:]


def _letters(data: bytes) -> bytes:
    """Return what is compared."""
    for _ in range(_NESTED):
        plain = _unescape(data)
        if plain == data:
            break
        data = plain
    return data.translate(_LOWER, _OTHERS)


def _unescape(data: bytes) -> bytes:
    if b"%" in data:
        data = unquote_to_bytes(data)
    if b"&" in data:
        data = html.unescape(data.decode("latin-1")).encode("latin-1", "replace")
    if b"\\" in data:
        if b"\\u00" in data or b"\\x" in data:
            data = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), data)
        data = data.replace(b"\\n", b" ").replace(b"\\r", b" ").replace(b"\\t", b" ")
    return data


NO_SECRETS = Secrets(())
