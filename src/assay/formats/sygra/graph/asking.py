"""How a node reaches its model: parameters merged once, structured output asked for and checked.

A schema is a dict of fields or a pydantic class. Checking is lax about types, as pydantic is ("3" is an integer), and
so is finding the JSON: a fenced block or an object in prose counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from assay.formats.sygra.graph.called import Load, UserFunction, code_of
from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import Completion, Context, Message, nearest
from assay.text.json_out import NoJson, find_json, read_json

Native = Literal["json_schema", "guided_json", "none"]
_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "string"),
    "int": (int, "integer"),
    "float": (float, "number"),
    "bool": (bool, "boolean"),
    "list": (list, "array"),
    "dict": (dict, "object"),
}
_ALIASES = {schema: name for name, (_, schema) in _TYPES.items()}


class Structure:
    """`params` go with the request where the server can keep to a schema by itself; `parsed` is the user's class."""

    def __init__(
        self,
        name: str,
        schema: Row,
        check: Callable[[Any], Any],
        native: Native,
        parsed: Any = None,
    ) -> None:
        self.schema = schema
        self.parsed = parsed
        self._check = check
        self.native = native != "none"
        self.params: Row = {}
        if native == "json_schema":
            form = {"name": name, "strict": True, "schema": schema}
            self.params = {"response_format": {"type": "json_schema", "json_schema": form}}
        elif native == "guided_json":
            self.params = {"guided_json": schema}

    def valid(self, text: str) -> str | None:
        """Return the answer's JSON if it keeps to the schema; as it stands if that is all the answer."""
        try:
            value, whole = read_json(text), True
        except NoJson:
            try:
                value, whole = find_json(text), False
            except NoJson:
                return None
        try:
            self._check(value)
        except Exception:  # pydantic, msgspec and a user's validator each have their own
            return None
        return text if whole else msgspec.json.encode(value).decode()

    def with_instruction(self, messages: list[Message]) -> list[Message]:
        """Return the messages, the last one saying which schema the answer has to keep to."""
        wish = (
            "\n\nReply with one JSON object and no other text. It must fit this JSON schema:\n"
            + msgspec.json.encode(self.schema).decode()
        )
        *before, last = messages
        content = last["content"]
        if isinstance(content, list):
            return [
                *before,
                {**last, "content": [*content, {"type": "text", "text": wish.strip()}]},
            ]
        return [*before, {**last, "content": f"{content}{wish}"}]


def structure(at: YamlPlace, native: Native, load: Load) -> Structure | None:
    """Return the structure that a config asks for."""
    if not at.value or at.value.get("enabled", True) is False:
        return None
    schema = at("schema")
    if isinstance(schema.value, str):
        parsed = load(*schema)
        if not hasattr(parsed, "model_json_schema") or not hasattr(parsed, "model_validate"):
            raise schema.error(f"{schema.value!r} is not a pydantic class")
        closed = _strict(parsed.model_json_schema())
        return Structure(parsed.__name__, closed, parsed.model_validate, native, parsed)
    what, fix = "structured output has no schema", "add `fields:` or name a class"
    schema.require(Mapping, what, fix)
    fields = schema.inside("fields").require_some(Mapping, what, fix)
    described = {
        str(key): field if isinstance(field, Mapping) else {"type": field}
        for key, field in fields.items()
    }
    parsed = {
        key: _field(YamlPlace(field, f"{schema.where}.fields.{key}"))
        for key, field in described.items()
    }
    closed = {
        "type": "object",
        "properties": {key: shown for key, (shown, _) in parsed.items()},
        "required": list(parsed),
        "additionalProperties": False,
    }
    kinds = {key: kind for key, (_, kind) in parsed.items()}
    needed = [key for key, field in described.items() if "default" not in field]
    name = str(schema.value.get("name") or "DynamicModel")
    return Structure(name, closed, lambda value: _check(value, kinds, needed), native)


def _check(value: Any, kinds: Mapping[str, type], needed: list[str]) -> None:
    if not isinstance(value, dict) or any(key not in value for key in needed):
        raise ValueError("a field is missing")
    for key, kind in kinds.items():
        if key in value and (key in needed or value[key] is not None):
            msgspec.convert(value[key], kind, strict=False)


def _field(at: YamlPlace) -> tuple[Row, type]:
    """Return the JSON schema of a field and its type."""
    name = str(at.value.get("type", "str"))
    name = _ALIASES.get(name, name)
    if name not in _TYPES:
        raise at.error(f"{name!r} is not a type of a field", nearest(name, _TYPES))
    kind, word = _TYPES[name]
    shown: Row = {"type": word}
    if name == "list":
        shown["items"] = {}
    if at.value.get("description"):
        shown["description"] = str(at.value["description"])
    return shown, kind


