r"""Which option of a multiple-choice question an answer names. It never guesses: None where the answer does not say.

From the surest sign to the weakest: `\boxed{B}`, the letter alone, "the answer is B", a first or last line that begins
with the letter, the only letter in brackets, and at last the text of an option.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from assay.text.answers import last_box, spellings, without_markdown, without_reasoning
from assay.text.normalise import squad

_LATEX_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}|\$")
_GO_ON = r"because|since|as|for|and|given|due|which|where|considering|based|so"
_NOUNS = ("answer", "choice", "option", "response", "pick", "solution")
_VERBS = ("choose", "pick", "select", "go with", "say", "answer with")
_SO = ("therefore", "thus", "so", "hence")
_CUE_WORD = re.compile(f"{spellings(*_NOUNS, *_VERBS, *_SO)}|####")
_CUES = (
    rf"(?:{'|'.join(_NOUNS)})s?(?:\s+(?:here|to (?:this|the) question|choice|option))?"
    r"\s*(?:is|:|=|would be|should be|must be|→|->|-)\s*(?:is|:|that)?\s*(?:clearly|therefore|most likely|thus)?\s*",
    r"(?:(?<=\bi )|(?<=\bwe )|(?<='d )|(?<='ll )|(?<=would )|(?<=will )|(?<=should )|(?<=let's )|(?<=\bto ))"
    rf"(?:{'|'.join(_VERBS)})\s+",
    rf"\b(?:answer|select|choose|pick|{'|'.join(_SO)}),?\s+(?=option|choice|\(|\[)",
    r"####\s*",
)
_WRONG = re.compile(r"\b(?:not|isn't|wrong|incorrect|cannot|can't|rule out|eliminate)\b", re.I)

_REJECTED = re.compile(
    r"[\s)\]\"'”’]*(?:isn't|cannot|can't|(?:is|are|was|can be|must be|would be)\s+(?:\w+\s+)?"
    r"(?:not|incorrect|wrong|false|invalid|impossible|eliminated|excluded|ruled out))\b",
    re.I,
)


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
            rf"(?i:{cue}{word})(?i:[(\[]\s*(?P<label>{one})\s*[)\]]|(?P<last>{one})(?=[.:)]?\s*$))",
            re.M,
        ),
        "after": re.compile(rf"(?i:{cue})"),
        "line": re.compile(
            rf"^\s*(?i:{word})[(\[]?(?P<label>{one})(?:[)\].:](?=\s|$)|\s+[-–—]\s|\s*$)", re.M
        ),
        "bracketed": re.compile(rf"[(\[](?P<label>{one})[)\]]"),
        "or": re.compile(rf"\s*[)\]]?\s*(?:or|and|/|&|,)\s*[(\[]?(?:{one})\b"),
    }


def find_choice(
    text: str, labels: Sequence[str] = "ABCD", options: Mapping[str, str] | None = None
) -> str | None:
    """The label of the option that the text names, or None. `options` are the texts of the options by label."""
    answer = without_reasoning(text)
    if "\\" in answer or "$" in answer:
        answer = _LATEX_TEXT.sub(r"\1", answer)
    known = tuple(labels)
    patterns = _patterns(known)
    box = last_box(answer)
    if box is not None:
        return _alone(box, patterns, known) or (_by_text(box, options) if options else None)
    answer = without_markdown(answer).strip()
    found = _alone(answer, patterns, known)
    if found is not None:
        return found
    cues = [cue.start() for cue in _CUE_WORD.finditer(answer)]
    found = _label_after_cue(answer, patterns, cues, options)
    if found is not None:
        return found or None
    small = list(_at(cues, patterns["small"], answer))
    if small:
        return _alone(small[-1]["label"] or small[-1]["last"], patterns, known)
    return _by_place(answer, patterns) or (
        _by_text(_after_cue(answer, cues, patterns), options) if options else None
    )


def _at(starts: Sequence[int], pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begin at these places and do not overlap."""
    end = 0
    for start in starts:
        found = pattern.match(text, start) if start >= end else None
        if found is not None:
            end = found.end()
            yield found


def _alone(text: str, patterns: dict[str, re.Pattern[str]], labels: tuple[str, ...]) -> str | None:
    found = patterns["alone"].fullmatch(text.strip())
    return (
        next(label for label in labels if label.lower() == found["label"].lower())
        if found
        else None
    )


def _label_after_cue(
    text: str,
    patterns: dict[str, re.Pattern[str]],
    cues: Sequence[int],
    options: Mapping[str, str] | None,
) -> str | None:
    """The label after the last "the answer is"; an empty text if it names two."""
    last = None
    for found in _at(cues, patterns["cued"], text):
        rest = text[found.end() :]
        if (
            found["label"] in "AI"
            and not found["end"]
            and not _ends_or_goes_on(rest, found["label"], options)
        ):
            continue  # "the answer is A matter of taste"
        if not _REJECTED.match(text, found.end("label")):  # "so option D is incorrect"
            last = found
    if last is None:
        return None
    other = patterns["or"]
    return (
        ""
        if other.match(text, last.end("label")) or other.match(text, last.end())
        else last["label"]
    )


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


def _after_cue(text: str, cues: Sequence[int], patterns: dict[str, re.Pattern[str]]) -> str:
    """The clause after the last "the answer is", where there is one."""
    found = list(_at(cues, patterns["after"], text))
    return (
        re.split(r"[\n;]|, (?:not|and not|rather)\b|\. ", text[found[-1].end() :], maxsplit=1)[0]
        if found
        else text
    )


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
