"""Nodes that ask a model: one, or several with the same prompt. No tool is called: which ones the
model wants to call is what it answers."""

from collections.abc import Mapping
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.graph.asking import Asking, State, Surroundings
from assay.formats.sygra.graph.called import Tool, load_tools
from assay.formats.sygra.graph.messages import (
    BY_ROLE,
    HISTORY,
    MESSAGES,
    MODES,
    WINDOW,
    AIMessage,
    SygraMessage,
    chats,
    with_history,
)
from assay.formats.sygra.graph.nodes import Node, Prompt, side_by_side, updates
from assay.formats.sygra.types import Config, Row, required
from assay.interfaces import Context, Message


class LlmNode(Node):
    kind = "llm"

    def __init__(
        self,
        name: str,
        config: Config,
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
        more: Row = {}
        if config.get("tools"):
            self.tools = load_tools(config["tools"], around.load, f"{where}.tools")
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
        window = around.properties.get("chat_history_window_size", WINDOW)
        place = "graph_config.graph_properties.chat_history_window_size"
        self._window = required(
            window, int, f"the window is {window!r}", place, "give a number of entries"
        )
        self.needs = set() if self._before else self.reads
        self.is_open = self._after is not None
        functions = [self._before, self._after, *self.tools]
        self.code = [
            self.asking.code,
            *(function.code for function in functions if function is not None),
        ]

    async def run(self, state: State, context: Context, visit: int) -> Config:
        if self._before is not None:
            changed = await self._before(context, state)
            state = changed if isinstance(changed, dict) else state
        messages = self._request(state)
        text, calls = await self.asking.ask(context, messages)
        return await self._outcome(text, calls, messages, state, context)

    def _request(self, state: State) -> list[Message]:
        messages = self._prompt.render(state)
        if turns := state.get(self._input):
            messages += chats(turns, f"node {self.name!r}: {self._input}")
        if self._keeps_history and self._mode in MODES and (history := state.get(HISTORY)):
            messages = with_history(self._mode, messages, history, self._window, self.name)
        return messages

    async def _outcome(
        self, text: str, calls: list[Any], messages: list[Message], state: State, context: Context
    ) -> Config:
        update: Row
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

    def __init__(self, name: str, config: Config, around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        fix = "add `models: {label: {name: …}}`"
        models = required(
            config.get("models") or None, Mapping, "a multi_llm node needs `models`", where, fix
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

    async def run(self, state: State, context: Context, visit: int) -> Config:
        results = await side_by_side(
            node.run(dict(state), context, visit) for node in self._nodes.values()
        )
        outputs = dict(zip(self._nodes, results, strict=True))
        if self._after is not None:
            return updates(await self._after(context, outputs), self.name, "multi_llm_post_process")
        key = str(self._key)
        return {key: [{label: output.get(key) for label, output in outputs.items()}]}


def _single_key(config: Config, where: str, processor: str = "post_process") -> str:
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


def _model(written: Any, config: Config, where: str) -> Row:
    """The model of a node; structured output may stand beside it as well as in it."""
    if not isinstance(written, (str, Mapping)):
        raise UserError("the model has no name", where=where, fix="write `model: {name: …}`")
    model = {"name": written} if isinstance(written, str) else dict(written)
    if config.get("structured_output"):
        model.setdefault("structured_output", config["structured_output"])
    return model
