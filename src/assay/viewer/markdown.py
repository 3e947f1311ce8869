"""The report as Markdown for GitHub: tables, and pictures as SVG files in a folder beside it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import AssayError
from assay.reports.documents import markdown_escaped
from assay.reports.sheet import Cell, Sheet, Table, clean, columns_of, counts_text, span_text
from assay.store.files import make_folder
from assay.store.written import check_replaceable, write_named
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
    for metric, label in dict.fromkeys((row["metric"], row["label"]) for row in board["rows"]):
        rows = [row for row in board["rows"] if (row["metric"], row["label"]) == (metric, label)]
        yield f"## {markdown_escaped(f'{metric}, {label}' if label else metric)}"
        yield _leaderboard(rows, board["facets"])
        for name in _CHARTS:
            chart = _chart(experiments, name, metric, label)
            if chart is not None:
                place = folder / f"{len(pictures) + 1}-{name}.svg"
                pictures[place] = chart["svg"].encode()
                yield f"![{markdown_escaped(chart['title'])}]({folder.name}/{place.name})"
    pairs = compared(experiments, board)
    rows = [
        row for (a, b), content in pairs.items() for row in _compared(a, b, content["comparison"])
    ]
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
            summary = f"<summary>{markdown_escaped(id)}: config</summary>"
            fence = "~" * (3 + max(map(len, re.findall("~+", text)), default=0))
            yield f"<details>{summary}\n\n{fence}yaml\n{text}\n{fence}\n\n</details>"


def _leaderboard(rows: list[dict[str, Any]], facets: list[str]) -> str:
    several = len({row["experiment"] for row in rows}) > 1
    heads = ["<experiment"] if several else []
    columns = columns_of(
        *heads, *(f"<{name.removeprefix('metadata.')}" for name in facets), "value", "interval"
    )
    columns += columns_of("if missing is wrong … right", "items", "samples", "failed", "<partial")
    return Sheet([Table(columns, [_cells(row, facets, several) for row in rows])]).form("markdown")


def _cells(row: dict[str, Any], facets: list[str], several: bool) -> list[str | Cell]:
    failed = {
        name: number
        for name, number in row["counts"].items()
        if number and name not in ("scored", "skipped")
    }
    return [
        *([row["experiment"]] if several else []),
        *(row["facets"].get(name, "–") for name in facets),
        "–" if row["value"] is None else f"{row['value']:.3f}",
        span_text(row["ci_low"], row["ci_high"]),
        span_text(row["if_wrong"], row["if_right"]) if failed else "–",
        f"{row['items']:,}",
        f"{row['samples']:,}",
        counts_text(failed, "0"),
        row["partial"],
    ]


def _chart(experiments: Experiments, name: str, metric: str, label: str) -> dict[str, Any] | None:
    """A chart, or None where there is nothing to draw."""
    try:
        return msgspec.to_builtins(
            page(experiments, "chart", {"name": [name], "metric": [metric], "label": [label]})
        )
    except AssayError:
        return None


def _compared(a: str, b: str, comparison: dict[str, Any]) -> Iterator[list[str | Cell]]:
    for pair in comparison["pairs"]:
        span = span_text(pair["ci_low"], pair["ci_high"], "+.3f", " … ")
        changed = [f"{pair['gained']:,}", f"{pair['lost']:,}"]
        numbers = [f"{pair['difference']:+.3f}", span, f"{pair['p_corrected']:.2g}", *changed]
        yield [comparison["label"], a, b, *numbers, pair["verdict"]]
