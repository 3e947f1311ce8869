"""Filters: what becomes of a model's answers before they are scored. Each is made from the harness's parameters; those
that tasks' own classes derive from are classes."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import methodcaller
from typing import Any

from assay.formats.lm_eval.tasks.definition import (
    Definition,
    call_hook,
    once,
    registered_value,
    value_of_key,
)
from assay.sdk import JsonObject, UserError

Answers = Iterable[Any]
Docs = Sequence[JsonObject]
Step = Callable[[Answers, Docs], Answers]
DEFAULT: list[JsonObject] = [{"name": "none", "filter": [{"function": "take_first"}]}]


def filtered_responses(
    definition: Definition, docs: Docs, responses: Sequence[Sequence[Any]], *, sound: bool = False
) -> dict[str, list[Any]]:
    """Return for each pipeline what it makes of each request's responses; `docs` has the document of each request.

    Requests of one document can be filtered alone: no filter of the harness, and no custom filter of its tasks, reads
    another document. One that returns another number of results is refused."""
    results: dict[str, list[Any]] = {}
    what = f"the filters of {definition.task}"
    make = _sound_pipelines if sound else _pipelines
    for name, steps in call_hook(once, what, definition.file, definition, make).items():
        answers: Answers = [list(response) for response in responses]
        for step in steps:
            answers = step(answers, docs)
        made = results[name] = list(answers)
        if len(made) != len(responses):
            raise UserError(
                f"the filter {name!r} of {definition.task} made {len(made)} results of {len(responses)} "
                "requests; filters that need all documents at once are not supported",
                where=definition.file,
            )
    return results


def _sound_pipelines(definition: Definition) -> dict[str, list[Step]]:
    return _pipelines(definition, sound=True)


def _pipelines(definition: Definition, *, sound: bool = False) -> dict[str, list[Step]]:
    made: dict[str, list[Step]] = {}
    for pipeline in definition.filter_list or DEFAULT:
        made[pipeline["name"]] = [_step(definition, step, sound) for step in pipeline["filter"]]
    return made


def _step(definition: Definition, keys: JsonObject, sound: bool) -> Step:
    params = {key: value_of_key(value) for key, value in keys.items() if key != "function"}
    named = keys["function"]
    what = f"the filter {named} of {definition.task}"
    kind = value_of_key(named)
    if isinstance(named, str):
        kind = FILTERS.get(named) or registered_value(definition, "filter", named)
    if kind is None:
        fix = f"filters: {', '.join(FILTERS)}"
        raise UserError(f"there is no filter {named!r}", where=definition.file, fix=fix)
    made: Any = call_hook(kind, what, definition.file, **params)
    if isinstance(made, RegexFilter):
        made.sound = sound
    apply: Any = getattr(made, "apply", made)
    return lambda answers, docs: call_hook(
        lambda: list(apply(answers, docs)), what, definition.file
    )


class Filter:
    """Parameters by keyword; `apply` gets the responses of each request, and the document of each."""

    def __init__(self, **params: Any) -> None:
        pass

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return resps


def take_first() -> Step:
    return lambda resps, docs: [answers[0] for answers in resps]


def take_first_k(k: int) -> Step:
    def first(resps: Answers, docs: Docs) -> Answers:
        resps = list(resps)
        if len(resps[0]) < k:
            has = len(resps[0])
            raise ValueError(
                f"take_first_k needs {k} responses and has {has}: set `repeats` to {k}"
            )
        return [answers[:k] for answers in resps]

    return first


def majority_vote() -> Step:
    """Return the most frequent response, the first of several; as a list of one."""
    return lambda resps, docs: [[Counter(answers).most_common(1)[0][0]] for answers in resps]


def _each(change: Callable[[Any], Any]) -> Step:
    """Return the filter that makes each response another."""
    return lambda resps, docs: [[*map(change, answers)] for answers in resps]


def _method(name: str) -> Callable[[], Step]:
    return lambda: _each(methodcaller(name))


def map_filter(mapping_dict: dict[Any, Any] | None = None, default_value: Any = None) -> Step:
    known = mapping_dict or {}
    return _each(lambda text: known.get(text, default_value))


class RegexFilter(Filter):
    """The match number `group_select`; of several groups the first that is not empty; without a match `fallback`."""

    sound = False  # too few matches are no match

    def __init__(
        self,
        regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
        group_select: int = 0,
        fallback: Any = "[invalid]",
    ) -> None:
        self.regex_pattern = regex_pattern
        self.regex = re.compile(regex_pattern)
        self.group_select = group_select
        self.fallback = fallback

    def each(self, text: Any) -> Any:
        matches = _matches(self.regex, text)
        if not matches or (self.sound and not -len(matches) <= self.group_select < len(matches)):
            return self.fallback
        return _text(matches[self.group_select], self.fallback)

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return _each(self.each)(resps, docs)


def _matches(regex: re.Pattern[str], text: Any) -> list[Any]:
    return regex.findall(text if isinstance(text, str) else "")


def _text(match: Any, default: Any) -> Any:
    """Return a match; of several groups the first that is not empty."""
    return (next(filter(None, match), default) if isinstance(match, tuple) else match).strip()


class POSFilter(RegexFilter):
    """The tags of all pairs `('token', 'TAG')`."""

    def __init__(
        self, regex_pattern: str = r"\['(.*?)'\]", group_select: int = 0, fallback: Any = None
    ) -> None:
        super().__init__(regex_pattern, group_select, ["invalid"] if fallback is None else fallback)

    def each(self, text: Any) -> Any:
        pairs = re.findall(r"\('([^']*)', '([^']*)'\)", text) if isinstance(text, str) else text
        return [tag for _, tag in pairs] or self.fallback


class MultiChoiceRegexFilter(RegexFilter):
    """The pattern's match; else the letter of the first of the document's `choices` in the response; else a letter
    after a colon."""

    def __init__(
        self,
        regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
        group_select: int = 0,
        fallback: str = "[invalid]",
        ignore_case: bool = False,
        ignore_punctuation: bool = False,
        regexes_to_ignore: list[str] | None = None,
    ) -> None:
        super().__init__(regex_pattern, group_select, fallback)
        self.ignore_case = ignore_case
        self.ignore_punctuation = ignore_punctuation
        self.regexes_to_ignore = regexes_to_ignore

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return [
            self._of_document(answers, doc["choices"])
            for answers, doc in zip(resps, docs, strict=True)
        ]

    def _of_document(self, answers: Sequence[Any], choices: Sequence[str]) -> list[Any]:
        letters = [chr(ord("A") + number) for number in range(len(choices))]
        texts = [self._plain(choice.strip()) for choice in choices]
        by_text = {text: f"({letter})" for text, letter in zip(texts, letters, strict=True)}
        longest_first = re.compile("|".join(sorted(map(re.escape, texts), key=len, reverse=True)))
        after_colon = re.compile(rf":[\s]*({'|'.join(letters)})")
        results: list[Any] = []
        for answer in answers:
            match = self._match(self.regex, answer)
            if not match and (text := self._match(longest_first, self._plain(answer))):
                match = by_text.get(text, text)
            if not match and (letter := self._match(after_colon, answer)):
                match = f"({letter})"
            results.append(match or self.fallback)
        return results

    def _match(self, regex: re.Pattern[str], text: Any) -> str:
        matches = _matches(regex, text)
        return _text(matches[self.group_select], "") if matches else ""

    def _plain(self, text: str) -> str:
        for pattern in self.regexes_to_ignore or []:
            text = re.sub(pattern, "", text)
        if self.ignore_case:
            text = text.lower()
        return text.translate(_punctuation()) if self.ignore_punctuation else text


@cache
def _punctuation() -> dict[int, None]:
    """Every character of Unicode's category P."""
    return dict.fromkeys(
        at for at in range(sys.maxunicode) if unicodedata.category(chr(at)).startswith("P")
    )


