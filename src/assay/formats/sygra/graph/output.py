"""The record that a graph gives: its output_map, filled from the final state; without one, the state itself."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.formats.sygra.graph.called import Load, UserFunction, code_of
from assay.formats.sygra.graph.messages import plain
from assay.formats.sygra.types import Config, Row, YamlPlace, with_texts
from assay.sdk import Context, UserError, nearest
from assay.text.json_out import at_path


class OutputGenerator:
    """The base of a user's generator: its methods `name(data, state)` are the transforms of an output_map.

    One that defines `generate(state)` makes the whole record itself; None leaves the record out.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = dict(config or {})
        self.output_map = dict(self.config.get("output_map") or {})

    def generate(self, state: Row) -> Row | None:
        """Return what the output_map says, for a generator that adds to it: `super().generate(state)`."""
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


class OutputMap:
    """Made once for a graph. `code` is what its records depend on besides the state."""

    def __init__(self, source: Config, load: Load, where: str, notes: list[str]) -> None:
        at = YamlPlace(source.get("output_config") or {}, where)
        at.require(Mapping, "output_config is not a mapping", "write `output_map:` below it")
        entries = at("output_map")
        entries.require(
            Mapping | None, "output_map is not a mapping", "write `field: {from: name}`"
        )
        _check_keys(at)
        mapped = {
            name: _with_literals(entries(name), name, source, notes) for name in entries.value or {}
        }
        generator = _generator(at, mapped, load)
        self._whole: UserFunction | None = None
        made = getattr(type(generator), "generate", OutputGenerator.generate)
        if made is not OutputGenerator.generate:
            self._whole = _of_generator(generator.generate, "generate", where)
        self.fields = {
            str(name): _field(YamlPlace(entry, entries(name).where), generator)
            for name, entry in mapped.items()
        }
        code = None if generator is None else code_of(type(generator))
        self.code = {"map": mapped, "generator": code}

    async def record(self, state: Row, context: Context) -> Row | None:
        """Return the record as JSON values; None if the generator leaves it out."""
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


def _of_generator(function: Any, name: str, where: str) -> UserFunction:
    return UserFunction(function, name, owner="the generator", where=where)


def _check_keys(at: YamlPlace) -> None:
    mapper = at("oasst_mapper")
    wanted = mapper.value.get("required") if isinstance(mapper.value, Mapping) else None
    if str(wanted).lower() in ("yes", "true"):
        raise mapper.error("oasst_mapper is not offered", 'set `required: "no"`')
    quality = at("data_quality")
    if quality.value:
        raise quality.error("data_quality is not offered", "remove it")


def _with_literals(at: YamlPlace, name: str, source: Config, notes: list[str]) -> Row:
    """Return a field of the map; `$a.b[0].c` in its value is that place of the config."""
    entry = at.value
    if not isinstance(entry, Mapping) or not (
        "value" in entry or isinstance(entry.get("from"), str)
    ):
        fix = "write `{from: name}` or `{value: …}`"
        raise at.error(f"the field {name!r} has no source", fix)

    def literal_of(text: str) -> Any:
        """Return what is at that place; a text that leads nowhere stays as it is."""
        try:
            return at_path(source, text[1:]) if text.startswith("$") else text
        except KeyError:
            note = f"{text!r} leads nowhere in the config and is taken as text"
            notes.append(f"{at.where}: {note}")
            return text

    value = {"value": with_texts(entry["value"], literal_of)} if "value" in entry else {}
    return {**entry, **value}


def _generator(config: YamlPlace, mapped: Config, load: Load) -> Any:
    at = config("generator")
    if at.value is None:
        return None
    kind: Any = load(str(at.value), at.where)
    if not inspect.isclass(kind):
        raise at.error(f"{at.value!r} is not a class", "name an output generator")
    takes = [p for p in inspect.signature(kind).parameters.values() if p.kind is not p.VAR_KEYWORD]
    make: Any = kind
    return make({**config.value, "output_map": dict(mapped)}) if takes else make()


def _field(at: YamlPlace, generator: Any) -> Field:
    entry = at.value
    source = None if "value" in entry else str(entry["from"])
    name = entry.get("transform")
    if not name:
        return Field(source, entry.get("value"), None)
    if generator is None:
        raise at.error(f"the transform {name!r} needs a generator", "add `generator:`")
    method = getattr(generator, str(name), None)
    if not callable(method):
        names = [key for key in dir(generator) if callable(getattr(generator, key))]
        public = [key for key in names if key[0] != "_"]
        raise at.error(f"the generator has no method {name!r}", nearest(str(name), public))
    return Field(source, entry.get("value"), _of_generator(method, str(name), at.where))
