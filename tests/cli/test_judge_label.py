"""`assay judge label` as a person at a real terminal sees it, and as a script drives it."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.judged_lab import judged
from tests.cli.shell import COMMAND, NEVER_SHOWN, OURS_ALONE
from tests.support import wait_for

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WHOLE = re.compile(r"(help|quit|continues|does not\))\s*$")  # how the last line of a screen ends
SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[1:], process_group=0)
os.tcsetpgrp(0, job.pid)
while not os.WIFEXITED(status := os.waitpid(job.pid, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpgrp())
    input()
    os.tcsetpgrp(0, job.pid)
    os.kill(job.pid, signal.SIGCONT)
sys.exit(os.WEXITSTATUS(status))
"""
CLEAR = "\x1b[H\x1b[2J"
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x00\u202e[bold red]x[/] \ud83d\ude00 calculator-7b q7"


class Desk:
    """A terminal with `assay judge label` in it: keys in, screens out."""

    def __init__(self, *words: str, columns: int = 80, rows: int = 24, shell: bool = False) -> None:
        self._ours, self.theirs = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.theirs)
        environ = {name: value for name, value in os.environ.items() if not OURS_ALONE.match(name)}
        environ["TERM"] = "xterm-256color"
        command = [
            *([COMMAND[0], "-c", SHELL] if shell else []),
            *COMMAND,
            "judge",
            "label",
            *words,
        ]
        ends = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs}
        self.child = subprocess.Popen(
            command, env=environ, start_new_session=True, preexec_fn=_own_terminal, **ends
        )
        self.seen = ""
        self._old = 0

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str, seconds: float = 20.0) -> str:
        """The screen that shows this text, as soon as it does."""
        end = time.monotonic() + seconds
        while text not in self.screen or not WHOLE.search(self.screen):
            assert time.monotonic() < end, f"{text!r} did not come:\n{self.screen}"
            self._read(0.05)
        return self.screen

    @property
    def screen(self) -> str:
        return ESCAPE.sub("", self.seen[self._old :].rpartition(CLEAR)[2])

    def forget(self) -> None:
        """Wait for a screen that is not yet there."""
        self._old = len(self.seen)

    def _read(self, seconds: float) -> None:
        if select.select([self._ours], [], [], seconds)[0]:
            try:
                self.seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:
                pass

    def end(self, code: int = 0) -> str:
        """Wait for the process; the terminal must be as it was. Returns what was written on it afterwards."""
        end = time.monotonic() + 20
        while self.child.poll() is None:
            assert time.monotonic() < end, self.seen
            self._read(0.02)
        while select.select([self._ours], [], [], 0)[0]:
            self._read(0)
        assert self.child.returncode == code, self.seen
        assert termios.tcgetattr(self.theirs) == self.before
        assert (
            self.seen.count("\x1b[?1049h")
            == self.seen.count("\x1b[?1049l")
            == self.seen.count("\x1b[?25h")
        )
        assert not any(word in self.seen for word in NEVER_SHOWN)
        return self.seen.rpartition("\x1b[?1049l")[2].replace("\r\n", "\n")

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self._ours)
        os.close(self.theirs)


