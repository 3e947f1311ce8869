"""Text from models and data, made harmless for a terminal."""

import re

# Control characters but tab and line feed, marks of direction, what has no width, other ends of lines, half characters.
# The joiners of emoji and of scripts that need them stay between characters that are not Latin.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]|(?<![\u0300-\U0010ffff])[\u200c\u200d]|[\u200c\u200d](?![\u0300-\U0010ffff])"
)


def plain(text: str) -> str:
    """The text with every such character shown as its code."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
