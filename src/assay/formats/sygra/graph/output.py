"""The record that a graph gives: its output_map, filled from the final state; without one, the state itself."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.errors import UserError
from assay.formats.sygra.graph.called import Load, UserFunction, code_of
from assay.formats.sygra.graph.messages import plain
from assay.formats.sygra.types import Config, Row, required, with_texts
from assay.interfaces import Context
from assay.registry import nearest
from assay.text.json_out import at_path


class OutputGenerator:
    """The base of a user's generator: its methods `name(data, state)` are the transforms of an output_map.

    One that defines `generate(state)` makes the whole record itself; None leaves the record out.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = dict(config or {})
        self.output_map = dict(self.config.get("output_map") or {})

    def generate(self, state: Row) -> Row | None:
        """What the output_map says, for a generator that adds to it: `super().generate(state)`."""
        record: Row = {}
        for name, entry in self.output_map.items():
            value = entry["value"] if "value" in entry else state.get(entry.get("from"))
            record[name] = (
                getattr(self, entry["transform"])(value, state) if entry.get("transform") else value
            )
        return record


class Field(NamedTuple):
    """One field of the record: a variable of the state, or, where `source` is None, a literal."""

    source: str | None
    value: Any
    transform: UserFunction | None


class Output:
    """Made once for a graph. `code` is what its records depend on besides the state."""

    def __init__(self, source: Config, load: Load, where: str, notes: list[str]) -> None:
        config = source.get("output_config") or {}
        fix = "write `output_map:` below it"
        required(config, Mapping, "output_config is not a mapping", where, fix)
        _check_keys(config, where)
        mapped = {
            name: _literals(name, entry, source, f"{where}.output_map.{name}", notes)
            for name, entry in (config.get("output_map") or {}).items()
        }
        generator = _generator(config, mapped, load, where)
        self._whole: UserFunction | None = None
        if (
            getattr(type(generator), "generate", OutputGenerator.generate)
            is not OutputGenerator.generate
        ):
            self._whole = UserFunction(
                generator.generate, "generate", owner="the generator", where=where
            )
        self.fields = {
            str(name): _field(entry, generator, f"{where}.output_map.{name}")
            for name, entry in mapped.items()
        }
        self.code = {
            "map": mapped,
            "generator": code_of(type(generator)) if generator is not None else None,
        }

    async def record(self, state: Row, context: Context) -> Row | None:
        """The record as JSON values; None if the generator leaves it out."""
        if self._whole is not None:
            made = await self._whole(context, state)
            if made is not None and not isinstance(made, Mapping):
                raise UserError(
                    f"the generator returned a {type(made).__name__}; it has to return a dict"
                )
            return None if made is None else plain(dict(made))
        if not self.fields:
            return plain(state)
        record: Row = {}
        for name, field in self.fields.items():
            value = field.value if field.source is None else state.get(field.source)
            record[name] = (
                value if field.transform is None else await field.transform(context, value, state)
            )
        return plain(record)

    def can_have(self, column: str, holds: Callable[[str], bool]) -> bool:
        """Return whether a record may have something in it; `holds` tells of a variable."""
        if self._whole is not None or not self.fields:
            return self._whole is not None or holds(column)
        field = self.fields.get(column)
        if field is None:
            return False
        return field.source is None or field.transform is not None or holds(field.source)


def _check_keys(config: Config, where: str) -> None:
    if not isinstance(config.get("output_map"), Mapping | None):
        fix = "write `field: {from: name}`"
        raise UserError("output_map is not a mapping", where=f"{where}.output_map", fix=fix)
    mapper = config.get("oasst_mapper")
    if isinstance(mapper, Mapping) and str(mapper.get("required", "no")).lower() in (
        "yes",
        "true",
    ):
        raise UserError(
            "oasst_mapper is not offered",
            where=f"{where}.oasst_mapper",
            fix='set `required: "no"`',
        )
    if config.get("data_quality"):
        raise UserError(
            "data_quality is not offered", where=f"{where}.data_quality", fix="remove it"
        )


def _literals(name: str, entry: Any, source: Config, where: str, notes: list[str]) -> Row:
    if not isinstance(entry, Mapping) or not (
        "value" in entry or isinstance(entry.get("from"), str)
    ):
        raise UserError(
            f"the field {name!r} has no source",
            where=where,
            fix="write `{from: name}` or `{value: …}`",
        )
    field = dict(entry)

    def resolved(text: str) -> Any:
        """Return that place of the config for `$a.b[0].c`; what leads nowhere stays as it is."""
        try:
            return at_path(source, text[1:]) if text.startswith("$") else text
        except KeyError:
            notes.append(f"{where}: {text!r} leads nowhere in the config and is taken as text")
            return text

    if "value" in field:
        field["value"] = with_texts(field["value"], resolved)
    return field


def _generator(config: Config, mapped: Config, load: Load, where: str) -> Any:
    name = config.get("generator")
    if name is None:
        return None
    kind: Any = load(str(name), f"{where}.generator")
    if not inspect.isclass(kind):
        raise UserError(
            f"{name!r} is not a class", where=f"{where}.generator", fix="name an output generator"
        )
    takes = [p for p in inspect.signature(kind).parameters.values() if p.kind is not p.VAR_KEYWORD]
    make: Any = kind
    return make({**config, "output_map": dict(mapped)}) if takes else make()


def _field(entry: Config, generator: Any, where: str) -> Field:
    transform = None
    if name := entry.get("transform"):
        if generator is None:
            raise UserError(
                f"the transform {name!r} needs a generator", where=where, fix="add `generator:`"
            )
        if not callable(method := getattr(generator, str(name), None)):
            public = [
                key for key in dir(generator) if key[0] != "_" and callable(getattr(generator, key))
            ]
            raise UserError(
                f"the generator has no method {name!r}", where=where, fix=nearest(str(name), public)
            )
        transform = UserFunction(method, str(name), owner="the generator", where=where)
    return Field(None if "value" in entry else str(entry["from"]), entry.get("value"), transform)
