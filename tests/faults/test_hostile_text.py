"""Hostile text in names, ids, data, answers and every row: every command in every form, piped and on a terminal, shows
nothing that a terminal obeys, that hides or turns text around, or that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from assay.cli import COMMANDS, group, main
from fuzz import _cli_lab
from fuzz.cli import _run as piped  # pyright: ignore[reportPrivateUsage]

EVIL = " =cmd|x\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x85\u202e\u2066\u200b\u200f\u2028\u2029\ufeff\U000e0041\r.[bold red]"
HARM = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
# colours, screens drawn in place
OURS = re.compile(r"\x1b\[(?:\?(?:25|7|1049)[hl]|[0-9;]*m|2[KJ]|[0-9]*[AGH]|[JK])")
FORMULA = re.compile(r"[\s\ufeff\xa0\u200b]*[=+@\-]")
NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?%?")
BYTES = {"jsonl"}  # piped, this form is the rows byte for byte
TIES = {"key", "responses", "outcome", "id", "item_id"}
# people read
FILES = (
    "report.xml",
    "r.xml",
    "r.md",
    "rows.md",
    "items2.json",
    "answers.csv",
    "log.txt",
    "looked.md",
)
ENDLESS = {"mock-server", "view"}
ROWS = (
    "responses.jsonl",
    "evaluation_results.jsonl",
    "items.jsonl",
    "metrics.jsonl",
    "calls.jsonl",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder, before = tmp_path_factory.mktemp("world"), Path.cwd()
    os.chdir(folder)
    _cli_lab.build(folder, lambda words: piped(words), EVIL)
    assert piped(["ls", "out"])[0] == 0
    for file in (
        path
        for name in ROWS
        if (path := folder / "foreign" / name) and (folder / "out" / name).exists()
    ):
        file.parent.mkdir(exist_ok=True)
        rows = [json.loads(line) for line in (folder / "out" / file.name).read_bytes().splitlines()]
        file.write_text("".join(json.dumps(_spoilt(row)) + "\n" for row in rows))
    yield folder
    os.chdir(before)


def _spoilt(value: Any, name: str = "") -> Any:
    """Evil in every text and name of a row but those that tie rows to one another."""
    if isinstance(value, dict):
        return {key: _spoilt(part, key) for key, part in value.items()} | {f"more{EVIL}": EVIL}
    if isinstance(value, list):
        return [_spoilt(part, name) for part in value]
    return f"{value}{EVIL}" if isinstance(value, str) and name not in TIES else value


def lines() -> list[str]:
    foreign = [
        "trace foreign q1~",
        "sql foreign 'select * from responses'",
        "export foreign -f csv -t evaluations",
    ]
    foreign += ["sql foreign 'select * from evaluations'", "export foreign -f markdown", "ls ."]
    foreign += [
        "gate out --label exact_match --min 2 --where 'model_name=own~' --junit r.xml --markdown r.md"
    ]
    errors = [
        "run no~.yaml",
        "trace out no~",
        "show no~",
        "list no~",
        "compare out a~ --facet no~",
        "sql out ~",
    ]
    return [*_cli_lab.LINES, *_cli_lab.SLOW, *foreign, *errors]


def test_every_command_is_called() -> None:
    assert {line.split()[0] for line in lines()} == set(COMMANDS)


def cases() -> list[list[str]]:
    """Each line in each of the forms that its command has."""
    found: list[list[str]] = []
    for line in lines():
        words = [word.replace(_cli_lab.MARK, EVIL) for word in shlex.split(line)]
        if words[0] in ENDLESS:
            continue
        found.append(words)
        for option in _options(words):
            if "--json" in option.opts:
                found.append([*words, "--json"])
            elif option.name == "form" and isinstance(option.type, click.Choice):
                found += [[*words, "--format", form] for form in option.type.choices]
            elif option.name == "format_name" and "-f" not in words and "-o" not in words:
                found += [[*words, "-f", form] for form in ("csv", "json", "jsonl", "markdown")]
    return found


def _options(words: list[str]) -> list[click.Option]:
    command: Any = group
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def test_nothing_hostile_leaves_through_a_pipe(world: Path) -> None:
    for words in cases():
        code, out, err = piped(words)
        assert code in (0, 1, 2, 3, 4), (words, err)
        for text in (out, err):
            harm = None if BYTES & set(words) and text is out else HARM.search(text)
            assert harm is None, (words, text[max(0, harm.start() - 80) : harm.end() + 40])
        if "csv" in words and code == 0:
            cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
            assert not [
                cell for cell in cells if FORMULA.match(cell) and not NUMBER.fullmatch(cell)
            ], words
        if "--json" in words:
            assert [json.loads(line) for line in out.split("\n") if line] or not out, words
    for name in FILES:
        assert not HARM.search((world / name).read_text()), name


def test_nothing_hostile_reaches_a_terminal(world: Path) -> None:
    shown = 0
    for words in cases():
        seen = on_terminal(words)
        shown += bool(seen)
        harm = HARM.search(OURS.sub("", seen))
        assert harm is None, (words, seen[max(0, harm.start() - 80) : harm.end() + 80])
    assert shown > 100, "the child's streams are no terminal"


def on_terminal(words: list[str]) -> str:
    """What a command writes in a child whose standard streams are a terminal."""
    pid, ours = pty.fork()
    if not pid:
        try:
            os.environ |= {"TERM": "xterm", "COLUMNS": "100", "PAGER": "cat"}
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            signal.alarm(20)
            main(words)
        finally:
            sys.stdout.flush()
            os._exit(0)
    pieces: list[bytes] = []
    try:
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
            if b"q quit" in piece or b"any key" in piece:
                os.write(ours, b"q")
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    os.waitpid(pid, 0)
    return b"".join(pieces).decode("utf-8", "replace").replace("\r\n", "\n")
