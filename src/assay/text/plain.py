"""Text from models, data, names and foreign folders, made harmless: for a terminal, in JSON, in a spreadsheet."""

import re

# Control characters but tab and line feed, marks of direction, what has no width, other ends of lines, half characters.
# The joiners of emoji and of scripts that need them stay between characters that are not Latin.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]|(?<![\u0300-\U0010ffff])[\u200c\u200d]|[\u200c\u200d](?![\u0300-\U0010ffff])"
)
_FORMULA = re.compile(
    r"[\t\r\n]|[\s\x00-\x20\x7f-\xa0\xad\u180e\u200b-\u200f\u2060-\u206f\ufeff]*[=+\-@＝＋－＠]"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?%?", re.ASCII)


def plain(text: str) -> str:
    """The text with every such character shown as its code."""
    return (
        text
        if text.isascii() and text.replace("\n", "").isprintable()
        else _CONTROL.sub(_code, text)
    )


def plain_json(text: str) -> str:
    """JSON text with such characters as the escapes of JSON: its values are the same."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_json_code, text)


def plain_cell(text: str) -> str:
    """For a cell of CSV: what a spreadsheet would take for a formula gets an apostrophe, a number does not."""
    formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    text = "\r\n".join(map(plain, text.split("\r\n")))
    return f"'{text}" if formula else text


def _code(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _json_code(match: re.Match[str]) -> str:
    """Between values only a carriage return may stand; a character beyond 16 bits is two escapes."""
    if match.group() == "\r":
        return " "
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
