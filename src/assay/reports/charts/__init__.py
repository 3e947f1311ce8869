"""Charts as SVG: functions from plain values to a `Chart`, for the viewer, reports, notebooks and the docs alike.

Nothing here reads rows or computes a number.
"""

from assay.reports.charts.grids import Cell as Cell
from assay.reports.charts.grids import heat as heat
from assay.reports.charts.grids import histogram as histogram
from assay.reports.charts.plots import Dot as Dot
from assay.reports.charts.plots import Line as Line
from assay.reports.charts.plots import Point as Point
from assay.reports.charts.plots import curve as curve
from assay.reports.charts.plots import intervals as intervals
from assay.reports.charts.plots import reliability as reliability
from assay.reports.charts.plots import scatter as scatter
from assay.reports.charts.svg import Chart as Chart
