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

from assay.formats.sygra.graph.asking import GraphParts, NodeModel, State
from assay.formats.sygra.graph.called import load_tools
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
from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import Context, Message, UserError, as_list, canonical, digest


class Node:
    """`kind` is its type in the graph; `makes` the variables that it declares, `reads` those of its prompt and `needs`
    the ones that must be there before; one that `is_open` may set any. `code` is what it is made of, a part of its
    rows' keys. One that is only a node is a connector: the entry or the exit of a
    subgraph, which does nothing and is not a step."""

    kind = "connector"
    is_open = False

    def __init__(self, name: str, at: YamlPlace, around: GraphParts) -> None:
        self.name = name
        self.makes = output_keys(at)
        self.reads: set[str] = set()
        self.needs: set[str] = set()
        self.code: Any = None

    async def run(self, state: State, context: Context, visit: int) -> Config:
        return {}


class LambdaNode(Node):
    kind = "lambda"
    is_open = True

    def __init__(self, name: str, at: YamlPlace, around: GraphParts) -> None:
        super().__init__(name, at, around)
        function = around.function(at("lambda"), name)
        if function is None:
            raise at.error("a lambda node needs `lambda`", "name a function or a class")
        self.code = function.code
        self._config = dict(at.value)
        self._function = function

    async def run(self, state: State, context: Context, visit: int) -> Config:
        return updates(await self._function(context, self._config, state), self.name, "lambda")


def output_keys(at: YamlPlace) -> list[str]:
    """Return the variables that a node declares."""
    keys = at.value.get("output_keys")
    if keys is None:
        return []
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise at.error(f"output_keys is {keys!r}", "write a name, or a list of names")
    reserved = {HISTORY} if keys == MESSAGES else {HISTORY, MESSAGES}
    if taken := sorted(reserved.intersection(names)):
        raise at("output_keys").error(f"{taken[0]!r} belongs to every graph", "rename the variable")
    return names


