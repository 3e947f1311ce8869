"""Plug-ins: a list of them, or one with its parameters."""

from collections.abc import Sequence
from itertools import groupby

from assay.analysis.look.plugins import Described, PlugIn
from assay.reports.sheet import Line, Sheet, Table, columns_of


def view(plug_ins: Sequence[PlugIn] | Sequence[Described]) -> Sheet:
    listed = [plug_in for plug_in in plug_ins if isinstance(plug_in, PlugIn)]
    if listed:
        return _list(listed)
    parts: list[Line | Table] = []
    for described in plug_ins:
        if isinstance(described, Described):
            parts += [Line("")] if parts else []
            parts += _described(described)
    return Sheet(parts=parts)


def _list(plug_ins: Sequence[PlugIn]) -> Sheet:
    """A heading for each kind, if there are several."""
    parts: list[Line | Table] = []
    several = len({plug_in.kind for plug_in in plug_ins}) > 1
    for kind, group in groupby(plug_ins, key=lambda plug_in: plug_in.kind):
        members = list(group)
        if several:
            parts += [*([Line("")] if parts else []), Line(kind, "head")]
        parts.append(
            Table(
                columns=columns_of("<name", "<about"),
                rows=[[member.name, member.about] for member in members],
                compact=True,
                heads=False,
                depth=int(several),
                data=(PlugIn._fields, members),
            )
        )
    return Sheet(parts=parts)


def _described(described: Described) -> list[Line | Table]:
    doc = described.doc.splitlines()
    rest = [line for line in described.module_doc.splitlines() if line not in doc]
    lines = [Line(f"{described.name} ({described.kind})", wraps=False), Line("")]
    lines += [_text(line) for line in doc]
    lines += [Line(""), *map(_text, rest)] if rest else []
    arguments = ", ".join(described.engine) + (", *, …" if described.parameters else "")
    returns = f" -> {described.returns}" if described.returns else ""
    lines += [Line(""), Line("signature"), _text(f"({arguments}){returns}"), Line(""), Line("parameters")]
    names = ["name", "type", "required", "default"]
    parameters = Table(
        columns=columns_of("<name", "<type and default"),
        rows=[[parameter["name"], f"{parameter['type']}, {_default(parameter)}"] for parameter in described.parameters],
        compact=True,
        heads=False,
        depth=1,
        data=(names, [[parameter[name] for name in names] for parameter in described.parameters]),
    )
    end = [Line(""), Line(f"from {described.origin}", wraps=False)]
    return [*lines, parameters if described.parameters else _text("none"), *end]


def _text(line: str) -> Line:
    return Line(line, depth=1 if line else 0, wraps=False)


def _default(parameter: dict[str, object]) -> str:
    return "required" if parameter["required"] else f"default {parameter['default']}"
