"""How a node reaches its model: parameters merged once, structured output asked for and checked."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from assay.errors import UserError
from assay.interfaces import Completion, Context, Message
from assay.registry import nearest
from assay.tasks.graph.called import code_of
from assay.tasks.graph.structured import Native, Structure, structure

_RESERVED = ("model", "step", "messages")
_KNOWN = {"name", "parameters", "structured_output"}


class ModelUse(msgspec.Struct, frozen=True):
    """What a model's name in a graph stands for.

    `model` is the engine's name for it and `identity` what could change its answers; `params` are sent unless a node
    says otherwise; `native` is how its server is told to keep to a schema; `clean` is applied to every text.
    """

    model: str
    params: Mapping[str, Any] = {}
    structured_output: Mapping[str, Any] | None = None
    native: Native = "json_schema"
    clean: Callable[[str], str] | None = None
    identity: Mapping[str, Any] = {}


class Asking:
    """One model as one node uses it."""

    def __init__(
        self,
        given: Mapping[str, Any],
        step: str,
        models: Mapping[str, ModelUse],
        load: Callable[[str, str], Any],
        where: str,
        more: Mapping[str, Any],
    ) -> None:
        name = given.get("name")
        if not isinstance(name, str):
            raise UserError("the model has no name", where=where, fix="write `model: {name: …}`")
        if name not in models:
            raise UserError(f"unknown model {name!r}", where=f"{where}.name", fix=nearest(name, models))
        use = models[name]
        self.ignored = sorted(given.keys() - _KNOWN)
        self.model = use.model
        self.step = step
        self._clean = use.clean
        params: dict[str, Any] = {**use.params, **(given.get("parameters") or {}), **more}
        if owned := [key for key in _RESERVED if key in params]:
            raise UserError(f"{owned[0]!r} is no parameter of a model", where=f"{where}.parameters")
        wanted = {**(use.structured_output or {}), **(given.get("structured_output") or {})}
        found = structure(wanted, use.native, load, f"{where}.structured_output")
        self._structure: Structure | None = found[0] if found else None
        self._plain = params
        self.params = {**params, **found[0].params} if found else params
        self.code = {
            "model": name,
            "use": {"model": use.model, "identity": dict(use.identity)},
            "params": self.params,
            "clean": code_of(use.clean) if use.clean else None,
            "class": code_of(found[1]) if found and found[1] else None,
            "schema": found[0].schema if found else None,
        }

    async def ask(self, context: Context, messages: list[Message]) -> tuple[str, list[Any]]:
        """Text and tool calls; an answer that breaks its schema is asked for once more."""
        form = self._structure
        sent = messages if form is None or form.native else form.instructed(messages)
        completion = await context.complete(sent, model=self.model, step=self.step, **self.params)
        text = self._text(completion)
        if form is None or completion.tool_calls:
            return text, completion.tool_calls or []
        valid = form.valid(text)
        if valid is None and form.native:
            again = form.instructed(messages)
            completion = await context.complete(again, model=self.model, step=self.step, **self._plain)
            text = self._text(completion)
            valid = form.valid(text)
        return text if valid is None else valid, completion.tool_calls or []

    def _text(self, completion: Completion) -> str:
        text = completion.text if self._clean is None else self._clean(completion.text)
        return text.strip()
