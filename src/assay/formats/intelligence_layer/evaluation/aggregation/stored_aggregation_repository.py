"""Aggregations in one of our stores: the overview in the manifest, its numbers as rows of `metrics.jsonl`."""

from collections.abc import Iterator, Sequence
from typing import Any

from assay.formats.intelligence_layer.evaluation.aggregation.aggregation_repository import AggregationRepository
from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation, AggregationOverview
from assay.formats.intelligence_layer.types import from_json, to_json
from assay.interfaces import Store
from assay.records import Manifest, MetricRow
from assay.store.repositories import AggregationRepository as Aggregations


class StoredAggregationRepository(AggregationRepository):
    def __init__(self, store: Store) -> None:
        self.store = store

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        overview = aggregation_overview
        stored = to_json(overview)
        rows = list(_metrics(stored["statistics"], overview))
        Aggregations(self.store).write(overview.id, rows)
        self.store.put_manifest(
            Manifest(
                kind="aggregation",
                id=overview.id,
                name=overview.description,
                created=overview.start.timestamp(),
                started=overview.start.timestamp(),
                ended=overview.end.timestamp(),
                complete=True,
                planned=len(rows),
                counts={"metrics": len(rows), "evaluations": overview.successful_evaluation_count},
                inputs=[
                    {"kind": "evaluation", "id": each} for each in sorted(x.id for x in overview.evaluation_overviews)
                ],
                plan={"overview": stored},
                labels=sorted(overview.labels),
                metadata=stored["metadata"],
                segments=self.store.log("aggregation", overview.id).segments(),
            )
        )

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        manifest = self.store.manifest("aggregation", aggregation_id)
        stored = manifest.plan.get("overview") if manifest else None
        return None if stored is None else overview_of(stored, aggregation_type)

    def aggregation_overview_ids(self) -> Sequence[str]:
        manifests = (self.store.manifest("aggregation", id) for id in self.store.ids("aggregation"))
        return sorted(manifest.id for manifest in manifests if manifest is not None and "overview" in manifest.plan)


def overview_of(
    stored: dict[str, Any], aggregation_type: type[AggregatedEvaluation]
) -> AggregationOverview[AggregatedEvaluation]:
    """The overview of a JSON value. Its statistics are read by themselves, as they may be of any kind of type."""
    overview: Any = from_json({**stored, "statistics": None}, AggregationOverview[None])
    object.__setattr__(overview, "statistics", from_json(stored["statistics"], aggregation_type))
    return overview


def _metrics(statistics: Any, overview: AggregationOverview[Any], name: str = "") -> Iterator[MetricRow]:
    """A row for each number, named by the way to it: `scores.some-run.elo`."""
    if isinstance(statistics, dict):
        for key, value in statistics.items():
            yield from _metrics(value, overview, f"{name}.{key}" if name else str(key))
    elif isinstance(statistics, (int, float)):
        yield {
            "metric_name": name or "value",
            "metric_type": type(overview.statistics).__name__,
            "facets": {},
            "label": "",
            "value": float(statistics),
            "count": overview.successful_evaluation_count,
            "errored": overview.crashed_during_evaluation_count,
        }
