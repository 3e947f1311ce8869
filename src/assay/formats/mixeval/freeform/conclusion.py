r"""The part of an answer that gives the answer: `\boxed{…}`, or what follows `####` or "the answer is".

Without such a sign a short answer counts as a whole; of a long one the first line, the last paragraph and what follows
the last "therefore". Refusals are cut out: of an answer that only refuses, nothing is left.
"""

import re
from typing import NamedTuple

from assay.text.answers import last_box, spelled, without_markdown, without_reasoning

SHORT = 300  # letters: a short answer is all conclusion
_LONGEST = 20_000  # letters at each end of a huge answer that are looked at
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_MARKER = re.compile(r"^[ \t]*(?:[-+•]|\(?\d{1,2}[.)])[ \t]+", re.M)
_LATEX = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mbox)\s?\{([^{}]{0,200})\}|\\[\[\]()]|\$(?!\d)"
)
_INLINE = re.compile(r"\$(?! )([^$\n]{1,200})(?<! )\$(?!\d)")  # $42$, but not "$5 or $6"
_NO_ANSWER = (
    r"correct|incorrect|right|wrong|clear|simple|based|because|supported|found|given|as follows|the following|below"
    r"|above|not (?:given|known|clear|stated|mentioned|provided|explicitly)|in the (?:text|passage)"
)
_CUE_WORD = re.compile(spelled("answer", "conclusion", "result"))
_CUE = re.compile(
    r"\b(?:answer|conclusion|result)(?:\s(?:to|of|for)\s[^.\n:]{1,80}?)?"
    r"(?:\s{0,2}[:=]|\s(?:is|are|was|were|would be|should be|must be)\b:?|:)"
    rf"(?!\s{{0,3}}(?:{_NO_ANSWER})\b)",
    re.I,
)
_DRAWN = re.compile(
    rf"(?:{spelled('therefore', 'thus', 'hence', 'so', 'in conclusion', 'in total', 'finally')})\b"
)
_SENTENCE_END = re.compile(
    r"[.!?\n](?:(?<=\n)|(?<=[\w)\]\"'”’%]{2}[.!?])(?=\s|\Z)|(?<=[a-z] \d[.!?])(?=\s+[A-Z]))"
)
_TEXT = r"(?:text|passage|context|question|article|paragraph|information|prompt|document|excerpt)s?"
_REFUSAL = re.compile(
    r"\b(?:(?:i|we) (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t) "
    r"(?:know|answer|determine|find|provide|tell|say|have (?:any|enough|the|access|information)|recall|be sure|help)"
    r"|(?:cannot|can['’]t|unable to|not able to) (?:answer|determine|provide|help)"
    r"|(?:not enough|insufficient|no) (?:information|context|data)\b"
    r"|cannot be (?:determined|answered|inferred|found)"
    rf"|{_TEXT}\b[^.\n]{{0,40}} (?:does|do|did)(?: not|n['’]t) "
    r"(?:provide|mention|include|contain|specify|state|say|give|offer|have|indicate)"
    r"|(?:is|are)(?: not|n['’]t) (?:publicly known|(?:explicitly |directly )?(?:mentioned|provided|specified|stated))"
    r"|i['’]m sorry|i am sorry|i apologi[sz]e)\b",
    re.I,
)
_MAY_REFUSE = re.compile(
    spelled("not", "n't", "n’t", "unable", "no information", "insufficient", "sorry", "apolog")
)
_BEFORE = frozenset(
    ("", "\n", "\n\n", ".", "!", "?", ",", ";")
)  # what may stand before a "so" that concludes
_BUT = re.compile(r"\b(?:but|however)\b,?", re.I)
_ENDS = re.compile(r"[.!?](?=\s|$)|\n")


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
        found = (
            first_line(self.whole, SHORT // 2),
            drawn(self.whole),
            last_part(self.whole),
            *self.bold[-1:],
        )
        return list(dict.fromkeys(text for text in found if text))


def conclude(text: str) -> Conclusion | None:
    """None if the answer says nothing, or only that it cannot answer."""
    answer = without_reasoning(text).strip()
    if len(answer) > 2 * _LONGEST:
        answer = f"{answer[:_LONGEST]}\n{answer[-_LONGEST:]}"
    box = last_box(answer) or _after_hashes(answer)
    bold = tuple(_BOLD.findall(answer)) if "**" in answer else ()
    plain = _plain(answer)
    if box:
        return Conclusion(plain, _plain(box), box, bold)
    plain = _without_refusals(plain)
    if not any(map(str.isalnum, plain)):
        return None
    after = _announced(plain)
    return Conclusion(plain, first_line(after), after, bold)


def first_line(text: str, longest: int = SHORT) -> str:
    """The first line, or of a long one the first sentence. A line that ends with a colon takes the next one with it."""
    line, _, rest = text.strip().partition("\n")
    if line.rstrip().endswith(":") and rest:
        line += " " + rest.strip().split("\n", 1)[0]
    return line if len(line) <= longest else _SENTENCE_END.split(line, maxsplit=1)[0]


def first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0]


def last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def last_sentence(text: str) -> str:
    found = sentences(text)
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
    cues = [
        cue
        for cue in _DRAWN.finditer(text)
        if text[max(0, cue.start() - 2) : cue.start()].strip(" \t") in _BEFORE
    ]
    if cues:
        return first_sentence(text[cues[-1].end() :])
    line = last_line(text)
    return line if "=" in line else ""


def _after_hashes(answer: str) -> str:
    """What follows `####` in a last line, as in the solutions of GSM8k; elsewhere these are headings."""
    last = last_line(answer).strip()
    return last.lstrip("# ") if last.startswith("####") else ""


def _plain(answer: str) -> str:
    if "\\" in answer or "$" in answer:
        answer = _LATEX.sub(lambda found: found[1] or "", _INLINE.sub(r"\1", answer))
    plain = without_markdown(answer)
    if "\n" in plain and len(_MARKER.findall(plain)) > 1:  # one such line may be the number itself
        plain = _MARKER.sub("", plain)
    return plain.strip()


def _announced(text: str) -> str:
    """What follows the last "the answer is"; empty if nothing does."""
    for word in reversed(list(_CUE_WORD.finditer(text))):
        cue = _CUE.match(text, word.start())
        after = text[cue.end() :].strip(" :\n\t") if cue else ""
        if any(map(str.isalnum, after)):
            return after
    return ""


def _without_refusals(text: str) -> str:
    """The text without the sentences that refuse; "I do not know, but I think it is Paris" says Paris."""
    if not _MAY_REFUSE.search(text):
        return text
    kept: list[str] = []
    at = 0
    for refusal in _REFUSAL.finditer(text):
        if refusal.start() < at:
            continue
        starts = [end.end() for end in _ENDS.finditer(text, at, refusal.start())]
        kept.append(text[at : starts[-1] if starts else at])
        end = _ENDS.search(text, refusal.end())
        at = end.end() if end else len(text)
        anyway = _BUT.split(text[refusal.end() : at], maxsplit=1)
        kept += anyway[1:]
    return "".join([*kept, text[at:]]).strip() if at else text