def _own_terminal() -> None:
    """Ctrl-C then reaches the process as a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made: dict[str, Path] = {}
    for scorer in ("correct", "graded", "better"):
        folder = tmp_path_factory.mktemp(scorer)
        judged(folder, scorer, items=24)
        made[scorer] = folder / "out"
    return made


class Room:
    """An experiment's copy, and the desks at which it is labelled."""

    def __init__(self, experiments: dict[str, Path], folder: Path) -> None:
        self._experiments = experiments
        self.folder = folder / "out"
        self.desks: list[Desk] = []

    def use(self, scorer: str) -> "Room":
        shutil.copytree(self._experiments[scorer], self.folder)
        return self

    def sit(self, *words: str, annotator: str = "ann", **kind: Any) -> Desk:
        self.desks.append(Desk(str(self.folder), "--annotator", annotator, *words, **kind))
        return self.desks[-1]

    def type(self, keys: str, *words: str, annotator: str = "ann", code: int = 0) -> str:
        """What a script that pipes these keys gets to see."""
        command = [*COMMAND, "judge", "label", str(self.folder), "--annotator", annotator, *words]
        done = subprocess.run(command, input=keys, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        assert not any(word in done.stdout + done.stderr for word in NEVER_SHOWN)
        return done.stdout + done.stderr

    def rows(self) -> list[dict[str, Any]]:
        path = self.folder / "labels.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def labels(self) -> list[Any]:
        return [row["label"] for row in self.rows()]

    def rewrite(self, name: str, change: Any) -> None:
        path = self.folder / name
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows))


@pytest.fixture
def room(experiments: dict[str, Path], tmp_path: Path) -> Iterator[Room]:
    made = Room(experiments, tmp_path)
    yield made
    for desk in made.desks:
        desk.close()


# ---- at a terminal


def test_a_session_is_blind_saves_every_key_and_gives_the_terminal_back(room: Room) -> None:
    desk = room.use("correct").sit("--count", "4")
    first = desk.until("1 of 4")
    assert "Question" in first
    assert "Reference" in first
    assert "Answer" in first
    for number, key in enumerate("p0f", 1):
        desk.press(key)
        desk.until(f"{number + 1} of 4")
        wait_for(
            lambda number=number: len(room.rows()) == number
        )  # saved while the session continues
    desk.press("1")
    desk.until("All 4 answers")
    desk.press("q")
    assert "ann  4: 2 pass, 2 fail" in desk.end()
    assert room.labels() == [1, 0, 0, 1]
    assert len({row["item"] for row in room.rows()}) == 4
    for hidden in (
        "calculator",
        "strict",
        "votes",
        "0000000000000000",
        *(row["item"] for row in room.rows()),
    ):
        assert hidden not in desk.seen.replace(str(room.folder), "")


def test_undo_withdraws_and_shows_the_answer_again_even_from_an_earlier_session(room: Room) -> None:
    desk = room.use("correct").sit("--count", "3")
    first = desk.until("1 of 3")
    desk.press("p")
    desk.until("2 of 3")
    desk.press("u")
    again = desk.until("taken back")
    assert again.partition("Answer")[0].split("·")[1] == first.partition("Answer")[0].split("·")[1]
    desk.press("f")
    desk.until("2 of 3")
    desk.press("q")
    desk.end()
    assert room.labels() == [1, None, 0]
    later = room.sit("--count", "3")
    later.until("2 of 3")
    later.press("u")
    later.until("1 of 3")
    later.press("u")
    later.until("nothing to undo")
    later.press("q")
    assert "no labels of correct yet" in later.end()
    assert room.labels() == [1, None, 0, None]
    assert len({row["item"] for row in room.rows()}) == 1


def test_a_killed_session_goes_on_after_the_last_key(room: Room) -> None:
    desk = room.use("correct").sit("--count", "5")
    desk.until("1 of 5")
    desk.press("pf")
    third = desk.until("3 of 5")
    desk.child.kill()
    desk.child.wait()
    assert room.labels() == [1, 0]
    again = room.sit("--count", "5")
    assert (
        again.until("3 of 5").partition("1 or p")[0].split() == third.partition("saved")[0].split()
    )
    again.press("q")
    again.end()


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_loses_nothing_and_gives_the_terminal_back(
    room: Room, number: signal.Signals, code: int
) -> None:
    desk = room.use("correct").sit("--count", "3")
    desk.until("1 of 3")
    desk.press("p")
    desk.until("2 of 3")
    if number == signal.SIGINT:
        desk.press("\x03")
    else:
        desk.child.send_signal(number)
    desk.end(code)
    assert room.labels() == [1]


