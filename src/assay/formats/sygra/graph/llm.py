"""Nodes that ask a model: one, several with the same prompt, or an agent, whose model calls tools until it answers."""

from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.sygra.graph.asking import Asking, State, Surroundings
from assay.formats.sygra.graph.called import NodeFailed, Tool, load_tools
from assay.formats.sygra.graph.messages import (
    BY_ROLE,
    HISTORY,
    MESSAGES,
    MODES,
    WINDOW,
    AIMessage,
    SygraMessage,
    chats,
    plain,
    tool_call,
    with_history,
)
from assay.formats.sygra.graph.nodes import Node, Prompt, side_by_side, updates
from assay.interfaces import Context, Message
from assay.text.messages import content_text


class LlmNode(Node):
    kind = "llm"

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any],
        around: Surroundings,
        where: str,
        *,
        label: Any = None,
    ) -> None:
        super().__init__(name, config, around, where)
        for key in ("model", "prompt") if label is None else ("prompt",):
            if key not in config:
                raise UserError(f"the node needs `{key}`", where=where, fix=f"add `{key}:`")
        if config.get("output_vars") is not None:
            raise UserError("output_vars is not known", where=where, fix="write `output_keys`")
        self._key = _single_key(config, where)
        self._input = str(config.get("input_key") or MESSAGES)
        self._message = BY_ROLE.get(str(config.get("output_role", "assistant")), AIMessage)
        self._prompt = Prompt(config["prompt"], f"{where}.prompt", f"node {name!r}")
        self.reads = self._prompt.names
        self._before = around.function(config, "pre_process", name, where)
        self._after = around.function(config, "post_process", name, where)
        self.tools: list[Tool] = []
        more: dict[str, Any] = {}
        if config.get("tools"):
            self.tools = load_tools(
                config["tools"], f"node {name!r}", around.load, f"{where}.tools"
            )
            descriptions = [tool.description for tool in self.tools]
            more = {"tools": descriptions, "tool_choice": config.get("tool_choice", "auto")}
            self.makes = [*self.makes, "tool_calls"]
        if label is None:
            step, model, place = name, config["model"], f"{where}.model"
        else:
            step, model, place = (
                f"{name}.{label}",
                config["models"][label],
                f"{where}.models.{label}",
            )
        self.asking = Asking(_model(model, config, place), step, around, place, more)
        self._keeps_history = bool(config.get("chat_history", False))
        self._mode = str(around.properties.get("chat_conversation", ""))
        self._window = around.properties.get("chat_history_window_size", WINDOW)
        if not isinstance(self._window, int):
            place = "graph_config.graph_properties.chat_history_window_size"
            raise UserError(
                f"the window is {self._window!r}", where=place, fix="give a number of entries"
            )
        self.needs = set() if self._before else self.reads
        self.is_open = self._after is not None
        functions = [self._before, self._after, *self.tools]
        self.code = [
            self.asking.code,
            *(function.code for function in functions if function is not None),
        ]

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        if self._before is not None:
            changed = await self._before(context, state)
            state = changed if isinstance(changed, dict) else state
        messages = self._request(state)
        text, calls = await self._answer(context, messages, state)
        return await self._outcome(text, calls, messages, state, context)

    def _request(self, state: State) -> list[Message]:
        messages = self._prompt.render(state)
        if turns := state.get(self._input):
            messages += chats(turns, f"node {self.name!r}: {self._input}")
        if self._keeps_history and self._mode in MODES and (history := state.get(HISTORY)):
            messages = with_history(self._mode, messages, history, self._window, self.name)
        return messages

    def _answer(
        self, context: Context, messages: list[Message], state: State
    ) -> Coroutine[Any, Any, tuple[str, list[Any]]]:
        """Text and tool calls."""
        return self.asking.ask(context, messages)

    async def _outcome(
        self, text: str, calls: list[Any], messages: list[Message], state: State, context: Context
    ) -> Mapping[str, Any]:
        update: dict[str, Any]
        if self.tools:
            state["tool_calls"] = calls
        if self._after is None:
            update = {
                self._key: [self._message(text, name=self.name)] if self._key == MESSAGES else text
            }
            if self.tools:
                update["tool_calls"] = calls
        else:
            answer = AIMessage(text)
            message = SygraMessage(answer) if self._after.is_class else answer
            arguments = (message,) if self._after.arity == 1 else (message, state)
            update = updates(await self._after(context, *arguments), self.name, "post_process")
        if self._keeps_history:
            record = {"name": self.name, "request": messages, "response": text}
            update = {**update, HISTORY: [*(update.get(HISTORY) or []), record]}
        return update


