"""The verdict in what a judge wrote, or NoVerdict: it is read, never guessed, and never clamped into its scale.

An explicit verdict (JSON, `[[4]]`, "Score: 4/5", "Verdict: not correct") counts, the last one if there are several.
Only without any, the first and last line and plain statements ("the answer is wrong") count, if all agree.
What a judge repeats of the judged texts is not a verdict of its own: those texts may hold one on purpose.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from assay.records import JsonObject
from assay.text import verdict_words as written
from assay.text.answers import without_reasoning
from assay.text.fences import without_fenced
from assay.text.json_out import objects_in
from assay.text.verdict_words import PREFERENCE, Range, Scale, Words

_NAMES = "verdict score grade rating judgement judgment decision winner result label correct passed"
_KEYS = f"{_NAMES} preference choice value answer".split()
_REASON_NAMES = "reason reasoning explanation rationale justification analysis thoughts"
_REASONS = _REASON_NAMES.split()
_LONGEST_REASON = 2000
_SURELY_REPEATED = 20  # letters of a line: shorter ones may be a judge's own
_WINDOW = 5_000  # letters at either end of a long answer in which verdicts that are not JSON are looked for
_LONGEST_REFUSAL = 600


class Verdict(NamedTuple):
    """What was read: a word of the vocabulary or a number, and the judge's reason for it."""

    value: str | float
    reason: str


class NoVerdict(ValueError):
    """Why no verdict can be read."""


class _Found(NamedTuple):
    """A place that says something: a value, or why it is none."""

    start: int
    end: int
    value: str | float | None
    problem: str = ""
    reason: str = ""


def read_verdict(text: str, scale: Scale, *, judged: Sequence[str] = (), mark: str = "") -> Verdict:
    """The verdict of a judge's answer; `judged` are the texts it was shown, `mark` that of the tags around them."""
    answer = without_fenced(without_reasoning(text), mark)
    if not answer.strip():
        raise NoVerdict(
            "the judge wrote nothing of its own" if text.strip() else "the judge wrote nothing"
        )
    prose, in_json = _json_verdict(answer, scale, judged)
    prose = _without_repeated(prose, judged)
    explicit = [one for one in (in_json, _last_announced(prose, scale, judged)) if one is not None]
    if explicit:
        last = max(explicit, key=lambda one: one.start)
        if last.value is None:
            raise NoVerdict(last.problem)
        return Verdict(last.value, (last.reason or prose.strip())[:_LONGEST_REASON])
    stated = [one for begin, end in _windows(prose) for one in _implicit(prose[begin:end], scale)]
    if stated and len({one.value for one in stated}) == 1 and stated[0].value is not None:
        return Verdict(stated[0].value, prose.strip()[:_LONGEST_REASON])
    problem = next((one.problem for one in stated if one.problem), "")
    raise NoVerdict(
        problem
        or ("the judge contradicts itself" if stated else "the judge's answer holds no verdict")
    )


def is_refusal(text: str) -> bool:
    """Return whether an answer without a verdict says that the judge will not judge."""
    answer = without_reasoning(text).strip()
    return len(answer) <= _LONGEST_REFUSAL and written.REFUSAL.match(answer) is not None


# ---- explicit verdicts


def _json_verdict(text: str, scale: Scale, judged: Sequence[str]) -> tuple[str, _Found | None]:
    """The text with its JSON objects made blank, and the verdict of the last that has one."""
    objects = objects_in(text)
    if not objects:
        return text, None
    kept: list[str] = []
    at = 0
    for begin, end, _ in objects:
        kept += [text[at:begin], " " * (end - begin)]
        at = end
    blank = "".join([*kept, text[at:]])
    repeated: list[JsonObject] | None = None
    for begin, end, entry in reversed(objects):
        fields = {name.strip().lower(): value for name, value in entry.items()}
        key = next((name for name in _KEYS if name in fields), None)
        if key is None:
            continue
        if repeated is None:
            repeated = [other for each in judged for _, _, other in objects_in(each)]
        # one that holds nothing but a verdict may well be the judge's own
        if len(fields) > 1 and entry in repeated:
            continue
        reason = next((fields[name] for name in _REASONS if isinstance(fields.get(name), str)), "")
        return blank, _Found(begin, end, *_json_value(fields[key], scale), reason)
    return blank, None


