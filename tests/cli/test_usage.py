"""Help, unknown words and exit codes: a user's mistake is a message with a way out, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli import COMMANDS
from tests.cli.shell import Shell


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(shell: Shell, command: str, flag: str) -> None:
    result = shell.call(command, flag)
    assert result.code == 0
    assert result.out.startswith("Usage: ")
    assert result.err == ""


def test_the_help_of_run_names_every_flag(shell: Shell) -> None:
    text = shell.call("run", "--help").out
    for flag in (
        "--mode [full|inference|evaluation]",
        "-o, --output-dir",
        "-m, --model",
        "--limit",
        "--num-samples",
        "-j, --max-concurrency",
        "--retry-errors",
        "--max-error-rate",
        "--dry-run",
        "--set KEY=VALUE",
        "--json",
        "--no-progress",
        "--debug",
        "-c, --config",
    ):
        assert flag in text


def test_help_lists_the_commands(shell: Shell) -> None:
    for words in (["--help"], ["-h"]):
        result = shell.call(*words)
        assert result.code == 0
        assert all(f"  {name} " in result.out for name in COMMANDS)
    assert shell.call("--version").out.startswith("assay 0.2.0\n")


def test_the_installed_command_and_the_module_are_the_same(shell: Shell) -> None:
    script = Path(sys.executable).with_name("assay")
    wide = {**os.environ, **shell.environ}
    installed = subprocess.run(
        [script, "run", "--help"], capture_output=True, text=True, check=True, env=wide
    )
    (first, *rest), (_, *module) = (
        installed.stdout.splitlines(),
        shell.call("run", "--help").out.splitlines(),
    )
    assert first == "Usage: assay run [OPTIONS] [CONFIG]"
    assert rest == module


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["validat", "CONFIG"], "did you mean 'validate'?"),
        (["run", "CONFIG", "--limti", "3"], "--limit"),
        (["run", "CONFIG", "--limit"], "--limit"),
        (["run", "CONFIG", "another.yaml"], "another.yaml"),
        (["run", "cofnig.yaml"], "config.yaml"),
        (["completion", "bash"], "_ASSAY_COMPLETE=bash_source assay"),
        (["run", "CONFIG", "--load", "1,2"], "run -j 1 -o ONE"),
        (["run", "CONFIG", "--load=1,2"], "compare ONE EIGHT --metric ttft"),
        (["judge", "label", "out", "--summary"], "the review of assay view"),
        (["plan", "no/such/place.yaml"], "no/such/place.yaml"),
        (["validate", "."], "."),
        (["mock-server", "--rate-429", "2"], "--rate-429"),
        (["mock-server", "--port", "70000"], "--port"),
        (["mock-server", "--answers", "missing.jsonl"], "missing.jsonl"),
        (["mock-server", "--rate-429", "0.8", "--rate-500", "0.8"], "1.6"),
    ],
)
def test_what_is_not_known_is_a_usage_error(shell: Shell, words: list[str], said: str) -> None:
    result = shell.call(*words)
    assert result.code == 2
    assert said in result.err
    assert result.out == ""


def test_no_word_at_all_shows_the_help(shell: Shell) -> None:
    result = shell.call()
    assert "Commands" in result.said
    assert result.code in (0, 2)


def test_a_taken_port_is_told(shell: Shell) -> None:
    port = shell.url.rpartition(":")[2]
    result = shell.call("mock-server", "--port", port)
    assert result.code == 2
    assert f"port {port} cannot be used" in result.err
