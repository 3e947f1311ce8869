"""Jinja templates over an item: a text, or chat turns with text and files; with few-shot examples if wanted.

`{{question}}` finds `data.question`; the item's further fields, `data`, `id`, `metadata` and `item` can be used too.
The ground truth is not: a prompt must not be able to leak it by accident. An undefined variable is an error.
"""

import re
import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from assay.prompts._few_shot import FewShot, Shots, question_and_answer
from assay.prompts._item import Chat, Conversation
from assay.prompts._media import Media
from assay.registry import prompt
from assay.sdk import Item, Message, UserError, digest, nearest
from assay.text.conversation import Asked
from assay.text.template import (
    Render,
    Variables,
    compiled,
    names_in,
    question,
    undefined_name,
    variables,
)

Turns = list[tuple[str, Render]]


class JinjaPrompt:
    """`files` has the files that rendered messages refer to, by digest."""

    def __init__(self, name: str, text: str, turns: Turns, media: Media | None = None) -> None:
        self.name = name
        self.text = text
        self.files = {} if media is None else media.files
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


class ChatPrompt(JinjaPrompt):
    """A template whose messages a chat's settings complete; without one, an item's own conversation or question."""

    def __init__(
        self, name: str, conversation: Conversation, media: Media, template: JinjaPrompt | None
    ) -> None:
        text = template.text if template else ""
        super().__init__(name, text + conversation.chat.text(), [], media)
        self._template, self._conversation, self._media = template, conversation, media

    def render(self, item: Item) -> list[Message]:
        return self.ask(item).messages

    def ask(self, item: Item) -> Asked:
        if self._template is None:
            return self._conversation.of_item(item, self._media)
        names = self._conversation.chat.row_params or ()
        return self._conversation.request_with(self._template.render(item), variables(item), names)


class FewShotPrompt(JinjaPrompt):
    """A prompt that shows examples: in its text, or as turns before its last user turn."""

    def __init__(self, name: str, text: str, turns: Turns, shots: Shots, media: Media) -> None:
        super().__init__(name, text, turns, media)
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
    source: str | list[Message],
    *,
    name: str = "",
    where: str = "",
    few_shot: FewShot | None = None,
    media_folder: str | None = "",
    system: str = "",
    prefill: str | bool = "",
    turns: Literal["", "last", "each"] = "",
    row_params: Sequence[str] | None = None,
) -> JinjaPrompt:
    """A template text, or a list of {role, content} whose contents are templates; empty: the item's own conversation or
    question. `media_folder` is what the paths of an item's files count from."""
    chat = Chat(system=system, prefill=prefill, turns=turns, row_params=row_params)
    conversation = Conversation(chat, where)
    media = Media(media_folder)
    if source == "" and few_shot is None:
        return ChatPrompt(name, conversation, media, None)
    template = _template(source, name, where, few_shot, media)
    if not chat.text():
        return template
    return ChatPrompt(template.name, conversation, media, template)


def _template(
    source: str | list[Message], name: str, where: str, few_shot: FewShot | None, media: Media
) -> JinjaPrompt:
    text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
    written: list[Message] = (
        [{"role": "user", "content": source}] if isinstance(source, str) else source
    )
    turns: Turns = [("user", question)] if source == "" else _turns(written, media, where)
    shots = None
    if few_shot is not None:
        as_text = any(
            "examples" in names_in(part, where)
            for turn in written
            for part in _texts(turn["content"])
        )
        shots = _shots(few_shot, turns, media, where, as_text)
        text += f"\n{{# {few_shot.n} examples: {few_shot.identity()} #}}"
    if media.constant:
        text += f"\n{{# images: {', '.join(media.constant)} #}}"
    if media.varies:
        # The bytes are found when items are rendered; a plan that is never the same makes sure that they are.
        name = name or f"images-{digest('template', text.encode()).hex()[:12]}"
        text += f"\n{{# images as of {time.time_ns()} #}}"
    if shots is None:
        return JinjaPrompt(name, text, turns, media)
    return FewShotPrompt(name, text, turns, shots, media)


def _line(text: str, name: str) -> str:
    """Say where a template of several lines uses a variable."""
    lines = text.split("\n")
    uses = [
        number for number, line in enumerate(lines, 1) if re.search(rf"\b{re.escape(name)}\b", line)
    ]
    return f" in line {uses[0]}" if len(lines) > 1 and uses else ""


def _shots(few_shot: FewShot, turns: Turns, media: Media, where: str, as_text: bool) -> Shots:
    if as_text:
        return Shots(
            few_shot, [], compiled(few_shot.text, where) if few_shot.text else question_and_answer
        )
    if few_shot.text:
        fix = "write {{examples}} into the template, or give `messages` in place of `text`"
        raise UserError(
            "few_shot has a text, but the prompt does not show `examples`", where=where, fix=fix
        )
    if few_shot.messages is not None:
        return Shots(few_shot, _turns(few_shot.messages, media, where), None)
    return Shots(
        few_shot, [turns[_last_user(turns)], ("assistant", compiled("{{answer}}", where))], None
    )


def _last_user(turns: Turns) -> int:
    asked = [number for number, (role, _) in enumerate(turns) if role == "user"]
    return asked[-1] if asked else len(turns) - 1


def _turns(messages: list[Message], media: Media, where: str) -> Turns:
    return [(turn["role"], _content(turn["content"], media, where)) for turn in messages]


def _content(content: Any, media: Media, where: str) -> Render:
    if isinstance(content, str):
        return compiled(content, where)
    parts = [
        _text_part(part, where) if part["type"] == "text" else media.part(part, where)
        for part in content
    ]

    def render_parts(context: Variables) -> list[Message]:
        made = [part(context) for part in parts]
        return [part for entry in made for part in (entry if isinstance(entry, list) else [entry])]

    return render_parts


def _text_part(part: Message, where: str) -> Render:
    render = compiled(part["text"], where)
    return lambda context: {"type": "text", "text": render(context)}


def _texts(content: Any) -> list[str]:
    return (
        [content]
        if isinstance(content, str)
        else [part["text"] for part in content if "text" in part]
    )
