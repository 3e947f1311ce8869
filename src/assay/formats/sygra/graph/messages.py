"""What a graph's helpers are given: messages with `.content`, the wrapper that post-processors get, the state.

A message is recognised by its shape: ours, a chat dict, or any object with `content` and a `type` or `role` (those of
langchain, where a helper makes them itself) become the same chat dicts before they are sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from assay.formats.sygra.types import Config, Row
from assay.sdk import Message, UserError

MESSAGES = "messages"
HISTORY = "__chat_history__"
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_TYPES = {role: type for type, role in ROLES.items()}


class SygraState(Row):
    """The variables of one record; a plain dict, named for annotations."""


class ChatMessage:
    """One turn. `type` is the word that langchain has for `role`."""

    role = "user"

    def __init__(
        self,
        content: Any = "",
        *,
        name: str | None = None,
        tool_calls: list[Any] | None = None,
        tool_call_id: str | None = None,
        **more: Any,
    ) -> None:
        self.content = content
        self.name = name
        self.tool_calls: list[Any] = tool_calls or []
        self.tool_call_id = tool_call_id
        self.additional_kwargs = more

    @property
    def type(self) -> str:
        return _TYPES[self.role]

    @property
    def message(self) -> "ChatMessage":
        """Itself: a function may treat what it gets like the wrapper that classes get."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.content!r})"


class HumanMessage(ChatMessage):
    role = "user"


class AIMessage(ChatMessage):
    role = "assistant"


class SystemMessage(ChatMessage):
    role = "system"


class ToolMessage(ChatMessage):
    role = "tool"


BY_ROLE: dict[str, type[ChatMessage]] = {
    kind.role: kind for kind in (HumanMessage, AIMessage, SystemMessage, ToolMessage)
}


class SygraMessage:
    """A model's answer as a post-processor gets it: its text is at `.message.content`."""

    def __init__(self, message: Any) -> None:
        self.message = message

    @property
    def content(self) -> Any:
        return self.message.content


def chats(turns: Any, where: str) -> list[Message]:
    """Whatever a state holds as turns, as chat dicts."""
    if isinstance(turns, str):
        return [{"role": "user", "content": turns}]
    if not isinstance(turns, Iterable) or isinstance(turns, Mapping):
        raise UserError(f"{where} is not a list of messages but a {type(turns).__name__}")
    return [chat(turn, where) for turn in turns]


def chat(turn: Any, where: str = "the message") -> Message:
    """One turn as a chat dict."""
    if isinstance(turn, str):
        return {"role": "user", "content": turn}
    if isinstance(turn, Mapping):
        if "role" not in turn:
            raise UserError(f"{where} holds a message without a role: {list(turn)}")
        return dict(turn)
    turn = getattr(turn, "message", turn)
    role = getattr(turn, "role", None) or ROLES.get(str(getattr(turn, "type", "")))
    if role is None or not hasattr(turn, "content"):
        raise UserError(f"{where} holds a {type(turn).__name__}, which is not a message")
    message: Message = {"role": role, "content": turn.content}
    if name := getattr(turn, "name", None):
        message["name"] = name
    if calls := getattr(turn, "tool_calls", None):
        message["tool_calls"] = [tool_call(call) for call in calls]
    if call_id := getattr(turn, "tool_call_id", None):
        message["tool_call_id"] = call_id
    return message


def tool_call(call: Config) -> Row:
    """A tool call in the words of the chat API, from those words or langchain's."""
    function = call.get("function") or {"name": call.get("name"), "arguments": call.get("args", {})}
    arguments = function.get("arguments", "{}")
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {**function, "arguments": arguments},
    }


def plain(value: Any) -> Any:
    """A state's value as JSON values: messages become chat dicts, objects what they say they are."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, (ChatMessage, SygraMessage)) or (
        hasattr(value, "content") and hasattr(value, "type")
    ):
        return chat(value)
    # a result of a metric, a pydantic model, a numpy value
    for name in ("to_dict", "model_dump", "tolist"):
        if callable(method := getattr(value, name, None)):
            return method()
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


WINDOW = 5
MODES = ("singleturn", "multiturn")


def with_history(
    mode: str, messages: list[Message], history: Sequence[Any], window: int, name: str
) -> list[Message]:
    systems = [message for message in messages if message["role"] == "system"]
    if mode != "multiturn":
        return [*systems, {"role": "user", "content": _retell(history, window, name)}]
    turns = [turn for entry in _recent(history, window) if (turn := _turn(entry)) is not None]
    return [*systems, *turns, *(message for message in messages if message["role"] != "system")]


def _recent(history: Sequence[Any], window: int) -> list[Any]:
    """The last entries; when some were cut off, from the first user's turn on: servers want a user to begin."""
    if len(history) <= window:
        return list(history)
    recent = list(history[-window:]) if window > 0 else []
    starts = [
        n
        for n, entry in enumerate(recent)
        if isinstance(entry, Mapping) and entry.get("role") == "user"
    ]
    return recent[starts[0] :] if starts else []


def _turn(entry: Any) -> Message | None:
    role = entry.get("role") if isinstance(entry, Mapping) else None
    if role == "user":
        return {"role": "user", "content": entry["content"]}
    if role == "assistant":
        calls = entry.get("tool_calls") or []
        calls = [calls] if isinstance(calls, Mapping) else calls
        turn: Message = {"role": "assistant", "content": entry.get("content")}
        return {**turn, "tool_calls": [tool_call(call) for call in calls]} if calls else turn
    if role == "tool":
        return {
            "role": "tool",
            "tool_call_id": entry.get("tool_call_id"),
            "content": str(entry.get("content", "")),
        }
    return None


def _retell(history: Sequence[Any], window: int, name: str) -> str:
    records = [entry for entry in history if isinstance(entry, Mapping) and "response" in entry]
    lines = [
        "This is a conversation in roles: keep to yours, as it was given to you. So far was said:"
    ]
    if records:
        asked = [turn for turn in records[0].get("request", []) if turn.get("role") == "user"]
        lines.append(f"Organizer: {asked[0].get('content', '') if asked else ''}")
        recent = records[1:][-window:] if window > 0 else []
        lines += [f"{record.get('name')}: {record['response']}" for record in [records[0], *recent]]
    lines.append(
        f"\nIt is your turn, {name}. Write only what {name} says next, without a label or a note."
    )
    return "\n".join(lines)
