"""Chat history: earlier turns of a record in front of a node's own prompt.

`multiturn` puts the entries of the history that are chat turns between the system messages and the rest; `singleturn`
tells the conversation so far in one user message. The window says how many entries count. What nodes themselves add
to the history is `{name, request, response}`: told in `singleturn`, no turn in `multiturn`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.interfaces import Message
from assay.tasks.graph.messages import tool_call

WINDOW = 5
MODES = ("singleturn", "multiturn")


def with_history(mode: str, messages: list[Message], history: Sequence[Any], window: int, name: str) -> list[Message]:
    if mode == "multiturn":
        turns = [turn for entry in _recent(history, window) if (turn := _turn(entry)) is not None]
        return [*_systems(messages), *turns, *(message for message in messages if message["role"] != "system")]
    return [*_systems(messages), {"role": "user", "content": _told(history, window, name)}]


def _systems(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message["role"] == "system"]


def _recent(history: Sequence[Any], window: int) -> list[Any]:
    """The last entries; when some were cut off, from the first user's turn on: servers want a user to begin."""
    if len(history) <= window:
        return list(history)
    recent = list(history[-window:]) if window > 0 else []
    starts = [n for n, entry in enumerate(recent) if isinstance(entry, Mapping) and entry.get("role") == "user"]
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
        return {"role": "tool", "tool_call_id": entry.get("tool_call_id"), "content": str(entry.get("content", ""))}
    return None


def _told(history: Sequence[Any], window: int, name: str) -> str:
    records = [entry for entry in history if isinstance(entry, Mapping) and "response" in entry]
    lines = ["This is a conversation in roles: keep to yours, as it was given to you. So far was said:"]
    if records:
        asked = [turn for turn in records[0].get("request", []) if turn.get("role") == "user"]
        lines.append(f"Organizer: {asked[0].get('content', '') if asked else ''}")
        recent = records[1:][-window:] if window > 0 else []
        lines += [f"{record.get('name')}: {record['response']}" for record in [records[0], *recent]]
    lines.append(f"\nIt is your turn, {name}. Write only what {name} says next, without a label or a note.")
    return "\n".join(lines)