_LABELS = {
    **dict.fromkeys(["person", "people", "persons", "per"], "PER"),
    **dict.fromkeys(["location", "counties", "places", "country", "continent", "loc"], "LOC"),
    **dict.fromkeys(["organization", "company", "org"], "ORG"),
    **dict.fromkeys(["time", "date"], "DATE"),
}
_LABEL = re.compile(rf"\b({'|'.join(_LABELS)})\s*:")


def _entities(text: str) -> str:
    """Return named entities as `per: x $ loc: y`, from lines or `$$` parts such as `person: x, y`."""
    text = _LABEL.sub(lambda match: f"{_LABELS[match[1]]}:", text.lower())
    text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
    return " $ ".join(
        f"{label.lower()}: {entity.strip()}"
        for label, entities in re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text)
        for entity in entities.split(",")
        if entity.strip().lower() != "none"
    )


FILTERS: dict[str, Callable[..., Any]] = {
    "take_first": take_first,
    "take_first_k": take_first_k,
    "majority_vote": majority_vote,
    "remove_whitespace": _method("strip"),
    "lowercase": _method("lower"),
    "uppercase": _method("upper"),
    "map": map_filter,
    "regex": RegexFilter,
    "regex_pos": POSFilter,
    "multi_choice_regex": MultiChoiceRegexFilter,
    "format_span": lambda: _each(_entities),
    "custom": lambda filter_fn: filter_fn,
}
