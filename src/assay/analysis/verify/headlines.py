"""The numbers that another program reported, computed once more from the rows that were imported from it."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from assay.analysis.verify.labels import ADOPTED, Found, reason_of
from assay.analysis.verify.rows import Verdict
from assay.analysis.verify.values import Difference, differing
from assay.engine.experiment.imports.foreign import Headline
from assay.engine.experiment.imports.headlines import HeadlineCheck, check_headlines
from assay.engine.experiment.imports.results import HEADLINES, REPORTED
from assay.records import ROWS_FILE, Kind, Manifest
from assay.store.log import FileLog

_NAME = "of the other program"


def verify_headlines(folder: Path, manifests: Mapping[Kind, Manifest]) -> Found:
    """Whether they still are what the import found, and equal what the program said."""
    run, evaluation = manifests.get("run"), manifests.get("evaluation")
    if run is None or not run.metadata.get(HEADLINES):
        return Found()
    verdict = Verdict(stored=len(run.metadata[HEADLINES]))
    try:
        if evaluation is None or ADOPTED not in evaluation.plan:
            raise ValueError("the labels that the program gave are no longer those of the folder")
        stored = msgspec.convert(run.metadata[HEADLINES], list[HeadlineCheck])
        reported = msgspec.convert(run.metadata[REPORTED], list[Headline])
        computed = check_headlines(reported, FileLog(folder / ROWS_FILE["evaluation"]), str(folder))
    except Exception as error:  # rows and manifests are anybody's
        verdict.unverified = verdict.stored
        verdict.reasons[str(error) if isinstance(error, ValueError) else reason_of(error)] = (
            verdict.stored
        )
        return Found({_NAME: verdict})
    for before, after in zip(stored, computed, strict=False):
        _compare(verdict, before, after)
    return Found({_NAME: verdict})


def _compare(verdict: Verdict, stored: HeadlineCheck, computed: HeadlineCheck) -> None:
    differences = [*differing(msgspec.to_builtins(stored), msgspec.to_builtins(computed), "")]
    if computed.equal is False and not differences:
        differences = [("value", computed.theirs, computed.ours)]
    name = " ".join([stored.label, stored.metric])
    place = ", ".join(f"{facet}={value}" for facet, value in stored.where.items())
    if differences:
        verdict.differ += 1
        verdict.differences += [
            Difference("headlines", name, place, *difference) for difference in differences
        ]
    elif computed.equal is None:
        verdict.unverified += 1
        verdict.reasons[computed.reason or "nothing tells how it comes from the rows"] += 1
