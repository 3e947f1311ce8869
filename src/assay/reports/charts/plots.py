"""Charts of numbers with their intervals: dots in rows, quality against cost, curves, reliability."""

from collections.abc import Sequence

import msgspec

from assay.reports.charts.svg import (
    WIDTH,
    Canvas,
    Chart,
    Scale,
    cut,
    exactly,
    finite,
    number,
    room_for,
    series,
    span,
    width_of,
)

_ROW = 22.0


class Dot(msgspec.Struct, kw_only=True):
    """A value with its interval. `wrong` and `right` are what it would be if all that is missing were so."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    wrong: float | None = None
    right: float | None = None
    group: str = ""
    note: str = ""

    def tip(self) -> str:
        text = f"{self.name}: {exactly(self.value)}{span(self.low, self.high)}"
        if self.is_bounded():
            text += f"; {exactly(self.wrong)} to {exactly(self.right)} if what is missing were wrong or right"
        return f"{text}; {self.note}" if self.note else text

    def is_bounded(self) -> bool:
        return (
            finite(self.wrong) is not None
            and finite(self.right) is not None
            and self.wrong != self.right
        )


def intervals(
    title: str,
    dots: Sequence[Dot],
    *,
    axis: str = "value",
    aim: float | None = None,
    about: str = "",
) -> Chart:
    """A row for each dot, by group; `aim` is a line to compare with, such as no difference."""
    groups: dict[str, list[Dot]] = {}
    for dot in dots:
        groups.setdefault(dot.group, []).append(dot)
    headed = [name for name in groups if name]
    left = 14 + room_for([dot.name for dot in dots], 170)
    bottom = 10 + _ROW * (len(dots) + len(headed))
    canvas = Canvas(bottom + 42)
    ends = [end for dot in dots for end in (dot.value, dot.low, dot.high, dot.wrong, dot.right)]
    scale = Scale([*ends, aim], left + 8, WIDTH - 60)
    canvas.across(scale, 6, bottom, axis)
    if (line := finite(aim)) is not None:
        canvas.line(scale.at(line), 6, scale.at(line), bottom, "aim")
    y = 10.0
    for at, (name, members) in enumerate(groups.items()):
        if name:
            canvas.text(8, y + 15, name, "strong", room=WIDTH - 16)
            y += _ROW
        for dot in members:
            _dot(canvas, scale, dot, y + _ROW / 2, left, series(at))
            y += _ROW
    return canvas.chart(title, about)


def _dot(canvas: Canvas, scale: Scale, dot: Dot, y: float, left: float, css: str) -> None:
    canvas.text(8, y + 4, dot.name, room=left - 6)
    value, low, high = finite(dot.value), finite(dot.low), finite(dot.high)
    tip = dot.tip()
    if (
        dot.is_bounded()
        and (wrong := finite(dot.wrong)) is not None
        and (right := finite(dot.right)) is not None
    ):
        canvas.line(scale.at(wrong), y, scale.at(right), y, f"faint {css}", tip)
    if low is not None and high is not None:
        canvas.line(scale.at(low), y, scale.at(high), y, f"stroke {css}", tip)
        for end in (low, high):
            canvas.line(scale.at(end), y - 4, scale.at(end), y + 4, f"stroke {css}")
    if value is not None:
        canvas.dot(scale.at(value), y, f"fill {css}", tip)
    canvas.text(
        WIDTH - 8, y + 4, exactly(value) if value is not None else "none", "ink", anchor="end"
    )


class Point(msgspec.Struct, kw_only=True):
    """A place on a chart, with an interval of `y`."""

    x: float | None
    y: float | None
    low: float | None = None
    high: float | None = None
    name: str = ""
    note: str = ""


def scatter(
    title: str,
    points: Sequence[Point],
    *,
    across: str,
    upwards: str,
    less: bool = False,
    about: str = "",
) -> Chart:
    """Quality upwards against what it costs; the line joins what nothing else beats on both. `less` is better upwards,
    and always better across."""
    drawn = [
        point for point in points if finite(point.x) is not None and finite(point.y) is not None
    ]
    missing = [point.name for point in points if point not in drawn]
    canvas = Canvas(330 + (18 if missing else 0))
    known = [point.x for point in drawn if point.x is not None]
    log = bool(known) and min(known) > 0 and max(known) / min(known) > 20
    xs = Scale(known, 64, WIDTH - 20, log=log)
    ys = Scale([end for point in drawn for end in (point.y, point.low, point.high)], 272, 14)
    canvas.across(xs, 14, 276, across)
    canvas.upwards(ys, 60, WIDTH - 16, upwards)
    best = [(xs.at(point.x or 0), ys.at(point.y or 0)) for point in _undominated(drawn, less)]
    canvas.path(best, "aim")
    places = [(xs.at(point.x or 0), ys.at(point.y or 0)) for point in drawn]
    for (x, y), point in zip(places, drawn, strict=True):
        tip = f"{point.name}: {exactly(point.y)}{span(point.low, point.high)} at {number(point.x)}"
        tip += f"; {point.note}" if point.note else ""
        if (low := finite(point.low)) is not None and (high := finite(point.high)) is not None:
            canvas.line(x, ys.at(low), x, ys.at(high), "pale s0", tip)
        canvas.dot(x, y, "fill s0", tip, 5)
    taken = [(x - 5, x + 5, y + 4) for x, y in places]
    for (x, y), point in zip(places, drawn, strict=True):
        _label(canvas, x, y, point.name, taken)
    if missing:
        canvas.text(
            8,
            342,
            f"not drawn, one of the numbers is unknown: {', '.join(missing)}",
            "quiet",
            room=WIDTH - 16,
        )
    return canvas.chart(title, about)


def _undominated(points: Sequence[Point], less: bool) -> list[Point]:
    """From the cheapest on, each that is better than all cheaper ones."""
    sign = 1 if less else -1
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, sign * (point.y or 0))):
        if not best or sign * (point.y or 0) < sign * (best[-1].y or 0):
            best.append(point)
    return best


def _label(
    canvas: Canvas, x: float, y: float, name: str, taken: list[tuple[float, float, float]]
) -> None:
    """Beside the dot, where no other name stands; left out where there is no room, as the tip has it."""
    shown = cut(name, 130)
    wide = width_of(shown)
    for dx, dy in ((9, -6), (-9 - wide, -6), (9, 15), (-9 - wide, 15), (9, -20), (9, 29)):
        start, line = x + dx, y + dy
        inside = start >= 62 and start + wide <= WIDTH - 2 and 10 <= line <= 274
        if inside and all(
            abs(line - other) > 13 or start > end or start + wide < begin
            for begin, end, other in taken
        ):
            taken.append((start, start + wide, line))
            canvas.text(start, line, shown, "ink named")
            return


class Line(msgspec.Struct, kw_only=True):
    """A named series of points, in order."""

    name: str
    points: Sequence[Point]


def curve(
    title: str, lines: Sequence[Line], *, across: str, upwards: str, about: str = ""
) -> Chart:
    """A line for each series with the band of its intervals; where a value is missing, the line is broken."""
    canvas = Canvas(324 + 18 * ((len(lines) + 1) // 2))
    everything = [point for line in lines for point in line.points]
    known = [x for point in everything if (x := finite(point.x)) is not None]
    log = bool(known) and min(known) > 0 and max(known) / min(known) > 4
    xs = Scale(known, 64, WIDTH - 20, log=log)
    ys = Scale([end for point in everything for end in (point.y, point.low, point.high)], 262, 14)
    marks = sorted(set(known))
    if len(marks) <= 10:
        for mark in marks:
            canvas.text(xs.at(mark), 284, number(mark), "quiet", anchor="middle")
        canvas.text(WIDTH / 2, 302, across, "quiet", anchor="middle")
    else:
        canvas.across(xs, 14, 266, across)
    canvas.upwards(ys, 60, WIDTH - 16, upwards)
    for at, line in enumerate(lines):
        for part in _unbroken(line.points):
            places = [(xs.at(point.x or 0), ys.at(point.y or 0)) for point in part]
            if all(
                finite(point.low) is not None and finite(point.high) is not None for point in part
            ):
                upper = [
                    (x, ys.at(point.high or 0)) for (x, _), point in zip(places, part, strict=True)
                ]
                lower = [
                    (x, ys.at(point.low or 0)) for (x, _), point in zip(places, part, strict=True)
                ]
                canvas.path([*upper, *reversed(lower)], f"band {series(at)}", closed=True)
            canvas.path(places, f"drawn {series(at)}")
            for (x, y), point in zip(places, part, strict=True):
                tip = f"{line.name}: {exactly(point.y)}{span(point.low, point.high)} at {number(point.x)}"
                canvas.dot(x, y, f"fill {series(at)}", tip, 3.5)
    canvas.legend([line.name for line in lines], 326)
    return canvas.chart(title, about)


def _unbroken(points: Sequence[Point]) -> list[list[Point]]:
    parts: list[list[Point]] = [[]]
    for point in points:
        if finite(point.x) is None or finite(point.y) is None:
            parts.append([])
        else:
            parts[-1].append(point)
    return [part for part in parts if part]


def reliability(
    title: str, points: Sequence[Point], *, across: str, upwards: str, about: str = ""
) -> Chart:
    """What was said against what is so, both from 0 to 1: on the diagonal both are the same."""
    canvas = Canvas(330)
    xs, ys = Scale([0, 1], 64, WIDTH - 20), Scale([0, 1], 272, 14)
    canvas.across(xs, 14, 276, across)
    canvas.upwards(ys, 60, WIDTH - 16, upwards)
    canvas.line(xs.at(0), ys.at(0), xs.at(1), ys.at(1), "aim", "here both are the same")
    drawn = [point for part in _unbroken(points) for point in part]
    canvas.path([(xs.at(point.x or 0), ys.at(point.y or 0)) for point in drawn], "stroke s0")
    for point in drawn:
        x, y = xs.at(point.x or 0), ys.at(point.y or 0)
        tip = f"{number(point.x)}: {exactly(point.y)}{span(point.low, point.high)}; {point.note}".removesuffix(
            "; "
        )
        if (low := finite(point.low)) is not None and (high := finite(point.high)) is not None:
            canvas.line(x, ys.at(low), x, ys.at(high), "stroke s0", tip)
        canvas.dot(x, y, "fill s0", tip, 4.5)
    return canvas.chart(title, about)
