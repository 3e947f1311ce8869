"""How far to believe a judge: its verdicts beside people's labels of the same answers.

Every judge of an experiment is compared by itself. What was found is kept in the evaluation's manifest with the judge's
identity, for gates that demand a calibration and for metrics that correct by it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from assay.analysis.compare.paired import checked_level
from assay.analysis.judge.accuracy import (
    KINDS,
    Corrected,
    CurvePoint,
    Estimate,
    Verdicts,
    confusion,
    corrected_rates,
    curve_of,
    item_codes,
    kappa,
    none,
    verdicts_of,
)
from assay.analysis.judge.bias import (
    answer_lengths,
    length_bias,
    own_models,
    position_bias,
    self_preference,
)
from assay.analysis.judge.judged import JudgedAnswer, JudgedLabel, give_labels, read_judged, unused
from assay.datasets._labels import FILE, Label, read_labels
from assay.engine.evaluate.judges import CALIBRATIONS
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import Source
from assay.sdk import Item, JsonMapping, JsonObject, UserError, check_name, shown
from assay.shown import Shown
from assay.stats.agreement import RaterAgreement, agreement
from assay.stats.correction import Confusion
from assay.store.shared.mirror import push
from assay.store.stores import FlatStore
from assay.store.table.decode import read_rows

Rows = str | Path | Iterable[JsonMapping]


class Agreed(msgspec.Struct, kw_only=True):
    """`by_majority` is the agreement that always giving the more frequent label would have."""

    percent: Estimate
    by_majority: float
    kappa: Estimate


class People(msgspec.Struct, kw_only=True):
    """Who labelled. `split` answers were left out, as people were evenly divided; `percent` and Krippendorff's
    `alpha` are people's own agreement on the `shared` answers, which two or more labelled."""

    names: list[str]
    split: int
    shared: int
    percent: Estimate
    alpha: Estimate


class Calibration(msgspec.Struct, kw_only=True):
    """What is known about the judge of one label. Of the answers with a label, `errored` have no verdict; `ties`, so
    called by judge or people, count for the agreement alone. In a `match` a pass is a win of the first player.
    `confusion` has effective numbers, for corrections, `counted` plain ones. `labelled` has people's verdict and its
    weight, by the beginning of the answer's key: metrics find their own answers there."""

    label: str
    scorer: str
    judge: str
    models: list[str]
    match: bool
    created: float
    level: float
    threshold: float | None
    labels: int
    items: int
    errored: int
    ties: int
    people: People
    base_rate: Estimate
    judge_rate: Estimate
    confusion: Confusion
    counted: Confusion
    agreement: Agreed
    sensitivity: Estimate
    specificity: Estimate
    position_bias: Estimate
    length_bias: Estimate
    self_preference: Estimate
    corrected: dict[str, Corrected]
    curve: list[CurvePoint] = []
    labelled: dict[str, tuple[float, float]] = {}


class Calibrated(Shown, kw_only=True):
    """A calibration for each label; `stored` is the manifest that has them, if one does."""

    path: str
    source: str
    level: float
    calibrations: list[Calibration]
    notes: list[str]
    stored: str = ""


def calibrate(
    path: str | Path,
    labels: Rows | None = None,
    *,
    label: str = "",
    annotators: Sequence[str] = (),
    threshold: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    keep: bool = True,
) -> Calibrated:
    """Compare the judges of an experiment with people's labels: a file, rows, or the review's.

    `label`: only this judge's; `annotators`: only these people's labels; `threshold`: where labels are numbers, the
    least that is a pass; `keep`: store what was found.
    """
    checked_level(level)
    source = find_source(path, "evaluation")
    everything, lost = read_judged(source)
    judged = _chosen_judges(everything, label, source)
    read = read_labels(_labels_file(source) if labels is None else labels).only(annotators)
    notes = [*read.notes, *lost]
    if partial := source.partial():
        notes.append(f"the evaluations are partial: {partial}")
    about = {
        judge.label: give_labels(judge, read, threshold, chosen=bool(label)) for judge in judged
    }
    used = {id(given) for given_labels in about.values() for given in given_labels}
    left = [given for given in read.rows if id(given) not in used]
    why = unused(left, everything.values(), _items(source) if left else set())
    if not used:
        fix = "; ".join(why) or "name their judge with --label, or add `model` or `scorer` to them"
        raise UserError("no label is about a judged answer", where=read.source, fix=fix)
    options = {"level": level, "threshold": threshold}
    lengths = answer_lengths(source, judged)
    calibrations: list[Calibration] = []
    for judge in judged:
        if problem := _problem(judge, about[judge.label]):
            notes.append(problem)
        else:
            calibrations.append(_calibration(judge, about[judge.label], source, lengths, options))
    if not calibrations:
        raise UserError(
            notes[-1],
            where=str(source.path),
            fix="label more answers, or score those that are labelled",
        )
    notes += why
    result = Calibrated(
        path=str(path),
        source=read.source,
        level=level,
        calibrations=calibrations,
        notes=notes,
    )
    if keep:
        _keep(source, result)
    return result


def _problem(judged: JudgedLabel, labels: Sequence[Label]) -> str:
    """Why nothing is known about a judge."""
    if not labels:
        return f"no label is about {judged.label!r}"
    if not judged.labelled_answers():
        return f"people disagree about every answer that they labelled for {judged.label!r}"
    if all(answer.judge is None for answer in judged.labelled_answers()):
        return f"no labelled answer has a verdict of the judge {judged.label!r}"
    return ""


