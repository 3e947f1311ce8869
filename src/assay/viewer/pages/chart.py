"""Charts of experiments: `name` says which, the other fields what of them."""

from typing import Any, Literal

import msgspec

from assay.errors import UserError
from assay.reports.charts import Chart, Dot, intervals
from assay.viewer.experiments import Experiments
from assay.viewer.metrics import board
from assay.viewer.pages.leaderboard import leader_rows


class Query(msgspec.Struct, kw_only=True):
    """`metric` and `label` choose among the leaderboard's rows, by default the first; `facet` are its facets."""

    name: Literal["intervals"] = "intervals"
    experiment: list[str] = []
    metric: str = ""
    label: str = ""
    facet: list[str] = []
    rows: str = ""
    columns: str = ""
    by: str = ""


def page(experiments: Experiments, query: Query) -> Chart:
    return _intervals(experiments, query)


def _intervals(experiments: Experiments, query: Query) -> Chart:
    rows = chosen_rows(experiments, query)
    several = len({row["experiment"] for row in rows}) > 1
    dots = [
        Dot(
            name=row_name(row),
            value=row["value"],
            low=row["ci_low"],
            high=row["ci_high"],
            wrong=row["if_wrong"],
            right=row["if_right"],
            group=row["experiment"] if several else "",
            note=counts_note(row),
        )
        for row in rows
    ]
    first = rows[0]
    level = f", {first['ci_level']:.0%} intervals" if first["ci_level"] else ""
    less = "; less is better" if first["lower_is_better"] else ""
    about = "Bars are intervals; faint lines end where a value would be if all that is missing were wrong or right."
    return intervals(
        f"{first['metric']} of {first['label']}", dots, axis=f"{first['metric']}{level}{less}", about=about
    )


def chosen_rows(experiments: Experiments, query: Query) -> list[dict[str, Any]]:
    """The leaderboard's rows of one metric and label."""
    rows = leader_rows(experiments, board(experiments, query.experiment, query.facet))
    if not rows:
        raise UserError(
            "there are no metrics to draw", fix="`assay aggregate` computes them, with `metrics:` in the config"
        )
    metric = query.metric or rows[0]["metric"]
    of_metric = [row for row in rows if row["metric"] == metric]
    label = query.label or (of_metric[0]["label"] if of_metric else "")
    chosen = [row for row in of_metric if row["label"] == label]
    if not chosen:
        pairs = ", ".join(sorted({f"{row['metric']} of {row['label']}" for row in rows}))
        raise UserError(f"no row has the metric {metric!r} and the label {label!r}", fix=f"choose one of {pairs}")
    return chosen


def row_name(row: dict[str, Any]) -> str:
    return ", ".join(row["facets"].values()) or row["experiment"]


def counts_note(row: dict[str, Any]) -> str:
    failed = [f"{count:,} {name}" for name, count in row["counts"].items() if count and name != "scored"]
    return ", ".join(
        [f"{row['items']:,} items", f"{row['samples']:,} samples", *failed, *filter(None, [row["partial"]])]
    )
