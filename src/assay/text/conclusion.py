r"""The part of an answer that gives the answer: `\boxed{…}`, what follows "the answer is", or where answers usually stand.

Without such a sign a short answer counts as a whole; of a long one the first line, the last paragraph and what follows
the last "therefore". Refusals are cut out: of an answer that only refuses, nothing is left.
"""

import re
from typing import NamedTuple

from assay.text.boxed import last_box
from assay.text.reasoning import without_reasoning

SHORT = 300  # letters: a short answer is all conclusion
_LONGEST = 20_000  # letters at each end of a huge answer that are looked at
_MARKDOWN = re.compile(r"[*_`~]+|^[ \t]*(?:>|#{1,6}(?= ))[ \t]*", re.M)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_MARKER = re.compile(r"^[ \t]*(?:[-+•]|\(?\d{1,2}[.)])[ \t]+", re.M)
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s?\{([^{}]{0,200})\}|\\[\[\]()]|\$(?!\d)")
_NO_ANSWER = (
    "correct|incorrect|right|wrong|clear|simple|based|because|supported|found|given|unknown|as follows|the following|below|above|"
    "not (?:given|known|clear|stated|mentioned|provided|explicitly)|to be found|in the (?:text|passage)"
)
_CUE = re.compile(
    r"####|\b(?:answer|conclusion|result)(?:\s(?:to|of|for)\s[^.\n:]{1,80}?)?"
    r"(?:\s{0,2}[:=]|\s(?:is|are|was|were|would be|should be|must be)\b:?|:)"
    rf"(?!\s{{0,3}}(?:{_NO_ANSWER})\b)",
    re.I,
)
_DRAWN = re.compile(
    r"(?:^|(?<=[.!?,;]\s)|(?<=\n))(?:therefore|thus|hence|so|in conclusion|in total|finally)\b", re.I | re.M
)
_SENTENCE_END = re.compile(r"(?<=[\w)\]\"'”’%]{2})[.!?](?=\s|$)|\n")
_REFUSAL = re.compile(
    r"[^.!?\n]{0,200}?\b(?:(?:i|we)(?: am| was|'m|’m)? (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t|unable to|not able to)"
    r" (?:know|answer|determine|find|provide|tell|say|have|recall|be sure|help)"
    r"|unable to (?:answer|determine|provide|find)|(?:not enough|insufficient|no) (?:information|context|data)"
    r"|cannot be (?:determined|answered|inferred|found)"
    r"|(?:does|do|did)(?: not|n['’]t) (?:provide|mention|include|contain|specify|state|say|give|offer|have|indicate)"
    r"|(?:is|are|was|were)(?: not|n['’]t) (?:publicly |explicitly |directly )?(?:known|mentioned|provided|specified|stated|given|included)"
    r"|i['’]m sorry|i am sorry|i apologi[sz]e)\b(?P<rest>[^.!?\n]{0,400})[.!?]?",
    re.I,
)
_BUT = re.compile(r"\b(?:but|however)\b,?|:", re.I)


class Conclusion(NamedTuple):
    """`said` is what a box or an announcement gives, empty without one; `after` all that follows the announcement."""

    whole: str
    said: str
    after: str
    bold: tuple[str, ...]

    def places(self) -> list[str]:
        """The texts that may name the answer."""
        if self.said:
            return [self.said]
        if len(self.whole) <= SHORT:
            return [self.whole]
        found = (first_line(self.whole), drawn(self.whole), last_part(self.whole), *self.bold[-1:])
        return list(dict.fromkeys(text for text in found if text))


def conclude(text: str) -> Conclusion | None:
    """None if the answer says nothing, or only that it cannot answer."""
    answer = without_reasoning(text).strip()
    if len(answer) > 2 * _LONGEST:
        answer = f"{answer[:_LONGEST]}\n{answer[-_LONGEST:]}"
    box = last_box(answer)
    bold = tuple(_BOLD.findall(answer)) if "**" in answer else ()
    plain = _plain(answer)
    if box:
        return Conclusion(plain, _plain(box), box, bold)
    plain = _without_refusals(plain)
    if not any(map(str.isalnum, plain)):
        return None
    after = _announced(plain)
    return Conclusion(plain, first_line(after), after, bold)


def first_line(text: str) -> str:
    """The first line, or of a long one the first sentence. A line that ends with a colon takes the next one with it."""
    line, _, rest = text.strip().partition("\n")
    if line.rstrip().endswith(":") and rest:
        line = f"{line} {rest.strip().partition(chr(10))[0]}"
    return line if len(line) <= SHORT else _SENTENCE_END.split(line, maxsplit=1)[0]


def first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0]


def last_sentence(text: str) -> str:
    found = [part for part in _SENTENCE_END.split(text) if part.strip()]
    return found[-1] if found else ""


def last_part(text: str) -> str:
    """The last paragraph, or of a long one the last line, or of a long one its last sentence."""
    for between in ("\n\n", "\n"):
        part = text.strip().rpartition(between)[2].strip()
        if len(part) <= SHORT:
            return part
    return last_sentence(part)


def drawn(text: str) -> str:
    """The sentence after the last "therefore", or a last line with an equals sign; empty if there is neither."""
    last = None
    for last in _DRAWN.finditer(text):
        pass
    if last is not None:
        return first_sentence(text[last.end() :])
    line = text.strip().rpartition("\n")[2]
    return line if "=" in line else ""


def _plain(answer: str) -> str:
    if "\\" in answer or "$" in answer:
        answer = _LATEX.sub(lambda found: found[1] or "", answer)
    plain = _MARKDOWN.sub("", answer)
    if "\n" in plain and len(_MARKER.findall(plain)) > 1:  # one such line may be the number itself
        plain = _MARKER.sub("", plain)
    return plain.strip()


def _announced(text: str) -> str:
    """What follows the last "the answer is"; empty if nothing does."""
    for cue in reversed(list(_CUE.finditer(text))):
        after = text[cue.end() :].strip(" :\n\t")
        if any(map(str.isalnum, after)):
            return after
    return ""


def _without_refusals(text: str) -> str:
    if not _REFUSAL.search(text):
        return text
    return _REFUSAL.sub(_what_is_said_anyway, text).strip()


def _what_is_said_anyway(refusal: re.Match[str]) -> str:
    """ "I do not know, but I think it is Paris" says Paris."""
    parts = _BUT.split(refusal["rest"], maxsplit=1)
    return f" {parts[1]}." if len(parts) > 1 else " "
