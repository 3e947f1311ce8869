"""No template: an item's own conversation, its question, or data that are nothing but the question.

What a conversation's row says beside its messages goes with them: its system prompt, its tools, what the answer should
look like. What the answer is compared with never does.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from assay.prompts._media import Media
from assay.sdk import Item, JsonObject, Message, UserError
from assay.text.conversation import Asked, conversation_in, tools_in
from assay.text.expected import answer_fields
from assay.text.media import separated
from assay.text.template import DEFAULT_FIELDS, Variables, compiled, question, variables

ROW_FIELDS = ("system", "prefill", "tools", "tool_choice", "response_format", "reasoning_effort")
_ENDS = (
    "add `answer: last` to `dataset` to take that message as the expected answer, "
    "or `prefill: true` to the prompt to let the model continue it"
)


class Chat(msgspec.Struct, kw_only=True):
    """How conversations are asked: `system` and `prefill` are what a config adds to them (true: the last message of a
    conversation is the beginning of its answer); `turns`: whether the model answers every open turn of the user, or
    the last one; `row_params` are the fields of an item that go into the request as parameters."""

    system: str = ""
    prefill: str | bool = ""
    turns: Literal["", "last", "each"] = ""
    row_params: Sequence[str] | None = None

    def text(self) -> str:
        """Part of a prompt's text; nothing where nothing is said, so that old prompts keep their names."""
        given = {
            name: value
            for name, value in msgspec.to_builtins(self).items()
            if value != _DEFAULTS[name]
        }
        return f"\n{{# chat: {msgspec.json.encode(given).decode()} #}}" if given else ""


_DEFAULTS = msgspec.to_builtins(Chat())


class Conversation:
    """What a chat's settings add to the messages of an item."""

    def __init__(self, chat: Chat, where: str) -> None:
        self.chat = chat
        self._system = compiled(chat.system, where) if chat.system else None
        self._adds = chat != Chat()
        if chat.turns == "each" and chat.prefill:
            raise UserError(
                "an answer to each turn cannot be begun with `prefill`", fix="remove one of them"
            )

    def request_with(
        self,
        messages: list[Message],
        context: Variables,
        names: Sequence[str],
        *,
        each: bool = False,
    ) -> Asked:
        """The request: with system prompt and beginning of the answer, the row's before the config's; `names` are the
        row's fields that count."""
        row = {name: context[name] for name in names if context.get(name) not in (None, "", [])}
        system, prefill = row.pop("system", None), row.pop("prefill", self.chat.prefill)
        if system is None and self._system is not None:
            system = self._system(context)
        if (
            isinstance(system, str)
            and system
            and messages[0].get("role") not in ("system", "developer")
        ):
            messages = [{"role": "system", "content": system}, *messages]
        if isinstance(prefill, str) and prefill:
            messages = [*messages, {"role": "assistant", "content": prefill}]
        return Asked(messages, _params(row), each or self.chat.turns == "each")

    def of_item(self, item: Item, media: Media) -> Asked:
        """The request of an item without a template."""
        context = variables(item)
        conversation = conversation_in(context)
        names = self.chat.row_params
        if conversation is None:
            _refuse_leak(
                item,
                next((context[field] for field in DEFAULT_FIELDS if field in context), item.data),
            )
            messages = [{"role": "user", "content": question(context)}]
            return (
                self.request_with(messages, context, names or ()) if self._adds else Asked(messages)
            )
        field, messages = conversation
        prefill = context.get("prefill") if names is None or "prefill" in names else None
        if messages[-1].get("role") == "assistant" and True not in (prefill, self.chat.prefill):
            raise UserError(f"the conversation in `{field}` ends with the assistant", fix=_ENDS)
        messages = [_with_files(message, media) for message in messages]
        separated(messages)  # refuses data that are none, or too much
        return self.request_with(
            messages, context, ROW_FIELDS if names is None else names, each=field == "turns"
        )


def _params(row: JsonObject) -> JsonObject:
    """A row's fields as parameters of its request; a table's cell may hold them as JSON."""
    if "tools" in row:
        row["tools"] = tools_in(row["tools"])
    for name in row.keys() & {"response_format", "tool_choice"}:
        row[name] = _json_value(row[name])
    if not isinstance(row.get("response_format", {}), dict):
        raise UserError(
            "`response_format` is not an object", fix="write {type: json_schema, json_schema: {…}}"
        )
    return row


def _with_files(message: Message, media: Media) -> Message:
    content = message.get("content")
    return (
        {**message, "content": [media.file_part(part) for part in content]}
        if isinstance(content, list)
        else message
    )


def _refuse_leak(item: Item, sent: Any) -> None:
    """Refuse to send a whole that holds what the answer is compared with."""
    whole, truth = _json_value(sent), _json_value(item.ground_truth)
    if not isinstance(whole, (dict, list)):
        return
    fields: JsonObject = whole if isinstance(whole, dict) else {}
    leaks = [
        *answer_fields(fields),
        *(name for name, value in fields.items() if _holds(value, truth)),
    ]
    listed = isinstance(whole, list) and any(
        _holds(entry, truth) for entry in whole if isinstance(entry, dict)
    )
    if item.ground_truth is not sent and not leaks and not listed:
        return
    shown = [name for name in fields if name not in leaks and str(name).isidentifier()]
    template = "\\n".join(f"{{{{{name}}}}}" for name in shown) or "{{…}}"
    raise UserError(
        "there is no template, and the whole row would be sent, with the answer in it",
        fix=f'add `prompt_template: "{template}"`, with the fields that the model should see',
    )


def _json_value(value: Any) -> Any:
    """The value that a text stands for, if it is the JSON of an object or a list: a table's cell."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _holds(value: Any, truth: Any) -> bool:
    """Return whether the answer is in a value, under a name that says so or as it is; options of a list may include it."""
    if isinstance(value, dict):
        fields: JsonObject = value
        return bool(answer_fields(fields)) or any(_holds(entry, truth) for entry in fields.values())
    if isinstance(value, list):
        return any(_holds(entry, truth) for entry in value if isinstance(entry, (dict, list))) or (
            bool(value) and value == truth
        )
    return type(value) in (str, int, float) and value != "" and value == truth
