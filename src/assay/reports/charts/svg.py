"""What all charts are drawn with: a canvas, scales, texts that can do no harm, and one style.

Colours are `light-dark()` pairs, which follow the `color-scheme` of the page around a chart, so a page's own switch
works; a chart that is a file follows the reader's preference. Renderers without `light-dark()` take the light colour.
Every rule is bound to the chart's id, a digest of its content: equal values give equal bytes, and the charts of
one page do not style each other. Nothing is drawn for a number that is not finite.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b
from html import escape
from unicodedata import east_asian_width

import msgspec

from assay.reports.sheet import one_line, with_interval

WIDTH = 480.0  # what a chart is drawn for; it is shown at up to 640 pixels and is legible at 370; a wider one scrolls
SIZE = 12.5  # of the letters
_LARGEST = 1e100
_NOT_XML = dict.fromkeys([*range(9), 0xB, 0xC, *range(0xE, 0x20), 0xFFFE, 0xFFFF], "\ufffd")
_PAIRS = {
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1b1f24", "#e6e9ed"),
    "quiet": ("#59636e", "#9aa5b1"),
    "rule": ("#d5d9df", "#363d46"),
}
# Told apart with every kind of colour blindness, and by dashes where they are lines.
_SERIES = (
    ("#0067a5", "#6cb8f0"),
    ("#b84a00", "#ff9f58"),
    ("#00785a", "#41d1a7"),
    ("#9d3a76", "#eb9ccb"),
    ("#7a5c00", "#e3c04a"),
    ("#4d4fb8", "#aeaaff"),
)
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "10 4", "4 2")


class Chart(msgspec.Struct, kw_only=True, frozen=True):
    """`svg` is safe to put into a page; `about` says what is drawn, in words."""

    title: str
    svg: str
    about: str = ""


def finite(value: float | None) -> float | None:
    """The number, if it can be drawn: neither infinite nor beyond all measure."""
    if value is None or not abs(value) < _LARGEST:
        return None
    return float(value) if abs(value) * _LARGEST > 1 else 0.0


def number(value: float | None) -> str:
    """As people read it; a dash for what is missing."""
    value = finite(value)
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "0" if text == "-0" else text


def exactly(
    value: float | None, low: float | None = None, high: float | None = None, method: str = ""
) -> str:
    """Return a value, and in brackets its interval, as tables have them."""
    return with_interval(finite(value), finite(low), finite(high), method, " to ").text


def safe(text: str) -> str:
    """Any text as the content of an element: on one line, controls as codes, nothing that XML
    forbids."""
    return escape(one_line(text).translate(_NOT_XML))


def width_of(text: str) -> float:
    """About how wide a text is; letters of East Asia take two places."""
    return sum(SIZE if east_asian_width(letter) in "WF" else SIZE * 0.56 for letter in text)


def cut(text: str, room: float) -> str:
    """The beginning of a text that fits the room, with an ellipsis."""
    text = one_line(text)
    if width_of(text) <= room:
        return text
    while text and width_of(text) + SIZE > room:
        text = text[: -max(1, len(text) // 50)]
    return f"{text.rstrip()}…"


def room_for(names: Sequence[str], most: float) -> float:
    """The width of a column of names."""
    return min(most, max((width_of(one_line(name)) for name in names), default=0.0))


class Scale:
    """Numbers to places. `log` is for positive numbers of very different sizes."""

    def __init__(
        self, values: Sequence[float | None], start: float, stop: float, *, log: bool = False
    ) -> None:
        known = [
            value for value in map(finite, values) if value is not None and (value > 0 or not log)
        ]
        self.log = log
        low, high = min(known, default=0.0), max(known, default=1.0)
        if log:
            low, high = math.log10(min(known, default=1.0)), math.log10(max(known, default=10.0))
        apart = high - low > max(abs(low), abs(high)) * 1e-9
        pad = (high - low) * 0.04 if apart else abs(high) * 0.1 or 0.5
        rate = not log and low >= 0 and high <= 1
        self.low, self.high = (0.0, 1.0) if rate and high - low > 0.4 else (low - pad, high + pad)
        if rate:
            self.low, self.high = max(0.0, self.low), min(1.0, self.high)
        self.start, self.stop = start, stop

    def at(self, value: float) -> float:
        """Return where a number is; one outside is at the edge."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return self.start + share * (self.stop - self.start)

    def ends(self, *interval: float | None) -> list[float]:
        """Return where an interval begins and ends, at the edge where it is open; or nothing."""
        known = list(map(finite, interval))
        edges = zip(known, (self.start, self.stop), strict=True)
        ends = [edge if end is None else self.at(end) for end, edge in edges]
        return [] if known == [None, None] else ends

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers on the scale."""
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step *= next(
            factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= most
        )
        if self.log:
            step = max(1.0, round(step))
        first = math.ceil(self.low / step - 1e-9)
        places = [
            number * step
            for number in range(first, first + 2 * most)
            if number * step <= self.high + step * 1e-9
        ]
        marks = [10.0**place if self.log else float(f"{place:.9g}") for place in places]
        return marks if len(marks) > 1 or not self.log else self._few()

    def _few(self) -> list[float]:
        """Less than a power of ten fits on a logarithmic scale: its ends, rounded."""
        ends = [
            float(f"{10.0**end:.1g}") for end in (self.low, (self.low + self.high) / 2, self.high)
        ]
        return sorted({end for end in ends if self.low <= math.log10(end) <= self.high})


class Canvas:
    """Collects elements. `tip` is what one reads when pointing at a mark."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        css: str = "ink",
        *,
        anchor: str = "start",
        room: float = 0,
        turn: bool = False,
    ) -> None:
        shown = cut(text, room) if room else one_line(text)
        tip = f"<title>{safe(text)}</title>" if shown != text else ""
        place = f'x="{_n(x)}" y="{_n(y)}"' + (
            f' transform="rotate(-90 {_n(x)} {_n(y)})"' if turn else ""
        )
        side = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(f'<text {place} class="{css}"{side}>{tip}{safe(shown)}</text>')

    def line(
        self, x1: float, y1: float, x2: float, y2: float, css: str = "rule", tip: str = ""
    ) -> None:
        ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
        self._add(f'<line {ends} class="{css}"', "line", tip)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        css: str,
        tip: str = "",
        share: float = -1,
    ) -> None:
        """`share`: how much of its colour it has, from 0 to 1."""
        size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"'
        self._add(
            f'<rect {size} class="{css}"' + (f' fill-opacity="{share:.2f}"' if share >= 0 else ""),
            "rect",
            tip,
        )

    def dot(self, x: float, y: float, css: str, tip: str = "", size: float = 4) -> None:
        self._add(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(size)}" class="{css}"', "circle", tip)

    def path(
        self,
        points: Sequence[tuple[float, float]],
        css: str,
        *,
        closed: bool = False,
    ) -> None:
        if len(points) > 1:
            steps = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
            self._add(f'<path d="M{steps}{"Z" if closed else ""}" class="{css}"', "path", "")

    def _add(self, start: str, name: str, tip: str) -> None:
        self._parts.append(f"{start}><title>{safe(tip)}</title></{name}>" if tip else f"{start}/>")

    def across(self, scale: Scale, top: float, bottom: float, name: str) -> None:
        """Rules and numbers of a scale from left to right."""
        for mark in scale.ticks():
            x = scale.at(mark)
            self.line(x, top, x, bottom)
            self.text(x, bottom + 16, number(mark), "quiet", anchor="middle")
        self.text(
            (scale.start + scale.stop) / 2,
            bottom + 33,
            name,
            "quiet",
            anchor="middle",
            room=self.width,
        )

    def upwards(self, scale: Scale, left: float, right: float, name: str) -> None:
        for mark in scale.ticks():
            y = scale.at(mark)
            self.line(left, y, right, y)
            self.text(left - 6, y + 4, number(mark), "quiet", anchor="end")
        self.text(
            14, (scale.start + scale.stop) / 2, name, "quiet", anchor="middle", turn=True, room=240
        )

    def legend(self, names: Sequence[str], y: float) -> None:
        """Names of the series, in two columns."""
        for at, name in enumerate(names):
            x, line = 12 + (at % 2) * self.width / 2, y + (at // 2) * 18
            self.line(x, line - 4, x + 22, line - 4, f"drawn {series(at)}")
            self.dot(x + 11, line - 4, f"fill {series(at)}")
            self.text(x + 30, line, name, room=self.width / 2 - 46)

    def chart(self, title: str, about: str = "") -> Chart:
        body = "\n".join(self._parts)
        size = f'width="{_n(self.width)}" height="{_n(self.height)}" viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        words = f"<title>{safe(title)}</title>\n<desc>{safe(about or title)}</desc>"
        id = "assay-" + blake2b(f"{size}{words}{body}".encode(), digest_size=8).hexdigest()
        head = f'<svg xmlns="http://www.w3.org/2000/svg" id="{id}" role="img" aria-label="{safe(title)}" {size}>'
        ground = f'<rect class="paper" width="{_n(self.width)}" height="{_n(self.height)}"/>'
        svg = "\n".join(
            [head, words, f"<style>{_style(id, self.width)}</style>", ground, body, "</svg>"]
        )
        return Chart(title=one_line(title), svg=svg + "\n", about=one_line(about))


def series(at: int) -> str:
    """The class of a series: a colour and, for lines, a dash."""
    return f"s{at % len(_SERIES)}"


def _n(value: float) -> str:
    return f"{value if abs(value) >= 0.05 else 0.0:.1f}".removesuffix(".0")


def _both(name: str, light: str, dark: str) -> str:
    return f"{name}:{light};{name}:light-dark({light},{dark})"


def _style(id: str, width: float) -> str:
    size = f"width:100%;min-width:{_n(width * 0.75 if width > WIDTH else 0)}px;max-width:{_n(width * 4 / 3)}px"
    rules = {
        "svg:root": "color-scheme:light dark",
        "[data-jp-theme-light=false] {}": "color-scheme:dark",
        "{}": f"font:{SIZE}px system-ui,sans-serif",
        "{}:not(:root)": f"display:block;{size};height:auto",
        "{} .paper": _both("fill", *_PAIRS["paper"]),
        "{} .ink": _both("fill", *_PAIRS["ink"]),
        "{} .strong": _both("fill", *_PAIRS["ink"]) + ";font-weight:600",
        "{} .named": f"paint-order:stroke;stroke-width:3px;{_both('stroke', *_PAIRS['paper'])}",
        "{} .quiet": _both("fill", *_PAIRS["quiet"]),
        "{} .rule": _both("stroke", *_PAIRS["rule"]) + ";fill:none",
        "{} .aim": _both("stroke", *_PAIRS["quiet"]) + ";stroke-dasharray:4 3;fill:none",
        "{} .stroke": "stroke-width:2;fill:none",
        "{} .faint": "stroke-width:2;stroke-opacity:.45;stroke-dasharray:2 3;fill:none",
        "{} .pale": "stroke-width:2;stroke-opacity:.5;fill:none",
        "{} .band": "fill-opacity:.15;stroke:none",
    }
    for at, pair in enumerate(_SERIES):
        dash = f";stroke-dasharray:{_DASHES[at]}" if _DASHES[at] else ""
        rules[f"{{}} .fill.s{at},{{}} .band.s{at}"] = _both("fill", *pair)
        rules[f"{{}} .stroke.s{at},{{}} .faint.s{at},{{}} .pale.s{at}"] = _both("stroke", *pair)
        rules[f"{{}} .drawn.s{at}"] = _both("stroke", *pair) + f";stroke-width:2;fill:none{dash}"
    return "\n".join(f"{place.replace('{}', f'#{id}')}{{{rule}}}" for place, rule in rules.items())
