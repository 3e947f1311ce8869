"""The metrics of a folder, computed once more from its stored labels."""

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from pathlib import Path

import msgspec

from assay.analysis.verify.labels import Found, bench_of, reason_of
from assay.analysis.verify.replay import Bench
from assay.analysis.verify.rows import RowVerdict, pair_rows, row_differences
from assay.analysis.verify.values import Differing, differing
from assay.config import Config
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.bind import BoundMetric
from assay.engine.experiment import bind
from assay.engine.experiment.sources import ConfigSource
from assay.sdk import (
    ROWS_FILE,
    AssayError,
    JsonMapping,
    JsonObject,
    Kind,
    Manifest,
    MetricRow,
    canonical,
)
from assay.store.log import FileLog
from assay.store.table.decode import read_rows


def verify_metrics(
    folder: Path,
    manifests: Mapping[Kind, Manifest],
    config: ConfigSource | None,
    bad: AbstractSet[str],
) -> Found:
    """`bad` are the files that are not as they were sealed."""
    manifest = manifests.get("aggregation")
    if manifest is None:
        return Found()
    stored: list[MetricRow] = [
        row for _, row in read_rows(FileLog(folder / ROWS_FILE["aggregation"]), MetricRow)
    ]
    names = [str(metric.get("name")) for metric in manifest.plan.get("metrics") or []]
    if bad & {ROWS_FILE["evaluation"]}:
        return _without_verdicts(stored, names, "the labels are damaged")
    if ROWS_FILE["evaluation"] not in {file.name for file in folder.glob("evaluation_results.*")}:
        return _without_verdicts(stored, names, "the labels are not in this folder")
    try:
        bench = bench_of(folder, config)
        metrics, failed, notes = _bind(bench.config, manifest.plan.get("metrics") or [])
        computed = _computed_rows(bench, metrics)
    except Exception as error:  # the config, its code and the rows are anybody's
        return _without_verdicts(stored, names, reason_of(error))
    return Found(_verdicts(stored, computed, names, failed), notes)


def _without_verdicts(stored: Iterable[MetricRow], names: Iterable[str], reason: str) -> Found:
    return Found(_verdicts(stored, [], names, dict.fromkeys(names, reason)))


def _bind(
    config: Config, planned: list[JsonObject]
) -> tuple[list[BoundMetric], dict[str, str], list[str]]:
    """The metrics that were computed, why some cannot be had, and which have changed."""
    failed: dict[str, str] = {}
    bound: dict[bytes, BoundMetric] = {}
    for metric in config.metrics:
        try:
            one = bind.bind_metrics(msgspec.structs.replace(config, metrics=[metric]))[0]
            bound[_without_identity(msgspec.to_builtins(one.plan()))] = one
        except AssayError as error:
            failed[metric.name] = reason_of(error)
    metrics: list[BoundMetric] = []
    notes: list[str] = []
    for entry in planned:
        one = bound.get(_without_identity(entry))
        if one is None:
            failed.setdefault(
                str(entry.get("name")), "the config has no such metric: name one that has with -c"
            )
            continue
        metrics.append(one)
        if one.plan()["identity"] != entry.get("identity"):
            notes.append(f"{one.name} is not the metric that was computed: its code changed")
    return metrics, failed, notes


def _without_identity(plan: JsonMapping) -> bytes:
    """Return what was asked for, whatever the code is that answers."""
    return canonical({name: value for name, value in plan.items() if name != "identity"})


def _computed_rows(bench: Bench, metrics: list[BoundMetric]) -> list[MetricRow]:
    if not metrics:
        return []
    store = bench.show(answers=True)
    evidence = bench.sources[0].evidence("evaluation")
    manifest = evidence.manifest
    id = bench.id if manifest is None else manifest.id
    store.show("evaluation", id, evidence.log, manifest)
    rows = Aggregator(store).aggregate([id], metrics, id=id)
    return msgspec.json.decode(msgspec.json.encode(rows))


def _verdicts(
    stored: Iterable[MetricRow],
    computed: Iterable[MetricRow],
    names: Iterable[str],
    failed: Mapping[str, str],
) -> dict[str, RowVerdict]:
    verdicts = {name: RowVerdict() for name in names}
    for one, row, other in pair_rows(stored, computed, _place):
        name = str(one.get("metric_name", ""))
        verdict = verdicts.setdefault(name, RowVerdict())
        verdict.stored += 1
        found = row_differences(row, other, "the labels do not give it", _differences)
        facets = [f"{facet}={one.get(facet)}" for facet in one.get("facets") or ()]
        if row is not None and name in failed:
            verdict.excuse(failed[name])
        elif found:
            place = ", ".join([str(one.get("label", "")), *facets])
            verdict.add("metrics", name, place, found)
    return {name: verdict for name, verdict in verdicts.items() if verdict.stored}


def _differences(stored: MetricRow, computed: MetricRow) -> Iterator[Differing]:
    return differing(stored, computed, "")


def _place(row: MetricRow) -> bytes:
    facets: list[str] = [str(facet) for facet in row.get("facets") or ()]
    return canonical(
        [row.get("metric_name"), row.get("label"), facets, [row.get(facet) for facet in facets]]
    )
