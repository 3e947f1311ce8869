"""How far to believe the judges of an experiment: stored calibrations, or, where people's labels are, computed anew and
stored nowhere."""

import msgspec

from assay.analysis.judge.calibrate import Calibrated, Calibration, calibrate
from assay.analysis.judge.judged import JudgedRow
from assay.datasets._labels import FILE
from assay.engine.evaluate.judges import CALIBRATIONS
from assay.reports.judge import measures, missing
from assay.reports.notebook import judge_pictures
from assay.reports.sheet import text_of
from assay.sdk import JsonObject, UserError
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import error_line, first_rows


class Query(msgspec.Struct, kw_only=True):
    experiment: str = ""


def page(experiments: Experiments, query: Query) -> JsonObject:
    id = query.experiment or next(iter(experiments.list()), "")
    reason, notes = "", list[str]()
    calibrations: list[Calibration] = []
    try:
        if not id:
            raise UserError("there are no experiments", fix="`assay run` makes one")
        calibrated = experiments.cached(("judges", id), [id], lambda: _calibrated(experiments, id))
        calibrations, notes = calibrated.calibrations, calibrated.notes
    except UserError as error:
        reason = error_line(error)
    judges = [
        {
            "label": each.label,
            "by": ", ".join(each.models) or each.scorer,
            "facts": _facts(each),
            "charts": judge_pictures(each),
        }
        for each in calibrations
    ]
    return {"judges": judges, "notes": notes, "reason": reason}


def _calibrated(experiments: Experiments, id: str) -> Calibrated:
    source = experiments.source(id)
    folder = source.folder or source.path.parent
    if (folder / FILE).is_file():
        return calibrate(source.path, keep=False)
    manifest = source.manifest("evaluation")
    try:
        kept = msgspec.convert(
            (manifest.metadata.get(CALIBRATIONS) or {}) if manifest else {}, dict[str, Calibration]
        )
    except msgspec.ValidationError as error:
        fix = f"calibrate again: assay judge calibrate {source.path}"
        raise UserError(f"a stored calibration cannot be read: {error}", fix=fix) from None
    if not kept:
        if not any(row.judge() for row in first_rows(experiments, id, "evaluation", JudgedRow)):
            fix = "score the answers with a judge first: `evaluation_methods: [judge]`"
            raise UserError("no judge gave a label here", fix=fix)
        path = source.path
        fix = (
            f"assay judge label {path} -o FILE.csv, assay judge calibrate {path} --labels FILE.csv"
        )
        raise UserError("no judge was compared with people's labels", fix=fix)
    level = next(iter(kept.values())).level
    return Calibrated(
        path=str(source.path), source="", level=level, calibrations=list(kept.values()), notes=[]
    )


def _facts(calibration: Calibration) -> list[tuple[str, str, str]]:
    """What, value and interval; what could not be made has the reason in place of its value."""
    table = measures(calibration)
    rows = [[text_of(cell) for cell in row] for row in table.rows]
    known = [(row[0].strip(), row[1], row[2]) for row in rows]
    known += [(text, "", "")] if (text := table.footnote()) else []
    counts = {
        "labelled answers": calibration.labels,
        "items": calibration.items,
        "labelled answers without a verdict": calibration.errored,
        "ties": calibration.ties,
    }
    known += [(what, f"{number:,}", "") for what, number in counts.items() if number]
    return known + [(name, f"none: {why}", "") for name, why in missing(calibration)]
