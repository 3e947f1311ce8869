"""Jinja templates over an item, in a sandbox: templates are data from strangers.

`{{question}}` finds `data.question`; the item's further fields, `data`, `id`, `metadata` and `item` are there too.
The ground truth is not: a prompt must not be able to leak it by accident. An undefined variable is an error.
A template of plain variables, the common case, is joined directly, nine times faster than Jinja renders it.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from assay.errors import UserError
from assay.interfaces import Message
from assay.records import Item
from assay.registry import nearest, prompt

_environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
_default_fields = ("prompt", "question", "problem")

Render = Callable[[dict[str, Any]], str]


class JinjaPrompt:
    def __init__(self, name: str, text: str, messages: list[tuple[str, Render]]) -> None:
        self.name = name
        self.text = text
        self._messages = messages

    def render(self, item: Item) -> list[Message]:
        context = variables(item)
        return [{"role": role, "content": render(context)} for role, render in self._messages]

    def check(self, item: Item) -> str | None:
        try:
            self.render(item)
        except KeyError as error:
            return f"the template uses {error.args[0]!r}; {nearest(str(error.args[0]), variables(item))}"
        except Exception as error:  # a template calls filters and methods, which may raise anything
            return f"the template fails: {error}"
        return None


@prompt
def jinja(source: str | list[Message], *, name: str = "", where: str = "") -> JinjaPrompt:
    """A template text, or a list of {role, content} whose contents are templates; empty: the item's own question."""
    if source == "":
        return JinjaPrompt(name, "", [("user", _question)])
    turns: list[Message] = [{"role": "user", "content": source}] if isinstance(source, str) else source
    text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
    return JinjaPrompt(name, text, [(turn["role"], _compile(turn["content"], where)) for turn in turns])


def variables(item: Item) -> dict[str, Any]:
    """What a template sees of an item: everything but a ground truth that the row gives as such."""
    fields: dict[str, Any] = item.data if isinstance(item.data, dict) else {}
    whole = {"id": item.id, "data": item.data, "metadata": item.metadata, **item.extra}
    return {**whole, "item": whole, **fields}


def _question(context: dict[str, Any]) -> str:
    for field in _default_fields:
        if field in context:
            return str(context[field])
    data = context["data"]
    return data if isinstance(data, str) else msgspec.json.encode(data).decode()


def _compile(source: str, where: str) -> Render:
    try:
        tree = _environment.parse(source)
        parts = _plain_parts(tree)
        if parts is not None:
            return lambda context: "".join([str(context[part]) if name else part for name, part in parts])
        return _environment.from_string(source).render
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        place = f"{where} line {line}" if line else where
        raise UserError(f"the prompt template cannot be read: {error}", where=place) from None


def _plain_parts(tree: nodes.Template) -> list[tuple[bool, str]] | None:
    """(is a variable, name or text) for each piece of a template made of text and plain variables, else None."""
    parts: list[tuple[bool, str]] = []
    for output in tree.body:
        if not isinstance(output, nodes.Output):
            return None
        for node in output.nodes:
            if isinstance(node, nodes.TemplateData):
                parts.append((False, node.data))
            elif isinstance(node, nodes.Name) and node.name not in _environment.globals:
                parts.append((True, node.name))
            else:
                return None
    return parts