def _json_value(given: Any, scale: Scale) -> tuple[str | float | None, str]:
    if isinstance(given, dict):
        given = next((given[key] for key in _KEYS if key in given), None)
    if isinstance(given, bool):
        given = "true" if given else "false"
    elif isinstance(given, (int, float)):
        if isinstance(scale, Range):
            return _grade(given, None, scale)
        given = f"{given:g}" if abs(given) < 1e6 else "a number"
    if not isinstance(given, str):
        return None, "the judge's JSON holds no verdict"
    found = _reader(scale)(given.strip(written.EDGES), 0)
    if found is None:
        return None, f"the verdict {given[:80]!r} is not {scale.described}"
    return found.value, found.problem


def _last_announced(text: str, scale: Scale, judged: Sequence[str]) -> _Found | None:
    """The last verdict in double brackets, in a box, or after a word that announces one."""
    found = [
        one
        for begin, end in _windows(text)
        for one in _announcements(text[begin:end], begin, scale)
    ]
    for one in sorted(found, key=lambda one: one.start, reverse=True):
        said = text[one.start : one.end]
        if not any(said in each for each in judged):
            return one
    return None


def _announcements(text: str, offset: int, scale: Scale) -> Iterator[_Found]:
    read = _reader(scale)
    for bracket in written.BRACKETS.finditer(text):
        found = read((bracket[1] or bracket[2]).strip(written.EDGES), 0)
        if found is not None:
            yield found._replace(start=offset + bracket.start(), end=offset + bracket.end())
    for cue in written.CUE.finditer(text):
        found = read(text, cue.end())
        if found is not None and not _unsure(text, cue.start()):
            yield found._replace(start=offset + cue.start(), end=offset + found.end)


def _windows(text: str) -> list[tuple[int, int]]:
    """The parts of a text that are looked at: all of it, or both ends of a very long one."""
    whole = len(text)
    return [(0, whole)] if whole <= 2 * _WINDOW else [(0, _WINDOW), (whole - _WINDOW, whole)]


def _unsure(text: str, at: int) -> bool:
    """Return whether what stands at this place is only considered: "whether the verdict is yes"."""
    return written.UNSURE.search(text[max(0, at - 80) : at]) is not None


# ---- what is said without being announced


def _implicit(text: str, scale: Scale) -> Iterator[_Found]:
    read = _reader(scale)
    lines = [line.strip(written.EDGES) for line in text.splitlines() if line.strip(written.EDGES)]
    for line in (
        dict.fromkeys((lines[0], lines[-1], written.SENTENCE.split(lines[-1])[-1])) if lines else ()
    ):
        so = written.SO.match(line)
        begin = so.end() if so else 0
        found = read(line, begin)
        if found is not None and (
            isinstance(scale, Words) or written.UNIT.match(_after_number(line, begin))
        ):
            yield found
    if isinstance(scale, Range):
        yield from _implicit_numbers(text, scale)
        return
    for stated in written.STATED.finditer(text):
        found = read(text, stated.end())
        if found is not None and not _unsure(text, stated.start()):
            yield found
    if scale is PREFERENCE:
        for named in _phrases_of(scale).finditer(text):
            if written.BETTER.match(text, named.end()):
                yield _Found(named.start(), named.end(), scale.phrases.get(_plain(named[0])))
    else:
        for mention in written.MENTION.finditer(text):
            yield _Found(mention.start(), mention.end(), scale.phrases.get(mention[0]))


