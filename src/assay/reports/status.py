"""How a run is doing, for people: a line for each thing to know, and a table of the workers."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assay.reports.sheet import (
    Cell,
    Line,
    Parts,
    Row,
    Sheet,
    Style,
    Table,
    apart,
    columns_of,
    cost_text,
    count,
    fields_of,
)

if TYPE_CHECKING:
    from assay.analysis.look.status import RunStatus, WorkerLine

_STYLES: dict[str, Style] = {"working": "good", "dead": "bad", "ended": "quiet"}
_COLUMNS = [
    "<worker",
    "<state",
    "<shards",
    "rows",
    "made",
    "rate",
    "errors",
    "cost",
    "?since",
    "?seen",
]
_MOST_ENDED = 5  # workers that have ended are many, and tell little


def view(found: "RunStatus | Sequence[RunStatus]") -> Sheet:
    several = found if isinstance(found, Sequence) else [found]
    parts = apart([*_facts(status), *_worker_table(status)] for status in several)
    notes = dict.fromkeys(note for status in several for note in status.notes)
    return Sheet(parts, [*notes], title=f"Status of {several[0].path}" if several else "")


def _facts(status: "RunStatus") -> Iterator[Line]:
    facts = [
        ("state", f"{status.state}, {status.step}" if status.step else status.state),
        ("rows", _rows(status)),
        ("rate", f"{status.rate:,.1f} rows/s" if status.rate else "–"),
        ("left", duration(status.left_seconds)),
        ("errors", f"{status.errors:,}"),
        ("cost", _cost(status)),
    ]
    if status.shards:
        shards = f"{status.finished:,} of {status.shards:,} finished, {status.under_way:,} under way, {status.free:,} free"
        facts[1:1] = [("workers", _workers(status)), ("shards", shards)]
    yield Line(status.path, "head", wraps=False)
    yield from (Line(f"{name + ':':<9}{text}", hang=9) for name, text in facts)
    yield from (Line(f"{'waits:':<9}{reason}", "open", hang=9) for reason in status.waiting)


def _worker_table(status: "RunStatus") -> Parts:
    """Dead workers are named before those that have ended."""
    ended = [line for line in status.workers if line.state == "ended"]
    alive = [line for line in status.workers if line.state != "ended"]
    shown = sorted(alive, key=lambda line: line.state != "dead") + ended[-_MOST_ENDED:]
    if shown:
        data = fields_of(shown, ["worker", "host", "state", "since", "silent", "status"])
        yield Line("")
        yield Table(
            columns_of(*_COLUMNS), [_worker(line) for line in shown], compact=True, data=data
        )
    if len(ended) > _MOST_ENDED:
        earlier = count(len(ended) - _MOST_ENDED, "worker")
        yield Line(f"and {earlier} that ended earlier", "quiet")


def duration(seconds: float | None) -> str:
    """`2 h 5 min`, `40 s`."""
    if seconds is None:
        return "–"
    whole = int(seconds + 0.5)
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def _rows(status: "RunStatus") -> str:
    if status.planned is None:
        return f"{status.rows:,}"
    share = f" ({status.rows / status.planned:.0%})" if status.planned else ""
    return f"{status.rows:,} of {status.planned:,}{share}"


def _cost(status: "RunStatus") -> str:
    cost = "unknown" if status.cost is None else cost_text(status.cost, 0)
    return f"{cost}, {count(status.tokens, 'token')}"


def _workers(status: "RunStatus") -> str:
    states = [line.state for line in status.workers]
    numbers = ((states.count(state), state) for state in ("working", "dead", "ended"))
    return ", ".join(f"{number:,} {state}" for number, state in numbers if number) or "none"


def _worker(line: "WorkerLine") -> Row:
    told = line.status
    rows = f"{told.present + told.done:,}/{told.total:,}" if told.shards else "–"
    return [
        line.worker,
        Cell(line.state, _STYLES[line.state]),
        ", ".join(map(str, told.shards)) or "–",
        rows,
        f"{told.made:,}",
        f"{told.rate:,.1f}/s" if line.state == "working" else "–",
        f"{told.errors:,}",
        "unknown" if told.cost is None else cost_text(told.cost, 0),
        f"{duration(time.time() - line.since)} ago",
        f"{duration(line.silent)} ago",
    ]
