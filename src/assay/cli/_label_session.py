"""A labelling session: keys in, answers out, every label saved before the next answer is shown."""

import re
from math import nan
from typing import Any

import click
from rich.console import Console

from assay import api

screen = api.label_screen

_SCROLL = {" ": 1, "down": 1, "page down": 1, "-": -1, "up": -1, "page up": -1, "b": -1}
_COMMON = "s skip   u undo   n note   q quit   ? help"
_SILENT = ("\n", "resize", "escape", "unknown", "backspace", "\t")


class Session:
    """`order` has the answers that were labelled before, which undo leads back to, then those that are to come."""

    def __init__(self, labelling: api.Labelling) -> None:
        self.labelling = labelling
        self.frame = labelling.frame
        self.order = labelling.order
        mine = labelling.mine()
        self.labels: dict[Any, Any] = {address: record.label for address, record in mine.items()}
        self.notes = {address: record.note for address, record in mine.items() if record.note}
        self.at = sum(self.labels.get(answer.unit.address) is not None for answer in self.order)
        self.message = ""

    def run(self, keys: Any) -> None:
        """Until the last answer is labelled, `q`, or the end of the keys."""
        self.keys = keys
        self.screen = screen.Screen(Console(highlight=False)) if keys.interactive else None
        shown = -1
        while self.at < len(self.order) or (self.screen and self.order):
            if self.screen:
                self._draw()
            elif shown != self.at:
                self._print()
            shown = self.at
            key = keys.key()
            if key in ("", "q"):
                return
            self._take(key)

    # -- keys

    def _take(self, key: str) -> None:
        self.message = "" if key != "resize" else self.message
        if key == "?":
            self._help()
        elif key == "u":
            self._undo()
        elif self.at == len(self.order):
            self.message = (
                "this was the last one: u takes it back, q ends"
                if key != "resize"
                else self.message
            )
        elif key == "s":
            self._go(1)
            self.message = "skipped"
            self._echo()
        elif key == "n":
            self._note()
        elif self.frame.scale and key.isascii() and key.isdigit():
            self._label(self._grade(key, *self.frame.scale))
        elif (value := self._verdicts().get(key)) is not None:
            self._label(value)
        elif key in _SCROLL:
            if self.screen:
                self.screen.scroll(_SCROLL[key])
        elif key not in _SILENT:
            self.message = f"{screen.harmless(key)} is not a key here; ? shows the keys"
            self._echo()

    def _verdicts(self) -> dict[str, float]:
        """The labels that keys stand for; in a match the payoff of the first player, wherever its answer is shown."""
        if self.frame.match:
            swapped = self.labelling.views[self.order[self.at].unit.address].swapped
            return {"a": int(not swapped), "b": int(swapped), "t": 0.5}
        return {"1": 1, "p": 1, "0": 0, "f": 0} if self.frame.scale is None else {}

    def _grade(self, key: str, low: float, high: float) -> float | None:
        text = key if high <= 9 else self._line("grade", key)
        if text is None:
            return None
        grade = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else nan
        if not low <= grade <= high:
            self.message = f"{screen.harmless(text)} is not on the scale from {low:g} to {high:g}"
            self._echo()
            return None
        return int(grade) if grade.is_integer() else grade

    def _label(self, value: float | None) -> None:
        if value is not None:
            self._save(value)
            self._go(1)

    def _save(self, value: float | None) -> None:
        answer = self.order[self.at]
        address = answer.unit.address
        self.labelling.save(answer, value, self.notes.get(address, ""))
        self.labels[address] = value
        if value is not None:
            number = self.at + 1
            self.message = (
                f"saved {number}"
                if self.frame.match
                else f"saved {number}: {screen.label_word(self.frame, value)}"
            )
            self._echo()

    def _undo(self) -> None:
        if not self.at:
            self.message = "there is nothing to undo"
        else:
            self._go(-1)
            if self.labels.get(self.order[self.at].unit.address) is not None:
                self._save(None)
                self.message = "taken back"
        self._echo()

    def _note(self) -> None:
        address = self.order[self.at].unit.address
        text = self._line("note", self.notes.get(address, "") if self.screen else "")
        if text is not None:
            self.notes[address] = text
            self._save(None)
            self.message = "note saved"
            self._echo()

    def _line(self, name: str, text: str) -> str | None:
        """A line that is typed, after what it begins with; None if it was given up."""
        while True:
            if self.screen:
                self._draw(f"{name}: {screen.harmless(text)}▏  (Enter keeps it, Escape does not)")
            key = self.keys.key()
            if key in ("", "\n"):
                return text
            if key == "escape":
                return None
            text = text[:-1] if key == "backspace" else text + key if len(key) == 1 else text

    def _go(self, steps: int) -> None:
        self.at += steps
        if self.screen:
            self.screen.top = 0

    def _help(self) -> None:
        if self.screen:
            self.screen.draw("help", screen.help_sections(self.frame), ["any key continues"])
            while self.keys.key() == "resize":
                self.screen.draw("help", screen.help_sections(self.frame), ["any key continues"])
        else:
            for name, text in screen.help_sections(self.frame):
                click.echo(f"{name}\n{text}")

    # -- what is seen

    def _view(self) -> list[tuple[str, str]]:
        address = self.order[self.at].unit.address
        return screen.sections_of(self.labelling.views[address], self.notes.get(address, ""))

    def _draw(self, asked: str = "") -> None:
        assert self.screen is not None
        total = len(self.order)
        if self.at < total:
            foot = [self.message, screen.keys_of(self.frame), _COMMON] if not asked else [asked]
            self.screen.draw(screen.head_of(self.frame, self.at + 1, total), self._view(), foot)
        else:
            done = [("Done", f"All {total} answers are labelled or skipped.")]
            self.screen.draw(
                screen.harmless(self.frame.label), done, [self.message, "u undo   q quit"]
            )

    def _print(self) -> None:
        click.echo(screen.head_of(self.frame, self.at + 1, len(self.order)))
        for name, text in self._view():
            click.echo(f"{name}: {text}")
        click.echo(screen.keys_of(self.frame))

    def _echo(self) -> None:
        if not self.screen and self.message:
            click.echo(f"→ {self.message}\n")
