"""Conversations of datasets as messages of OpenAI's chat API, from the forms in which people have them.

OpenAI's own messages stay as they are. ShareGPT's are {from, value}; Anthropic's have blocks for images, documents,
calls and results of tools; `turns` is a list of texts, each a user's turn. A file is a part {type, path}, to be found
by the caller, who knows the folder.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from assay.errors import UserError
from assay.interfaces import Message
from assay.records import JsonMapping, JsonObject, as_list, as_object, list_of
from assay.text.expected import answer_fields
from assay.text.media import KINDS, part_of
from assay.text.messages import content_text
from assay.text.template import DEFAULT_FIELDS

HOLDERS = ("messages", "conversations", "conversation", "turns", "prompt")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SAME_ROLE = {
    "human": "user",
    **dict.fromkeys(
        ("gpt", "chatgpt", "model", "ai", "bot", "function_call", "tool_call"), "assistant"
    ),
    **dict.fromkeys(("observation", "tool_response"), "tool"),
}
_CALLS = ("function_call", "tool_call")
_PLACE = re.compile(r"\s*<(image|audio)>\s*")
_TEXTS = ("text", "input_text", "output_text")
_MEDIA = {
    "image_url": "image",
    "input_image": "image",
    "document": "file",
    "input_file": "file",
    "audio_url": "audio",
}
_TOOLS = "write [{type: function, function: {name: …}}]; `row_params: []` of the prompt leaves the row's fields out"
_THOUGHTS = ("thinking", "redacted_thinking")


class Asked(msgspec.Struct):
    """What an item asks: messages, parameters of its own, and whether each open turn of the user is answered."""

    messages: list[Message]
    params: JsonObject = {}
    each: bool = False


def conversation_in(fields: JsonMapping) -> tuple[str, list[Message]] | None:
    """The conversation among an item's fields, with the name of its field; None if there is none. Beside a question
    only `messages` are one."""
    asks = [name for name in DEFAULT_FIELDS if isinstance(fields.get(name), str)]
    for name in HOLDERS[:1] if asks else HOLDERS:
        turns = _list_in(fields[name]) if name in fields else None
        if not turns:
            continue
        if name == "turns" and all(isinstance(turn, str) for turn in turns):
            return name, [{"role": "user", "content": turn} for turn in turns]
        if any(isinstance(turn, dict) and ("role" in turn or "from" in turn) for turn in turns):
            messages = list(_messages(turns, name))
            return name, _with_media(messages, fields)
    return None


def _list_in(value: Any) -> list[Any]:
    """A list; also one that a table's cell holds as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return []
    return list_of(value)


def _messages(turns: list[Any], name: str) -> Iterator[Message]:
    last_call = ""
    for number, turn in enumerate(turns, 1):
        place = f"message {number} of `{name}`"
        if not isinstance(turn, dict):
            raise UserError(f"{place} is not an object", fix="write {role: user, content: …}")
        given = turn.get("role", turn.get("from"))
        role = _SAME_ROLE.get(str(given), given)
        if role not in _ROLES:
            raise UserError(
                f"{place} has the role {given!r}", fix=f"the roles are {', '.join(_ROLES)}"
            )
        if not turn.keys() & {"content", "value", "tool_calls", "function_call"}:
            raise UserError(f"{place} has no content", fix="write {role: …, content: …}")
        if given in _CALLS:
            message = {"role": role, "content": None, "tool_calls": _shared_calls(turn, number)}
        elif "from" in turn and "role" not in turn:
            message = {"role": role, "content": turn.get("value", turn.get("content"))}
            if role == "tool":
                message["tool_call_id"] = last_call
        else:
            leaks = answer_fields(turn)
            message = {
                **{key: value for key, value in turn.items() if key not in leaks},
                "role": role,
            }
        for made in (
            _split(message, place) if isinstance(message.get("content"), list) else (message,)
        ):
            for call in made.get("tool_calls") or ():
                last_call = str(call.get("id", "")) if isinstance(call, dict) else last_call
            yield made


def _shared_calls(turn: JsonMapping, number: int) -> list[Any]:
    """ShareGPT's call of a tool: a turn whose value is the JSON of a call, or of several."""
    value = turn.get("value", turn.get("content"))
    try:
        decoded: Any = msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        raise UserError(
            f"the tool call in message {number} is not JSON",
            fix='write {"name": …, "arguments": …}',
        ) from None
    return [
        {"id": f"call_{number}_{n}", "type": "function", "function": _function(call)}
        for n, call in enumerate(as_list(decoded), 1)
    ]


def _function(call: Any) -> Message:
    fields = as_object(call)
    arguments = fields.get("arguments", fields.get("parameters", fields.get("input")))
    text = (
        arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    )
    return {"name": fields.get("name"), "arguments": text}


def _split(message: Message, place: str) -> Iterator[Message]:
    """A message whose content is parts: results of tools are messages of their own, calls of tools a key."""
    parts: list[Any] = []
    calls: list[Any] = list(message.get("tool_calls") or ())
    results: list[Message] = []
    for part in message["content"]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_use":
            calls.append({"id": part.get("id"), "type": "function", "function": _function(part)})
        elif kind == "tool_result":
            content = content_text(part.get("content"))
            results.append(
                {"role": "tool", "content": content, "tool_call_id": part.get("tool_use_id")}
            )
        elif kind not in _THOUGHTS:
            parts.append(_part(part, place))
    yield from results
    if not results or parts:
        rest = {
            **message,
            "content": _joint_content(parts) if calls and not message.get("tool_calls") else parts,
        }
        yield {**rest, "tool_calls": calls} if calls else rest


