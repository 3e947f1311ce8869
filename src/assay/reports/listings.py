"""What there is to look at: experiments below a folder, stored datasets, plug-ins, and the answers to queries.

Nothing is imported that a value brings along by itself: `list`, `show` and `ls` are to start at once.
"""

import os
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from assay.records import values_by_key
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Part,
    Row,
    Sheet,
    Table,
    apart,
    columns_of,
    facts_table,
    fields_of,
    json_text,
    shorten,
)

if TYPE_CHECKING:
    from assay.analysis.look.dataset import StoredDataset
    from assay.analysis.look.ls import Listed
    from assay.analysis.look.plugins import Described, PlugIn
    from assay.analysis.look.providers import ProviderEntry, ServedModelEntry
    from assay.analysis.look.sql import QueryAnswer
    from assay.models.local import LocalModel

_MOST_METRICS = 3
_MOST_REASONS = 2
_FACTS = ("name", "id", "items", "hash", "labels", "stored", "origin")
_LONGEST_TEXT = 200


def experiments(listed: "Sequence[Listed]", root: str = "") -> Sheet:
    """Paths are relative to the folder `root`."""
    table = Table(
        columns_of("<experiment", "<state", "?items", "rows", "errors", "<metrics"),
        [_experiment(experiment, root) for experiment in listed],
        compact=True,
        data=fields_of(listed, without="values"),
    )
    lines = [
        Line(f"{_path(experiment, root)}: {reason}", "open")
        for experiment in listed
        if experiment.state == "failed"
        for reason in experiment.reasons[:_MOST_REASONS]
    ]
    return Sheet([table, *lines])


def _path(listed: "Listed", root: str) -> str:
    return os.path.relpath(listed.folder, root) if root else listed.folder


def _experiment(listed: "Listed", root: str) -> list[str]:
    planned = f"/{listed.planned:,}" if listed.planned is not None else ""
    metrics = [f"{name} {_range(*value)}" for name, value in listed.values.items()]
    if (more := len(metrics) - _MOST_METRICS) > 0:
        metrics[_MOST_METRICS:] = [f"+{more}"]
    return [
        _path(listed, root),
        listed.state,
        "–" if listed.items is None else f"{listed.items:,}",
        f"{listed.responses:,}{planned}",
        f"{listed.errors + listed.label_errors:,}",
        listed.problem or ", ".join(metrics) or "–",
    ]


def _range(low: float, high: float, count: int) -> str:
    return f"{low:.3f}" if low == high else f"{low:.3f}–{high:.3f} ({count})"


def datasets(stored: "StoredDataset | list[StoredDataset]") -> Sheet:
    import msgspec

    if isinstance(stored, list):
        return _dataset_list(stored)
    if not isinstance(stored.new, msgspec.UnsetType):
        return Sheet([_addition(stored, stored.new), *_duplicates(stored)])
    width = 1 + max(map(len, _FACTS))
    texts = {name: f"{name + ':':<{width}} {_fact(getattr(stored, name))}" for name in _FACTS}
    facts = [Line(text.rstrip(), wraps=name != "origin") for name, text in texts.items()]
    items = [Line(json_text(item)) for item in stored.head or ()]
    return Sheet([*facts, *_duplicates(stored), *items])


def _addition(dataset: "StoredDataset", new: bool) -> Line:
    items = f"{dataset.items:,} items, hash {dataset.hash}"
    stored = f"{dataset.name} is there already with the same {items}"
    return Line(f"stored {dataset.name}: {items}" if new else stored)


def _dataset_list(datasets: "Sequence[StoredDataset]") -> Sheet:
    rows = [
        [each.name, f"{each.items:,} items", each.hash, " ".join(each.labels)] for each in datasets
    ]
    columns = ["<name", "items", "<hash", "<labels"]
    return Sheet([facts_table(columns, rows, data=fields_of(datasets, _FACTS))])


def local_models(models: "Sequence[LocalModel]") -> Sheet:
    table = Table(
        columns_of("<model", "<state", "size", "<package", "<licence"),
        [
            [model.name, model.state, f"{model.size / 1e6:.1f} MB", model.package, model.licence]
            for model in models
        ],
        compact=True,
        data=fields_of(models),
    )
    return Sheet([table, *(Line(f"files: {model.path}", wraps=False) for model in models)])


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else json_text(value)


