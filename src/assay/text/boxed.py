r"""What stands in LaTeX's `\boxed{…}`, where models that were trained on mathematics put their answers."""

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|rm|bf)\s*\{([^{}]*)\}")


def last_box(text: str) -> str | None:
    """The content of the last box that is closed, without text commands; None if there is none."""
    if "\\" not in text:
        return None
    for start in reversed([found.end() for found in _BOX.finditer(text)]):
        depth = 1
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if not depth:
                return _WRAP.sub(r"\1", text[start:at]).strip()
    return None