def _joint_content(parts: list[Any]) -> Any:
    """The content beside calls: plain text, null where there is none."""
    return parts if any("text" not in part for part in parts) else content_text(parts) or None


def _part(part: Any, place: str) -> Any:
    """A part of OpenAI's API; a file that is named by its path keeps it."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise UserError(f"{place} has a part without a type", fix="write {type: text, text: …}")
    leaks = answer_fields(part)  # and tables have a null for each key that another part has
    part = {key: value for key, value in part.items() if value is not None and key not in leaks}
    kind = part["type"]
    if kind in _TEXTS:
        return part if kind == "text" else {"type": "text", "text": part.get("text", "")}
    if kind == "input_audio" or (
        kind == "file" and "file" in part and isinstance(part["file"], dict)
    ):
        return part
    kind = _MEDIA.get(kind, kind)
    if kind not in KINDS:
        return part  # video and whatever else a server may know
    try:
        return _media(part, kind)
    except UserError as error:
        raise UserError(f"{place}: {error.what}", fix=error.fix) from None


def _media(part: JsonMapping, kind: str) -> Message:
    source: Any = part.get("source")
    if isinstance(source, dict):  # Anthropic's
        if source.get("type") == "text":
            return {"type": "text", "text": str(source.get("data", ""))}
        return part_of(kind, {**source, "name": part.get("title")})
    held: Any = part.get(part["type"])
    if isinstance(held, dict):
        url = held.get("url")
        remote = isinstance(url, str) and url.startswith(("http://", "https://", "data:"))
        return dict(part) if remote else part_of(kind, {**held, "path": url})
    if len(part) == 1:
        return dict(part)  # a place for one of the row's files
    if isinstance(held, str):
        return part_of(kind, {**part, "path": held})
    return part_of(kind, part if held is None else held)


# ---- files that stand beside the conversation


def _with_media(messages: list[Message], fields: JsonMapping) -> list[Message]:
    """With the row's `images` and `audios` at their places: `<image>` in a text, or a part {type: image} alone."""
    queues: dict[str, list[Any]] = {}
    for kind in KINDS:
        held = fields.get(f"{kind}s", fields.get(kind))
        queues[kind] = list(held) if isinstance(held, list) else [held] if held else []
    counts = {kind: len(queue) for kind, queue in queues.items()}
    return [_with_files(message, queues, counts) for message in messages]


def _with_files(message: Message, queues: dict[str, list[Any]], counts: dict[str, int]) -> Message:
    content = message.get("content")
    if isinstance(content, str) and any(counts.values()) and _PLACE.search(content):
        pieces = _PLACE.split(content)  # texts and kinds in turn
        content = [
            {"type": piece} if n % 2 else {"type": "text", "text": piece}
            for n, piece in enumerate(pieces)
            if piece
        ]
    if not isinstance(content, list):
        return message
    return {**message, "content": [_file_at(part, queues, counts) for part in content]}


def _file_at(part: Any, queues: dict[str, list[Any]], counts: dict[str, int]) -> Any:
    kind = part.get("type") if isinstance(part, dict) and len(part) == 1 else None
    if kind not in queues:
        return part
    if not queues[kind]:
        what = f"the conversation has a place for more than the row's {counts[kind]} {kind}s"
        raise UserError(what, fix=f"list them in `{kind}s`")
    return part_of(kind, queues[kind].pop(0))


# ---- tools


def tools_in(value: Any) -> list[Any]:
    """A row's tools as OpenAI's API wants them: also Anthropic's, bare functions, and a table's cell with JSON."""
    tools = _list_in(value)
    if not tools:
        raise UserError("`tools` is not a list of tools", fix=_TOOLS)
    return [_tool(tool, number) for number, tool in enumerate(tools, 1)]


def _tool(tool: Any, number: int) -> Any:
    if not isinstance(tool, dict) or not (isinstance(tool.get("name"), str) or "type" in tool):
        raise UserError(f"tool {number} has no name", fix=_TOOLS)
    if "type" in tool:
        return tool
    parameters = tool.get("parameters", tool.get("input_schema"))
    described = {key: tool[key] for key in ("name", "description", "strict") if key in tool}
    return {
        "type": "function",
        "function": {**described, **({} if parameters is None else {"parameters": parameters})},
    }


def open_turns(messages: list[Message]) -> list[list[Message]]:
    """The messages in pieces, each of which ends with a user's turn that nobody has answered yet."""
    pieces: list[list[Message]] = [[]]
    for number, message in enumerate(messages):
        pieces[-1].append(message)
        following = messages[number + 1].get("role") if number + 1 < len(messages) else "user"
        if (
            message.get("role") == "user"
            and following not in ("assistant", "tool")
            and number + 1 < len(messages)
        ):
            pieces.append([])
    return pieces
