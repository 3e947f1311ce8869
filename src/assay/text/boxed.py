r"""What stands in LaTeX's `\boxed{…}`, where models that were trained on mathematics put their answers."""

import re

_BRACE = re.compile(r"(\\(?:boxed|fbox)\s{0,9})?\{|\}")
_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|rm|bf)\s*\{([^{}]*)\}")


def last_box(text: str) -> str | None:
    """The content of the last box that is closed, without text commands; None if there is none."""
    if "\\boxed" not in text and "\\fbox" not in text:
        return None
    opened: list[int] = []  # where the content of each open brace begins; 0 if it is no box
    last, end = 0, 0
    for brace in _BRACE.finditer(text):
        if brace[0] != "}":
            opened.append(brace.end() if brace[1] else 0)
        elif opened and (start := opened.pop()) > last:
            last, end = start, brace.start()
    return _WRAP.sub(r"\1", text[last:end]).strip() if last else None
