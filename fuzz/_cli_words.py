"""The words of a case of `cli.py`: a line that succeeds, mutated, or any command with any of its options."""

from __future__ import annotations

import shlex
from random import Random
from typing import Any

import click

from fuzz import _cli_lab, _hostile


def words_of(case: int) -> tuple[list[str], Random]:
    """A line that succeeds, mutated, or any command with any of its options."""
    random = Random(case)
    lines = _cli_lab.SLOW if random.random() < 0.02 else _cli_lab.LINES
    words = (
        shlex.split(random.choice(lines).replace(_cli_lab.MARK, ""))
        if random.random() < 0.8
        else _any_command(random)
    )
    if random.random() < 0.45:
        for _ in range(random.choice([1, 1, 2, 3])):
            words = _mutated(words, random)
    return [
        _as_passed(word) for word in words if not word.startswith(("/", "--debug", "-d"))
    ], random


def _as_passed(word: str) -> str:
    """What Python makes of the bytes that a shell can pass: no NUL, and what is not UTF-8 as single surrogates."""
    return (
        word.replace("\x00", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    )


def _mutated(words: list[str], random: Random) -> list[str]:
    at = random.randrange(1, len(words) + 1)
    kind = random.random()
    if kind < 0.4:
        return [*words[:at], _hostile.text(random), *words[at + 1 :]]
    if kind < 0.5:
        return [*words[:at], *words[at + 1 :]]
    if kind < 0.6:
        return [*words[:at], _hostile.brackets(random)[:120_000], *words[at:]]
    return [*words, *_option(_command(words), random)]


def _any_command(random: Random) -> list[str]:
    from assay.cli import COMMANDS, group

    name = random.choice(list(COMMANDS))
    command, words = group.get_command(click.Context(group), name), [name]
    while isinstance(command, click.Group):
        name = random.choice(list(command.commands))
        command, words = command.commands[name], [*words, name]
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words += [
                _operand(random)
                for _ in range(random.choice([0, 1, 1, 1, 2]) if parameter.nargs < 0 else 1)
            ]
    for _ in range(random.randrange(4)):
        words += _option(command, random)
    return words


def _operand(random: Random) -> str:
    names = [
        "out",
        "config.yaml",
        "config.json",
        "items.jsonl",
        "items.csv",
        "mx",
        "camp",
        "again",
        "rows.jsonl",
        ".",
    ]
    return random.choice(names) if random.random() < 0.8 else _hostile.text(random)


def _command(words: list[str]) -> click.Command:
    from assay.cli import COMMANDS, group

    command: Any = group
    for word in words:
        if not isinstance(command, click.Group):
            break
        following = (
            command.get_command(click.Context(command), word)
            if command is not group or word in COMMANDS
            else None
        )
        if following is None:
            break
        command = following
    return command


def _option(command: click.Command, random: Random) -> list[str]:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if not options:
        return ["--debugg"]
    option = random.choice(options)
    name = random.choice([*option.opts, *option.secondary_opts])
    if option.is_flag and random.random() < 0.9:
        return [name] if name != "--debug" else []
    kind: Any = option.type
    if isinstance(kind, click.Choice) and random.random() < 0.7:
        value = random.choice(list(kind.choices))
    elif isinstance(kind, (click.IntRange, click.FloatRange)) and random.random() < 0.6:
        value = random.choice(
            ["0", "1", "2", "0.5", "100", "-1", "99999999999999999999", "nan", "1e400"]
        )
    else:
        value = _operand(random)
    return [name, str(value)] if random.random() < 0.8 else [f"{name}={value}"]


def shown(words: list[str]) -> str:
    """The line as one would type it."""
    return "assay " + " ".join(
        repr(word)[:150] if not word.isascii() or len(word) > 100 else shlex.quote(word)
        for word in words
    )
