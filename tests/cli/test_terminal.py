"""What a person sees: text from models and data is harmless, narrow terminals lose nothing, NO_COLOR is kept."""

import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.shell import Shell, ended

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x00\u202e[bold red]x[/]"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])(;[0-9;]*)?m")


def on_terminal(shell: Shell, *words: str, columns: int = 80, code: int = 0) -> str:
    """What the command writes when its standard output and error are a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shell.environ.pop("COLUMNS", None)
    shell.environ["TERM"] = "xterm-256color"
    pieces: list[bytes] = []

    def read() -> None:
        try:
            while piece := os.read(ours, 65536):
                pieces.append(piece)
        except OSError:  # the other side is closed
            pass

    reader = Thread(target=read)
    reader.start()
    with shell.start(*words, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        exit_code = ended(child).code
    reader.join()
    os.close(ours)
    seen = b"".join(pieces).decode()
    assert exit_code == code, seen
    return seen


@pytest.fixture
def evil(shell: Shell) -> Shell:
    """Control characters in ids, in a model's name and in what a model says, all of them facets."""
    shell.write("mine.py", f"def odd(prompt):\n    return {EVIL!r}\n")
    model = {"name": f"m{EVIL}", "type": "python", "path": "mine.py", "function_name": "odd"}
    shell.config |= {
        "models": [model],
        "metrics": [{"name": "pass_rate", "facets": ["item_id", "response", "model_name"]}],
    }
    for number, row in enumerate(shell.rows):
        row["id"] = f"{number}{EVIL}"
    return shell


@pytest.mark.parametrize("words", [["run", "CONFIG"], ["plan", "CONFIG"], ["validate", "CONFIG"]])
def test_control_characters_never_reach_the_output(evil: Shell, words: list[str]) -> None:
    result = evil.call(*words)
    assert result.code == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.said)


def test_control_characters_never_reach_a_terminal(evil: Shell) -> None:
    seen = on_terminal(evil, "run", "CONFIG", columns=200)
    assert not re.search(
        r"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202e]", ESCAPE.sub("", seen)
    )
    assert "\x1b[2J" not in seen
    assert "\x1b]" not in seen
    assert "[bold red]x" in ESCAPE.sub("", seen)


def test_errors_with_control_characters_are_harmless(evil: Shell) -> None:
    evil.rows.append(evil.rows[0])
    result = evil.run()
    assert result.code == 2
    assert "two items have the id" in result.err
    assert "\x1b" not in result.err


def test_a_terminal_gets_a_live_table_and_colour_unless_told_not_to(shell: Shell) -> None:
    shell.write("mine.py", "def broken(prompt):\n    raise ValueError('no')\n")
    shell.config["models"] = ["mine.py:broken"]
    coloured = on_terminal(shell, "run", "CONFIG", code=1)
    assert COLOUR.search(coloured)
    assert "4/4" in coloured
    shell.environ["NO_COLOR"] = "1"
    plain = on_terminal(shell, "run", "CONFIG", code=1)
    assert not COLOUR.search(plain)
    assert "4 errored" in " ".join(ESCAPE.sub("", plain).split())


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_narrow_terminal_loses_nothing(shell: Shell, columns: int) -> None:
    shell.config["models"] = [shell.model("short"), shell.model("a-model/with-a-long-name")]
    shell.config["metrics"] = [{"name": "pass_rate", "facets": ["model_name", "prompt_template"]}]
    seen = ESCAPE.sub("", on_terminal(shell, "run", "CONFIG", "--no-progress", columns=columns))
    lines = [line.rstrip("\r") for line in seen.split("\n")]
    told = [line for line in lines if not line.startswith("files: ") and "out" not in line]
    assert max(map(len, told)) <= columns
    letters = "".join("".join(lines).split())
    for word in ("short", "pass_rate", "1.000", "0.510–1.000", "exact_match"):
        assert word in letters, seen


def test_output_that_is_no_terminal_has_no_escapes(shell: Shell) -> None:
    result = shell.run()
    assert "\x1b" not in result.said


def test_notes_are_wrapped_between_words(shell: Shell) -> None:
    log = Path(__file__).parents[1] / "formats/inspect_ai/logs/large.eval"
    seen = on_terminal(shell, "import", str(log), "-o", "imported").replace("\r", "")
    (note,) = re.findall(r"^note: (?:.+\n)+", seen, re.MULTILINE)
    assert max(map(len, note.splitlines())) <= 80
    assert note.split()[-4:] == ["all", "samples", "is", "0.5833"]
