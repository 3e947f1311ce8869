"""The nodes of a graph: functions, samplers, and those that ask a model, or several with the same prompt. No tool is
called: which ones the model wants to call is what it answers.

A node gets its own copy of the state and may change that as it likes; only what it returns reaches the graph.

In a prompt `{var}` stands for a state variable, `{{` and `}}` for braces. It is parsed once, rendered per record. What
is filled in is never parsed again, and no attribute of a value can be reached: both the template and the values come
from strangers.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from string import Formatter
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
from assay.formats.sygra.types import Config, Row, required
from assay.interfaces import Context, Message
from assay.store.keys import canonical, digest


class Node:
    """`kind` is its type in the graph; `makes` the variables that it declares, `reads` those of its prompt and `needs`
    the ones that must be there before; one that `is_open` may set any. `code` is what it is made of, a part of its
    rows' keys. One that is only a node is a connector: the entry or the exit of a
    subgraph, which does nothing and is not a step."""

    kind = "connector"
    is_open = False

    def __init__(self, name: str, config: Config, around: Surroundings, where: str) -> None:
        self.name = name
        self.makes = output_keys(config, where)
        self.reads: set[str] = set()
        self.needs: set[str] = set()
        self.code: Any = None

    async def run(self, state: State, context: Context, visit: int) -> Config:
        return {}


class LambdaNode(Node):
    kind = "lambda"
    is_open = True

    def __init__(self, name: str, config: Config, around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        function = around.function(config, "lambda", name, where)
        if function is None:
            raise UserError(
                "a lambda node needs `lambda`", where=where, fix="name a function or a class"
            )
        self.code = function.code
        self._config = dict(config)
        self._function = function

    async def run(self, state: State, context: Context, visit: int) -> Config:
        return updates(await self._function(context, self._config, state), self.name, "lambda")


def output_keys(config: Config, where: str) -> list[str]:
    """The variables that a node declares."""
    keys = config.get("output_keys")
    if keys is None:
        return []
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise UserError(
            f"output_keys is {keys!r}", where=where, fix="write a name, or a list of names"
        )
    if HISTORY in names or (MESSAGES in names and keys != MESSAGES):
        taken = HISTORY if HISTORY in names else MESSAGES
        raise UserError(
            f"{taken!r} belongs to every graph",
            where=f"{where}.output_keys",
            fix="rename the variable",
        )
    return names


async def side_by_side(runs: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """The results of all; if one failed, its error, once none is at work any more."""
    results = await asyncio.gather(*runs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def updates(result: Any, node: str, key: str) -> Row:
    """What a helper returned, if it can be merged into the state."""
    if isinstance(result, dict):
        return result
    if result is None:
        return {}
    if not isinstance(result, Mapping):
        raise UserError(
            f"node {node!r}: {key} returned a {type(result).__name__}; it has to return a dict"
        )
    return dict(result)


class SamplerNode(Node):
    """Draws each attribute anew; the draws follow from the row's seed, the node and how often it was visited."""

    kind = "weighted_sampler"

    def __init__(self, name: str, config: Config, around: Surroundings, where: str) -> None:
        super().__init__(name, config, around, where)
        what, fix = "a weighted_sampler needs `attributes`", "add `attributes: {name: …}`"
        attributes = required(config.get("attributes") or None, Mapping, what, where, fix)
        self.makes = [*map(str, attributes), *(key for key in self.makes if key not in attributes)]
        self._draws = {
            str(key): _attribute(entry, around, f"{where}.attributes.{key}")
            for key, entry in attributes.items()
        }
        self.code = [digest("draws", canonical(draw)).hex() for draw in self._draws.values()]

    async def run(self, state: State, context: Context, visit: int) -> Config:
        seed = digest("sampler", b"%d" % context.seed, self.name.encode(), b"%d" % visit)
        generator = random.Random(seed)
        drawn: Row = {}
        for key, (columns, weights) in self._draws.items():
            values = columns[0] if len(columns) == 1 else generator.choice(columns)
            drawn[key] = generator.choices(values, weights)[0]
        return drawn


def _attribute(
    entry: Any, around: Surroundings, where: str
) -> tuple[list[list[Any]], list[float] | None]:
    """Return the values to draw from, one list for each column, and their weights."""
    values: Any = entry.get("values") if isinstance(entry, Mapping) else None
    if isinstance(values, Mapping):
        return _columns(values, around, where), None
    fix = "write `values: [a, b]`"
    required(values or None, list, "an attribute needs a list of values", where, fix)
    weights = entry.get("weights")
    if weights is not None and (
        len(weights) != len(values) or min(weights) < 0 or not sum(weights) > 0
    ):
        what = f"{len(values)} values do not go with the weights {weights}"
        raise UserError(what, where=where, fix="one weight from 0 for each")
    return [list(values)], weights


