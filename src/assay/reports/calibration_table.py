"""Calibrations as tables for the terminal: how often a judge is right, what sways it, and what that does to rates."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from assay.analysis.judge.accuracy import Estimate
from assay.analysis.judge.calibrate import Calibrated, Calibration
from assay.reports.look import fits, one_line, plain_table
from assay.text.plain import plain

Rows = list[list[str]]


def calibration_view(found: Calibrated, console: Console) -> RenderableType:
    """What a terminal shows; where a table does not fit, a line for each of its rows."""
    parts: list[RenderableType] = []
    for one in found.calibrations:
        parts += [Text(_heading(one), style="bold"), Text(_labelled(one), style="dim")]
        parts += _fitting(["measure", "value", f"{one.level:.0%} interval", "answers"], _measures(one), console)
        parts += _fitting(["", *(f"judge: {word}" for word in _words(one))], _confusion(one), console)
        parts += _fitting(
            ["pair" if one.match else "model", "answers", "by the judge", "Rogan–Gladen", "PPI"],
            _corrected(one),
            console,
        )
        parts += [Text(f"{name}: {plain(why)}", style="dim") for name, why in _missing(one)]
        parts.append(Text(""))
    parts += [Text(f"note: {plain(note)}", style="yellow") for note in found.notes]
    parts.append(Text(f"stored in {plain(found.stored)}" if found.stored else "not stored", style="dim"))
    return Group(*parts)


def _heading(one: Calibration) -> str:
    models = f" by {one_line(', '.join(one.models))}" if one.models else ""
    return f"{one_line(one.label)}: judge {one.judge}{models}"


def _labelled(one: Calibration) -> str:
    names = [name for name in one.people.names if name]
    by = f" by {one_line(', '.join(names))}" if names else ""
    text = f"{_count(one.labels, 'labelled answer')} of {_count(one.items, 'item')}{by}"
    left_out = {"without a verdict": one.errored, "split between people": one.people.split, "called a tie": one.ties}
    return text + "".join(f"; {count:,} {what}" for what, count in left_out.items() if count)


def _measures(one: Calibration) -> Rows:
    people, passed = one.people, _words(one)[0]
    rows = [
        (f"people say {passed}", one.base_rate),
        (f"the judge says {passed}", one.judge_rate),
        ("agreement", one.agreement.percent),
        ("Cohen's kappa", one.agreement.kappa),
        ("sensitivity", one.sensitivity),
        ("specificity", one.specificity),
        *([("people agree", people.percent), ("people's alpha", people.alpha)] if people.shared else []),
    ]
    signed = [("first seat's gain", one.position_bias), ("self-preference", one.self_preference)]
    cells = [_cells(name, estimate, ".3f") for name, estimate in rows]
    cells += [_cells(name, estimate, "+.3f") for name, estimate in signed]
    cells += [_cells("odds if twice as long", one.length_bias, ".2f")]
    cells.insert(3, ["  with one label for all", f"{one.agreement.by_majority:.3f}", "", ""])
    return [row for row in cells if row[1]]


def _cells(name: str, found: Estimate, form: str) -> list[str]:
    value = "" if found.value is None else format(found.value, form)
    return [name, value, _span(found, form), f"{found.n:,}"]


def _span(found: Estimate, form: str) -> str:
    if found.low is None or found.high is None:
        return "–"
    return f"{_number(found.low, form)} … {_number(found.high, form)}"


def _number(value: float, form: str) -> str:
    """Odds can be beyond all measure."""
    return format(value, form) if value < 10_000 else ">10000"


def _confusion(one: Calibration) -> Rows:
    table, words = one.counted, _words(one)
    counts = ((table.tp, table.fn), (table.fp, table.tn))
    return [[f"people: {word}", *(f"{count:,.0f}" for count in row)] for word, row in zip(words, counts, strict=True)]


def _words(one: Calibration) -> tuple[str, str]:
    return ("first", "second") if one.match else ("pass", "fail")


def _corrected(one: Calibration) -> Rows:
    return [
        [one_line(model), f"{rates.raw.n:,}", *(_rate(rate) for rate in (rates.raw, rates.rogan_gladen, rates.ppi))]
        for model, rates in one.corrected.items()
    ]


def _rate(found: Estimate) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:.3f}" + (f" ({found.low:.3f}–{found.high:.3f})" if found.low is not None else "")


def _missing(one: Calibration) -> list[tuple[str, str]]:
    """What could not be made, and why; a reason that all models share is said once."""
    named = {
        "Cohen's kappa": one.agreement.kappa,
        "sensitivity": one.sensitivity,
        "specificity": one.specificity,
        "position bias": one.position_bias,
        "length bias": one.length_bias,
        "self-preference": one.self_preference,
    }
    found = {(name, estimate.method): None for name, estimate in named.items() if estimate.low is None}
    for rates in one.corrected.values():
        for name, rate in (("Rogan–Gladen", rates.rogan_gladen), ("PPI", rates.ppi)):
            if rate.value is None:
                found[name, rate.method] = None
    return [(name, method.removeprefix("none: ")) for name, method in found]


def _fitting(header: list[str], rows: Rows, console: Console) -> list[RenderableType]:
    table = plain_table()
    for at, name in enumerate(header):
        table.add_column(name, justify="right" if at else "left", no_wrap=bool(at), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if fits(table, console):
        return [table]
    lines: list[RenderableType] = []
    for first, *rest in rows:
        named = [f"{name} {cell}" for name, cell in zip(header[1:], rest, strict=True) if cell]
        lines.append(Text(f"{first.strip()}: {', '.join(named)}"))
    return lines


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
