"""How a task's `doc_to_*` keys become values of a document: columns, Jinja texts, constants and functions.

A task folder is trusted, its data are not: templates run with the bounds of `text/bounded_jinja.py`.
"""

import ast
import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from jinja2 import UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from assay.formats.lm_eval.tasks.definition import Hook
from assay.sdk import JsonObject, UserError, nearest
from assay.text.bounded_jinja import BoundedEnvironment, begin, joined
from assay.text.template import plain_parts

PROMPTS = {
    "qa-basic:question-newline-answer": "Question: {{question}}\nAnswer:",
    "qa-basic:q-newline-a": "Q: {{question}}\nA:",
}
Value = Callable[[JsonObject], Any]


class _Environment(BoundedEnvironment):
    """The harness's environment: the newline at the end stays, lists may be changed, and there is `regex_replace`."""

    def __init__(self) -> None:
        super().__init__()
        self.keep_trailing_newline = True
        self.filters["regex_replace"] = _regex_replace

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)


def _regex_replace(string: str, pattern: str, repl: str, count: int = 0) -> str:
    return re.sub(pattern, repl, string, count=count)


_environment = cache(_Environment)


@cache
def template(source: str) -> Callable[[JsonObject], str]:
    """The text as a function of a document; it raises what Jinja raises."""
    environment = _environment()
    parts = plain_parts(environment.parse(source), environment.globals)
    if parts is not None:
        return _concatenation(parts)
    compiled = environment.from_string(source)
    names = {**environment.globals}

    def render(doc: JsonObject) -> str:
        begin()
        return joined(
            compiled.root_render_func(compiled.new_context({**names, **doc}, shared=True))
        )

    return render


def _concatenation(parts: list[tuple[bool, str]]) -> Callable[[JsonObject], str]:
    def render(doc: JsonObject) -> str:
        try:
            return "".join([str(doc[part]) if name else part for name, part in parts])
        except KeyError as error:
            raise UndefinedError(f"{error} is undefined") from None

    return render


def field(source: str | None) -> Value:
    """`description` and the examples' `gen_prefix`: a key of the document itself, or a template; None if unset."""
    if not source:
        return lambda doc: None
    render: Callable[[JsonObject], str] | None = None

    def value(doc: JsonObject) -> Any:
        nonlocal render
        if source in doc:
            return doc[source]
        render = render or template(source)
        return render(doc)

    return value


def prompt(name: str) -> str:
    """A prompt of the harness's library (`use_prompt`)."""
    if name not in PROMPTS:
        raise UserError(
            f"use_prompt {name!r} is not a prompt that Assay has", fix=nearest(name, PROMPTS)
        )
    return PROMPTS[name]


class Resolver:
    """Keys of one task as functions of a document. Columns are those of the evaluated split, for examples too;
    `choices` says whether the task has `doc_to_choice`, which turns digits into numbers."""

    def __init__(self, columns: Collection[str], *, choices: bool) -> None:
        self.columns = frozenset(columns)
        self.choices = choices

    def text(self, value: Any) -> Value:
        if isinstance(value, int):
            return lambda doc: value
        return self._value("doc_to_text", value, self._number)

    def target(self, value: Any) -> Value:
        if isinstance(value, (int, list)):
            return lambda doc: value
        return self._value("doc_to_target", value, self._number_or_list)

    def choice(self, value: Any) -> Value:
        if isinstance(value, (list, dict)):
            options = list(value.values()) if isinstance(value, dict) else value
            return lambda doc: options
        return self._value("doc_to_choice", value, ast.literal_eval)

    def prefix(self, value: str | None) -> Value:
        """The evaluated document's `gen_prefix`."""
        return self._value("gen_prefix", value, str) if value is not None else lambda doc: None

    def _value(self, key: str, value: Any, read: Callable[[str], Any]) -> Value:
        if isinstance(value, Hook):
            return value.value
        if not isinstance(value, str):
            what = "is not set" if value is None else f"cannot be a {type(value).__name__}"
            raise UserError(f"{key} {what}", fix=f"give {key} a column, a template or a function")
        if value in self.columns:
            return lambda doc: doc[value]
        render = template(value)
        return render if read is str else lambda doc: read(render(doc))

    def _number(self, text: str) -> Any:
        return ast.literal_eval(text) if self.choices and text.isdigit() else text

    def _number_or_list(self, text: str) -> Any:
        if self.choices and text.isdigit():
            return ast.literal_eval(text)
        if len(text) > 1 and text[0] == "[" and text[-1] == "]":
            try:
                return ast.literal_eval(text)
            except (SyntaxError, ValueError):
                return text
        return text
