"""Filters: what becomes of a model's answers before they are scored. Each is a class with the harness's parameters, so
that tasks' own classes can derive from them."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import (
    Definition,
    Fields,
    Hook,
    called,
    once,
    registered,
)

Answers = Iterable[Any]
Docs = Sequence[Fields]
DEFAULT: list[Fields] = [{"name": "none", "filter": [{"function": "take_first"}]}]


def filtered(
    definition: Definition, docs: Docs, responses: Sequence[Sequence[Any]], *, sound: bool = False
) -> dict[str, list[Any]]:
    """For each pipeline, what it makes of each request's responses; `docs` has the document of each request.

    Requests of one document can be filtered alone: no filter of the harness, and no custom filter of its tasks, reads
    another document. One that returns another number of results is refused."""
    results: dict[str, list[Any]] = {}
    what = f"the filters of {definition.task}"
    make = _sound_pipelines if sound else _pipelines
    for name, steps in called(once, what, definition.file, definition, make).items():
        answers: Answers = [list(response) for response in responses]
        for step in steps:
            answers = step(answers, docs)
        results[name] = list(answers)
        if len(results[name]) != len(responses):
            raise UserError(
                f"the filter {name!r} of {definition.task} made {len(results[name])} results of {len(responses)} "
                "requests; filters that need all documents at once are not supported",
                where=definition.file,
            )
    return results


def _sound_pipelines(definition: Definition) -> dict[str, list[Callable[[Answers, Docs], Answers]]]:
    return _pipelines(definition, sound=True)


def _pipelines(
    definition: Definition, *, sound: bool = False
) -> dict[str, list[Callable[[Answers, Docs], Answers]]]:
    return {
        pipeline["name"]: [_step(definition, dict(step), sound) for step in pipeline["filter"]]
        for pipeline in definition.filter_list or DEFAULT
    }


def _step(
    definition: Definition, params: Fields, sound: bool
) -> Callable[[Answers, Docs], Answers]:
    named = params.pop("function")
    what = f"the filter {named} of {definition.task}"
    values = {
        key: value.value if isinstance(value, Hook) else value for key, value in params.items()
    }
    kind = (
        named.value
        if isinstance(named, Hook)
        else FILTERS.get(named) or registered(definition, "filter", named)
    )
    if kind is None:
        raise UserError(
            f"there is no filter {named!r}",
            where=definition.file,
            fix=f"filters: {', '.join(FILTERS)}",
        )
    made = called(kind, what, definition.file, **values)
    if isinstance(made, RegexFilter):
        made.sound = sound
    return lambda answers, docs: called(
        lambda: list(made.apply(answers, docs)), what, definition.file
    )


class Filter:
    """Parameters by keyword; `apply` gets the responses of each request, and the document of each."""

    def __init__(self, **params: Any) -> None:
        pass

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return resps


class TakeFirstFilter(Filter):
    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return [answers[0] for answers in resps]


class TakeKFilter(Filter):
    def __init__(self, k: int) -> None:
        self.k = k

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        resps = list(resps)
        if len(resps[0]) < self.k:
            raise ValueError(
                f"take_first_k needs {self.k} responses and has {len(resps[0])}: set `repeats` to {self.k}"
            )
        return [answers[: self.k] for answers in resps]


class MajorityVoteFilter(Filter):
    """The most frequent response, the first of several; as a list of one."""

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return [[Counter(answers).most_common(1)[0][0]] for answers in resps]


class EachFilter(Filter):
    """A filter that makes each response another."""

    def each(self, text: Any) -> Any:
        return text

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return [[self.each(answer) for answer in answers] for answers in resps]


def _method(name: str) -> type[EachFilter]:
    """Return the filter that calls a method of each response."""
    return type(name, (EachFilter,), {"each": lambda _, text: getattr(text, name)()})


class MapFilter(EachFilter):
    def __init__(
        self, mapping_dict: dict[Any, Any] | None = None, default_value: Any = None
    ) -> None:
        self.mapping_dict = mapping_dict or {}
        self.default_value = default_value

    def each(self, text: Any) -> Any:
        return self.mapping_dict.get(text, self.default_value)


class RegexFilter(EachFilter):
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
        matches = self.regex.findall(text if isinstance(text, str) else "")
        if not matches or (self.sound and not -len(matches) <= self.group_select < len(matches)):
            return self.fallback
        match = matches[self.group_select]
        return (
            next(filter(None, match), self.fallback) if isinstance(match, tuple) else match
        ).strip()


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
            match = _match(self.regex, answer, self.group_select)
            if not match:
                text = _match(longest_first, self._plain(answer), self.group_select)
                match = by_text.get(text, text) if text else None
            if not match:
                letter = _match(after_colon, answer, self.group_select)
                match = f"({letter})" if letter else None
            results.append(match or self.fallback)
        return results

    def _plain(self, text: str) -> str:
        for pattern in self.regexes_to_ignore or []:
            text = re.sub(pattern, "", text)
        if self.ignore_case:
            text = text.lower()
        return text.translate(_punctuation()) if self.ignore_punctuation else text


def _match(regex: re.Pattern[str], text: Any, select: int) -> str | None:
    """None without a match; of several groups the first that is not empty, or an empty text."""
    matches = regex.findall(text if isinstance(text, str) else "")
    if not matches:
        return None
    match = matches[select]
    return (next(filter(None, match), "") if isinstance(match, tuple) else match).strip()


@cache
def _punctuation() -> dict[int, None]:
    """Every character of Unicode's category P."""
    return dict.fromkeys(
        at for at in range(sys.maxunicode) if unicodedata.category(chr(at)).startswith("P")
    )


class SPANFilter(EachFilter):
    """Named entities as `per: x $ loc: y`, from lines or `$$` parts such as `person: x, y`."""

    LABELS = {
        **dict.fromkeys(["person", "people", "persons", "per"], "PER"),
        **dict.fromkeys(["location", "counties", "places", "country", "continent", "loc"], "LOC"),
        **dict.fromkeys(["organization", "company", "org"], "ORG"),
        **dict.fromkeys(["time", "date"], "DATE"),
    }
    LABEL = re.compile(rf"\b({'|'.join(LABELS)})\s*:")

    def each(self, text: Any) -> Any:
        text = self.LABEL.sub(lambda match: f"{self.LABELS[match[1]]}:", text.lower())
        text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
        return " $ ".join(
            f"{label.lower()}: {entity.strip()}"
            for label, entities in re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text)
            for entity in entities.split(",")
            if entity.strip().lower() != "none"
        )


class CustomFilter(Filter):
    def __init__(self, filter_fn: Callable[[Answers, Docs], Answers]) -> None:
        self.filter_fn = filter_fn

    def apply(self, resps: Answers, docs: Docs) -> Answers:
        return self.filter_fn(resps, docs)


FILTERS: dict[str, type[Filter]] = {
    "take_first": TakeFirstFilter,
    "take_first_k": TakeKFilter,
    "majority_vote": MajorityVoteFilter,
    "remove_whitespace": _method("strip"),
    "lowercase": _method("lower"),
    "uppercase": _method("upper"),
    "map": MapFilter,
    "regex": RegexFilter,
    "regex_pos": POSFilter,
    "multi_choice_regex": MultiChoiceRegexFilter,
    "format_span": SPANFilter,
    "custom": CustomFilter,
}
