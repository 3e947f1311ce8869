"""`assay merge` from the command line: what it prints, refuses and leaves behind."""

import json

from tests.cli.shell import Shell


def parts(shell: Shell) -> tuple[str, str]:
    for name, model in (("one", "a"), ("two", "b")):
        shell.config["models"] = [{"name": model, "type": "demo"}]
        assert shell.run("-o", name).code == 0
    return "one", "two"


def test_two_models_become_one_experiment(shell: Shell) -> None:
    ended = shell.call("merge", *parts(shell), "-o", "all")
    assert ended.code == 0
    assert "responses" in ended.out
    assert f"files: {shell.folder / 'all'}" in ended.out
    again = shell.call("merge", "one", "two", "-o", "all", "--json")
    found = json.loads(again.out)
    assert (found["new"], found["planned"], [part["path"] for part in found["parts"]]) == (
        False,
        found["responses"],
        ["one", "two"],
    )
    assert "the folder is this merge already" in shell.call("merge", "one", "two", "-o", "all").out
    assert shell.call("aggregate", "all").code == 0
    assert shell.call("compare", "all", "--facet", "model_name").code == 0


def test_mistakes(shell: Shell) -> None:
    parts(shell)
    for words, said in (
        (["one", "-o", "all"], "there is nothing to merge"),
        (["one", "two"], "Missing option '-o'"),
        (["one", "none", "-o", "all"], "there is no file or folder 'none'"),
        (["one", "two", "-o", "one"], "is not what this merge makes"),
        (["one", "two", "-o", "all", "--prefer", "best"], "'best' is not one of"),
    ):
        ended = shell.call("merge", *words)
        assert ended.code == 2
        assert said in ended.err
    assert not (shell.folder / "all").exists()


def test_conflicts_are_named_and_decided(shell: Shell) -> None:
    for name in ("one", "two"):
        assert shell.run("-o", name).code == 0
    ended = shell.call("merge", "one", "two", "-o", "all")
    assert ended.code == 2
    assert "two/responses.jsonl, row 1" in ended.err
    decided = shell.call("merge", "one", "two", "-o", "all", "--prefer", "newest")
    assert decided.code == 0
    assert "--prefer decided which one stays" in decided.out
