"""The instructions of IFEval (Zhou et al. 2023) whose keeping a program can check.

Each check takes the text and the instruction's arguments by name. None takes longer than a few passes over the text:
patterns that could are written as loops over lines.
"""

import json
import re
from collections.abc import Callable

from assay.scorers._languages import LANGUAGES, Detector, language_of
from assay.scorers._words import capital_words, sentences
from assay.sdk import JsonMapping, nearest

Check = Callable[..., bool]

_RESPONSES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*[^\n*]*\*\*")
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_WORD = re.compile(r"\w+")
_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}


def follows(
    text: str, instruction: str, arguments: JsonMapping, detector: Detector = "words"
) -> bool:
    """Return whether a text keeps to an instruction; an empty one never does. LookupError for an
    instruction, or arguments, that are none of IFEval's."""
    check = _CHECKS.get(instruction)
    if check is None:
        raise LookupError(
            f"there is no instruction {instruction!r}: {nearest(instruction, _CHECKS)}"
        )
    given = {name: value for name, value in arguments.items() if value is not None}
    if instruction in _IN_A_LANGUAGE:
        given["detector"] = detector
    try:
        return bool(text.strip()) and check(text, **given)
    except TypeError as error:
        raise LookupError(f"the arguments of {instruction} do not fit: {error}") from None


def _holds_relation(count: int, relation: str, limit: float) -> bool:
    if relation not in ("less than", "at least"):
        raise LookupError(f"the relation {relation!r} is neither `less than` nor `at least`")
    return count < limit if relation == "less than" else count >= limit


def _language(text: str, language: str, detector: Detector) -> bool:
    """Return whether a text is in a language; one without any (digits, signs) is in each."""
    if detector == "words" and language not in LANGUAGES:
        raise LookupError(
            f"`detector: words` does not know the language {language!r}; langdetect may"
        )
    return language_of(text, detector) in (language, None)


def _placeholders(text: str, num_placeholders: int) -> bool:
    count = 0
    for line in text.split("\n"):
        at = line.find("[")
        while at >= 0 and (end := line.find("]", at)) >= 0:
            count += 1
            at = line.find("[", end)
    return count >= num_placeholders


def _bullets(text: str, num_bullets: int) -> bool:
    """Lines that begin with `-`, or with `*` and something else; a `*` alone takes the line that follows it."""
    count, starred = 0, False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        line = line.lstrip()
        count += line.startswith("-")
        if starred:
            starred = False
        elif line[:1] == "*":
            starred = line == "*" and number + 1 < len(lines)
            count += starred or line[1:2] not in ("", "*")
    return count == num_bullets


def _highlights(text: str, num_highlights: int) -> bool:
    marked = [mark.strip("*") for mark in _HIGHLIGHT.findall(text)]
    marked += [mark[2:-2] for mark in _DOUBLE_HIGHLIGHT.findall(text)]
    return sum(1 for mark in marked if mark.strip()) >= num_highlights


def _sections(text: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections


def _paragraphs(text: str, num_paragraphs: int) -> bool:
    parts = _DIVIDER.split(text)
    inner = all(part.strip() for part in parts[1:-1])
    return inner and sum(1 for part in parts if part.strip()) == num_paragraphs


def _first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    parts = text.split("\n\n")
    count = sum(1 for part in parts if part.strip())
    if not 0 < nth_paragraph <= count or not parts[nth_paragraph - 1].strip():
        return False
    word = parts[nth_paragraph - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    return count == num_paragraphs and re.split(r"[.,?!'\"]", word)[0].lower() == first_word.lower()


def _postscript(text: str, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker)
    return (
        marker.lower() in text.lower()
        if pattern is None
        else pattern.search(text.lower()) is not None
    )


def _keywords(text: str, keywords: list[str]) -> bool:
    return all(re.search(re.escape(word), text, re.I) for word in keywords)


def _keyword_frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    return _holds_relation(
        len(re.findall(re.escape(keyword.strip()), text, re.I)), relation, frequency
    )


def _forbidden_words(text: str, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", text, re.I) for word in forbidden_words)


def _letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _holds_relation(text.lower().count(letter.strip().lower()), let_relation, let_frequency)


def _json(text: str) -> bool:
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str) -> bool:
    """Something between << and the last >> of a line."""
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if (
            start >= 0
            and end >= start + 3
            and line[start : end + 2].lstrip("<").rstrip(">").strip()
        ):
            return True
    return False


def _two_responses(text: str) -> bool:
    parts = [part.strip() for part in text.split("******")]
    answers = [part for part in parts if part]
    return all(parts[1:-1]) and len(answers) == 2 and answers[0] != answers[1]


def _end(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _quotation(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


_IN_A_LANGUAGE = (
    "language:response_language",
    "change_case:english_capital",
    "change_case:english_lowercase",
)
_CHECKS: dict[str, Check] = {
    "keywords:existence": _keywords,
    "keywords:frequency": _keyword_frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _language,
    "length_constraints:number_sentences": lambda text, num_sentences, relation: _holds_relation(
        sentences(text), relation, num_sentences
    ),
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_words": lambda text, num_words, relation: _holds_relation(
        len(_WORD.findall(text)), relation, num_words
    ),
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": lambda text: any(
        answer in text for answer in _RESPONSES
    ),
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _json,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": lambda text, prompt_to_repeat: (
        text.strip().lower().startswith(prompt_to_repeat.strip().lower())
    ),
    "startend:end_checker": _end,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": lambda text, capital_frequency, capital_relation: (
        _holds_relation(capital_words(text), capital_relation, capital_frequency)
    ),
    "change_case:english_capital": lambda text, detector: (
        text.isupper() and _language(text, "en", detector)
    ),
    "change_case:english_lowercase": lambda text, detector: (
        text.islower() and _language(text, "en", detector)
    ),
    "punctuation:no_comma": lambda text: "," not in text,
}
INSTRUCTIONS = [*_CHECKS]