def _duplicates(dataset: "StoredDataset") -> list[Line]:
    """Return lines about how many items are alike, and which."""
    duplicates = dataset.duplicates
    if not duplicates:  # they were not asked for
        return []
    if not duplicates.exact and not duplicates.near:
        return [Line(f"duplicates: none among {duplicates.items:,} items")]
    alike = f"(at least {duplicates.threshold:.0%} of three-word sequences in common)"
    return [
        Line(f"duplicates: {duplicates.exact:,} exact, {duplicates.near:,} near {alike}"),
        *(Line(f"exactly: {', '.join(group)}", depth=1) for group in duplicates.exact_groups),
        *(Line(f"nearly:  {', '.join(group)}", depth=1) for group in duplicates.near_groups),
    ]


def plug_ins(plug_ins: "Sequence[PlugIn]") -> Sheet:
    """A heading for each kind, if there are several."""
    kinds = values_by_key((plug_in.kind, plug_in) for plug_in in plug_ins)
    several = len(kinds) > 1
    groups: list[list[Part]] = []
    for kind, members in kinds.items():
        rows = [[member.name, member.about] for member in members]
        data = members[0]._fields, members
        table = facts_table(["<name", "<about"], rows, depth=int(several), data=data)
        groups.append([Line(kind, "head"), table] if several else [table])
    return Sheet(apart(groups))


def providers(entries: "Sequence[ProviderEntry]") -> Sheet:
    """Show the providers, those that have a key first: they can be used."""
    ordered = sorted(entries, key=lambda entry: not entry.is_set)
    table = Table(
        columns_of("<provider", "<what it is", "<variable of its key", "<set"),
        [[entry.name, entry.about, entry.key or "–", _is_set(entry)] for entry in ordered],
        compact=True,
        data=(entries[0]._fields, ordered),
    )
    return Sheet([table])


def _is_set(entry: "ProviderEntry") -> str | Cell:
    if entry.is_set:
        return "yes"
    return Cell("not needed" if entry.local else "no", "quiet")


def served_models(entries: "Sequence[ServedModelEntry]") -> Sheet:
    """Prices and context lengths are columns only where one is known."""
    known = any(entry.input is not None for entry in entries)
    columns = ["<model", *(["context", "$ in", "$ out"] if known else [])]
    table = Table(
        columns_of(*columns),
        [[entry.name, *(_price_cells(entry) if known else ())] for entry in entries],
        compact=True,
        data=(entries[0]._fields, entries),
    )
    return Sheet([table])


def _price_cells(entry: "ServedModelEntry") -> Row:
    none = Cell("–", "quiet")
    context = none if entry.context is None else f"{entry.context:,}"
    prices = (entry.input, entry.output)
    return [context, *(none if price is None else f"{price:g}" for price in prices)]


def descriptions(plug_ins: "Sequence[Described]") -> Sheet:
    return Sheet(apart(map(_description, plug_ins)))


def _description(described: "Described") -> list[Part]:
    doc = described.doc.splitlines()
    rest = [line for line in described.module_doc.splitlines() if line not in doc]
    arguments = ", ".join(described.engine) + (", *, …" if described.parameters else "")
    returns = f" -> {described.returns}" if described.returns else ""
    names = ["name", "type", "required", "default"]
    parameters = facts_table(
        ["<name", "<type and default"],
        [[each["name"], f"{each['type']}, {_default(each)}"] for each in described.parameters],
        depth=1,
        data=(names, [*map(itemgetter(*names), described.parameters)]),
    )
    groups: list[Sequence[Part]] = [
        [Line(f"{described.name} ({described.kind})")],
        [*map(_indent, doc)],
        *([[*map(_indent, rest)]] if rest else ()),
        [Line("signature"), _indent(f"({arguments}){returns}")],
        [Line("parameters"), parameters if described.parameters else _indent("none")],
        [Line(f"from {described.origin}")],
    ]
    return apart(groups)


def _indent(line: str) -> Line:
    return Line(line, depth=1 if line else 0)


def _default(parameter: dict[str, object]) -> str:
    return "required" if parameter["required"] else f"default {parameter['default']}"


def answer(queried: "QueryAnswer", most: int | None = None) -> Sheet:
    """The first `most` rows, or all; those that follow are still to be read from the answer."""
    rows: list[tuple[Any, ...]] = list(islice(queried.tuples(), most))
    columns = [
        Column(name, text=not _are_numbers([row[at] for row in rows]))
        for at, name in enumerate(queried.columns)
    ]
    shown = [[_value(value) for value in row] for row in rows]
    return Sheet([Table(columns, shown, data=(queried.columns, rows))])


def _are_numbers(values: Sequence[Any]) -> bool:
    """Return whether a column has numbers and nothing else but null."""
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and all(
        issubclass(kind, (int, float)) and kind is not bool for kind in kinds
    )


def _value(value: Any) -> str | Cell:
    if value is None:
        return Cell("–", "quiet")
    return f"{value:.6g}" if isinstance(value, float) else shorten(str(value), _LONGEST_TEXT)
