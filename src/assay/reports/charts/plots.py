"""Charts of numbers with their intervals: dots in rows, quality against cost, curves, reliability."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from assay.records import values_by_key
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
    width_of,
)
from assay.reports.sheet import WEAK, figures, span_text, weak_reason, weak_text

_ROW = 22.0


class Dot(msgspec.Struct, kw_only=True):
    """A value with its interval, made by `method`. `wrong` and `right` are what it would be if all
    that is missing were so."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""
    wrong: float | None = None
    right: float | None = None
    group: str = ""
    note: str = ""

    def tip(self) -> str:
        text = f"{self.name}: {exactly(self.value, self.low, self.high, self.method)}"
        if self.is_bounded():
            ends = span_text(self.wrong, self.right, between=" to ")
            text += f"; {ends} if what is missing were wrong or right"
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
    groups = values_by_key((dot.group, dot) for dot in dots)
    left = 14 + room_for([dot.name for dot in dots], 170)
    bottom = 10 + _ROW * (len(dots) + sum(map(bool, groups)))
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
    return canvas.chart(title, _about(about, dots))


def _dot(canvas: Canvas, scale: Scale, dot: Dot, y: float, left: float, css: str) -> None:
    canvas.text(8, y + 4, dot.name, room=left - 6)
    tip = dot.tip()
    if dot.is_bounded():
        wrong, right = scale.ends(dot.wrong, dot.right)
        canvas.line(wrong, y, right, y, f"faint {css}", tip)
    if ends := scale.ends(dot.low, dot.high):
        canvas.line(ends[0], y, ends[1], y, f"stroke {css}", tip)
        for end, known in zip(ends, (dot.low, dot.high), strict=True):
            if known is not None:  # no stop where it is open
                canvas.line(end, y - 4, end, y + 4, f"stroke {css}")
    shown = "none"
    if (value := finite(dot.value)) is not None:
        canvas.dot(scale.at(value), y, f"fill {css}", tip)
        shown = figures(value, dot.low, dot.high)[0] + WEAK * bool(weak_reason(dot.method))
    canvas.text(WIDTH - 8, y + 4, shown, "ink", anchor="end")


def _about(about: str, drawn: "Sequence[Dot | Point]") -> str:
    """Return the words of a chart, and why intervals in it are weak."""
    return f"{about} {weak_text(weak_reason(each.method) for each in drawn)}".strip()


class Point(msgspec.Struct, kw_only=True):
    """A place on a chart, with an interval of `y` and how that was made."""

    x: float | None
    y: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""
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
    """Quality upwards against what it costs; the line joins what nothing else beats on both. `less`
    is better upwards, and always better across."""
    drawn = [point for part in _unbroken(points) for point in part]
    missing = [point.name for point in points if not _unbroken([point])]
    plane = _Plane(
        Canvas(330 + (18 if missing else 0)),
        Scale([point.x for point in drawn], 64, WIDTH - 20, log=_spreads(drawn, 20)),
        Scale(_heights(drawn), 272, 14),
    )
    canvas = plane.canvas
    canvas.across(plane.xs, 14, 276, across)
    canvas.upwards(plane.ys, 60, WIDTH - 16, upwards)
    canvas.path([*map(plane.place, _frontier(drawn, less))], "aim")
    for point in drawn:
        tip = f"{point.name}: {_point_text(point)} at {number(point.x)}"
        plane.mark(point, "pale s0", f"{tip}; {point.note}" if point.note else tip, 5)
    places = [*map(plane.place, drawn)]
    _label_all(canvas, places, drawn)
    if missing:
        text = f"not drawn, one of the numbers is unknown: {', '.join(missing)}"
        canvas.text(8, 342, text, "quiet", room=WIDTH - 16)
    return canvas.chart(title, _about(about, drawn))


class _Plane(NamedTuple):
    """A canvas with two scales."""

    canvas: Canvas
    xs: Scale
    ys: Scale

    def place(self, point: Point) -> tuple[float, float]:
        return self.xs.at(point.x or 0), self.ys.at(point.y or 0)

    def mark(self, point: Point, css: str, tip: str, size: float) -> None:
        """Draw a point and its interval."""
        x, y = self.place(point)
        if ends := self.ys.ends(point.low, point.high):
            self.canvas.line(x, ends[0], x, ends[1], css, tip)
        self.canvas.dot(x, y, "fill s0", tip, size)


def _heights(points: Sequence[Point]) -> list[float | None]:
    return [end for point in points for end in (point.y, point.low, point.high)]


def _spreads(points: Sequence[Point], most: float) -> bool:
    """Return whether the largest x, all above 0, is more than so many times the smallest."""
    known = [x for point in points if (x := finite(point.x)) is not None]
    return min(known, default=0) > 0 and max(known) / min(known) > most