class MultiLlmNode(Node):
    """The same prompt for several models, side by side."""

    kind = "multi_llm"

    def __init__(
        self, name: str, config: Mapping[str, Any], around: Surroundings, where: str
    ) -> None:
        super().__init__(name, config, around, where)
        models = config.get("models")
        if not isinstance(models, Mapping) or not models:
            raise UserError(
                "a multi_llm node needs `models`",
                where=where,
                fix="add `models: {label: {name: …}}`",
            )
        self._after = around.function(config, "multi_llm_post_process", name, where)
        self._key = None if self._after else _single_key(config, where, "multi_llm_post_process")
        self._nodes = {
            str(label): LlmNode(name, config, around, where, label=label) for label in models
        }
        first = next(iter(self._nodes.values()))
        self.reads, self.needs = first.reads, first.needs
        self.is_open = self._after is not None or first.is_open
        codes = {label: node.code for label, node in self._nodes.items()}
        self.code = [codes, self._after.code if self._after else None]

    async def run(self, state: State, context: Context, visit: int) -> Mapping[str, Any]:
        results = await side_by_side(
            node.run(dict(state), context, visit) for node in self._nodes.values()
        )
        outputs = dict(zip(self._nodes, results, strict=True))
        if self._after is not None:
            return updates(await self._after(context, outputs), self.name, "multi_llm_post_process")
        key = str(self._key)
        return {key: [{label: output.get(key) for label, output in outputs.items()}]}


def _single_key(config: Mapping[str, Any], where: str, processor: str = "post_process") -> str:
    keys = config.get("output_keys") or MESSAGES
    if isinstance(keys, list):
        if config.get(processor) is None:
            fix = f"add `{processor}:`, or name one key without a list"
            raise UserError(
                "a list of output_keys needs a post-processor",
                where=f"{where}.output_keys",
                fix=fix,
            )
        return keys[0]
    return keys


def _model(written: Any, config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The model of a node; structured output may stand beside it as well as in it."""
    if not isinstance(written, (str, Mapping)):
        raise UserError("the model has no name", where=where, fix="write `model: {name: …}`")
    model = {"name": written} if isinstance(written, str) else dict(written)
    if config.get("structured_output"):
        model.setdefault("structured_output", config["structured_output"])
    return model


CALLS = 50
_AGENT_PROMPT = (
    "_agent_prompt"  # the variable that a pre-processor sets where the prompt has no system message
)


class AgentNode(LlmNode):
    kind = "agent"

    def __init__(
        self, name: str, config: Mapping[str, Any], around: Surroundings, where: str
    ) -> None:
        super().__init__(name, config, around, where)
        injected = config.get("inject_system_messages") or []
        entries = [injected] if isinstance(injected, Mapping) else injected
        self._injected = [(turn, str(text)) for entry in entries for turn, text in entry.items()]
        self._by_name = {tool.name: tool.call for tool in self.tools}

    async def _answer(
        self, context: Context, messages: list[Message], state: State
    ) -> tuple[str, list[Any]]:
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
                result = await self._use(call, context)
                turns.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        raise UserError(f"node {self.name!r} called its model {CALLS} times and has no answer")

    def _opened(self, messages: list[Message], state: State) -> list[Message]:
        """One system message, the prompt's or the state's, with what is due at this turn, before all others."""
        system = [
            content_text(message["content"]) for message in messages if message["role"] == "system"
        ]
        if not any(system) and state.get(_AGENT_PROMPT):
            system = [str(state[_AGENT_PROMPT])]
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
            arguments = msgspec.json.decode(
                call["function"]["arguments"] or "{}", type=dict[str, Any]
            )
            result = await function(context, arguments)
            return (
                result if isinstance(result, str) else msgspec.json.encode(plain(result)).decode()
            )
        except (NodeFailed, msgspec.DecodeError, TypeError) as error:
            return f"Error: {error}"
