"""Regular expressions that cannot hang a run.

Python's `re` holds the interpreter while it works, so neither a thread nor the event loop could stop it. Where the
number of ways to match is small whatever the text says, it runs here; elsewhere in a child process that is killed.
"""

import json
import re
import threading
from typing import Any

from assay.children import Answerer

Found = tuple[str, list[str | None]]
"""What was found, and its groups."""

_CHILD = """
import json, re, sys
for line in sys.stdin:
    pattern, flags, text, full = json.loads(line)
    compiled = re.compile(pattern, flags)
    if isinstance(text, list):
        print(json.dumps([compiled.search(one) is not None for one in text]), flush=True)
        continue
    found = compiled.fullmatch(text) if full else compiled.search(text)
    print(json.dumps(found and [found.group(), found.groups()]), flush=True)
"""
_CHOICES = re.compile(r"[*+?{|]")
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_STEPS = 5_000_000  # about a tenth of a second
_guard = threading.Lock()
_child = Answerer("-S", "-c", _CHILD, env={"PYTHONIOENCODING": "utf-8"})


def search(pattern: re.Pattern[str], text: str, full: bool, seconds: float) -> Found | None:
    """The match, or None; TimeoutError after `seconds`."""
    if is_quick(pattern, len(text)):
        found = pattern.fullmatch(text) if full else pattern.search(text)
        return None if found is None else (found.group(), list(found.groups()))
    with _guard:
        found = _ask(json.dumps([pattern.pattern, pattern.flags, text, full]), seconds)
        return None if found is None else (found[0], found[1])


def matching(pattern: re.Pattern[str], texts: list[str], seconds: float) -> list[bool]:
    """Return which of the texts match somewhere; TimeoutError after `seconds`."""
    if is_quick(pattern, max(map(len, texts), default=0)):
        return [pattern.search(text) is not None for text in texts]
    with _guard:
        return _ask(json.dumps([pattern.pattern, pattern.flags, texts, False]), seconds)


def is_quick(pattern: re.Pattern[str], length: int) -> bool:
    """Return whether the matcher's choices are few: each quantifier or alternative, and the place
    to begin, has at most `length` of them, as long as no group is repeated. Where spaces and
    comments may stand between a group and its quantifier, nobody can say."""
    text = pattern.pattern
    if pattern.flags & re.VERBOSE or _VERBOSE.search(text) or _REPEATED_GROUP.search(text):
        return False
    return max(length, 2) ** (len(_CHOICES.findall(text)) + 1) <= _MOST_STEPS


def _ask(question: str, seconds: float) -> Any:
    answer = _child.ask(question, seconds)
    if answer is None:
        raise TimeoutError(f"gave up on the pattern after {seconds:g} s")
    if not answer:
        raise TimeoutError("lost its child process")
    return json.loads(answer)
