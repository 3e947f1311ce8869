"""Calibrations: how often a judge is right, what sways it, and what that does to rates."""

from assay.analysis.judge.accuracy import Estimate
from assay.analysis.judge.calibrate import Calibrated, Calibration
from assay.reports.sheet import (
    Cell,
    Column,
    Line,
    Parts,
    Row,
    Sheet,
    Table,
    columns_of,
    count,
    figures,
    number_text,
    one_line,
    with_interval,
)

_EXACT = ["label", "judge", "measure", "value", "low", "high", "answers", "method"]
_SIGNED = ("first seat's gain", "self-preference")
_FIELDS = ["value", "low", "high", "n", "method"]


def view(calibrated: Calibrated) -> Sheet:
    return Sheet([*_parts(calibrated)])


def _parts(calibrated: Calibrated) -> Parts:
    for calibration in calibrated.calibrations:
        yield Line(_heading(calibration), "head")
        yield Line(_label_counts(calibration), "quiet")
        yield from (measures(calibration), _confusion(calibration), _correction_table(calibration))
        yield from (Line(f"{name}: {why}", "quiet") for name, why in missing(calibration))
        yield Line("")
    yield from (Line(f"note: {note}", "open") for note in calibrated.notes)
    yield Line(f"stored in {calibrated.stored}" if calibrated.stored else "not stored", "quiet")


def _heading(calibration: Calibration) -> str:
    models = f" by {', '.join(calibration.models)}" if calibration.models else ""
    return one_line(f"{calibration.label}: judge {calibration.judge}{models}")


def _label_counts(calibration: Calibration) -> str:
    people = calibration.people
    names = [name for name in people.names if name]
    by = f" by {one_line(', '.join(names))}" if names else ""
    text = (
        f"{count(calibration.labels, 'labelled answer')} of {count(calibration.items, 'item')}{by}"
    )
    left_out = {
        "without a verdict": calibration.errored,
        "split between people": people.split,
        "called a tie": calibration.ties,
    }
    return text + "".join(f"; {number:,} {what}" for what, number in left_out.items() if number)


def measures(calibration: Calibration) -> Table:
    """All that was estimated, with its interval."""
    people, passed = calibration.people, words(calibration)[0]
    estimates: list[tuple[str, Estimate]] = [
        (f"people say {passed}", calibration.base_rate),
        (f"the judge says {passed}", calibration.judge_rate),
        ("agreement", calibration.agreement.percent),
        ("Cohen's kappa", calibration.agreement.kappa),
        ("sensitivity", calibration.sensitivity),
        ("specificity", calibration.specificity),
        *(
            [("people agree", people.percent), ("people's alpha", people.alpha)]
            if people.shared
            else []
        ),
        ("first seat's gain", calibration.position_bias),
        ("self-preference", calibration.self_preference),
        ("odds if twice as long", calibration.length_bias),
    ]
    rows = [_measure(name, estimate) for name, estimate in estimates]
    rows.insert(
        3, ["  with one label for all", number_text(calibration.agreement.by_majority), "", ""]
    )
    judge = (calibration.label, calibration.judge)
    exact = [
        [*judge, name, *(getattr(estimate, field) for field in _FIELDS)]
        for name, estimate in estimates
    ]
    return Table(
        columns_of("<measure", "value", f"{calibration.level:.0%} interval", "answers"),
        [row for row in rows if row[1] != "–"],
        data=(_EXACT, exact),
    )


def _measure(name: str, estimate: Estimate) -> Row:
    ends = (estimate.low, estimate.high)
    sign = "+" if name in _SIGNED else ""
    shown = figures(estimate.value, *ends, estimate.method, sign, " … ")
    return [name, *shown, f"{estimate.n:,}"]


def _confusion(calibration: Calibration) -> Table:
    table, said = calibration.counted, words(calibration)
    counts = ((table.tp, table.fn), (table.fp, table.tn))
    return Table(
        [Column("", text=True), *(Column(f"judge: {word}") for word in said)],
        [
            [f"people: {word}", *(f"{n:,.0f}" for n in row)]
            for word, row in zip(said, counts, strict=True)
        ],
    )


def words(calibration: Calibration) -> tuple[str, str]:
    """Return what the judge can say."""
    return ("first", "second") if calibration.match else ("pass", "fail")


def _correction_table(calibration: Calibration) -> Table:
    who = "pair" if calibration.match else "model"
    columns = [f"<{who}", "?answers", "~by the judge", "~Rogan–Gladen", "~PPI"]
    rows: list[Row] = []
    for model, rates in calibration.corrected.items():
        shown = map(_rate, (rates.raw, rates.rogan_gladen, rates.ppi))
        rows.append([model, f"{rates.raw.n:,}", *shown])
    return Table(columns_of(*columns), rows)


def _rate(estimate: Estimate) -> Cell:
    return with_interval(estimate.value, estimate.low, estimate.high, estimate.method)


def missing(calibration: Calibration) -> list[tuple[str, str]]:
    """Return what could not be made, and why; a reason that all models share is named once."""
    estimates = {
        "Cohen's kappa": calibration.agreement.kappa,
        "sensitivity": calibration.sensitivity,
        "specificity": calibration.specificity,
        "position bias": calibration.position_bias,
        "length bias": calibration.length_bias,
        "self-preference": calibration.self_preference,
    }
    reasons = {
        (name, estimate.method): None
        for name, estimate in estimates.items()
        if estimate.low is None
    }
    for rates in calibration.corrected.values():
        for name, rate in (("Rogan–Gladen", rates.rogan_gladen), ("PPI", rates.ppi)):
            if rate.value is None:
                reasons[name, rate.method] = None
    return [(name, method.removeprefix("none: ")) for name, method in reasons]