async def side_by_side(runs: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Return the results of all, or raise the error of one once none is at work any more."""
    results = await asyncio.gather(*runs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def updates(result: Any, node: str, key: str) -> Row:
    """Return what a helper gave as an update of the state."""
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

    def __init__(self, name: str, at: YamlPlace, around: GraphParts) -> None:
        super().__init__(name, at, around)
        what, fix = "a weighted_sampler needs `attributes`", "add `attributes: {name: …}`"
        listed = at("attributes")
        attributes = at.inside("attributes").require_some(Mapping, what, fix)
        self.makes = [*map(str, attributes), *(key for key in self.makes if key not in attributes)]
        self._draws = {str(key): _attribute(listed(key), around) for key in attributes}
        self.code = [digest("draws", canonical(draw)).hex() for draw in self._draws.values()]

    async def run(self, state: State, context: Context, visit: int) -> Config:
        seed = digest("sampler", b"%d" % context.seed, self.name.encode(), b"%d" % visit)
        generator = random.Random(seed)
        drawn: Row = {}
        for key, (columns, weights) in self._draws.items():
            values = columns[0] if len(columns) == 1 else generator.choice(columns)
            drawn[key] = generator.choices(values, weights)[0]
        return drawn


def _attribute(at: YamlPlace, around: GraphParts) -> tuple[list[list[Any]], list[float] | None]:
    """Return the values to draw from, one list for each column, and their weights."""
    entry: Any = at.value if isinstance(at.value, Mapping) else {}
    values = entry.get("values")
    if isinstance(values, Mapping):
        return _columns(YamlPlace(values, at.where), around), None
    what, fix = "an attribute needs a list of values", "write `values: [a, b]`"
    YamlPlace(values, at.where).require_some(list, what, fix)
    weights = entry.get("weights")
    if weights is not None and (
        len(weights) != len(values) or min(weights) < 0 or not sum(weights) > 0
    ):
        what = f"{len(values)} values do not go with the weights {weights}"
        raise at.error(what, "one weight from 0 for each")
    return [list(values)], weights


def _columns(at: YamlPlace, around: GraphParts) -> list[list[Any]]:
    columns, source = at.value.get("column"), at.value.get("source")
    names = [columns] if isinstance(columns, str) else columns
    if around.rows is None or not names or not isinstance(source, Mapping):
        raise at.error("values from a source need `column` and `source`")
    rows = around.rows(source)
    there = list(rows[0]) if rows else []
    for name in names:
        if name not in there:
            fix = f"it has: {', '.join(map(str, there)) or 'no rows'}"
            raise at.error(f"the source has no column {name!r}", fix)
    return [[row.get(name) for row in rows] for name in names]


ROLES = ("system", "user", "assistant", "tool")
MEDIA = ("image_url", "audio_url")
_USER = "write `- user: text`"
_NO_NAME = frozenset("\"'\n")
_CONVERSIONS: dict[str | None, Callable[[Any], Any]] = {
    None: lambda value: value,
    "r": repr,
    "a": ascii,
}


class Template:
    """One text. `names` are its variables, in order."""

    def __init__(self, text: str, where: str, owner: str = "") -> None:
        self._owner = owner or where
        self._parts = _parts_of(YamlPlace(text, where))
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


def _parts_of(at: YamlPlace) -> list[Any]:
    """Return (literal, name, format, conversion) of each part of a text."""
    fix = "write {{ and }} for braces that are meant as they are"
    try:
        parts = list(Formatter().parse(at.value))
    except ValueError as error:
        raise at.error(f"the text cannot be read: {error}", fix) from None
    for name in (name for _, name, _, _ in parts if name is not None):
        if not name.strip() or name.isdigit() or _NO_NAME.intersection(name):
            raise at.error(f"{{{name.strip()[:40]}}} names no variable", fix)
    return parts


class Prompt:
    """The messages of a node, before what is in the state follows them."""

    def __init__(self, source: Any, where: str, owner: str = "") -> None:
        at = YamlPlace(source, where)
        at.require_some(list, "a prompt is a list of messages", _USER)
        self.names: set[str] = set()
        self._owner = owner
        self._messages = [self._message(entry) for entry in at.entries()]

    def _message(self, at: YamlPlace) -> tuple[str, Any]:
        what = "a message is one role with its text"
        if len(at.require(Mapping, what, _USER)) != 1:
            raise at.error(what, _USER)
        ((role, content),) = at.value.items()
        if role not in ROLES:
            raise at.error(f"{role!r} is not a role", f"valid: {', '.join(ROLES)}")
        if not isinstance(content, (str, list)):
            what = f"the text of {role!r} is a {type(content).__name__}"
            raise at.error(what, "write text, or a list")
        return role, self._compile(content, at.where)

    def _compile(self, content: Any, where: str) -> Any:
        """Return the content with a template for every text in it."""
        if isinstance(content, str):
            template = Template(content, where, self._owner)
            self.names.update(template.names)
            return template
        if isinstance(content, list):
            return [self._compile(entry, where) for entry in content]
        if isinstance(content, Mapping):
            texts = {key: value for key, value in content.items() if key != "type"}
            return {**content, **{key: self._compile(texts[key], where) for key in texts}}
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
    """Return the parts that an entry becomes; an image or sound variable with a list becomes several."""
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
    return [
        {"type": kind, kind: address if isinstance(address, Mapping) else {"url": address}}
        for address in as_list(media)
    ]


class LlmNode(Node):
    """`model` is one of several that a node asks, in a `step` of its own."""

    kind = "llm"

    def __init__(
        self,
        name: str,
        at: YamlPlace,
        around: GraphParts,
        model: YamlPlace | None = None,
        step: str = "",
    ) -> None:
        super().__init__(name, at, around)
        for key in ("model", "prompt") if model is None else ("prompt",):
            if key not in at.value:
                raise at.error(f"the node needs `{key}`", f"add `{key}:`")
        if at.value.get("output_vars") is not None:
            raise at.error("output_vars is not known", "write `output_keys`")
        self._key = _single_key(at)
        self._input = str(at.value.get("input_key") or MESSAGES)
        self._message = BY_ROLE.get(str(at.value.get("output_role", "assistant")), AIMessage)
        self._prompt = Prompt(*at("prompt"), f"node {name!r}")
        self.reads = self._prompt.names
        self._before = around.function(at("pre_process"), name)
        self._after = around.function(at("post_process"), name)
        self.needs = set() if self._before else self.reads
        self.is_open = self._after is not None
        more = self._load_tools(at, around)
        chosen = _with_structure(model or at("model"), at.value)
        self.asking = NodeModel(chosen, step or name, around, more)
        self._remember(at, around)
        functions = filter(None, (self._before, self._after, *self.tools))
        self.code = [self.asking.code, *(function.code for function in functions)]

    def _load_tools(self, at: YamlPlace, around: GraphParts) -> Row:
        """Load the node's tools, and return the parameters that offer them to the model."""
        paths = at("tools")
        self.tools = load_tools(paths.value, around.load, paths.where) if paths.value else []
        if not self.tools:
            return {}
        self.makes = [*self.makes, "tool_calls"]
        descriptions = [tool.description for tool in self.tools]
        return {"tools": descriptions, "tool_choice": at.value.get("tool_choice", "auto")}

    def _remember(self, at: YamlPlace, around: GraphParts) -> None:
        """Read how much of the chat a request repeats."""
        self._keeps_history = bool(at.value.get("chat_history", False))
        self._mode = str(around.properties.get("chat_conversation", ""))
        name = "chat_history_window_size"
        window = around.properties.get(name, WINDOW)
        place = YamlPlace(window, f"graph_config.graph_properties.{name}")
        self._window = place.require(int, f"the window is {window!r}", "give a number of entries")

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


_TOGETHER = "multi_llm_post_process"


class MultiLlmNode(Node):
    """The same prompt for several models, side by side."""

    kind = "multi_llm"

    def __init__(self, name: str, at: YamlPlace, around: GraphParts) -> None:
        super().__init__(name, at, around)
        models, what = at("models"), "a multi_llm node needs `models`"
        at.inside("models").require_some(Mapping, what, "add `models: {label: {name: …}}`")
        self._after = around.function(at(_TOGETHER), name)
        self._key = None if self._after else _single_key(at, _TOGETHER)
        self._nodes = {
            str(label): LlmNode(name, at, around, models(label), f"{name}.{label}")
            for label in models.value
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
            return updates(await self._after(context, outputs), self.name, _TOGETHER)
        key = str(self._key)
        return {key: [{label: output.get(key) for label, output in outputs.items()}]}


def _single_key(at: YamlPlace, processor: str = "post_process") -> str:
    keys = at.value.get("output_keys") or MESSAGES
    if not isinstance(keys, list):
        return keys
    if at.value.get(processor) is None:
        what = "a list of output_keys needs a post-processor"
        fix = f"add `{processor}:`, or name one key without a list"
        raise at("output_keys").error(what, fix)
    return keys[0]


def _with_structure(at: YamlPlace, config: Config) -> YamlPlace:
    """Return the model of a node; structured output may stand beside it as well as in it."""
    if not isinstance(at.value, (str, Mapping)):
        raise at.error("the model has no name", "write `model: {name: …}`")
    model = {"name": at.value} if isinstance(at.value, str) else dict(at.value)
    if config.get("structured_output"):
        model.setdefault("structured_output", config["structured_output"])
    return YamlPlace(model, at.where)
