"""`{% include "fragment.txt" %}` written out when the config is read.

The fragment's text takes the tag's place, so a prompt's text is all that determines it: an edited fragment is an
edited prompt, and a resolved config needs no other file. Fragments come from the config's own folder only.
"""

import re
from pathlib import Path

from assay.config.source import similar_files
from assay.errors import UserError

MOST = 1000  # fragments of one template: two that include two that include two … would fill the memory
_TAG = re.compile(
    r"\{#.*?#\}"
    r"|\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}"
    r"|\{%(?P<left>[-+]?)\s*include\b(?P<name>.*?)(?P<right>[-+]?)%\}(?P<after>\s*)",
    re.DOTALL,
)
_QUOTED = re.compile(r"""\s*(?:"([^"\n]+)"|'([^'\n]+)')\s*""")


def with_includes(text: str, base: Path, file: Path | None = None) -> str:
    """The template with its fragments, and theirs, in place; `file` is where it came from itself."""
    if "include" not in text:
        return text
    return _expanded(text, base.resolve(), [file.resolve()] if file else [], [])


def _expanded(text: str, base: Path, within: list[Path], done: list[Path]) -> str:
    pieces: list[str] = []
    end = 0
    for tag in _TAG.finditer(text):
        if tag["name"] is None:
            continue
        before = text[end : tag.start()]
        fragment = _fragment(tag["name"], base, within, done)
        pieces += [before.rstrip() if tag["left"] == "-" else before, fragment]
        end = tag.end() if tag["right"] == "-" else tag.start("after")
    return "".join([*pieces, text[end:]])


def _fragment(written: str, base: Path, within: list[Path], done: list[Path]) -> str:
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        what = f"an include names one file: {{% include {written.strip()} %}} cannot be read before the run"
        raise UserError(what, where=_shown(within, base), fix='write {% include "fragment.txt" %}')
    name = quoted[1] or quoted[2]
    file = _inside(base, name)
    if file is None:
        fix = f"move it into {base}"
        raise UserError(f"the fragment {name!r} is outside the config's folder", where=_shown(within, base), fix=fix)
    if file in within:
        chain = " → ".join(one.name for one in [*within[within.index(file) :], file])
        raise UserError(f"{name!r} includes itself: {chain}", where=_shown(within, base), fix="remove one include")
    done.append(file)
    if len(done) > MOST:
        raise UserError(f"the template includes more than {MOST} fragments", where=_shown(within, base))
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        what, fix = f"there is no fragment {name!r}", similar_files(file)
        raise UserError(what, where=_shown(within, base), fix=fix) from None
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{name!r} cannot be read as UTF-8 text", where=_shown(within, base)) from None
    return _expanded(text.removesuffix("\n"), base, [*within, file], done)


def _inside(base: Path, name: str) -> Path | None:
    """The file, if it is in the folder or below, with all links followed."""
    try:
        file = (base / name).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return file if file.is_relative_to(base) else None


def _shown(within: list[Path], base: Path) -> str:
    """The file that holds the tag; a template in the config itself has its place from there."""
    if not within:
        return ""
    return str(within[-1].relative_to(base) if within[-1].is_relative_to(base) else within[-1])
