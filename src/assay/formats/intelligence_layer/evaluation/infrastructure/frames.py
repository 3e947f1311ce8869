"""Lineages and overviews as pandas frames; an empty list gives an empty frame with the same columns."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from assay.errors import UserError
from assay.formats.intelligence_layer.types import BadValue, to_json

if TYPE_CHECKING:
    import pandas as pd

    from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregationOverview
    from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
        EvaluationLineage,
        RunLineage,
    )


def run_lineages_to_pandas(run_lineages: "Sequence[RunLineage[Any, Any, Any]]") -> "pd.DataFrame":
    """One row for each lineage, indexed by example and run."""
    index = ["example_id", "run_id"]
    columns = ["input", "expected_output", "metadata", "output", "lineage"]
    rows = (
        {**_example(lineage.example), "run_id": lineage.output.run_id, "output": lineage.output.output}
        | {"lineage": lineage}
        for lineage in run_lineages
    )
    return _frame(rows, index, columns)


def evaluation_lineages_to_pandas(
    evaluation_lineages: "Sequence[EvaluationLineage[Any, Any, Any, Any]]",
) -> "pd.DataFrame":
    """One row for each output of each lineage, indexed by example, evaluation and run."""
    index = ["example_id", "evaluation_id", "run_id"]
    columns = ["input", "expected_output", "metadata", "output", "result", "tracer", "lineage"]
    rows = (
        {
            **_example(lineage.example),
            "evaluation_id": lineage.evaluation.evaluation_id,
            "run_id": output.run_id,
            "output": output.output,
            "result": lineage.evaluation.result,
            "tracer": tracer,
            "lineage": lineage,
        }
        for lineage in evaluation_lineages
        for output, tracer in zip(lineage.outputs, lineage.tracers, strict=True)
    )
    return _frame(rows, index, columns)


def aggregation_overviews_to_pandas(
    aggregation_overviews: "Sequence[AggregationOverview[Any]]",
    unwrap_statistics: bool = True,
    strict: bool = True,
    unwrap_metadata: bool = True,
) -> "pd.DataFrame":
    """One row for each overview. `strict` refuses statistics of different classes; without it, fields that an overview
    lacks are NaN."""
    overviews = list(aggregation_overviews)
    kinds = {type(overview.statistics) for overview in overviews}
    if strict and len(kinds) > 1:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise BadValue(f"the overviews have statistics of different types: {shown}", fix="pass strict=False")
    frame = _pandas().DataFrame([overview.model_dump(mode="json") for overview in overviews])
    if unwrap_statistics and "statistics" in frame:
        statistics = [_fields(overview.statistics) for overview in overviews]
        frame = _beside(frame.drop(columns="statistics"), _pandas().DataFrame(statistics), "_statistics")
    if unwrap_metadata and "metadata" in frame:
        metadata = _pandas().json_normalize([to_json(overview.metadata) for overview in overviews])
        frame = _beside(frame.drop(columns="metadata"), metadata, "_metadata")
    return frame


def _example(example: Any) -> dict[str, Any]:
    return {
        "example_id": example.id,
        "input": example.input,
        "expected_output": example.expected_output,
        "metadata": example.metadata,
    }


def _fields(statistics: Any) -> dict[str, Any]:
    found = to_json(statistics)
    return found if isinstance(found, dict) else {"statistics": found}


def _beside(frame: Any, further: Any, ending: str) -> Any:
    """Both frames' columns; a further one whose name is taken gets an ending."""
    renamed = further.rename(columns={name: f"{name}{ending}" for name in further if name in frame})
    return _pandas().concat([frame, renamed], axis=1)


def _frame(rows: Iterable[dict[str, Any]], index: list[str], columns: list[str]) -> "pd.DataFrame":
    return _pandas().DataFrame(list(rows), columns=[*index, *columns]).set_index(index)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise UserError("frames need pandas, which is not installed", fix="pip install 'assay[frames]'") from None
    return pd
