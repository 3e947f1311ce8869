"""Every chart is XML that can do no harm, for any names and numbers, and the same bytes for the same values."""

import math
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from assay.reports.charts import (
    Cell,
    Chart,
    Dot,
    Line,
    Point,
    curve,
    heat,
    histogram,
    intervals,
    reliability,
    scatter,
)
from assay.reports.charts.svg import WIDTH, Scale, cut, finite, width_of

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "desc", "style", "rect", "line", "circle", "path", "text"}
NUMBERS = st.one_of(
    st.none(),
    st.floats(),
    st.sampled_from([0.0, 1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324]),
)
HOSTILE = "<script>alert(1)</script>\"'&]]>\x00\x1b[2J\u202eevil\ud800\ufffe\n"
NAMES = st.one_of(
    st.text(max_size=30),
    st.sampled_from([HOSTILE, "", "a" * 5000, "漢字" * 400, "</title><image href='http://x'/>"]),
)


def elements(chart: Chart) -> list[ElementTree.Element]:
    """All elements of a chart, after checking what must hold for every chart."""
    root = ElementTree.fromstring(chart.svg)
    found = list(root.iter())
    assert {each.tag.removeprefix(SVG) for each in found} <= ALLOWED
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    values = " ".join(
        value for each in found for name, value in each.attrib.items() if name != "aria-label"
    )
    assert not re.search(r"(?i)\b(nan|inf(inity)?)\b", values)
    for each in found:
        assert not {name for name in each.attrib if name.startswith("on") or "href" in name}
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "r"):
            assert each.get(name) is None or math.isfinite(float(each.get(name) or ""))
    assert "url(" not in chart.svg
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", chart.svg)
    return found


def marks(chart: Chart, tag: str) -> list[ElementTree.Element]:
    return [each for each in elements(chart) if each.tag == f"{SVG}{tag}"]


def texts(chart: Chart) -> list[str]:
    return [
        "".join(part for part in [each.text or "", *(inner.tail or "" for inner in each)])
        for each in marks(chart, "text")
    ]


dots = st.lists(
    st.builds(
        Dot,
        name=NAMES,
        value=NUMBERS,
        low=NUMBERS,
        high=NUMBERS,
        wrong=NUMBERS,
        right=NUMBERS,
        group=NAMES,
        note=NAMES,
    ),
    max_size=6,
)
points = st.lists(
    st.builds(Point, x=NUMBERS, y=NUMBERS, low=NUMBERS, high=NUMBERS, name=NAMES, note=NAMES),
    max_size=6,
)
cells = st.one_of(st.none(), st.builds(Cell, value=NUMBERS, text=NAMES, note=NAMES))


@st.composite
def grids(draw: Callable[..., object]) -> Chart:
    rows, columns = draw(st.lists(NAMES, max_size=4)), draw(st.lists(NAMES, max_size=4))
    assert isinstance(rows, list)
    assert isinstance(columns, list)
    values = [[draw(cells) for _ in columns] for _ in rows]
    return heat(str(draw(NAMES)), rows, columns, values)  # pyright: ignore[reportArgumentType]


@given(NAMES, dots, NUMBERS)
def test_intervals_of_anything(title: str, rows: list[Dot], aim: float | None) -> None:
    chart = intervals(title, rows, aim=aim, about=title)
    assert len(marks(chart, "circle")) == sum(finite(dot.value) is not None for dot in rows)
    assert chart == intervals(title, rows, aim=aim, about=title)


@given(NAMES, points, st.booleans())
def test_scatter_of_anything(title: str, places: list[Point], less: bool) -> None:
    elements(scatter(title, places, across=title, upwards=title, less=less))


@given(NAMES, st.lists(points, max_size=3))
def test_curves_of_anything(title: str, lines: list[list[Point]]) -> None:
    elements(
        curve(title, [Line(name=title, points=line) for line in lines], across="k", upwards=title)
    )
    for line in lines:
        elements(reliability(title, line, across=title, upwards="y"))


@given(grids())
def test_grids_of_anything(chart: Chart) -> None:
    elements(chart)


