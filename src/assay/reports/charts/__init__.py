"""Charts as SVG: functions from plain values to a `Chart`, for the viewer, reports, notebooks and the docs alike.

Nothing here reads rows or computes a number.
"""

from assay.reports.charts.grids import Cell, heat, histogram
from assay.reports.charts.plots import Dot, Line, Point, curve, intervals, reliability, scatter
from assay.reports.charts.svg import Chart

__all__ = [
    "Cell",
    "Chart",
    "Dot",
    "Line",
    "Point",
    "curve",
    "heat",
    "histogram",
    "intervals",
    "reliability",
    "scatter",
]
