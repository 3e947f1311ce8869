"""Texts of others inside a prompt: each stands between tags that occur in none of them, so none can end its own.

The tags come from the texts alone: equal texts give equal prompts, and a paid call is found again.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

_OPENING = re.compile(r"<(\w{1,40})-([0-9a-f]{12})>\n")


def mark_of(texts: Iterable[str]) -> str:
    """Twelve hexadecimal digits that occur in none of the texts."""
    known = [text.casefold() for text in texts]
    state = blake2b(digest_size=6)
    for text in known:
        state.update(text.encode("utf-8", "surrogatepass") + b"\0")
    while any(state.hexdigest() in text for text in known):
        state.update(b"again")
    return state.hexdigest()


def fence(name: str, text: str, mark: str) -> str:
    return f"<{name}-{mark}>\n{text}\n</{name}-{mark}>"


def fence_all(texts: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The texts between tags of their names, and the mark that these tags share."""
    mark = mark_of(texts.values())
    return {name: fence(name, text, mark) for name, text in texts.items()}, mark


def mark_in(prompt: str) -> str:
    """The mark of a prompt's tags: that of the first, which no text inside them can come before."""
    opening = _OPENING.search(prompt)
    return opening[2] if opening else ""


def fenced_in(prompt: str) -> dict[str, str]:
    """The texts that a prompt shows between tags, by name; empty if it has none."""
    found: dict[str, str] = {}
    mark = mark_in(prompt)
    at = 0
    while opening := _OPENING.search(prompt, at):
        name, at = opening[1], opening.end()
        end = prompt.find(f"\n</{name}-{mark}>", at - 1) if opening[2] == mark else -1
        if end >= 0:
            found.setdefault(name, prompt[at : max(at, end)])
            at = max(at, end)
    return found


def without_fenced(text: str, mark: str) -> str:
    """The text with everything between tags of this mark made blank; positions stay what they were."""
    if not mark or mark not in text:
        return text
    tag = re.compile(rf"<(/?)(\w{{1,40}})-{mark}>")
    kept: list[str] = []
    never_closed: set[str] = set()
    at = 0
    while found := tag.search(text, at):
        closing = -1
        if not found[1] and found[2] not in never_closed:
            closing = text.find(f"</{found[2]}-{mark}>", found.end())
            if closing < 0:
                never_closed.add(found[2])
        stop = found.end() if closing < 0 else closing
        kept += [text[at : found.start()], " " * (stop - found.start())]
        at = stop
    return "".join([*kept, text[at:]])
