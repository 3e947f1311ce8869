"""Text from models and data, made harmless for a terminal."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text with every control and direction character but tab and line feed shown as its code."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
