"""What `assay verify` found, for people: a table of counts for each folder, then what is damaged and what differs."""

from collections.abc import Iterator, Sequence
from typing import Any

from assay.analysis.verify.verify import Tally, Verified
from assay.engine.experiment.locks import Locked
from assay.records import JsonObject
from assay.reports.sheet import (
    Cell,
    Line,
    Part,
    Parts,
    Row,
    Sheet,
    Table,
    apart,
    columns_of,
    count,
    facts_table,
    fields_of,
    shorten,
)

_MOST = 10
_LONGEST = 60


def view(found: Verified | Sequence[Verified]) -> Sheet:
    folders = [found] if isinstance(found, Verified) else list(found)
    groups = [*map(_folder, folders)]
    if len(folders) > 1:
        bad = sum(not folder.ok for folder in folders)
        said = Line("all folders are verified", "good")
        if bad:
            said = Line(f"{count(bad, 'folder')} of {len(folders)} not as they should be", "bad")
        groups.append(iter([said]))
    return Sheet(apart(groups), title="Verified")


def _folder(found: Verified) -> Parts:
    yield Line(found.folder, "head", wraps=False)
    columns = columns_of("<part", "<name", "verified", "differ", "cannot be verified")
    names = ["part", "name", "verified", "differ", "unverified"]
    yield Table(
        columns, [_row(checked) for checked in found.checked], data=fields_of(found.checked, names)
    )
    faults = [fault for fault in found.faults if fault.kind != "unsealed"]
    yield from (
        Line(f"{fault.kind}: {fault.file}: {fault.what}", "bad", hang=2) for fault in faults[:_MOST]
    )
    yield from _more(len(faults) - _MOST, "fault")
    for entry in found.differences[:_MOST]:
        place = f"{entry.where}, {entry.name}, {entry.place}: {entry.field}"
        values = f"stored {_short(entry.stored)}, computed {_short(entry.computed)}"
        yield Line(f"differs: {place} {values}", "bad", hang=2)
    yield from _more(len(found.differences) - _MOST, "difference")
    for checked in found.checked:
        for reason, number in checked.reasons.items():
            rows = f"{checked.name} ({number:,})"
            yield Line(f"cannot be verified: {rows}: {shorten(reason, 300)}", "open", hang=2)
    yield from (Line(f"note: {note}", "open", hang=2) for note in found.notes)
    yield Line("verified" if found.ok else "not as it should be", "good" if found.ok else "bad")


def _row(checked: Tally) -> Row:
    differ = Cell(f"{checked.differ:,}", "bad" if checked.differ else "")
    unverified = Cell(f"{checked.unverified:,}", "open" if checked.unverified else "")
    return [checked.part, shorten(checked.name, 40), f"{checked.verified:,}", differ, unverified]


def _more(number: int, noun: str) -> Iterator[Line]:
    if number > 0:
        yield Line(f"and {count(number, 'more ' + noun)}: --json has them", "quiet")


def _short(value: Any) -> str:
    return shorten(repr(value) if not isinstance(value, str) else value, _LONGEST)


def lock_view(found: Locked) -> Sheet:
    """A line for each part of a lock."""
    values = found.lock
    dataset: JsonObject = values["dataset"] or {}
    unknown = [str(model["name"]) for model in values["models"] if model["served"] == "unknown"]
    rows = [
        ["dataset", f"{dataset.get('items', 0):,}", str(dataset.get("hash", "–"))],
        ["samples", f"{values['samples']:,}", f"random seed {values['seed']}"],
        *(
            [part, f"{len(values[part]):,}", _names(values[part])]
            for part in ("prompts", "models", "scorers", "metrics")
        ),
        ["packages", f"{len(values['packages']):,}", f"assay {values['packages']['assay']}"],
    ]
    parts: list[Part] = [
        Line(f"{found.file}: {found.state}", "head", wraps=False),
        facts_table(["<what", "number", "<which"], rows, depth=1),
    ]
    if unknown:
        of = f"what servers report is unknown of {', '.join(unknown)}"
        parts.append(Line(f"{of}: the first locked run fills it in", "open"))
    return Sheet(parts, title=f"Lock of {values['name']}")


def _names(entries: Sequence[JsonObject]) -> str:
    return shorten(", ".join(str(entry["name"]) for entry in entries), _LONGEST)