def _chosen_judges(
    judged: Mapping[str, JudgedLabel], label: str, source: Source
) -> list[JudgedLabel]:
    if not judged:
        fix = "score the answers with a judge first: `evaluation_methods: [judge]`"
        raise UserError("no row was given by a judge", where=str(source.path), fix=fix)
    if label:
        check_name(label, judged, "no judge gave the label", str(source.path))
    chosen = [judged[label]] if label else list(judged.values())
    for one in chosen:
        if len(one.ids) > 1:
            raise UserError(
                f"the label {one.label!r} was given by {len(one.ids)} different judges",
                where=str(source.path),
                fix="score all answers with the same one: assay evaluate",
            )
    return chosen


def _labels_file(source: Source) -> Path:
    file = (source.folder or source.path.parent) / FILE
    if not file.is_file():
        fix = f"--labels FILE, or label some answers: assay judge label {source.path} -o FILE.csv"
        raise UserError("there are no people's labels to compare with", where=str(file), fix=fix)
    return file


# ---- one judge


def _calibration(
    judged: JudgedLabel,
    labels: Sequence[Label],
    source: Source,
    lengths: Mapping[int, int],
    options: JsonObject,
) -> Calibration:
    answers, level = judged.labelled_answers(), options["level"]
    verdicts = verdicts_of(answers)
    decided = verdicts.without_ties()
    passes, fails = decided.where(decided.truth == 1), decided.where(decided.truth == 0)
    counts = confusion(verdicts)
    return Calibration(
        label=judged.label,
        scorer=judged.scorer,
        judge=min(judged.ids),
        models=sorted(judged.models),
        match=judged.match,
        created=time.time(),
        labels=len(answers),
        items=len({answer.item for answer in answers}),
        errored=len(answers) - len(verdicts.item),
        ties=len(verdicts.item) - len(decided.item),
        people=_people(judged, labels, level),
        base_rate=verdicts.mean(verdicts.truth, level),
        judge_rate=verdicts.mean(verdicts.judge, level),
        confusion=counts,
        counted=_plain_counts(decided),
        agreement=_agreement_of(verdicts, level),
        sensitivity=passes.mean(passes.judge, level, "people passed none of the answers"),
        specificity=fails.mean(1 - fails.judge, level, "people failed none of the answers"),
        position_bias=position_bias(judged, level),
        length_bias=length_bias(judged, lengths, level),
        self_preference=self_preference(judged, own_models(source, judged), level),
        corrected=corrected_rates(judged, counts, level),
        curve=curve_of(answers, level),
        labelled=_by_key(answers),
        **options,
    )


def _by_key(answers: Iterable[JudgedAnswer]) -> dict[str, tuple[float, float]]:
    """Return verdicts and weights of answers; a match has two keys, and no pass rate to correct."""
    return {
        f"{answer.responses[0]:016x}": (answer.truth, answer.weight)
        for answer in answers
        if len(answer.responses) == 1 and answer.truth is not None
    }


def _plain_counts(decided: Verdicts) -> Confusion:
    """Count the answers of each kind, as they are."""
    cells = {
        name: float(((decided.truth == truth) & (decided.judge == judge)).sum())
        for name, truth, judge in (("tp", 1, 1), ("fp", 0, 1), ("fn", 1, 0), ("tn", 0, 0))
    }
    return Confusion(**cells)


def _agreement_of(verdicts: Verdicts, level: float) -> Agreed:
    shares = [float(np.average(verdicts.truth == kind, weights=verdicts.weight)) for kind in KINDS]
    same = (verdicts.truth == verdicts.judge).astype(np.float64)
    return Agreed(
        percent=verdicts.mean(same, level),
        by_majority=max(shares),
        kappa=kappa(verdicts, level),
    )


def _people(judged: JudgedLabel, labels: Sequence[Label], level: float) -> People:
    names = sorted({label.annotator for label in labels})
    touched = [answer for answer in judged.answers if answer.votes]
    both = [answer for answer in touched if len(answer.votes) > 1]
    percent = alpha = none("no answer was labelled by two people")
    if both:
        votes = np.array([[answer.votes.get(name, np.nan) for name in names] for answer in both])
        codes = item_codes(both)
        percent = _of_people(agreement(votes, codes, coefficient="percent"), level)
        alpha = _of_people(agreement(votes, codes, coefficient="krippendorff_alpha"), level)
    split = sum(answer.truth is None for answer in touched)
    return People(names=names, split=split, shared=len(both), percent=percent, alpha=alpha)


def _of_people(agreement: RaterAgreement, level: float) -> Estimate:
    if agreement.value is None:
        return none(agreement.reason or "there is no value", agreement.answers)
    interval = agreement.interval(level)
    return Estimate(value=agreement.value, n=agreement.answers, **interval._asdict())


# ---- what stands beside the evaluations


def _items(source: Source) -> set[str]:
    return {item.id for log in source.logs("dataset") for _, item in read_rows(log, Item)}


def _keep(source: Source, result: Calibrated) -> None:
    manifest = source.manifest("evaluation")
    if manifest is None:
        result.notes.append("nothing was stored: these rows are not in an experiment's folder")
        return
    store = FlatStore(source.files["evaluation"].parent)
    with store.lock("evaluation", manifest.id):
        manifest = store.manifest("evaluation", manifest.id) or manifest
        kept = {
            calibration.label: msgspec.to_builtins(calibration)
            for calibration in result.calibrations
        }
        manifest.metadata[CALIBRATIONS] = {**manifest.metadata.get(CALIBRATIONS, {}), **kept}
        store.put_manifest(manifest)
        push(store.folder)
    result.stored = shown(str(store.folder / "manifest.json"))