def test_a_file_that_cannot_be_written_is_an_error_on_a_usable_terminal(room: Room) -> None:
    desk = room.use("correct").sit()
    desk.until("1 of 24")
    (room.folder / "labels.jsonl").mkdir()
    desk.press("p")
    assert "the file system refused" in desk.end(1)


def test_a_suspended_session_gives_the_terminal_back_meanwhile(room: Room) -> None:
    desk = room.use("correct").sit("--count", "3", shell=True)
    desk.until("1 of 3")
    desk.forget()
    desk.press("\x1a")
    wait_for(lambda: termios.tcgetattr(desk.theirs) == desk.before)
    desk.press("\n")
    desk.until("1 of 3")
    desk.press("p")
    desk.until("2 of 3")
    desk.press("q")
    desk.end()
    assert room.labels() == [1]


def words(text: str) -> list[str]:
    return re.findall(r"w\d+", text)


@pytest.mark.parametrize("columns, rows, length", [(80, 24, 900), (30, 12, 150), (200, 50, 3000)])
def test_long_answers_scroll_within_any_terminal(
    room: Room, columns: int, rows: int, length: int
) -> None:
    answer = " ".join(f"w{number}" for number in range(length))
    last = answer.split()[-1]
    room.use("correct").rewrite("responses.jsonl", lambda row: {**row, "response": answer})
    desk = room.sit("--count", "2", columns=columns, rows=rows)
    desk.until("1 of 2")
    found = words(desk.until("lines 1–"))
    for _ in range(200):
        if last in found:
            break
        desk.forget()
        desk.press(" ")
        found += words(desk.until("help"))
    assert list(dict.fromkeys(found)) == answer.split()  # nothing is lost between the pages
    for back, on in (("-", " "), ("b", "\x1b[B"), ("\x1b[A", "\x1b[6~"), ("\x1b[5~", " ")):
        desk.forget()
        desk.press(back)
        assert last not in words(desk.until("help"))
        desk.press(on)
        desk.until(last)
    assert room.rows() == []  # no part of an arrow key was taken for a label
    desk.press("q")
    desk.end()
    for screen in desk.seen.split(CLEAR)[1:]:
        lines = ESCAPE.sub("", screen.partition("\x1b[?")[0]).replace("\r", "").split("\n")
        assert len(lines) <= rows
        assert max(map(len, lines)) <= columns


def test_a_resized_terminal_is_drawn_anew(room: Room) -> None:
    desk = room.use("correct").sit("--count", "2", columns=100)
    desk.until("1 of 2")
    desk.forget()
    desk.resize(30, 12)
    desk.child.send_signal(signal.SIGWINCH)
    narrow = desk.until("help")
    assert max(map(len, narrow.replace("\r", "").split("\n"))) <= 30
    desk.press("q")
    desk.end()


