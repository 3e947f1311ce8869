"""Keys that a server repeats, in every encoding that comes to mind, in errors and in answers: none is left."""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from urllib.parse import quote, quote_plus

from assay.models._chat_answer import read_answer
from assay.models._secrets import Secrets
from fuzz import Attack

WAYS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "lower": str.lower,
    "upper": str.upper,
    "bearer": lambda key: f"Bearer {key}",
    "percent": lambda key: quote(key, safe=""),
    "all-percent": lambda key: "".join(f"%{ord(letter):02x}" for letter in key),
    "twice-percent": lambda key: quote(quote(key, safe=""), safe=""),
    "plus": quote_plus,
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64-url": lambda key: urlsafe_b64encode(f"u:{key}".encode()).decode().rstrip("="),
    "basic": lambda key: "Basic " + b64encode(f"user:{key}:more".encode()).decode(),
    "hex": lambda key: key.encode().hex(),
    "upper-hex": lambda key: key.encode().hex().upper(),
    "json": lambda key: json.dumps(key),
    "escapes": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "html": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "lines": lambda key: f"{key[:7]}\n    {key[7:15]}\r\n{key[15:]}",
}
PARTED = ("raw", "lower", "upper", "bearer", "hex")  # still one key when it is cut anywhere


def made_up(chance: random.Random) -> str:
    """A key as services give them out."""
    letters = chance.choice(
        ["abcdef0123456789", string.ascii_letters + string.digits, string.ascii_letters + "0-_.~+/"]
    )
    prefix = chance.choice(["sk-", "sk-ant-api03-", "gsk_", "", "key:", 'a"b\\', "100%25&"])
    return (
        prefix
        + "".join(chance.choices(letters, k=chance.randint(16, 60)))
        + chance.choice(["", "7", "=="])
    )


def attack(case: int) -> str | None:
    chance = random.Random(case)
    key, way = made_up(chance), chance.choice(list(WAYS))
    shown = WAYS[way](key)
    around = [
        "".join(chance.choices(string.printable, k=chance.choice([0, 1, 5, 300]))) for _ in range(2)
    ]
    text = f"{around[0]} {shown} {around[1]}"
    secrets = Secrets([f"Bearer {key}" if chance.random() < 0.5 else key])
    error = secrets.scrub(text.encode()).decode(errors="replace")
    cut = chance.choice([len(text), chance.randrange(len(text))])
    content = (
        [{"text": text[:cut]}, {"text": text[cut:]}]
        if cut < len(text) and way in PARTED and not set(key) & set("%&\\")
        else text
    )
    body = json.dumps(
        {"choices": [{"message": {"content": content}}]}, ensure_ascii=chance.random() < 0.5
    ).encode()
    answer = secrets.hidden(read_answer(body), body)
    for left in (error, answer.text):
        if any(form.lower() in left.lower() for form in (key, shown)):
            return f"{way}: {key} is left in {left!r}"
    return None if answer.masked else f"{way}: not marked"


@contextmanager
def opened() -> Generator[Attack]:
    """Nothing needs to be opened."""
    yield attack
