"""The metric rows of experiments: as they are stored, or by other facets, computed by the engine, written nowhere."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from assay import reading, registry
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import BoundMetric, Policy, bind_metric
from assay.engine.evaluate.directions import LOWER, Directions
from assay.engine.experiment.runs import answers_of
from assay.engine.experiment.sources import Source, source_in
from assay.engine.run.evidence import partial_of
from assay.reports.sheet import averaged_over
from assay.sdk import (
    ROWS_FILE,
    AssayError,
    JsonObject,
    Kind,
    Log,
    Manifest,
    MetricRow,
    Segment,
    UserError,
)
from assay.store.log import FileLog
from assay.store.stores import read_manifests
from assay.store.table.decode import read_rows, row_decoder
from assay.viewer.experiments import Experiments

T = TypeVar("T")
LOOKED_AT = 1000  # rows at the beginning of a file that tell what rows look like


class Stored(msgspec.Struct, kw_only=True):
    """What the files of an experiment say without a look at its rows. `runs` are those behind it, wherever they are."""

    id: str
    rows: list[MetricRow]
    manifests: dict[Kind, Manifest]
    runs: list[Manifest]
    partial: str
    notes: list[str]


def stored(experiments: Experiments, id: str) -> Stored:
    folder = experiments.folder(id)
    manifests = read_manifests(folder)
    files = {kind: folder / name for kind, name in ROWS_FILE.items()}
    if not manifests:  # rows of a format, which are ours only as long as this process lasts
        files = experiments.source(id).files
    notes: list[str] = []
    runs = [manifests["run"]] if "run" in manifests else []
    if "evaluation" in manifests and not runs:
        runs = _runs_behind(experiments.source(id))
    rows = list(_metric_rows(files["aggregation"])) if "aggregation" in files else []
    segments = FileLog(files["evaluation"]).segments() if "evaluation" in files else []
    if rows and (note := _outdated(manifests, segments)):
        notes.append(f"{id}: {note}")
    partial = partial_of([manifests.get("evaluation")])
    return Stored(id=id, rows=rows, manifests=manifests, runs=runs, partial=partial, notes=notes)


def _runs_behind(source: Source) -> list[Manifest]:
    """The runs whose responses were evaluated elsewhere."""
    more = [source_in(file.parent).manifest("run") for file in source.more.get("run", ())]
    return [manifest for manifest in (source.manifest("run"), *more) if manifest is not None]


def _metric_rows(file: Path) -> Iterator[MetricRow]:
    """The rows that can be read; no file has none."""
    decode = row_decoder(JsonObject)
    with suppress(FileNotFoundError):
        for line in reading.content(file).splitlines():
            with suppress(ValueError, RecursionError):
                yield decode(line)


def _outdated(manifests: dict[Kind, Manifest], evaluations: Sequence[Segment]) -> str:
    """What to say where the evaluations are not those that the metrics were computed from."""
    aggregation = manifests.get("aggregation")
    if aggregation is None or not evaluations or len(aggregation.inputs) != 1:
        return ""
    # The times of a copied folder are other ones; that its bytes are the same is checked where numbers are computed.
    before = [list(row)[:2] for row in aggregation.inputs[0].get("rows") or []]
    if before == [[segment.name, segment.size] for segment in evaluations]:
        return ""
    return "its rows have changed since its metrics were computed: `assay aggregate` computes them anew"


# ---- by other facets


def measured(source: Source, metrics: Sequence[BoundMetric]) -> list[MetricRow]:
    """The rows of these metrics, as `assay aggregate` would store them."""
    from assay.analysis.verify.replay import Replay

    source.log("evaluation", f"score its responses first: assay evaluate {source.path}")
    store = Replay(source.folder or source.path.parent)
    for kind in ("evaluation", "run", "dataset"):
        logs: list[Log] = list(source.logs(kind))
        if kind == "run" and logs:
            logs[0] = answers_of(source)
        manifests = [source.evidence(kind).manifest] if logs else []
        for number, (log, manifest) in enumerate(zip_longest(logs, manifests)):
            store.show(kind, str(number), log, manifest)
    runs, datasets = store.ids("run"), store.ids("dataset")
    return Aggregator(store).aggregate(
        store.ids("evaluation"), metrics, id="view", runs=runs, datasets=datasets
    )


class _Labels(msgspec.Struct):
    include: list[str] = []
    exclude: list[str] = []
    together: str = ""


class _Planned(msgspec.Struct):
    """A metric as the plan of an aggregation has it."""

    name: str = ""
    type: str = ""
    identity: str = ""
    params: JsonObject = {}
    labels: _Labels = msgspec.field(default_factory=_Labels)
    policy: Policy = Policy()
    level: float = 0.95
    interval: Literal["auto", "bootstrap"] = "auto"


def metrics_of(
    manifest: Manifest | None, facets: Sequence[str], notes: list[str]
) -> list[BoundMetric]:
    """The metrics of an experiment bound to other facets; a user's own code is not run to look at something."""
    try:
        planned = msgspec.convert(
            (manifest.plan.get("metrics") or []) if manifest else [], list[_Planned]
        )
    except msgspec.ValidationError as error:
        raise UserError(
            f"the manifest's plan cannot be read: {error}", fix="run `assay aggregate` again"
        ) from None
    bound: list[BoundMetric] = []
    for entry in planned:
        if entry.type not in registry.metric.names() or not entry.identity.startswith(
            f"{entry.type}@"
        ):
            notes.append(
                f"the metric {entry.name!r} is code of yours: only `assay aggregate` computes it"
            )
            continue
        given = {
            name: getattr(entry, name)
            for name in ("name", "type", "params", "policy", "level", "interval")
        }
        bound.append(bind_metric(**given, facets=facets, **msgspec.structs.asdict(entry.labels)))
    return bound if planned else [bind_metric(type="mean", facets=facets)]


