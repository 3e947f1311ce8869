r"""Which option of a multiple-choice question an answer names. It never guesses: None where the answer does not say.

From the surest sign to the weakest: `\boxed{B}`, the letter alone, "the answer is B", a first or last line that begins
with the letter, the only letter in brackets, and at last the text of an option.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from assay.text.boxed import last_box
from assay.text.normalise import squad
from assay.text.reasoning import without_reasoning

_MARKDOWN = re.compile(r"[*_`~]+|^\s*(?:>|#+(?= ))\s*", re.M)
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}|\$")
_GO_ON = r"because|since|as|for|and|given|due|which|where|considering|based|so"
_CUES = (
    r"(?:(?:final|correct|right|best|my|most \w+)\s+)*(?:answer|choice|option|response|pick|solution)s?"
    r"(?:\s+(?:here|to (?:this|the) question|choice|option))?"
    r"\s*(?:is|:|=|would be|should be|must be|→|->|-)\s*(?:is|:|that)?\s*(?:clearly|therefore|most likely|thus)?\s*",
    r"(?:i(?:'d| would| will|'ll)?|we|should|let's|to)\s+(?:choose|pick|select|go with|say|answer with)\s+",
    r"\b(?:answer|select|choose|pick|therefore|thus|so|hence),?\s+(?=option|choice|\(|\[)",
    r"####\s*",
)
_WRONG = re.compile(r"\b(?:not|isn't|wrong|incorrect|cannot|can't|rule out|eliminate)\b", re.I)


@lru_cache(64)
def _patterns(labels: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    one = "|".join(re.escape(label) for label in labels)
    word = r"(?:the\s+)?(?:option|choice|answer|letter)?\s*"
    upper = rf"[(\[{{\"'“‘]?\s*(?P<label>{one})(?P<end>\s*[)\]}}\"'”’.:,;!)]|\s*$|(?=\s))"
    cue = "|".join(f"(?:{cue})" for cue in _CUES)
    return {
        "alone": re.compile(rf"(?i)\W*{word}[(\[{{]?\s*(?P<label>{one})\s*[)\]}}]?\W*"),
        "cued": re.compile(rf"(?:(?i:{cue}))(?i:{word}){upper}", re.M),
        "small": re.compile(
            rf"(?i:{cue}{word})(?i:[(\[]\s*(?P<label>{one})\s*[)\]]|(?P<last>{one})(?=[.:)]?\s*$))", re.M
        ),
        "after": re.compile(rf"(?i:{cue})"),
        "line": re.compile(rf"^\s*(?i:{word})[(\[]?(?P<label>{one})(?:[)\].:](?=\s|$)|\s+[-–—]\s|\s*$)", re.M),
        "bracketed": re.compile(rf"[(\[](?P<label>{one})[)\]]"),
        "or": re.compile(rf"\s*[)\]]?\s*(?:or|and|/|&|,)\s*[(\[]?(?:{one})\b"),
    }


def find_choice(text: str, labels: Sequence[str] = "ABCD", options: Mapping[str, str] | None = None) -> str | None:
    """The label of the option that the text names, or None. `options` are the texts of the options by label."""
    answer = _LATEX_TEXT.sub(r"\1", without_reasoning(text)).strip()
    known = tuple(labels)
    patterns = _patterns(known)
    box = last_box(answer)
    if box is not None:
        return _alone(box, patterns, known) or (_by_text(box, options) if options else None)
    answer = _MARKDOWN.sub("", answer).strip()
    found = _alone(answer, patterns, known) or _cued(answer, patterns["cued"], patterns["or"], options)
    if found is not None:
        return found or None
    small = list(patterns["small"].finditer(answer))
    if small:
        return _alone(small[-1]["label"] or small[-1]["last"], patterns, known)
    return _by_place(answer, patterns) or (_by_text(_after_cue(answer, patterns), options) if options else None)


def _alone(text: str, patterns: dict[str, re.Pattern[str]], labels: tuple[str, ...]) -> str | None:
    found = patterns["alone"].fullmatch(text.strip())
    return next(label for label in labels if label.lower() == found["label"].lower()) if found else None


def _cued(text: str, pattern: re.Pattern[str], other: re.Pattern[str], options: Mapping[str, str] | None) -> str | None:
    """The label after the last "the answer is"; an empty text if it names two."""
    last = None
    for found in pattern.finditer(text):
        rest = text[found.end() :]
        if found["label"] in "AI" and not found["end"] and not _ends_or_goes_on(rest, found["label"], options):
            continue  # "the answer is A matter of taste"
        last = found
    if last is None:
        return None
    return "" if other.match(text, last.end("label")) or other.match(text, last.end()) else last["label"]


def _ends_or_goes_on(rest: str, label: str, options: Mapping[str, str] | None) -> bool:
    rest = rest.strip()
    own = (options or {}).get(label, "")
    return (
        not rest
        or not rest[0].islower()
        or bool(re.match(rf"(?:{_GO_ON})\b", rest))
        or bool(own and rest.startswith(own))
    )


def _by_place(text: str, patterns: dict[str, re.Pattern[str]]) -> str | None:
    lines = {found["label"] for found in patterns["line"].finditer(text)}
    if len(lines) == 1:
        rows = [line for line in text.splitlines() if line.strip()]
        for row in (rows[0], rows[-1]):
            found = patterns["line"].match(row)
            if found and not patterns["or"].match(row, found.end("label")):
                return found["label"]
    bracketed = {found["label"] for found in patterns["bracketed"].finditer(text)}
    if len(bracketed | lines) == 1 and not _WRONG.search(text):
        return next(iter(bracketed | lines))
    return None


def _after_cue(text: str, patterns: dict[str, re.Pattern[str]]) -> str:
    """The clause after the last "the answer is", where there is one."""
    cues = list(patterns["after"].finditer(text))
    return re.split(r"[\n;]|, (?:not|and not|rather)\b|\. ", text[cues[-1].end() :], maxsplit=1)[0] if cues else text


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    """The only option whose text occurs in the answer as whole words; one inside another counts for the longer."""
    given = f" {squad(text)} "
    plain = {label: squad(option) for label, option in options.items()}
    equal = [label for label, option in plain.items() if option and f" {option} " == given]
    if len(equal) == 1:
        return equal[0]
    inside = {label: option for label, option in plain.items() if option and f" {option} " in given}
    longest = [
        label
        for label, option in inside.items()
        if not any(option != other and f" {option} " in f" {other} " for other in inside.values())
    ]
    if len(longest) != 1 or _WRONG.search(text):
        return None
    shorter = [option for label, option in inside.items() if label != longest[0]]
    rest = given.replace(f" {plain[longest[0]]} ", "  ")
    return None if any(f" {option} " in rest for option in shorter) else longest[0]
