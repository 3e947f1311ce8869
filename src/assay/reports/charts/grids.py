"""Charts of cells and bars: a value for each pair of names (facets, players, verdicts), and distributions."""

from collections.abc import Sequence

import msgspec

from assay.reports.charts.svg import (
    WIDTH,
    Canvas,
    Chart,
    Scale,
    exactly,
    finite,
    number,
    room_for,
    series,
    width_of,
)

_CELL = 28.0
_MOST_SHADE = 0.5  # so that the text stays legible on the darkest cell


class Cell(msgspec.Struct, kw_only=True):
    """A value and what stands in its place; by default the number."""

    value: float | None
    text: str = ""
    note: str = ""


def heat(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Cell | None]],
    *,
    ends: tuple[float, float] | None = None,
    about: str = "",
) -> Chart:
    """One hue, darker for more; `ends` are the values of the lightest and the darkest, by default those that occur."""
    left = 14 + room_for(rows, 150)
    wide = max(min((WIDTH - left - 8) / max(len(columns), 1), 110.0), 44.0)
    width = max(WIDTH, left + wide * len(columns) + 8)
    turned = any(width_of(name) > wide - 6 for name in columns)
    top = 14 + (room_for(columns, 110) if turned else 16)
    canvas = Canvas(top + _CELL * len(rows) + 10, width)
    values = [
        value
        for line in cells
        for cell in line
        if cell and (value := finite(cell.value)) is not None
    ]
    low, high = ends or (min(values, default=0.0), max(values, default=1.0))
    for at, name in enumerate(columns):
        x = left + wide * (at + 0.5)
        if turned:
            canvas.text(x + 4, top - 8, name, turn=True, room=top - 14)
        else:
            canvas.text(x, top - 8, name, anchor="middle", room=wide)
    for down, (row, line) in enumerate(zip(rows, cells, strict=True)):
        y = top + _CELL * down
        canvas.text(left - 6, y + _CELL / 2 + 4, row, anchor="end", room=left - 12)
        for at, (column, cell) in enumerate(zip(columns, line, strict=True)):
            _cell(canvas, cell, left + wide * at, y, wide, f"{row}, {column}", (low, high))
    return canvas.chart(title, about)


def _cell(
    canvas: Canvas,
    cell: Cell | None,
    x: float,
    y: float,
    wide: float,
    place: str,
    ends: tuple[float, float],
) -> None:
    value = finite(cell.value) if cell else None
    text = (cell.text if cell else "") or exactly(value)
    tip = f"{place}: {text}" + (f"; {cell.note}" if cell and cell.note else "")
    low, high = ends
    share = 0.0 if value is None else (value - low) / (high - low) if high > low else 0.5
    shade = 0.0 if value is None else 0.06 + min(1.0, max(0.0, share)) * (_MOST_SHADE - 0.06)
    canvas.rect(x + 1, y + 1, wide - 2, _CELL - 2, "fill s0", tip, shade)
    canvas.text(
        x + wide / 2,
        y + _CELL / 2 + 4,
        text,
        "ink" if value is not None else "quiet",
        anchor="middle",
        room=wide,
    )


def histogram(
    title: str,
    edges: Sequence[float],
    counts: Sequence[tuple[str, Sequence[int]]],
    *,
    axis: str,
    log: bool = False,
    about: str = "",
) -> Chart:
    """One distribution below the other, on one scale; the height of a bar is its share of the name's largest."""
    tall, gap = (54.0, 24.0) if len(counts) > 1 else (150.0, 24.0)
    bottom = 4 + (tall + gap) * len(counts)
    canvas = Canvas(bottom + 42)
    scale = Scale(edges, 16, WIDTH - 16, log=log)
    canvas.across(scale, 8, bottom, axis)
    for at, (name, numbers) in enumerate(counts):
        base = 4 + (tall + gap) * (at + 1)
        most, total = max(numbers, default=0), sum(numbers)
        canvas.text(16, base - tall - 6, f"{name or 'all'}, {total:,}", "strong", room=WIDTH - 32)
        for low, high, count in zip(edges, edges[1:], numbers, strict=False):
            if count:
                start, height = scale.at(finite(low) or 0.0), max(1.5, tall * count / most)
                wide = max(scale.at(finite(high) or 0.0) - start - 0.6, 0.8)
                tip = f"{name}: {count:,} of {total:,} from {number(low)} to {number(high)}".removeprefix(
                    ": "
                )
                canvas.rect(start, base - height, wide, height, f"fill {series(at)}", tip)
        canvas.line(16, base, WIDTH - 16, base, "rule")
    return canvas.chart(title, about)
