"""`assay lock` and `run --locked`, through real processes."""

import json

from tests.cli.shell import Shell


def test_a_config_is_locked_run_and_refused_once_it_drifts(shell: Shell) -> None:
    locked = shell.call("lock", "CONFIG")
    assert locked.code == 0, locked.said
    assert "config.yaml.lock: written" in locked.words
    assert "unknown of mock" in locked.words
    text = (shell.folder / "config.yaml.lock").read_bytes()
    again = json.loads(shell.call("lock", "CONFIG", "--json").out)
    assert again["state"] == "unchanged"
    assert again["lock"]["dataset"]["items"] == 4
    assert (shell.folder / "config.yaml.lock").read_bytes() == text
    ran = shell.run("--locked")
    assert ran.code == 0, ran.said
    assert "is locked now" in ran.words

    shell.config["prompt_template"] = "How much is {{question}}?"
    with shell.counted() as calls:
        refused = shell.run("--locked")
    assert (refused.code, calls["requests"]) == (2, 0)
    assert "prompts.prompt 1.hash:" in refused.err
    assert "nothing was run" in refused.err
    event = shell.call("run", "CONFIG", "--locked", "--json").result
    assert (event["ok"], event["exit_code"]) == (False, 2)


def test_flags_that_do_not_go_together_are_refused(shell: Shell) -> None:
    shell.call("lock", "CONFIG", "-o", "own.lock")
    assert shell.call("run", "CONFIG", "--lock-file", "own.lock", "--no-progress").code == 0
    assert "does less" in shell.call("run", "CONFIG", "--lock-file", "own.lock", "--limit", "1").err
    assert "there is no lock" in shell.run("--locked").err


def test_a_file_that_is_not_a_lock_stays(shell: Shell) -> None:
    theirs = shell.write("config.yaml.lock", "somebody's own words\n")
    refused = shell.call("lock", "CONFIG")
    assert refused.code == 2
    assert "this file is not a lock" in refused.err
    assert theirs.read_text() == "somebody's own words\n"
