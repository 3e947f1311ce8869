"""The agent node: the model calls tools until it answers. A tool that fails, or that does not exist, is told so to
the model, which may try again; the number of calls is bounded."""

from collections.abc import Mapping
from typing import Any

import msgspec

from assay.errors import UserError
from assay.interfaces import Context, Message
from assay.tasks.graph.called import NodeFailed
from assay.tasks.graph.llm import LlmNode
from assay.tasks.graph.messages import HISTORY, plain, tool_call
from assay.tasks.graph.nodes import State, Surroundings
from assay.text.messages import content_text

CALLS = 50


class AgentNode(LlmNode):
    kind = "agent"

    def __init__(self, name: str, config: Mapping[str, Any], around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        injected = config.get("inject_system_messages") or []
        entries = [injected] if isinstance(injected, Mapping) else injected
        self._injected = [(turn, str(text)) for entry in entries for turn, text in entry.items()]
        self._by_name = {tool.name: tool.call for tool in self.tools}

    async def _answer(self, context: Context, messages: list[Message], state: State) -> tuple[str, list[Any]]:
        turns = self._opened(messages, state)
        made: list[Any] = []
        for _ in range(CALLS):
            text, wanted = await self.asking.ask(context, turns)
            calls = [tool_call(call) for call in wanted]
            if not calls:
                return text, made
            made += calls
            turns = [*turns, {"role": "assistant", "content": text or None, "tool_calls": calls}]
            for call in calls:
                said = await self._use(call, context)
                turns.append({"role": "tool", "tool_call_id": call["id"], "content": said})
        raise UserError(f"node {self.name!r} called its model {CALLS} times and has no answer")

    def _opened(self, messages: list[Message], state: State) -> list[Message]:
        """One system message, with what is due at this turn, before all others."""
        system = [content_text(message["content"]) for message in messages if message["role"] == "system"]
        now = len(state.get(HISTORY) or []) // 2
        system += [text for turn, text in self._injected if str(turn) == str(now)]
        rest = [message for message in messages if message["role"] != "system"]
        return [{"role": "system", "content": "\n".join(system)}, *rest] if system else rest

    async def _use(self, call: Mapping[str, Any], context: Context) -> str:
        name = call["function"]["name"]
        function = self._by_name.get(name)
        if function is None:
            return f"Error: there is no tool {name!r}. Valid: {', '.join(self._by_name)}"
        try:
            arguments = msgspec.json.decode(call["function"]["arguments"] or "{}", type=dict[str, Any])
            result = await function(context, arguments)
            return result if isinstance(result, str) else msgspec.json.encode(plain(result)).decode()
        except (NodeFailed, msgspec.DecodeError, TypeError) as error:
            return f"Error: {error}"
