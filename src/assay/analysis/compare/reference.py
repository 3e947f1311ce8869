"""An experiment against published scores: does ours agree with a paper's, within the uncertainty of both?

The scores are those of `data/reference_scores.json`, or of a file of the same form. Ours are metric rows. Where the
number of items of the published score is known, it has an error of its own and the test is Welch's; else it is taken
for exact. Nothing can be paired: what the other model answered to which item is not published.
"""

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import msgspec

from assay import reading
from assay.analysis.compare.compare import CompareOptions, correct, valid_options, words
from assay.engine.experiment.resolve import find_sources
from assay.engine.experiment.sources import Source
from assay.sdk import JsonObject, MetricRow, UserError, nearest
from assay.shown import Shown
from assay.stats.student import POWER, t_quantile, t_tail
from assay.store.table.decode import decode_row
from assay.store.table.facets import text_of


class Reference(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A published score. `source` is a key of the file's sources, or the citation itself; `n` is over how many items it
    was measured, `variant` what else one must know about how."""

    model: str
    benchmark: str
    metric: str
    value: float
    source: str
    filter: str = ""
    shots: int | None = None
    variant: str = ""
    n: int | None = None
    stderr: float | None = None
    lower_is_better: bool = False

    @property
    def error(self) -> float | None:
        """Its standard error; None where nothing tells."""
        if self.stderr is not None:
            return self.stderr
        return (
            math.sqrt(self.value * (1 - self.value) / self.n)
            if self.n and 0 <= self.value <= 1
            else None
        )


class _Publication(msgspec.Struct, kw_only=True):
    citation: str
    url: str = ""


class References(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The form of a file."""

    references: list[Reference]
    sources: dict[str, _Publication] = {}
    about: str = ""

    def citation(self, reference: Reference) -> str:
        publication = self.sources.get(reference.source)
        return (
            f"{publication.citation} {publication.url}".strip() if publication else reference.source
        )


def load_references(reference: str | Path) -> References:
    """Return those of a model by its name, or of a JSON file; `file.json:model` are those of one
    model in it."""
    text = str(reference)
    file, _, model = text.partition(".json:")
    if text.endswith(".json") or model:
        path = Path(f"{file}.json" if model else text)
        try:
            content = reading.content(path)
        except OSError as error:
            raise UserError(
                f"the reference cannot be read: {error.strerror}", where=str(path)
            ) from None
    else:
        path = Path("reference_scores.json")
        model = text
        content = (files("assay") / "data" / path.name).read_bytes()
    try:
        published = msgspec.json.decode(content, type=References)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fix = 'its form is {"references": [{"model": …, "benchmark": …, "metric": …, "value": …, "source": …}]}'
        raise UserError(
            f"the file of references cannot be read: {error}", where=str(path), fix=fix
        ) from None
    if model:
        named = [entry for entry in published.references if is_model(entry.model, model)]
        if not named:
            raise UserError(
                f"no reference is called {model!r}",
                where="--reference",
                fix=f"{nearest(model, {entry.model for entry in published.references})}; or name a JSON file",
            )
        published.references = named
    return published


def is_model(model: str, name: str) -> bool:
    """Return whether a name means this model; what stands before the slash may be left out."""
    return name.lower() in (model.lower(), model.rpartition("/")[2].lower())


Verdict = Literal["better", "worse", "equivalent", "agrees", "inconclusive", "incomplete"]
TELLING = 0.05  # what a comparison must be able to show before it says that two numbers agree
_MEANS = ("mean", "pass_rate")
_MODELS = ("model_name", "model_id", "metadata.model_id")


class Agreement(msgspec.Struct, kw_only=True):
    """One of our values and the published one: the difference is ours - theirs. `settings` says what differs in how
    they were measured, or is not known."""

    side: str = ""
    benchmark: str
    label: str
    value: float
    ci_low: float | None
    ci_high: float | None
    items: int
    reference: str
    reference_value: float
    reference_items: int | None
    source: str = ""
    test: Literal["two_sample", "one_sample"]
    difference: float
    freedom: float
    low: float = 0.0
    high: float = 0.0
    p: float
    p_corrected: float
    could_show: float
    p_equivalent: float | None = None
    verdict: Verdict = "inconclusive"
    items_needed: tuple[int, int | None] | None = None
    reason: str = ""
    settings: list[str] = []
    partial: str = ""


class Referenced(Shown, kw_only=True):
    """Agreements in the order of the experiments and their rows; `telling` is what one must be able
    to show, `level` that of the intervals, corrected for their number."""

    reference: str
    level: float
    margin: float | None
    telling: float
    agreements: list[Agreement]
    notes: list[str]


def referenced(paths: Sequence[str | Path], reference: str | Path, **options: Any) -> Referenced:
    """Each metric row of the experiments that the reference has a score for, compared with it."""
    options.setdefault("metric", "")
    chosen = valid_options(CompareOptions(**options))
    published = load_references(reference)
    found: list[tuple[Agreement, Reference, float]] = []
    sources = find_sources(paths, "aggregation")
    for source in sources:
        for row in _rows(source, chosen):
            for entry in _matching(published.references, row, source):
                agreement, error = _agreement(source, row, entry, chosen)
                agreement.side = _side(row, source.name if len(sources) > 1 else "")
                agreement.source = published.citation(entry)
                found.append((agreement, entry, error))
    if not found:
        scores = sorted({f"{entry.benchmark} {entry.metric}" for entry in published.references})
        fix = f"it has {', '.join(scores[:20])}; benchmarks match by name, metrics by label"
        raise UserError(
            f"no metric of these experiments is in the reference {str(reference)!r}", fix=fix
        )
    agreements = [agreement for agreement, _, _ in found]
    alpha = _judge(found, chosen)
    return Referenced(
        reference=str(reference),
        level=1 - alpha,
        margin=chosen.margin,
        telling=chosen.margin or TELLING,
        agreements=agreements,
        notes=[*dict.fromkeys(f"{one.reference}: {one.source}" for one in agreements)],
    )


def _rows(source: Source, chosen: CompareOptions) -> Iterable[MetricRow]:
    """The metric rows with a value that were asked for."""
    log = source.log("aggregation", f"compute its metrics first: assay aggregate {source.path}")
    for _, line in log.scan():
        row = decode_row(line, str(source.path)) if line.strip() else {}
        wanted = not chosen.metric or chosen.metric in (
            row.get("metric_name"),
            row.get("metric_type"),
        )
        labelled = chosen.label in ("", row.get("label"))
        facets = all(
            text_of(row.get(name)) == text_of(value) for name, value in chosen.where.items()
        )
        if isinstance(row.get("value"), (int, float)) and wanted and labelled and facets:
            yield row


def _matching(
    references: Sequence[Reference], row: MetricRow, source: Source
) -> Iterable[Reference]:
    """The published scores of what a row measures: where they are of several models, those of the
    row's model; where they have several numbers of shots, those with as many as ours."""
    metric, _, filter = str(row.get("label")).partition(",")
    kind = str(row.get("metric_type"))
    name = str(row.get("metric_name"))
    own = {name, metric} if kind in _MEANS or "." in kind else {name}
    # what differs is told beside the verdict
    own_name = str(row.get("benchmark") or "").partition(" (modified: ")[0]
    benchmarks = {own_name} if own_name else _names(source)
    matching = [
        entry
        for entry in references
        if entry.benchmark in benchmarks and entry.metric in own and entry.filter in ("", filter)
    ]
    if len({entry.model for entry in matching}) > 1:
        matching = [entry for entry in matching if is_model(entry.model, _model(row))]
    return [entry for entry in matching if entry.shots == row.get("num_fewshot")] or matching


def _names(source: Source) -> set[str]:
    """Return what the data of an experiment without benchmarks may be called."""
    manifest = source.manifest("dataset")
    plan: JsonObject = (manifest.plan.get("dataset") or {}) if manifest else {}
    named = {str(plan.get("name") or ""), Path(str(plan.get("path") or "")).stem, source.name}
    return named - {""}


def _model(row: MetricRow) -> str:
    return next((text_of(row[name]) for name in _MODELS if row.get(name)), "")


def _side(row: MetricRow, source: str) -> str:
    """Return whose value it is: the experiment where there are several, then the facets."""
    facets = [text_of(row[name]) for name in row["facets"] if name != "benchmark"]
    return " ".join(filter(None, [source, *facets])) or "ours"


def _agreement(
    source: Source, row: MetricRow, entry: Reference, chosen: CompareOptions
) -> tuple[Agreement, float]:
    """The comparison before its verdict, and the standard error of our value."""
    items = int(
        row.get("total_item_count") or row.get("used_sample_count") or row.get("sample_count") or 0
    )
    own = _own_error(row, source)
    theirs = entry.error
    error = math.hypot(own, theirs or 0.0)
    freedom = _freedom(own, items, theirs, entry.n)
    difference = row["value"] - entry.value
    p = min(1.0, 2 * t_tail(abs(difference) / error, freedom)) if error else float(difference == 0)
    same = None
    if chosen.margin is not None:
        room = chosen.margin - abs(difference)
        same = t_tail(room / error, freedom) if error else float(room <= 0)
    agreement = Agreement(
        benchmark=entry.benchmark,
        label=str(row.get("label")),
        value=row["value"],
        ci_low=row.get("ci_low"),
        ci_high=row.get("ci_high"),
        items=items,
        reference=entry.model,
        reference_value=entry.value,
        reference_items=entry.n,
        test="one_sample" if theirs is None else "two_sample",
        difference=difference,
        freedom=freedom,
        p=p,
        p_corrected=p,
        p_equivalent=same,
        could_show=0.0,
        settings=_settings(row, entry, items),
        partial=source.partial(),
    )
    return agreement, own


def _own_error(row: MetricRow, source: Source) -> float:
    """From the interval, which knows that samples of one item belong together; else the metric's
    own."""
    low, high, level = map(row.get, ("ci_low", "ci_high", "ci_level"))
    if low is not None and high is not None and level:
        return (high - low) / (2 * NormalDist().inv_cdf((1 + level) / 2))
    if isinstance(row.get("stderr"), (int, float)):
        return float(row["stderr"])
    what = f"{row.get('metric_name')} under {row.get('label')!r} has neither an interval nor a standard error"
    raise UserError(what, where=str(source.path), fix="choose another row with --metric or --label")


def _freedom(own: float, items: int, theirs: float | None, n: int | None) -> float:
    """Welch's degrees of freedom."""
    mine = max(items - 1, 1)
    if not theirs or not n:
        return mine
    return (own**2 + theirs**2) ** 2 / (own**4 / mine + theirs**4 / max(n - 1, 1))


def _settings(row: MetricRow, entry: Reference, items: int) -> list[str]:
    """Return what differs, or is not known, between the ways of measuring."""
    differing: list[str] = []
    shots = row.get("num_fewshot")
    if entry.shots is not None and shots != entry.shots:
        differing.append(f"{entry.shots} shots, ours {'not recorded' if shots is None else shots}")
    if entry.n is not None and items != entry.n:
        differing.append(f"{entry.n:,} items, ours {items:,}")
    if row.get("modified"):
        differing.append(f"ours is modified: {text_of(row['modified'])}")
    if entry.variant:
        differing.append(f"theirs: {entry.variant}")
    return differing


def _judge(found: Sequence[tuple[Agreement, Reference, float]], chosen: CompareOptions) -> float:
    """Set one word each, and the interval that says the same; return the alpha of that."""
    alpha = 1 - chosen.level
    normal = NormalDist()
    sure = normal.inv_cdf(1 - alpha / 2 / len(found)) + normal.inv_cdf(POWER)
    left, _ = correct([agreement for agreement, _, _ in found], alpha)
    for agreement, entry, own in found:
        theirs = entry.error or 0.0
        error = math.hypot(own, theirs)
        agreement.could_show = sure * error
        reach = t_quantile(1 - left / 2, agreement.freedom) * error
        agreement.low = agreement.difference - reach
        agreement.high = agreement.difference + reach
        # a share of what is larger than 1
        telling = (chosen.margin or TELLING) * max(1.0, abs(entry.value))
        said = next(words(agreement, alpha, lower=entry.lower_is_better), None)
        if agreement.partial and not chosen.partial:
            agreement.verdict = "incomplete"
        elif said is not None:
            agreement.verdict = said
        elif agreement.could_show <= telling:
            agreement.verdict = "agrees"
        elif (room := (telling / sure) ** 2 - theirs**2) > 0:
            agreement.items_needed = math.ceil(agreement.items * own**2 / room), None
    return left