def _columns(values: Config, around: Surroundings, where: str) -> list[list[Any]]:
    columns, source = values.get("column"), values.get("source")
    columns = [columns] if isinstance(columns, str) else columns
    if around.rows is None or not columns or not isinstance(source, Mapping):
        raise UserError("values from a source need `column` and `source`", where=where)
    rows = around.rows(source)
    there = list(rows[0]) if rows else []
    drawn: list[list[Any]] = []
    for name in columns:
        if name not in there:
            names = ", ".join(map(str, there)) if rows else "no rows"
            what = f"the source has no column {name!r}"
            raise UserError(what, where=where, fix=f"it has: {names}")
        drawn.append([row.get(name) for row in rows])
    return drawn


ROLES = ("system", "user", "assistant", "tool")
MEDIA = ("image_url", "audio_url")
_CONVERSIONS: dict[str | None, Callable[[Any], Any]] = {
    None: lambda value: value,
    "r": repr,
    "a": ascii,
}


class Template:
    """One text. `names` are its variables, in order."""

    def __init__(self, text: str, where: str, owner: str = "") -> None:
        self._owner = owner or where
        self._parts = _parsed(text, where)
        self.names = [name for _, name, _, _ in self._parts if name is not None]
        is_bare = len(self._parts) == 1 and self._parts[0] == ("", *self.names, "", None)
        self.only = self.names[0] if is_bare else None

    def render(self, state: Config) -> str:
        if not state.keys() >= set(self.names):
            raise self.missing(state)
        pieces: list[str] = []
        for literal, name, spec, conversion in self._parts:
            pieces.append(literal)
            if name is not None:
                convert = _CONVERSIONS.get(conversion, str)
                pieces.append(format(convert(state[name]), spec or ""))
        return "".join(pieces)

    def missing(self, state: Config) -> UserError:
        gone = ", ".join(repr(name) for name in dict.fromkeys(self.names) if name not in state)
        variables = ", ".join(sorted(key for key in state if not key.startswith("__")))
        return UserError(
            f"{self._owner}: the prompt needs {gone}, which the state does not have; it has: {variables}"
        )


def _parsed(text: str, where: str) -> list[tuple[str, str | None, str | None, str | None]]:
    fix = "write {{ and }} for braces that are meant as they are"
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise UserError(f"the text cannot be read: {error}", where=where, fix=fix) from None
    for _, name, _, _ in parsed:
        if name is not None and (
            not name.strip() or name.isdigit() or any(sign in name for sign in "\"'\n")
        ):
            raise UserError(f"{{{name.strip()[:40]}}} names no variable", where=where, fix=fix)
    return parsed


class Prompt:
    """The messages of a node, before what is in the state follows them."""

    def __init__(self, source: Any, where: str, owner: str = "") -> None:
        fix = "write `- user: text`"
        required(source or None, list, "a prompt is a list of messages", where, fix)
        self.names: set[str] = set()
        self._messages = [
            self._message(entry, f"{where}[{number}]", owner) for number, entry in enumerate(source)
        ]

    def _message(self, entry: Any, where: str, owner: str) -> tuple[str, Any]:
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise UserError(
                "a message is one role with its text", where=where, fix="write `- user: text`"
            )
        ((role, content),) = entry.items()
        if role not in ROLES:
            raise UserError(
                f"{role!r} is not a role", where=where, fix=f"valid: {', '.join(ROLES)}"
            )
        if isinstance(content, (str, list)):
            return role, self._compiled(content, where, owner)
        what = f"the text of {role!r} is a {type(content).__name__}"
        raise UserError(what, where=where, fix="write text, or a list")

    def _compiled(self, content: Any, where: str, owner: str) -> Any:
        """Every text in it as a template."""
        if isinstance(content, str):
            template = Template(content, where, owner)
            self.names.update(template.names)
            return template
        if isinstance(content, list):
            return [self._compiled(entry, where, owner) for entry in content]
        if isinstance(content, Mapping):
            parts = {
                key: self._compiled(value, where, owner)
                for key, value in content.items()
                if key != "type"
            }
            return {**content, **parts}
        return content

    def render(self, state: Config) -> list[Message]:
        return [
            {"role": role, "content": _fill(content, state)} for role, content in self._messages
        ]


def _fill(content: Any, state: Config) -> Any:
    if isinstance(content, Template):
        return content.render(state)
    if isinstance(content, list):
        return [part for entry in content for part in _parts(entry, state)]
    if isinstance(content, Mapping):
        return {key: _fill(value, state) for key, value in content.items()}
    return content


def _parts(entry: Any, state: Config) -> list[Any]:
    """A part of a message; an image or sound variable that holds a list becomes as many parts."""
    if isinstance(entry, Template):
        return [{"type": "text", "text": entry.render(state)}]
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind not in MEDIA or not isinstance(template := entry.get(kind), Template):
        return [_fill(entry, state)]
    if template.only is None:
        media: Any = template.render(state)
    elif template.only in state:
        media = state[template.only]
    else:
        raise template.missing(state)
    addresses = media if isinstance(media, list) else [media]
    return [
        {"type": kind, kind: address if isinstance(address, Mapping) else {"url": address}}
        for address in addresses
    ]


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