@given(
    st.lists(st.floats(-1e99, 1e99), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(
        st.tuples(NAMES, st.lists(st.integers(0, 10**12), min_size=7, max_size=7)), max_size=3
    ),
)
def test_histograms_of_anything(edges: list[float], counts: list[tuple[str, list[int]]]) -> None:
    elements(histogram("x", edges, counts, axis="y"))


@given(st.lists(st.floats(-1e99, 1e99), min_size=1, max_size=5), st.booleans())
def test_a_scale_keeps_the_order_and_its_ends(values: list[float], log: bool) -> None:
    scale = Scale(values, 10, 400, log=log)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(10 <= place <= 400 for place in places)
    ticks = scale.ticks()
    assert ticks == sorted(set(ticks))


def test_intervals_show_what_they_are_given() -> None:
    rows = [
        Dot(name="small", value=0.25, low=0.1, high=0.4, wrong=0.2, right=0.6, group="one"),
        Dot(name="large", value=0.75, low=None, high=None, group="two"),
        Dot(name="broken", value=math.nan, group="two"),
    ]
    chart = intervals("pass rate", rows)
    assert {"one", "two", "small", "0.250", "large", "0.750", "broken", "none"} <= set(texts(chart))
    first, second = (float(each.get("cx") or 0) for each in marks(chart, "circle"))
    assert first < second
    drawn = [each for each in marks(chart, "line") if each.get("class") == "stroke s0"]
    span = next(
        (float(each.get("x1") or 0), float(each.get("x2") or 0))
        for each in drawn
        if each.get("x1") != each.get("x2")
    )
    assert span[0] < first < span[1]
    faint = [each for each in marks(chart, "line") if "faint" in (each.get("class") or "")]
    assert len(faint) == 1
    assert "0.200 to 0.600 if what is missing were wrong or right" in (faint[0][0].text or "")


def test_a_pareto_line_has_what_nothing_beats() -> None:
    known = [(1, 0.3), (2, 0.2), (3, 0.5), (4, 0.5), (5, 0.9)]
    places = [Point(x=x, y=y, name=f"m{x}") for x, y in known]
    path = marks(scatter("t", places, across="cost", upwards="quality"), "path")[0].get("d") or ""
    assert path.count("L") == 2  # 1, 3 and 5
    lower = (
        marks(scatter("t", places, across="cost", upwards="error", less=True), "path")[0].get("d")
        or ""
    )
    assert lower.count("L") == 1  # 1 and 2


def test_a_missing_value_breaks_a_curve() -> None:
    line = [Point(x=x, y=None if x == 3 else 0.1 * x, low=0, high=1) for x in (1, 2, 3, 4, 5)]
    chart = curve("t", [Line(name="m", points=line)], across="k", upwards="v")
    assert len([each for each in marks(chart, "path") if "drawn" in (each.get("class") or "")]) == 2
    assert len(marks(chart, "circle")) == 5  # four points and one of the legend


def test_a_cell_is_as_dark_as_its_value() -> None:
    chart = heat(
        "t", ["a"], ["x", "y", "z"], [[Cell(value=0.0), Cell(value=1.0), Cell(value=None)]]
    )
    shades = [
        float(each.get("fill-opacity") or -1)
        for each in marks(chart, "rect")
        if each.get("fill-opacity")
    ]
    assert shades == [0.06, 0.5, 0.0]
    assert texts(chart)[-3:] == ["0.000", "1.000", "–"]


def test_charts_of_one_page_do_not_style_each_other() -> None:
    charts = [intervals("t", [Dot(name=name, value=0.5)]) for name in "ab"]
    ids = [ElementTree.fromstring(chart.svg).get("id") for chart in charts]
    assert len(set(ids)) == 2
    for chart, id in zip(charts, ids, strict=True):
        style = marks(chart, "style")[0].text or ""
        places = [
            place for line in style.splitlines() for place in line.partition("{")[0].split(",")
        ]
        assert [place for place in places if f"#{id}" not in place] == ["svg:root"]


@pytest.mark.parametrize("text", ["short", "x" * 500, "漢" * 90])
def test_long_names_are_cut_and_told_in_full(text: str) -> None:
    shown = cut(text, 120)
    assert width_of(shown) <= 120 + 13
    chart = intervals("t", [Dot(name=text, value=0.5)])
    titles = [each.text for each in marks(chart, "title")]
    assert text in titles or shown == text
    assert all(float(each.get("x") or 0) <= WIDTH for each in marks(chart, "text"))


def test_an_open_end_is_drawn_to_the_edge_and_a_weak_interval_is_marked() -> None:
    weak = "order_statistics; weak: fewer than 30 items"
    dots = [
        Dot(name="open", value=3.0, low=2.0, method=weak),
        Dot(name="below", value=3.0, high=4.0),
        Dot(name="closed", value=3.0, low=0.0, high=4.0),
    ]
    chart = intervals("t", dots)
    strokes = [
        each
        for each in elements(chart)
        if each.tag == f"{SVG}line" and each.get("y1") == each.get("y2") and len(each)
    ]
    assert len(strokes) == 3
    assert float(strokes[0].get("x2", "")) > float(strokes[1].get("x2", ""))
    assert "open: 3.000 (≥ 2.000~)" in chart.svg
    assert "below: 3.000 (≤ 4.000)" in chart.svg
    assert chart.about == "~ weak: fewer than 30 items"
    for each in (scatter, reliability):
        points = [Point(x=0.5, y=0.5, low=0.2, name="a", method=weak)]
        assert "0.500 (≥ 0.200~)" in each("t", points, across="x", upwards="y").svg
