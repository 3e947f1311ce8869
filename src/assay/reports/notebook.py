"""Results with their pictures: what a notebook shows of them, and what the viewer's pages draw."""

from typing import Any

from assay.analysis.compare.compare import Comparison
from assay.analysis.judge.calibrate import Calibrated, Calibration
from assay.analysis.rank.rank import Ranking
from assay.engine.experiment.experiment import Result
from assay.records import MetricRow
from assay.reports.charts import Cell, Chart, Dot, Point, heat, intervals, reliability
from assay.reports.compare import interval_text
from assay.reports.judge import words
from assay.reports.sheet import sheet
from assay.stats.intervals import wilson

_MOST_DOTS = 40
_MOST_PLOTS = 12


def html(value: Any) -> str:
    """The sheet of a result and its picture, as a fragment that needs no other file."""
    drawn = "\n".join(
        chart.svg for chart in pictures(value)[: None if isinstance(value, Result) else 1]
    )
    return "\n".join(filter(None, [sheet(value).form("html"), drawn]))


def pictures(value: Any) -> list[Chart]:
    """The charts of a result, the most telling first; none for results that are not numbers with
    intervals."""
    if isinstance(value, Result):
        return [*_of_metrics(value.metrics), *_of_confidence(value.metrics)]
    if isinstance(value, Comparison):
        return _of_comparison(value)
    if isinstance(value, Ranking):
        return _of_ranking(value)
    if isinstance(value, Calibrated):
        return [
            chart for calibration in value.calibrations for chart in judge_pictures(calibration)
        ]
    return []


def _of_metrics(rows: list[MetricRow]) -> list[Chart]:
    """Of the first metric that has an interval."""
    name = next((row["metric_name"] for row in rows if row.get("ci_low") is not None), None)
    dots = [
        Dot(
            name=", ".join(str(row.get(facet)) for facet in row["facets"]) or row["label"],
            value=row["value"],
            low=row["ci_low"],
            high=row["ci_high"],
            method=row["ci_method"],
            wrong=row.get("value_if_missing_wrong"),
            right=row.get("value_if_missing_right"),
            group=row["label"],
        )
        for row in rows
        if row["metric_name"] == name
    ]
    labels = {dot.group for dot in dots}
    for dot in dots:
        dot.group = dot.group if len(labels) > 1 else ""
    return [intervals(f"{name} with intervals", dots[:_MOST_DOTS], axis=str(name))] if dots else []


def _of_confidence(rows: list[MetricRow]) -> list[Chart]:
    """Draw how sure models were, and how often they were right, of the metrics that have it in
    bins."""
    about = "On the dashed line a model is right as often as it is sure; below it, it is too sure."
    charts: list[Chart] = []
    for row in [
        row for row in rows if row["metric_type"] == "calibration_error" and row.get("bins")
    ][:_MOST_PLOTS]:
        points = [
            Point(
                x=each["confidence"],
                y=each["accuracy"],
                low=low,
                high=high,
                note=f"{each['count']:,} answers",
            )
            for each in row["bins"]
            for low, high in [wilson(each["accuracy"] * each["count"], each["count"])]
        ]
        name = ", ".join([*(str(row.get(facet)) for facet in row["facets"]), row["label"]])
        charts.append(
            reliability(
                f"{name}: reliability",
                points,
                across="confidence",
                upwards="share that is right",
                about=about,
            )
        )
    return charts


def _of_comparison(comparison: Comparison) -> list[Chart]:
    dots = [
        Dot(
            name=f"{pair.candidate} − {pair.baseline}",
            value=pair.difference,
            low=pair.ci_low,
            high=pair.ci_high,
            method=pair.test,
            note=f"{pair.verdict}, {pair.items:,} items",
        )
        for pair in comparison.pairs[:_MOST_DOTS]
    ]
    about = f"{interval_text(comparison.pairs_level)}s of the paired differences; the dashed line is no difference."
    return [
        intervals(
            f"differences in {comparison.metric}", dots, axis="difference", aim=0.0, about=about
        )
    ]


def _of_ranking(ranking: Ranking) -> list[Chart]:
    rating = "win rate" if ranking.method == "win-rate" else "rating"
    dots = [
        Dot(
            name=standing.player,
            value=standing.value,
            low=standing.ci_low,
            high=standing.ci_high,
            method=ranking.ci_method,
            note=f"{standing.matches:,} matches, {standing.failed:,} verdicts missing",
        )
        for standing in ranking.standings[:_MOST_DOTS]
    ]
    matrix = ranking.win_matrix
    players = matrix.players[:_MOST_DOTS]
    cells = [
        [_met(matrix.wins, matrix.ties, y, x) for x in range(len(players))]
        for y in range(len(players))
    ]
    about = "Wins of the row against the column, ties in brackets; the stronger the colour, the larger their share."
    return [
        intervals(
            f"{rating} by {ranking.method}", dots, axis=f"{rating}, {ranking.level:.0%} intervals"
        ),
        heat("win matrix", players, players, cells, ends=(0.0, 1.0), about=about),
    ]


def _met(wins: list[list[int]], ties: list[list[int]], row: int, column: int) -> Cell | None:
    won, tied, lost = wins[row][column], ties[row][column], wins[column][row]
    total = won + tied + lost
    if row == column or not total:
        return None
    text = f"{won:,} ({tied:,})" if tied else f"{won:,}"
    return Cell(
        value=(won + tied / 2) / total, text=text, note=f"{won:,} won, {tied:,} tied, {lost:,} lost"
    )


def judge_pictures(calibration: Calibration) -> list[Chart]:
    """The verdicts of a judge against people's, and for one that gives scores how often people pass
    each."""
    table, said = calibration.counted, words(calibration)
    counts = ((table.tp, table.fn), (table.fp, table.tn))
    most = max(table.tp + table.fn, table.fp + table.tn, 1.0)
    cells = [[Cell(value=count / most, text=f"{count:,.0f}") for count in row] for row in counts]
    title = f"{calibration.label}: people's verdicts and the judge's"
    rows, columns = [f"people: {word}" for word in said], [f"judge: {word}" for word in said]
    charts = [
        heat(
            title,
            rows,
            columns,
            cells,
            ends=(0.0, 1.0),
            about="How many labelled answers there are of each kind.",
        )
    ]
    if calibration.curve:
        points = [
            Point(
                x=each.score,
                y=each.passed.value,
                low=each.passed.low,
                high=each.passed.high,
                method=each.passed.method,
                note=f"{each.passed.n:,} answers",
            )
            for each in calibration.curve
        ]
        about = "On the dashed line the judge's score is the share that people pass."
        across, upwards = "the judge's score", "share that people pass"
        charts.append(
            reliability(
                f"{calibration.label}: reliability",
                points,
                across=across,
                upwards=upwards,
                about=about,
            )
        )
    return charts
