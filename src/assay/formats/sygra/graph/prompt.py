"""Prompts of nodes: `{var}` stands for a state variable, `{{` and `}}` for braces. Parsed once, rendered per record.

What is filled in is never parsed again, and no attribute of a value can be reached: both the template and the values
come from strangers.
"""

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from assay.errors import UserError
from assay.interfaces import Message

ROLES = ("system", "user", "assistant", "tool")
MEDIA = ("image_url", "audio_url")


class Template:
    """One text. `names` are its variables, in order."""

    def __init__(self, text: str, where: str, owner: str = "") -> None:
        self._owner = owner or where
        self.names: list[str] = []
        self._forms: list[tuple[str | None, str]] = []
        pieces: list[str] = []
        for literal, name, spec, conversion in _parsed(text, where):
            pieces.append(literal.replace("%", "%%"))
            if name is not None:
                pieces.append("%s")
                self.names.append(name)
                self._forms.append((conversion, spec or ""))
        self._text = "".join(pieces)
        self._plain = all(form == (None, "") for form in self._forms)
        self.only = self.names[0] if self._text == "%s" and self._plain else None

    def render(self, state: Mapping[str, Any]) -> str:
        try:
            values = [state[name] for name in self.names]
        except KeyError:
            raise self.missing(state) from None
        if not self._plain:
            values = [_formatted(value, *form) for value, form in zip(values, self._forms, strict=True)]
        return self._text % tuple(values)

    def missing(self, state: Mapping[str, Any]) -> UserError:
        gone = ", ".join(repr(name) for name in dict.fromkeys(self.names) if name not in state)
        variables = ", ".join(sorted(key for key in state if not key.startswith("__")))
        return UserError(f"{self._owner}: the prompt needs {gone}, which the state does not have; it has: {variables}")


def _parsed(text: str, where: str) -> list[tuple[str, str | None, str | None, str | None]]:
    fix = "write {{ and }} for braces that are meant as they are"
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise UserError(f"the text cannot be read: {error}", where=where, fix=fix) from None
    for _, name, _, _ in parsed:
        if name is not None and (not name.strip() or name.isdigit() or any(sign in name for sign in "\"'\n")):
            raise UserError(f"{{{name.strip()[:40]}}} names no variable", where=where, fix=fix)
    return parsed


def _formatted(value: Any, conversion: str | None, spec: str) -> str:
    if conversion is not None:
        value = {"r": repr, "a": ascii}.get(conversion, str)(value)
    return format(value, spec)


class Prompt:
    """The messages of a node, before what is in the state follows them."""

    def __init__(self, source: Any, where: str, owner: str = "") -> None:
        if not isinstance(source, Sequence) or isinstance(source, str) or not source:
            raise UserError("a prompt is a list of messages", where=where, fix="write `- user: text`")
        self._messages = [_message(entry, f"{where}[{number}]", owner) for number, entry in enumerate(source)]

    @property
    def names(self) -> set[str]:
        names: set[str] = set()
        for _, content in self._messages:
            names |= _names(content)
        return names

    def render(self, state: Mapping[str, Any]) -> list[Message]:
        return [
            {"role": role, "content": content.render(state) if isinstance(content, Template) else _fill(content, state)}
            for role, content in self._messages
        ]


def _message(entry: Any, where: str, owner: str) -> tuple[str, Any]:
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise UserError("a message is one role with its text", where=where, fix="write `- user: text`")
    ((role, content),) = entry.items()
    if role not in ROLES:
        raise UserError(f"{role!r} is not a role", where=where, fix=f"valid: {', '.join(ROLES)}")
    if isinstance(content, (str, list)):
        return role, _compiled(content, where, owner)
    raise UserError(f"the text of {role!r} is a {type(content).__name__}", where=where, fix="write text, or a list")


def _compiled(content: Any, where: str, owner: str) -> Any:
    """Every text in it as a template."""
    if isinstance(content, str):
        return Template(content, where, owner)
    if isinstance(content, list):
        return [_compiled(entry, where, owner) for entry in content]
    if isinstance(content, Mapping):
        return {key: value if key == "type" else _compiled(value, where, owner) for key, value in content.items()}
    return content


def _names(content: Any) -> set[str]:
    if isinstance(content, Template):
        return set(content.names)
    if isinstance(content, Mapping):
        content = list(content.values())
    return {name for entry in content for name in _names(entry)} if isinstance(content, list) else set()


def _fill(content: Any, state: Mapping[str, Any]) -> Any:
    if isinstance(content, Template):
        return content.render(state)
    if isinstance(content, list):
        return [part for entry in content for part in _parts(entry, state)]
    if isinstance(content, Mapping):
        return {key: _fill(value, state) for key, value in content.items()}
    return content


def _parts(entry: Any, state: Mapping[str, Any]) -> list[Any]:
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
        {"type": kind, kind: address if isinstance(address, Mapping) else {"url": address}} for address in addresses
    ]
