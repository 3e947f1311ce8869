"""Jinja templates over an item: a text, or chat turns with text and images; with few-shot examples if wanted.

`{{question}}` finds `data.question`; the item's further fields, `data`, `id`, `metadata` and `item` can be used too.
The ground truth is not: a prompt must not be able to leak it by accident. An undefined variable is an error.
"""

import re
import time
from collections.abc import Callable
from typing import Any, TypeGuard

import msgspec

from assay.errors import UserError
from assay.interfaces import Message
from assay.prompts._few_shot import FewShot, Shots, question_and_answer
from assay.prompts._images import Images
from assay.records import Item
from assay.registry import nearest, prompt
from assay.store.keys import digest
from assay.text.expected import answer_fields
from assay.text.template import DEFAULT_FIELDS, Render, compiled, names_in, question, undefined_name, variables

Turns = list[tuple[str, Render]]


class JinjaPrompt:
    """`sent` makes of rendered messages what a server gets; None where that is the same."""

    def __init__(self, name: str, text: str, turns: Turns) -> None:
        self.name = name
        self.text = text
        self.sent: Callable[[list[Message]], list[Message]] | None = None
        self._turns = turns

    def render(self, item: Item) -> list[Message]:
        context = variables(item)
        return [{"role": role, "content": render(context)} for role, render in self._turns]

    def check(self, item: Item) -> str | None:
        try:
            self.render(item)
        except KeyError as error:
            name = str(error.args[0])
            return f"the template uses {name!r}{_line(self.text, name)}; {nearest(name, variables(item))}"
        except UserError as error:
            return f"{error.what}; {error.fix}" if error.fix else error.what
        except Exception as error:  # a template calls filters and methods, which may raise anything
            name = undefined_name(error)
            if not name:
                return f"the template fails: {error}"
            return f"the template fails{_line(self.text, name)}: {error}; {nearest(name, variables(item))}"
        return None


class ItemPrompt(JinjaPrompt):
    """No template: an item's own chat in `messages`, its question, or data that are nothing but the question."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "", [("user", question)])

    def render(self, item: Item) -> list[Message]:
        context = variables(item)
        messages = context.get("messages")
        if _is_chat(messages):
            return [dict(message) for message in messages]
        if isinstance(item.data, dict) and not any(field in context for field in DEFAULT_FIELDS):
            _refuse_leak(item, item.data)
        return super().render(item)


def _is_chat(messages: Any) -> TypeGuard[list[Message]]:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, dict) and "role" in message and "content" in message for message in messages)
    )


def _refuse_leak(item: Item, data: dict[str, Any]) -> None:
    """The whole row would be sent: it must not hold what the answer is compared with."""
    if item.ground_truth is not data and not answer_fields(data):
        return
    shown = [name for name in data if name not in answer_fields(data) and str(name).isidentifier()]
    template = "\\n".join(f"{{{{{name}}}}}" for name in shown) or "{{…}}"
    raise UserError(
        "there is no template, and the whole row would be sent, with the answer in it",
        fix=f'add `prompt_template: "{template}"`, with the fields that the model should see',
    )


class FewShotPrompt(JinjaPrompt):
    """A prompt that shows examples: in its text, or as turns before its last user turn."""

    def __init__(self, name: str, text: str, turns: Turns, shots: Shots) -> None:
        super().__init__(name, text, turns)
        self._shots = shots
        self._place = _last_user(turns)

    def render(self, item: Item) -> list[Message]:
        context = variables(item)
        if self._shots.as_text:
            context["examples"] = self._shots.text(item)
        messages = [{"role": role, "content": render(context)} for role, render in self._turns]
        if not self._shots.as_text:
            messages[self._place : self._place] = self._shots.turns(item)
        return messages


@prompt
def jinja(
    source: str | list[Message], *, name: str = "", where: str = "", few_shot: FewShot | None = None
) -> JinjaPrompt:
    """A template text, or a list of {role, content} whose contents are templates; empty: the item's own question."""
    text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
    written: list[Message] = [{"role": "user", "content": source}] if isinstance(source, str) else source
    images = Images()
    turns: Turns = [("user", question)] if source == "" else _turns(written, images, where)
    if source == "" and few_shot is None:
        return ItemPrompt(name)
    shots = None
    if few_shot is not None:
        as_text = any("examples" in names_in(part, where) for turn in written for part in _texts(turn["content"]))
        shots = _shots(few_shot, turns, images, where, as_text)
        text += f"\n{{# {few_shot.n} examples: {few_shot.identity()} #}}"
    if images.constant:
        text += f"\n{{# images: {', '.join(images.constant)} #}}"
    if images.varies:
        # The bytes are found when items are rendered; a plan that is never the same makes sure that they are.
        name = name or f"images-{digest('template', text.encode()).hex()[:12]}"
        text += f"\n{{# images as of {time.time_ns()} #}}"
    made = JinjaPrompt(name, text, turns) if shots is None else FewShotPrompt(name, text, turns, shots)
    if images.constant or images.varies:
        made.sent = images.sent
    return made


def _line(text: str, name: str) -> str:
    """Where a template of several lines uses a variable."""
    lines = text.split("\n")
    uses = [number for number, line in enumerate(lines, 1) if re.search(rf"\b{re.escape(name)}\b", line)]
    return f" in line {uses[0]}" if len(lines) > 1 and uses else ""


def _shots(few_shot: FewShot, turns: Turns, images: Images, where: str, as_text: bool) -> Shots:
    if as_text:
        return Shots(few_shot, [], compiled(few_shot.text, where) if few_shot.text else question_and_answer)
    if few_shot.text:
        fix = "write {{examples}} into the template, or give `messages` in place of `text`"
        raise UserError("few_shot has a text, but the prompt does not show `examples`", where=where, fix=fix)
    if few_shot.messages is not None:
        return Shots(few_shot, _turns(few_shot.messages, images, where), None)
    return Shots(few_shot, [turns[_last_user(turns)], ("assistant", compiled("{{answer}}", where))], None)


def _last_user(turns: Turns) -> int:
    asked = [number for number, (role, _) in enumerate(turns) if role == "user"]
    return asked[-1] if asked else len(turns) - 1


def _turns(messages: list[Message], images: Images, where: str) -> Turns:
    return [(turn["role"], _content(turn["content"], images, where)) for turn in messages]


def _content(content: Any, images: Images, where: str) -> Render:
    if isinstance(content, str):
        return compiled(content, where)
    parts = [images.part(part, where) if part["type"] == "image" else _text_part(part, where) for part in content]
    return lambda context: [part(context) for part in parts]


def _text_part(part: Message, where: str) -> Render:
    render = compiled(part["text"], where)
    return lambda context: {"type": "text", "text": render(context)}


def _texts(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
