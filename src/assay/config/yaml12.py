"""PyYAML made to read and write scalars by the rules of YAML 1.2; imported only when there is YAML."""

import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from assay.config.source import TOO_MANY_VALUES, Key
from assay.errors import UserError
from assay.records import JsonObject

_RULES = [
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    (
        "float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        "-+0123456789.",
    ),
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("merge", re.compile(r"^<<$"), "<"),
]
_DEEPEST_NODES = 1_000
_OTHER_BREAKS = "\r\x85\u2028\u2029"  # YAML would fold them into spaces


class YamlLoader(yaml.CSafeLoader):
    yaml_implicit_resolvers: dict[str, list[Any]] = {}


class Dumper(yaml.SafeDumper):
    """Quotes whatever a reader of either version would take for something other than text."""


for _tag, _pattern, _first in _RULES:
    for _character in _first:
        _rule = (f"tag:yaml.org,2002:{_tag}", _pattern)
        YamlLoader.yaml_implicit_resolvers.setdefault(_character, []).append(_rule)
    if _tag == "float":
        Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))


def _represent_text(dumper: yaml.SafeDumper, text: str) -> ScalarNode:
    style = "|" if "\n" in text else None
    if not text.isprintable() and any(character in text for character in _OTHER_BREAKS):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _represent_text)


def dump(value: Any) -> str:
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def check_nesting(text: str) -> None:
    """Refuse what is nested too deeply before a node is made of it: the C library does that by recursion, and a stack
    that overflows there ends the process. Reading events is safe, and needed only for texts of many parts."""
    if sum(map(text.count, "[{-?:")) <= _DEEPEST_NODES:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > _DEEPEST_NODES:
            raise yaml.MarkedYAMLError(
                problem="it is nested too deeply", problem_mark=event.start_mark
            )


def build(root: Node, lines: dict[Key, int]) -> Any:
    """The plain value of a node; `lines` receives the line of every key and list entry."""
    count = 0

    def value_of(node: Node, key: Key) -> Any:
        nonlocal count
        count += 1
        if count > TOO_MANY_VALUES:
            raise _wrong(
                f"the config has more than {TOO_MANY_VALUES} values",
                node,
                "anchors may multiply them",
            )
        lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, MappingNode):
            return mapping_of(node, key)
        if isinstance(node, SequenceNode):
            return [value_of(entry, (*key, n)) for n, entry in enumerate(node.value)]
        return _scalar(node)

    def mapping_of(node: MappingNode, key: Key) -> JsonObject:
        values: JsonObject = {}
        merged: list[Node] = []
        for name_node, value_node in node.value:
            if name_node.tag == "tag:yaml.org,2002:merge":
                merged += value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                continue
            name = _name(name_node)
            if name in values:
                first = lines[(*key, name)]
                raise _wrong(
                    f"{name!r} is given twice", name_node, f"the first one is on line {first}"
                )
            lines.setdefault((*key, name), name_node.start_mark.line + 1)
            values[name] = value_of(value_node, (*key, name))
        for source in merged:
            if not isinstance(source, MappingNode):
                raise _wrong("`<<` needs a mapping", source)
            inherited = value_of(source, key)
            values = {**inherited, **values}
        return values

    return value_of(root, ())


def _name(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise _wrong("a key must be text", node, "quote it")
    return str(node.value)


def _scalar(node: Node) -> Any:
    text = str(node.value)
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    try:
        if kind == "int":
            return int(text, 16 if text.startswith("0x") else 10)
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        raise _wrong("this is not a number", node) from None
    raise _wrong(f"the tag {node.tag!r} is not supported", node, "remove it")


def _wrong(what: str, node: Node, fix: str = "") -> UserError:
    return UserError(what, where=str(node.start_mark.line + 1), fix=fix)
