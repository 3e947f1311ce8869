"""A load test: a line for each number of calls in flight, and its pictures."""

from collections.abc import Callable, Sequence
from pathlib import Path

from assay.analysis.look.load import Load, LoadLevel, LoadTest, Quantiles
from assay.engine.calls.stop import Stop
from assay.errors import UserError
from assay.reports.charts import Chart, Point, curve
from assay.reports.charts import Line as Curve
from assay.reports.sheet import Line, Sheet, Table, columns_of
from assay.store.written import check_replaceable, write_named

ACROSS = "calls in flight"
_TIMES = {"latency": "latency", "ttft": "first token", "time_between_tokens": "between tokens"}


def view(load: Load) -> Sheet:
    several = len({level.model for level in load.levels}) > 1
    columns = columns_of(
        "load",
        "?in flight",
        "req/s",
        "tok/s",
        "latency",
        "p95",
        "ttft",
        "p95 ",
        "errors",
        "?retries",
    )
    rows = [_row(level) for level in load.levels]
    if several:
        columns = [*columns_of("<model"), *columns]
        rows = [[level.model, *row] for level, row in zip(load.levels, rows, strict=True)]
    table = Table(columns, rows, data=_exact(load.levels))
    explained = "latency and time to first token (ttft) in seconds: the median, and what 95 of 100 do not exceed"
    parts: list[Line | Table] = [
        table,
        Line(explained, "quiet"),
        Line(f"files: {load.folder}", wraps=False),
    ]
    return Sheet(parts=parts, notes=load.notes, title="Load")


def _row(level: LoadLevel) -> list[str]:
    rates = (level.in_flight, level.requests_per_second, level.tokens_per_second)
    return [
        f"{level.level:,}",
        *("–" if rate is None else f"{rate:,.1f}" for rate in rates),
        *_pair(level.latency),
        *_pair(level.ttft),
        f"{level.errors:,}",
        f"{level.retries:,}",
    ]


def _pair(times: Quantiles | None) -> tuple[str, str]:
    return ("–", "–") if times is None else (f"{times.median:.3f}", f"{times.p95:.3f}")


def _exact(levels: Sequence[LoadLevel]) -> tuple[Sequence[str], list[list[object]]]:
    plain = (
        "model",
        "level",
        "requests",
        "errors",
        "retries",
        "seconds",
        "in_flight",
        "requests_per_second",
    )
    names = [*plain, "tokens_per_second"]
    rows: list[list[object]] = [[getattr(level, name) for name in names] for level in levels]
    for time in _TIMES:
        for share in ("median", "p95", "p99"):
            names.append(f"{time}_{share}")
            for row, level in zip(rows, levels, strict=True):
                row.append(getattr(getattr(level, time), share, None))
    return names, rows


def pictures(load: Load) -> list[Chart]:
    """What the server gave, and how long it took for it."""
    models = list(dict.fromkeys(level.model for level in load.levels))

    def lines(words: str, point: Callable[[LoadLevel], Point]) -> list[Curve]:
        return [
            Curve(
                name=f"{model} {words}".strip(),
                points=[point(level) for level in load.levels if level.model == model],
            )
            for model in models
        ]

    throughput = lines("", lambda level: Point(x=level.level, y=level.requests_per_second))
    drawn = [
        curve("Throughput under load", throughput, across=ACROSS, upwards="answers per second")
    ]
    tokens = lines("", lambda level: Point(x=level.level, y=level.tokens_per_second))
    if any(point.y is not None for line in tokens for point in line.points):
        drawn.append(curve("Tokens under load", tokens, across=ACROSS, upwards="tokens per second"))
    slow = [
        line
        for time in ("latency", "ttft")
        for share in ("median", "p95")
        for line in lines(
            f"{_TIMES[time]}, {share}",
            lambda level, time=time, share=share: _time(level, time, share),
        )
        if any(point.y is not None for point in line.points)
    ]
    return [*drawn, curve("Latency under load", slow, across=ACROSS, upwards="seconds")]


def _time(level: LoadLevel, time: str, share: str) -> Point:
    times: Quantiles | None = getattr(level, time)
    if times is None:
        return Point(x=level.level, y=None)
    low, high = times.intervals[share]
    return Point(x=level.level, y=getattr(times, share), low=low, high=high)


async def finish(test: LoadTest, stop: Stop | None = None) -> Load:
    """Run a load test; then write its pictures beside the levels' folders, unless somebody else's files are there."""
    load = await test.run(stop)
    files = {
        Path(load.folder) / f"{chart.title.split()[0].lower()}.svg": chart.svg
        for chart in pictures(load)
    }
    try:
        for file in files:
            check_replaceable(file)
        for file, svg in files.items():
            write_named(file, svg.encode(), private=False)
    except UserError as error:
        load.notes.append(f"the pictures were not written: {error.what} ({error.where})")
    return load