def _strict(schema: Any) -> Any:
    """Return a pydantic schema as strict servers want it: every object closed, all its properties required."""
    if isinstance(schema, list):
        return [_strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _strict(value) for key, value in schema.items() if key != "default"}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


_RESERVED = ("model", "step", "messages")
_KNOWN = {"name", "parameters", "structured_output", "output_type", "input_type"}


_MEDIA = {"output_type": lambda medium: medium != "text", "input_type": "audio".__eq__}


def check_medium(at: YamlPlace) -> None:
    """Refuse a model that is not asked by chat: one that makes sound or images, or writes down what it hears."""
    for key, is_refused in _MEDIA.items():
        medium = at(key)
        if is_refused(str(medium.value or "text").lower()):
            what = f"{key} {medium.value!r} is not offered: models are asked by chat and answer with text"
            fix = "make the media beforehand and put them into the records; messages of a chat may hold them"
            raise medium.error(what, fix)


class ModelUse(msgspec.Struct, frozen=True):
    """What a model's name in a graph stands for.

    `model` is the engine's name for it and `identity` what could change its answers; `params` are sent unless a node
    says otherwise; `native` is how its server is asked to keep to a schema; `clean` is applied to every text.
    """

    model: str
    params: Config = {}
    structured_output: Config | None = None
    native: Native = "json_schema"
    clean: Callable[[str], str] | None = None
    identity: Config = {}


State = Row
Rows = Callable[[Config], Sequence[Config]]


class GraphParts(msgspec.Struct):
    """What the nodes of one graph share while they are made; `notes` are what a user should hear of, `used` the models
    that nodes ask."""

    load: Load
    models: Mapping[str, ModelUse]
    rows: Rows | None
    properties: Config
    notes: list[str] = []
    used: dict[str, None] = {}

    def function(self, at: YamlPlace, node: str) -> UserFunction | None:
        """Return the function or class that a node names there."""
        if at.value is None:
            return None
        key = at.where.rpartition(".")[2]
        name = at.require(str, f"{key} is not a dotted path", "write `package.module.name`")
        found, short = self.load(*at), name.rpartition(".")[2]
        return UserFunction(found, short, owner=f"node {node!r}", where=at.where)


class NodeModel:
    """One model as one node uses it; `more` are parameters of the node."""

    def __init__(self, at: YamlPlace, step: str, around: GraphParts, more: Config) -> None:
        name = at.inside("name").require(str, "the model has no name", "write `model: {name: …}`")
        if name not in around.models:
            raise at("name").error(f"unknown model {name!r}", nearest(name, around.models))
        check_medium(at)
        use = around.models[name]
        self.model = use.model
        self.step = step
        self._clean = use.clean
        self._plain = _parameters(at, use, more)
        wanted = {**(use.structured_output or {}), **(at.value.get("structured_output") or {})}
        place = YamlPlace(wanted, f"{at.where}.structured_output")
        form = self._structure = structure(place, use.native, around.load)
        self.params = {**self._plain, **form.params} if form else self._plain
        self.code = {
            "model": name,
            "use": {"model": use.model, "identity": dict(use.identity)},
            "params": self.params,
            "clean": code_of(use.clean) if use.clean else None,
            "class": code_of(form.parsed) if form and form.parsed else None,
            "schema": form.schema if form else None,
        }
        around.used[use.model] = None
        if ignored := sorted(at.value.keys() - _KNOWN):
            around.notes.append(
                f"{at.where}: {', '.join(ignored)} of a model count only where the model is defined"
            )

    async def ask(self, context: Context, messages: list[Message]) -> tuple[str, list[Any]]:
        """Return text and tool calls; an answer that breaks its schema is asked for once more."""
        form = self._structure
        sent = messages if form is None or form.native else form.with_instruction(messages)
        completion = await context.complete(sent, model=self.model, step=self.step, **self.params)
        text = self._text(completion)
        if form is None or completion.tool_calls:
            return text, completion.tool_calls or []
        valid = form.valid(text)
        if valid is None and form.native:
            again = form.with_instruction(messages)
            completion = await context.complete(
                again, model=self.model, step=self.step, **self._plain
            )
            text = self._text(completion)
            valid = form.valid(text)
        return text if valid is None else valid, completion.tool_calls or []

    def _text(self, completion: Completion) -> str:
        text = completion.text if self._clean is None else self._clean(completion.text)
        return text.strip()


def _parameters(at: YamlPlace, use: ModelUse, more: Config) -> Row:
    params: Row = {**use.params, **(at.value.get("parameters") or {}), **more}
    if owned := [key for key in _RESERVED if key in params]:
        raise at("parameters").error(f"{owned[0]!r} is not a parameter of a model")
    return params
