"""A picture of a graph: Mermaid text, or an SVG made by hand.

The SVG has one row for each distance from START; arrows that lead back or down several rows run along the sides.
Names come from a user's file, so they are stripped and escaped.
"""

from html import escape

from assay.formats.sygra.graph import GraphTask
from assay.formats.sygra.graph.edges import END, START
from assay.text.plain import plain

_SHAPES = {
    "llm": "[{}]",
    "agent": "[[{}]]",
    "multi_llm": "[{}]",
    "lambda": "({})",
    "weighted_sampler": "{{{{{}}}}}",
}
_FILLS = {
    "llm": "#dbeafe",
    "multi_llm": "#dbeafe",
    "agent": "#e0e7ff",
    "lambda": "#dcfce7",
    "": "#f3f4f6",
}
WIDTH, HEIGHT, ACROSS, DOWN, SIDE = 190, 44, 40, 56, 26


def arrows(task: GraphTask) -> list[tuple[str, str, str]]:
    """(from, to, answer) of every edge; the answer of a condition is empty where there is none."""
    return [
        (source, target, answer)
        for source, way in task.ways.items()
        for target, answer in way.arrows()
    ]


def mermaid(task: GraphTask) -> str:
    """The graph as a Mermaid flowchart."""
    edges = arrows(task)
    ids = {name: f"n{number}" for number, name in enumerate([START, *task.nodes, END])}
    lines = ["flowchart TD"]
    for name, id in ids.items():
        shape = "([{}])" if name in (START, END) else _SHAPES.get(_kind(task, name), "({})")
        lines.append(f"    {id}{shape.format(_quoted(name))}")
    for source, target, answer in edges:
        label = f"|{_quoted(answer)}|" if answer else ""
        lines.append(f"    {ids[source]} {'-.->' if answer else '-->'}{label} {ids[target]}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + plain(text).replace('"', "#quot;").replace("\n", " ") + '"'


def _kind(task: GraphTask, name: str) -> str:
    return task.nodes[name].kind if name in task.nodes else ""


def _rows(task: GraphTask) -> list[list[str]]:
    """Names by their distance from START; what is never reached stands before the end."""
    depth, waiting = {START: 0}, [START]
    edges = arrows(task)
    for name in waiting:
        for source, target, _ in edges:
            if source == name and target not in depth:
                depth[target] = depth[name] + 1
                waiting.append(target)
    last = 1 + max((value for name, value in depth.items() if name != END), default=0)
    depth[END] = last + any(name not in depth for name in task.nodes)
    rows: list[list[str]] = [[] for _ in range(depth[END] + 1)]
    for name in (START, *task.nodes, END):
        rows[depth.get(name, last)].append(name)
    return rows


def svg(task: GraphTask) -> str:
    """The graph as a picture that needs nothing but a browser."""
    rows = _rows(task)
    edges = arrows(task)
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    lanes = sum(row_of[target] - row_of[source] != 1 for source, target, _ in edges)
    span = max(len(row) for row in rows) * (WIDTH + ACROSS) - ACROSS
    margin = 20 + SIDE * lanes
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        used = len(row) * (WIDTH + ACROSS) - ACROSS
        for column, name in enumerate(row):
            x = margin + (span - used) / 2 + column * (WIDTH + ACROSS)
            places[name] = (x, 20 + number * (HEIGHT + DOWN))
    drawn: list[str] = []  # boxes come last: what runs past them stays behind
    lane = 0
    for source, target, answer in edges:
        beside = row_of[target] - row_of[source] != 1
        drawn.append(
            _arrow(places[source], places[target], answer, lane if beside else None, margin, span)
        )
        lane += beside
    drawn += [_box(task, name, *place) for name, place in places.items()]
    height = 40 + len(rows) * (HEIGHT + DOWN) - DOWN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{span + 2 * margin:g}" height="{height}"'
        f' viewBox="0 0 {span + 2 * margin:g} {height}" font-family="sans-serif" font-size="13">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *drawn, "</svg>"]) + "\n"


def _box(task: GraphTask, name: str, x: float, y: float) -> str:
    kind = _kind(task, name)
    shown = plain(name)
    shown = shown if len(shown) <= 26 else f"{shown[:25]}…"
    label = f'<text x="{x + WIDTH / 2:g}" y="{y + 27 - 7 * bool(kind):g}" text-anchor="middle">{escape(shown)}</text>'
    if kind:
        label += f'<text x="{x + WIDTH / 2:g}" y="{y + 36:g}" text-anchor="middle" font-size="10" fill="#555">{kind}</text>'
    fill = _FILLS.get(kind, "#fef3c7")
    round = HEIGHT / 2 if not kind else 6
    return (
        f'<g><title>{escape(plain(name))}</title><rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}"'
        f' rx="{round:g}" fill="{fill}" stroke="#374151"/>{label}</g>'
    )


def _arrow(
    source: tuple[float, float],
    target: tuple[float, float],
    answer: str,
    lane: int | None,
    margin: float,
    span: float,
) -> str:
    """Straight to the next row; otherwise along the left or the right, each arrow in its own lane."""
    if lane is None:
        x1, y1, x2, y2 = source[0] + WIDTH / 2, source[1] + HEIGHT, target[0] + WIDTH / 2, target[1]
        path = f"M{x1:g} {y1:g} L{x2:g} {y2:g}"
        place = f'x="{(x1 + x2) / 2 + 6:g}" y="{(y1 + y2) / 2:g}"'
    else:
        left = source[0] + WIDTH / 2 < margin + span / 2
        off = 18 + SIDE * lane
        x = margin - off if left else margin + span + off
        x1, y1 = source[0] + (0 if left else WIDTH), source[1] + HEIGHT * 0.7
        x2, y2 = target[0] + (0 if left else WIDTH), target[1] + HEIGHT * 0.3
        path = f"M{x1:g} {y1:g} L{x:g} {y1:g} L{x:g} {y2:g} L{x2:g} {y2:g}"
        place = (
            f'transform="translate({x - 4:g} {(y1 + y2) / 2:g}) rotate(-90)" text-anchor="middle"'
        )
    dash = ' stroke-dasharray="5 4"' if answer else ""
    line = f'<path d="{path}" fill="none" stroke="#374151"{dash} marker-end="url(#tip)"/>'
    return line + (
        f'<text {place} font-size="11" fill="#555">{escape(plain(answer))}</text>' if answer else ""
    )