def facet_names(row: MetricRow) -> list[str]:
    """The facets of a row that anybody may have written."""
    names = row.get("facets")
    return (
        [name for name in cast("list[Any]", names) if isinstance(name, str)]
        if isinstance(names, list)
        else []
    )


class Board(msgspec.Struct):
    """Metric rows of several experiments, each with its experiment, in order."""

    rows: list[tuple[Stored, MetricRow]]
    stored: list[Stored]
    notes: list[str]


def board(
    experiments: Experiments, ids: Sequence[str], facets: Sequence[str], *, strict: bool
) -> Board:
    """The rows of these experiments: as stored, or by facets. Unless `strict`, one that cannot be read is left out."""
    made = Board([], [], [])
    for id in ids:
        try:
            entry = stored(experiments, id)
        except AssayError as error:
            if strict:
                raise
            made.notes.append(f"{id} is left out: {error.what}")
            continue
        made.stored.append(entry)
        made.notes += entry.notes
        rows, notes = _by_facets(experiments, entry, facets) if facets else (entry.rows, [])
        made.rows += [(entry, row) for row in rows]
        for run in entry.runs:
            notes += averaged_over(map(facet_names, rows), run)
        made.notes += [f"{id}: {note}" for note in notes]
    return made


def _by_facets(
    experiments: Experiments, entry: Stored, facets: Sequence[str]
) -> tuple[list[MetricRow], list[str]]:
    """The stored rows with these facets, and what the engine computes of metrics that have none."""
    notes: list[str] = []
    outdated = bool(entry.notes)
    rows = [row for row in entry.rows if not outdated and set(facet_names(row)) == set(facets)]
    there = {row.get("metric_name") for row in rows}
    try:
        bound = metrics_of(entry.manifests.get("aggregation"), facets, notes)
        lacking = [metric for metric in bound if metric.name not in there]

        def make() -> list[MetricRow]:
            return measured(experiments.source(entry.id), lacking)

        if lacking:
            rows += experiments.cached(("metrics", entry.id, *facets), [entry.id], make)
    except AssayError as error:
        notes.append(error_line(error))
    return rows, notes


def error_line(error: AssayError) -> str:
    """Return an error in one line."""
    return f"{error.what}; {error.fix}" if error.fix else error.what


# ---- which way is better


class FirstLabel(msgspec.Struct):
    """What is read of the first evaluations."""

    label: str = ""
    scorer: str = ""
    players: tuple[str, str] | None = None


def first_rows(
    experiments: Experiments, id: str, kind: Kind, form: type[T], most: int = LOOKED_AT
) -> Iterator[T]:
    """The beginning of an experiment's rows, as they are; none where they are missing or out of reach."""
    try:
        file = experiments.source(id).files.get(kind)
    except AssayError:
        return iter(())
    return (row for _, row in islice(read_rows(FileLog(file), form), most)) if file else iter(())


class Ways:
    """Whether less is better in a metric row, as `compare` decides it: by the metric, or else by the label's scorer."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments
        self._metrics: dict[str, bool | None] = {}
        self._scorers: dict[str, tuple[Directions, dict[str, set[str]]]] = {}

    def lower(self, entry: Stored, row: MetricRow) -> bool:
        kind = str(row.get("metric_type"))
        if kind not in self._metrics:
            function = registry.metric.get(kind) if kind in registry.metric.names() else None
            self._metrics[kind] = getattr(function, "__assay__", {}).get(LOWER)
        marked = self._metrics[kind]
        return self._by_scorer(entry, str(row.get("label"))) if marked is None else bool(marked)

    def _by_scorer(self, entry: Stored, label: str) -> bool:
        if entry.id not in self._scorers:
            scorers: dict[str, set[str]] = {}
            for row in first_rows(self._experiments, entry.id, "evaluation", FirstLabel):
                scorers.setdefault(row.label, set()).add(row.scorer)
            self._scorers[entry.id] = Directions([entry.manifests.get("evaluation")]), scorers
        directions, scorers = self._scorers[entry.id]
        return directions.lower(scorers.get(label, set()))
