"""`assay verify`: is every byte of a folder the one that was sealed, and do its numbers follow from its rows?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from assay.analysis.verify.labels import ADOPTED, Found, reason_of, verify_labels
from assay.analysis.verify.metrics import verify_metrics
from assay.analysis.verify.rows import RowVerdict
from assay.analysis.verify.values import Difference, differing
from assay.engine.experiment.imports.headlines import HeadlineCheck, check_headlines
from assay.engine.experiment.imports.results import HEADLINES, REPORTED
from assay.engine.experiment.resolve import folders_at
from assay.engine.experiment.sources import ConfigSource
from assay.foreign import Headline
from assay.sdk import ROWS_FILE, AssayError, Kind, Manifest
from assay.shown import Shown
from assay.store.log import FileLog
from assay.store.sealed import Fault, check_folder
from assay.store.stores import read_manifests

_NAME = "of the other program"


def verify_headlines(folder: Path, manifests: Mapping[Kind, Manifest]) -> Found:
    """Return whether they still are what the import found, and equal what the program said."""
    run, evaluation = manifests.get("run"), manifests.get("evaluation")
    if run is None or not run.metadata.get(HEADLINES):
        return Found()
    verdict = RowVerdict(stored=len(run.metadata[HEADLINES]))
    try:
        if evaluation is None or ADOPTED not in evaluation.plan:
            raise ValueError("the labels that the program gave are no longer those of the folder")
        stored = msgspec.convert(run.metadata[HEADLINES], list[HeadlineCheck])
        reported = msgspec.convert(run.metadata[REPORTED], list[Headline])
        computed = check_headlines(reported, FileLog(folder / ROWS_FILE["evaluation"]), str(folder))
    except Exception as error:  # rows and manifests are anybody's
        reason = str(error) if isinstance(error, ValueError) else reason_of(error)
        verdict.excuse(reason, verdict.stored)
        return Found({_NAME: verdict})
    for before, after in zip(stored, computed, strict=False):
        _compare(verdict, before, after)
    return Found({_NAME: verdict})


def _compare(verdict: RowVerdict, stored: HeadlineCheck, computed: HeadlineCheck) -> None:
    differences = [*differing(msgspec.to_builtins(stored), msgspec.to_builtins(computed), "")]
    if computed.equal is False and not differences:
        differences = [("value", computed.theirs, computed.ours)]
    name = " ".join([stored.label, stored.metric])
    place = ", ".join(f"{facet}={value}" for facet, value in stored.where.items())
    if differences:
        verdict.add("headlines", name, place, differences)
    elif computed.equal is None:
        verdict.excuse(computed.reason or "nothing tells how it comes from the rows")


Part = Literal["files", "labels", "metrics", "headlines"]
_MOST = 1000  # differences that are kept: all are counted


class Tally(msgspec.Struct, kw_only=True):
    """How many files, labels of a scorer, rows of a metric or headlines are verified, differ, and cannot be verified;
    `reasons` says why not, each with its count."""

    part: Part
    name: str
    verified: int = 0
    differ: int = 0
    unverified: int = 0
    reasons: dict[str, int] = {}


class Verified(Shown, kw_only=True):
    """What came of one folder. It is `ok` if nothing is damaged and nothing differs; what cannot be verified is neither
    right nor wrong. Of very many `differences` the first are listed."""

    folder: str
    ok: bool = True
    checked: list[Tally] = []
    faults: list[Fault] = []
    differences: list[Difference] = []
    notes: list[str] = []


def verify(
    paths: str | Path | Sequence[str | Path], config: ConfigSource | None = None
) -> list[Verified]:
    """Check the seals of folders, compute their labels and metrics again from the stored rows, and
    compare. Judges answer from the log of their calls; nobody is asked and nothing is written.
    `config` replaces the folders' own."""
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    return [_verify(*found, config) for path in listed for found in folders_at(path)]


def _verify(folder: Path, name: str, config: ConfigSource | None) -> Verified:
    intact, faults = check_folder(folder)
    result = Verified(folder=name, faults=faults)
    bad = {fault.file for fault in faults if fault.kind != "unsealed"}
    unsealed = [fault for fault in faults if fault.kind == "unsealed"]
    seals = RowVerdict(intact + len(bad) + len(unsealed), len(bad), len(unsealed))
    seals.reasons.update({f"{fault.file}: {fault.what}": 1 for fault in unsealed})
    computed: dict[Part, Found] = {"files": Found({"seals": seals})}
    try:
        manifests = read_manifests(folder)
    except AssayError as error:
        result.notes.append(f"labels and metrics were not computed: {error.what}")
        result.ok = False
    else:
        computed["labels"] = verify_labels(folder, manifests, config, bad)
        computed["metrics"] = verify_metrics(folder, manifests, config, bad)
        computed["headlines"] = verify_headlines(folder, manifests)
    for part, found in computed.items():
        result.notes += [note for note in found.notes if note not in result.notes]
        for name, verdict in found.verdicts.items():
            verified = verdict.stored - verdict.differ - verdict.unverified
            checked = Tally(part=part, name=name, verified=verified, differ=verdict.differ)
            checked.unverified, checked.reasons = verdict.unverified, dict(verdict.reasons)
            result.checked.append(checked)
            result.differences += verdict.differences[: _MOST - len(result.differences)]
            result.ok &= not verdict.differ
    return result