def test_hostile_text_is_harmless_and_names_no_model(room: Room) -> None:
    room.use("correct").rewrite("responses.jsonl", lambda row: {**row, "response": HOSTILE})
    desk = room.sit("--count", "2")
    shown = desk.until("1 of 2")
    assert "[bold red]x[/] 😀 [model] q7" in shown
    assert "owned" in shown
    desk.press("nmine \x1b[A\x07\n")
    noted = desk.until("note saved")
    assert "Note" in noted
    desk.press("pq")
    desk.end()
    own = re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?(1049|25)[hl]|\x1b\[H\x1b\[2J", "", desk.seen)
    assert not re.search(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", own)
    assert "calculator" not in desk.seen
    assert [row["note"] for row in room.rows()] == ["mine \x07", "mine \x07"]


def test_help_shows_the_keys_and_unknown_keys_say_so(room: Room) -> None:
    desk = room.use("correct").sit("--count", "2")
    desk.until("1 of 2")
    desk.press("?")
    desk.until("any key continues")
    desk.press("p")
    desk.until("1 of 2")  # the key only closed the help
    desk.press("x")
    desk.until("x is not a key here")
    desk.press("\x04")
    desk.end()
    assert room.rows() == []


# ---- pairs and scales


def test_the_better_answer_of_a_pair_is_stored_as_the_first_players_payoff(room: Room) -> None:
    room.use("better")
    players = {"one": "first", "two": "second"}
    room.rewrite("responses.jsonl", lambda row: {**row, "response": players[row["model_name"]]})
    desk = room.sit("--count", "12", "--random", "1")
    expected: list[float] = []
    for number, key in enumerate("abtaabbabbaa", 1):
        shown = desk.until(f"{number} of 12")
        first = shown.partition("Answer A")[2].split()[0] == "first"
        expected.append(0.5 if key == "t" else float((key == "a") == first))
        desk.press(key)
    desk.until("All 12 answers")
    desk.press("q")
    said = desk.end()
    assert room.labels() == expected
    assert 0 < sum(expected) < 12
    assert {row["model"] for row in room.rows()} == {"one vs two"}
    assert "ann  12:" in said
    assert not re.search(r"\b(one|two)\b", ESCAPE.sub(" ", desk.seen))


def test_grades_are_digits_and_those_off_the_scale_are_refused(room: Room) -> None:
    desk = room.use("graded").sit("--count", "2")
    desk.until("1–5 grade")
    desk.press("7")
    desk.until("7 is not on the scale from 1 to 5")
    desk.press("54")
    desk.until("All 2 answers")
    desk.press("q")
    assert "ann  2: 1 5, 1 4" in desk.end()
    assert room.labels() == [5, 4]


def test_a_scale_beyond_nine_takes_whole_numbers(room: Room) -> None:
    def widened(row: dict[str, Any]) -> dict[str, Any]:
        grade = row["detailed_results"]["grade"] * 20
        return {
            **row,
            "score": grade / 100,
            "detailed_results": {**row["detailed_results"], "grade": grade},
        }

    room.use("graded").rewrite("evaluation_results.jsonl", widened)
    assert "111 is not on the scale from 0 to 100" in room.type("100\n111\n7\n7.5\nq")
    assert room.labels() == [100, 7, 7.5]


# ---- scripts, several people


def test_a_script_can_label_and_goes_on_at_the_next_answer(room: Room) -> None:
    said = room.use("correct").type("p\nf\nnan odd one\npsq", "--count", "5")
    assert room.labels() == [1, 0, None, 1]
    assert room.rows()[-1]["note"] == "an odd one"
    assert "\x1b" not in said
    assert "calculator" not in said.replace(str(room.folder), "")
    assert "5 of 5" in said
    room.type("pp", "--count", "5")
    assert len({row["item"] for row in room.rows()}) == 5
    assert "all 5 answers" in room.type("", "--count", "5")


def test_a_second_annotator_shares_half_and_the_agreement_is_told(room: Room) -> None:
    room.use("correct").type("ppff", "--count", "4")
    said = room.type("ppff", "--count", "4", annotator="bob")
    ann, bob = (
        [row["item"] for row in room.rows() if row["annotator"] == name] for name in ("ann", "bob")
    )
    assert bob[:2] == ann[:2]
    assert not set(bob[2:]) & set(ann)
    assert "agreement, percent: 1.00" in said
    assert "on 2 answers that several labelled" in said
    assert room.type("", "--summary", annotator="carl").count("2 pass, 2 fail") == 2


def test_mistakes_are_told(room: Room, tmp_path: Path) -> None:
    assert "'nope'" in room.use("correct").type("", "--label", "nope", code=2)
    assert "JSON lines" in room.type("", "-o", str(tmp_path / "labels.csv"), code=2)
    (room.folder / "labels.jsonl").write_text("garbage\n")
    assert "labels.jsonl, line 1" in room.type("p", code=2)
