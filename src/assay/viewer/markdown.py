"""The report as Markdown for GitHub: tables, and pictures as SVG files in a folder beside it."""

import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import msgspec

from assay.reports.charts import Chart
from assay.reports.documents import markdown_escaped
from assay.reports.run import metrics_table
from assay.reports.sheet import Cell, Sheet, Table, clean, columns_of, figures
from assay.sdk import AssayError, JsonObject, MetricRow, make_folder
from assay.store.ledger import check_replaceable, write_named
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page
from assay.viewer.report import compared, config_text, reproduce

_CHARTS = ("intervals", "scatter")


def write_markdown(experiments: Experiments, file: Path, title: str, *, force: bool) -> list[str]:
    """Write the report and its pictures; nothing is written if one of the files is somebody else's."""
    folder = file.with_name(f"{file.stem}_files")
    pictures: dict[Path, bytes] = {}
    text = "\n\n".join(_blocks(experiments, title, file, folder, pictures)) + "\n"
    for place in (file, *pictures):
        check_replaceable(place, force=force)
    if pictures:
        make_folder(folder)
    for place, content in pictures.items():
        write_named(place, content, force=force, private=False)
    write_named(file, text.encode("utf-8", "replace"), force=force, private=False)
    return [f"pictures are in {folder}"] if pictures else []


def _blocks(
    experiments: Experiments, title: str, file: Path, folder: Path, pictures: dict[Path, bytes]
) -> Iterator[str]:
    yield f"# {markdown_escaped(title)}"
    board = msgspec.to_builtins(page(experiments, "leaderboard", {}))
    place = itemgetter("metric", "label")
    for metric, label in dict.fromkeys(map(place, board["rows"])):
        rows = [_metric_row(row) for row in board["rows"] if place(row) == (metric, label)]
        yield f"## {markdown_escaped(f'{metric}, {label}' if label else metric)}"
        yield Sheet([metrics_table(rows)]).form("markdown")
        for name in _CHARTS:
            chart = _chart(experiments, name, metric, label)
            if chart is not None:
                file_name = f"{len(pictures) + 1}-{name}.svg"
                pictures[folder / file_name] = chart.svg.encode()
                yield f"![{markdown_escaped(chart.title)}]({folder.name}/{file_name})"
    pairs = compared(experiments, board)
    rows = [row for sides, page in pairs.items() for row in _compared(sides, page["comparison"])]
    if rows:
        columns = columns_of(
            "<label", "<a", "<b", "b − a", "interval", "p", "gained", "lost", "<verdict"
        )
        yield "## Differences"
        yield Sheet([Table(columns, rows)]).form("markdown")
    yield from (f"> {markdown_escaped(note)}" for note in board["notes"])
    yield "## How to reproduce it"
    yield "```sh\n" + "\n".join(reproduce(experiments, file)) + "\n```"
    for id, entry in experiments.list().items():
        if text := clean(config_text(Path(entry.folder))):
            fence = "~" * (3 + max(map(len, re.findall("~+", text)), default=0))
            yield (
                f"<details><summary>{markdown_escaped(id)}: config</summary>\n\n"
                f"{fence}yaml\n{text}\n{fence}\n\n</details>"
            )


# of the leaderboard's rows, what a metric row calls it
_FIELDS = {
    "metric": "metric_name",
    "items": "total_item_count",
    "samples": "total_sample_count",
    "planned": "planned_sample_count",
    "used": "used_sample_count",
    "if_wrong": "value_if_missing_wrong",
    "if_right": "value_if_missing_right",
}


def _metric_row(row: JsonObject) -> MetricRow:
    """Return a row of the leaderboard as a metric row, with its experiment as a facet."""
    facets = {"experiment": row["experiment"], **row["facets"]}
    counts = {f"{name}_count": number for name, number in row["counts"].items()}
    named = {_FIELDS.get(name, name): value for name, value in row.items()}
    return {**named, **counts, **facets, "facets": list(facets)}


def _chart(experiments: Experiments, name: str, metric: str, label: str) -> Chart | None:
    """A chart, or None where there is nothing to draw."""
    try:
        return page(experiments, "chart", {"name": [name], "metric": [metric], "label": [label]})
    except AssayError:
        return None


def _compared(sides: tuple[str, str], comparison: JsonObject) -> Iterator[list[str | Cell]]:
    for pair in comparison["pairs"]:
        ends = (pair["ci_low"], pair["ci_high"])
        shown = figures(pair["difference"], *ends, pair["test"], "+", " … ")
        changed = [f"{pair['gained']:,}", f"{pair['lost']:,}"]
        numbers = [*shown, f"{pair['p_corrected']:.2g}", *changed]
        yield [comparison["label"], *sides, *numbers, pair["verdict"]]
