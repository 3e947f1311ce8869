"""`assay aggregate`: compute metrics from evaluations."""

from typing import Any

from assay import api
from assay.cli import verb
from assay.cli._options import (
    POSITIVE,
    cluster_option,
    existing_rows_options,
    on_option,
    option,
    overrides,
    paths_argument,
)
from assay.cli._output import format_option
from assay.cli._running import show_result


@verb("aggregate")
@paths_argument
@option("--workers", "Up to this many processes, for many rows.", type=POSITIVE, default=1)
@cluster_option
@on_option
@existing_rows_options
@format_option
def command(
    paths: tuple[str, ...],
    form: str,
    as_json: bool,
    settings: tuple[str, ...],
    cluster_by: str,
    **options: Any,
) -> None:
    """Compute metrics from the evaluations in each PATH, an experiment's folder or any evaluation_results.jsonl.

    Several are taken together; the facet `source` tells them apart.
    """
    named = {"cluster_by": cluster_by} if cluster_by else {}
    result = api.aggregate(paths, overrides=overrides(settings) | named, **options)
    show_result(result, form, as_json=as_json, notes=True)
