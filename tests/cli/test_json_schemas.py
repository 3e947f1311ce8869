"""Every command has `--json`, and each line that it prints is as `assay schema COMMAND` says."""

import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from assay.cli import group
from assay.reports.outputs import commands, output_schema
from tests.cli.shell import Shell

SERVERS = {"view", "mock-server"}  # print their address and serve until they are ended
CONFIG = {
    "dataset": "items.jsonl",
    "output_dir": "out",
    "models": ["demo:large", "demo:small"],
    "evaluation_methods": ["exact_match"],
    "metrics": ["mean", {"name": "mean", "facets": ["model_name"]}],
    "gates": [{"metric": "mean", "min": 0.0, "facets": {"model_name": "demo-large"}}],
}
LINES: dict[str, list[list[str]]] = {
    "run": [
        ["CONFIG"],
        ["CONFIG", "--dry-run"],
        ["missing.yaml"],
    ],
    "plan": [["CONFIG"]],
    "validate": [["CONFIG"], ["missing.yaml"]],
    "lock": [["CONFIG"], ["missing.yaml"]],
    "evaluate": [["out"]],
    "aggregate": [["out"]],
    "merge": [
        ["out", "other", "-o", "merged"],
        ["out", "other", "-o", "merged", "--prefer", "first"],
    ],
    "compare": [["out", "other"], ["out", "other", "--all-labels"], ["out"]],
    "diff": [
        ["out", "other"],
        ["out", "other", "--label", "nothing"],
        ["out", "out/responses.jsonl"],
    ],
    "rank": [["out"]],
    "gate": [["out"]],
    "judge calibrate": [["out"]],
    "judge label": [["out", "-o", "answers.csv"], ["out"]],
    "report": [["out", "-o", "report.html"]],
    "verify": [["out", "other"], ["nowhere"]],
    "trace": [["out", "q1"], ["out", "nobody"]],
    "ls": [["."]],
    "status": [["out"]],
    "sql": [["out", "select count(*) as n from responses"]],
    "export": [["out", "-o", "rows.csv"], ["out"]],
    "convert": [["out", "table.csv"], ["nothing", "table.csv"]],
    "import": [["out", "-o", "new"], ["nothing", "-o", "new"]],
    "dataset add": [["items.jsonl", "--name", "sums"]],
    "dataset ls": [[]],
    "dataset show": [["sums"]],
    "dataset verify": [["sums"]],
    "benchmarks pull": [["nothing", "-o", "data"]],
    "local list": [[]],
    "local pull": [["nothing.whl"]],
    "demo": [["tried"], ["out"]],
    "init": [["started"], ["started"]],
    "list": [["scorer"], ["providers"]],
    "show": [["exact_match"]],
    "worker": [["nowhere"]],
    "mixeval": [["score", "nothing.jsonl", "--data", "nowhere"]],
    "sygra": [["--task", "missing"]],
}


def every_command() -> dict[str, click.Command]:
    """The commands, and those of groups, by what one types."""
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found[f"{name} {inner}"] = command.commands[inner]
        else:
            found[name] = command
    return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("lab"))
    shell.rows = [
        {"id": f"q{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(4)
    ]
    shell.config = CONFIG
    for folder in ("out", "other"):
        ended = shell.call("run", "CONFIG", "-o", folder, "--no-progress")
        assert ended.code == 0, ended.said
    return shell


def test_every_command_has_json() -> None:
    without = [
        name
        for name, command in every_command().items()
        if not any("--json" in p.opts for p in command.params)
    ]
    assert without == []


def test_every_command_is_described_and_tried() -> None:
    named = {name if name in commands() else name.split()[0] for name in every_command()}
    assert named - {"schema"} == set(commands())
    assert set(commands()) - SERVERS <= set(LINES)


@pytest.mark.parametrize("command", LINES)
def test_each_line_is_as_its_schema_says(lab: Shell, command: str) -> None:
    schema = output_schema(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for words in LINES[command]:
        ended = lab.call(*command.split(), *words, "--json")
        lines: list[Any] = [json.loads(line) for line in ended.out.splitlines()]
        assert lines, ended.said
        for line in lines:
            check.validate(line)
        if ended.code not in (0, 3, 4):
            assert (lines[-1]["ok"], lines[-1]["exit_code"]) == (False, ended.code)


def test_a_line_of_another_shape_is_noticed(tmp_path: Path) -> None:
    check = jsonschema.Draft202012Validator(output_schema("trace"))
    assert not check.is_valid({"folder": "out"})
    assert not check.is_valid({"event": "result", "ok": False})
    assert check.is_valid({"event": "result", "ok": False, "error": "no", "exit_code": 2})
