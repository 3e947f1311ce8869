"""`assay verify` through real processes: what it prints, and its exit codes."""

from tests.cli.shell import Shell


def test_a_run_is_verified_and_a_flipped_bit_is_an_exit_code(shell: Shell) -> None:
    assert shell.run().code == 0
    with shell.counted() as calls:
        done = shell.call("verify", "out")
    assert done.code == 0, done.said
    assert calls["requests"] == 0
    assert "labels exact_match 4 0 0" in done.words
    assert done.out.rstrip().endswith("verified")
    assert shell.call("verify", "out", "--json").result["ok"]

    file = shell.out / "status.json"
    content = bytearray(file.read_bytes())
    content[7] ^= 1
    file.write_bytes(content)
    bad = shell.call("verify", "out")
    assert bad.code == 1
    assert "damaged: status.json: block 1" in bad.words
    first, last = shell.call("verify", "out", "--json").events()
    assert first["faults"][0]["file"] == "status.json"
    assert (last["event"], last["ok"], last["exit_code"]) == ("result", False, 1)


def test_it_fits_eighty_columns(shell: Shell) -> None:
    shell.environ["COLUMNS"] = "80"
    shell.config["models"] = [
        shell.model("a-very-long-name/of-a-model-that-nobody-would-shorten-70B-Instruct")
    ]
    name = "a_scorer_with_a_name_that_is_longer_than_the_table_has_room_for"
    shell.config["evaluation_methods"] = [{"name": name, "type": "exact_match"}]
    assert shell.run().code == 0
    (shell.out / "metrics.jsonl").write_text("{}\n")
    done = shell.call("verify", "out")
    assert done.code == 1
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_folder_of_somebody_else_needs_trust(shell: Shell) -> None:
    shell.write("own.py", "def score(item, response):\n    return True\n")
    shell.config["evaluation_methods"] = [
        {"name": "own", "type": "custom", "path": "own.py", "function_name": "score"}
    ]
    assert shell.run().code == 0
    config = shell.out / "config.yaml"
    config.write_text(config.read_text() + "# theirs\n")
    done = shell.call("verify", "out")
    assert "add --trust" in done.words
    assert "labels own 0 0 4" in done.words
    assert "labels own 4 0 0" in shell.call("verify", "out", "--trust").words


def test_what_is_not_an_experiment_is_an_error(shell: Shell) -> None:
    shell.save()
    missing = shell.call("verify", "nowhere")
    assert missing.code == 2
    assert "there is no file or folder" in missing.err