def _point_text(point: Point) -> str:
    return exactly(point.y, point.low, point.high, point.method)


def _frontier(points: Sequence[Point], less: bool) -> list[Point]:
    """From the cheapest on, each that is better than all cheaper ones."""
    sign = 1 if less else -1
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, sign * (point.y or 0))):
        if not best or sign * (point.y or 0) < sign * (best[-1].y or 0):
            best.append(point)
    return best


_TALL = 13  # of a name
_Taken = dict[int, list[tuple[float, float, float]]]  # starts, ends and lines, by their heights


def _take(taken: _Taken, start: float, end: float, line: float) -> None:
    taken.setdefault(int(line // _TALL), []).append((start, end, line))


def _label_all(
    canvas: Canvas, places: Sequence[tuple[float, float]], points: Sequence[Point]
) -> None:
    taken: _Taken = {}
    for x, y in places:
        _take(taken, x - 5, x + 5, y + 4)
    for (x, y), point in zip(places, points, strict=True):
        _label(canvas, x, y, point.name, taken)


def _label(canvas: Canvas, x: float, y: float, name: str, taken: _Taken) -> None:
    """Beside the dot, where no other name stands; left out where there is no room, as the tip has
    it."""
    shown = cut(name, 130)
    wide = width_of(shown)
    for dx, dy in ((9, -6), (-9 - wide, -6), (9, 15), (-9 - wide, 15), (9, -20), (9, 29)):
        start = x + dx
        line = y + dy
        inside = start >= 62 and start + wide <= WIDTH - 2 and 10 <= line <= 274
        at = int(line // _TALL)
        if inside and all(
            abs(line - other) > _TALL or start > end or start + wide < begin
            for near in (at, at - 1, at + 1)
            for begin, end, other in taken.get(near, ())
        ):
            _take(taken, start, start + wide, line)
            canvas.text(start, line, shown, "ink named")
            return


class Line(msgspec.Struct, kw_only=True):
    """A named series of points, in order."""

    name: str
    points: list[Point]


def curve(
    title: str, lines: Sequence[Line], *, across: str, upwards: str, about: str = ""
) -> Chart:
    """A line for each series with the band of its intervals; where a value is missing, the line is
    broken."""
    canvas = Canvas(324 + 18 * ((len(lines) + 1) // 2))
    everything = [point for line in lines for point in line.points]
    known = [point.x for point in everything]
    xs = Scale(known, 64, WIDTH - 20, log=_spreads(everything, 4))
    ys = Scale(_heights(everything), 262, 14)
    plane = _Plane(canvas, xs, ys)
    marks = sorted({x for x in map(finite, known) if x is not None})
    if len(marks) <= 10:
        for mark in marks:
            canvas.text(xs.at(mark), 284, number(mark), "quiet", anchor="middle")
        canvas.text(WIDTH / 2, 302, across, "quiet", anchor="middle")
    else:
        canvas.across(xs, 14, 266, across)
    canvas.upwards(ys, 60, WIDTH - 16, upwards)
    for at, line in enumerate(lines):
        for part in _unbroken(line.points):
            places = [*map(plane.place, part)]
            bands = [ys.ends(point.low, point.high) for point in part]
            if all(bands):
                upper = [(x, end[1]) for (x, _), end in zip(places, bands, strict=True)]
                lower = [(x, end[0]) for (x, _), end in zip(places, bands, strict=True)]
                canvas.path([*upper, *reversed(lower)], f"band {series(at)}", closed=True)
            canvas.path(places, f"drawn {series(at)}")
            for (x, y), point in zip(places, part, strict=True):
                tip = f"{line.name}: {_point_text(point)} at {number(point.x)}"
                canvas.dot(x, y, f"fill {series(at)}", tip, 3.5)
    canvas.legend([line.name for line in lines], 326)
    return canvas.chart(title, _about(about, everything))


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
    """Draw what was said against what is so, both from 0 to 1: on the diagonal both are the
    same."""
    canvas = Canvas(330)
    xs = Scale([0, 1], 64, WIDTH - 20)
    ys = Scale([0, 1], 272, 14)
    canvas.across(xs, 14, 276, across)
    canvas.upwards(ys, 60, WIDTH - 16, upwards)
    canvas.line(xs.at(0), ys.at(0), xs.at(1), ys.at(1), "aim", "here both are the same")
    drawn = [point for part in _unbroken(points) for point in part]
    plane = _Plane(canvas, xs, ys)
    canvas.path([*map(plane.place, drawn)], "stroke s0")
    for point in drawn:
        tip = f"{number(point.x)}: {_point_text(point)}; {point.note}".removesuffix("; ")
        plane.mark(point, "stroke s0", tip, 4.5)
    return canvas.chart(title, about)