def _implicit_numbers(text: str, scale: Range) -> Iterator[_Found]:
    for number in written.NUMBER_ANYWHERE.finditer(text):
        if number["of"] and float(number["of"]) == scale.high:
            yield _number_found(number, scale)
    for given in written.GIVEN.finditer(text):
        number = written.NUMBER.match(text, given.end())
        if number is not None:
            yield _number_found(number, scale)


def _after_number(line: str, at: int) -> str:
    number = written.NUMBER.match(line, at)
    return line[number.end() :] if number else line


# ---- what a text says at a place

Reader = Callable[[str, int], _Found | None]


def _reader(scale: Scale) -> Reader:
    if isinstance(scale, Words):
        return _word_reader(scale)

    def read(text: str, at: int) -> _Found | None:
        number = written.NUMBER.match(text, at)
        return None if number is None else _number_found(number, scale)

    return read


def _number_found(match: re.Match[str], scale: Range) -> _Found:
    if match["other"]:
        return _Found(
            *match.span(), None, f"the verdict {match[0].strip()!r} is not {scale.described}"
        )
    number = float(match["number"].replace("−", "-").replace(",", "."))
    return _Found(
        *match.span(), *_grade(number, float(match["of"]) if match["of"] else None, scale)
    )


def _grade(number: float, of: float | None, scale: Range) -> tuple[float | None, str]:
    if of is not None and of != scale.high:
        return None, f"the verdict {number:g}/{of:g} is not on the scale to {scale.high:g}"
    if not scale.low <= number <= scale.high:
        return (
            None,
            f"the verdict {str(number)[:40]} is outside the scale from {scale.low:g} to {scale.high:g}",
        )
    return float(number), ""


@lru_cache(16)
def _word_reader(scale: Words) -> Reader:
    phrases = _phrases_of(scale).pattern
    positive, negative = (
        rf"{written.SURELY}(?P<{name}>{phrases}){written.END}" for name in ("phrase", "negated")
    )
    pattern = re.compile(rf"{positive}|{written.NOT}{negative}", re.I)

    def meant(match: re.Match[str]) -> str | None:
        verdict = scale.phrases.get(_plain(match["phrase"] or match["negated"]))
        return scale.negated.get(verdict or "") if match["negated"] else verdict

    def read(text: str, at: int) -> _Found | None:
        match = pattern.match(text, at)
        if match is None:
            return None
        verdict = meant(match)
        joint = written.OR.match(text, match.end())
        other = pattern.match(text, joint.end()) if joint is not None else None
        if other is not None and meant(other) != verdict:
            return None  # "yes or no" is a question
        problem = "" if verdict else f"the verdict {match[0].strip()!r} can be read in two ways"
        return _Found(at, match.end(), verdict, problem)

    return read


@lru_cache(16)
def _phrases_of(scale: Words) -> re.Pattern[str]:
    longest_first = sorted(scale.phrases, key=len, reverse=True)
    written = [
        re.escape(phrase).replace(r"\ ", r"\s").replace(">", r"\s?>\s?") for phrase in longest_first
    ]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(written)})", re.I)


def _plain(phrase: str) -> str:
    folded = " ".join(phrase.casefold().split())
    return folded.replace(" ", "") if ">" in folded else folded


# ---- what a judge repeats


def _without_repeated(text: str, judged: Sequence[str]) -> str:
    """The text with what it repeats of the judged texts, whole or by lines, made blank; positions stay the same."""
    for whole in (each.strip() for each in judged):
        if len(whole) >= _SURELY_REPEATED:
            text = text.replace(whole, " " * len(whole))
    known = {line.strip(written.EDGES) for each in judged for line in each.splitlines()}
    known = {line for line in known if len(line) >= _SURELY_REPEATED}
    if not known:
        return text
    lines = text.splitlines(keepends=True)
    return "".join(
        " " * len(line) if line.strip(written.EDGES) in known else line for line in lines
    )
