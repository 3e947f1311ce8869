"""What a labelling session shows: an answer on a screen of any size, its keys, and at the end what was labelled."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.segment import SegmentLines
from rich.text import Text

from assay.analysis.judge.label import Summary
from assay.analysis.judge.label_frame import Frame
from assay.analysis.judge.labelling import View
from assay.text.plain import plain

HELP = (
    ("s", "skip: it is shown again in the next session"),
    ("u", "undo: take the last label back and show its answer again"),
    ("n", "write a note, which is kept with the label"),
    (
        "space, b or -",
        "scroll a long answer on and back; so do the arrows (b is an answer where there are two)",
    ),
    ("q", "quit; every label is saved already, and the same command resumes"),
)


class Screen:
    """A terminal's screen; `top` is the first line of the answer that is seen."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.top = 0
        self._room = 1

    def draw(self, head: str, sections: Sequence[tuple[str, str]], foot: Sequence[str]) -> None:
        """All anew: the head above, the foot below, and between them as much of the sections as there is room for."""
        console = self.console
        width, height = console.size
        above = console.render_lines(Text(head, style="bold"), pad=False)
        below = console.render_lines(Group(*(Text(line, style="dim") for line in foot)), pad=False)
        body = console.render_lines(
            _body(sections), console.options.update(width=max(1, width - 1)), pad=False
        )
        above, below = above[: max(1, height // 4)], below[: max(1, height // 2)]
        self._room = room = max(1, height - len(above) - len(below) - 1)
        self.top = max(0, min(self.top, len(body) - room))
        visible = body[self.top : self.top + room]
        where = (
            f" lines {self.top + 1}–{self.top + len(visible)} of {len(body)}: space, -"
            if len(body) > room
            else ""
        )
        with console.capture() as captured:
            console.print(SegmentLines(above, new_lines=True), end="")
            console.print(SegmentLines(visible, new_lines=True), end="")
            console.print("\n" * (room - len(visible)), end="")
            console.print(Text(where, style="yellow", no_wrap=True, overflow="crop"))
            console.print(SegmentLines(below, new_lines=True), end="")
        console.file.write("\x1b[H\x1b[2J" + captured.get().removesuffix("\n"))
        console.file.flush()

    def scroll(self, direction: int) -> None:
        """By a page, less a line that is seen again; `draw` keeps it within the text."""
        self.top += direction * max(1, self._room - 1)


def _body(sections: Sequence[tuple[str, str]]) -> Group:
    parts: list[Text] = []
    for number, (name, text) in enumerate(sections):
        parts += [Text("")] if number else []
        parts += [Text(name, style="bold cyan"), Text(text, overflow="fold")]
    return Group(*parts)


def sections_of(view: View, note: str = "") -> list[tuple[str, str]]:
    """The parts of a view with their headings, made harmless."""
    sections = [("Question", view.question)]
    if view.reference is not None:
        sections.append(("Reference", view.reference))
    names = ["Answer"] if len(view.answers) == 1 else ["Answer A", "Answer B"]
    sections += list(zip(names, view.answers, strict=True))
    if note:
        sections.append(("Note", note))
    return [(name, harmless(text) or "(empty)") for name, text in sections]


def harmless(text: str) -> str:
    """Text from anywhere for a terminal; what is not a character becomes a question mark."""
    return plain(text.replace("\r\n", "\n").encode("utf-8", "replace").decode())


def head_of(frame: Frame, number: int, total: int) -> str:
    asked = f": {harmless(' '.join(frame.asked.split()))}" if frame.asked else ""
    return f"{number} of {total} · {harmless(frame.label)}{asked}"


def keys_of(frame: Frame) -> str:
    """The keys that label an answer."""
    if frame.match:
        return "a A is better   b B is better   t tie"
    if frame.scale is not None:
        return f"{frame.scale[0]:g}–{frame.scale[1]:g} grade" + (
            "" if frame.scale[1] <= 9 else ", then Enter"
        )
    return "1 or p pass   0 or f fail"


def help_sections(frame: Frame) -> list[tuple[str, str]]:
    lines = [keys_of(frame).replace("   ", "\n"), *(f"{key}: {meaning}" for key, meaning in HELP)]
    return [("Keys", "\n".join(lines))]


def label_word(frame: Frame, value: float) -> str:
    """What a stored label means."""
    if frame.match:
        return {1: "first player", 0: "second player"}.get(
            int(value) if value != 0.5 else -1, "tie"
        )
    return f"{value:g}" if frame.scale is not None else "pass" if value else "fail"


def summary_text(summary: Summary, frame: Frame) -> str:
    """Who labelled how many as what, and how far they agree."""
    if not summary.counts:
        return f"no labels of {harmless(summary.scorer)} yet"
    lines = [f"labels of {harmless(summary.scorer)}:"]
    width = max(len(harmless(name)) for name in summary.counts)
    for name, counts in summary.counts.items():
        labels = ", ".join(
            f"{count:,} {label_word(frame, value)}"
            for value, count in sorted(counts.items(), reverse=True)
        )
        lines.append(f"  {harmless(name):<{width}}  {sum(counts.values()):,}: {labels}")
    for name, agreement in summary.agreement.items():
        named = name.replace("_", " ")
        if agreement.value is None:
            lines.append(f"agreement, {named}: none: {agreement.reason}")
            continue
        interval = agreement.interval()
        sure = (
            ""
            if interval.low is None
            else f", 95% interval {interval.low:.2f} to {interval.high:.2f}"
        )
        answers = f"{agreement.answers:,} answer{'' if agreement.answers == 1 else 's'} that several labelled"
        lines.append(f"agreement, {named}: {agreement.value:.2f}{sure}, on {answers}")
    return "\n".join(lines)
