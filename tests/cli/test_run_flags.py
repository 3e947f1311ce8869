"""Every flag of `assay run`, through real processes."""

import json
from pathlib import Path

import pytest

from assay.server import Options, running, stats
from tests.cli.shell import Shell


def models_of(shell: Shell) -> list[str]:
    return sorted({row["model_name"] for row in shell.read()})


def test_a_run_leaves_its_files_and_says_where(shell: Shell) -> None:
    result = shell.run()
    assert result.code == 0
    assert f"files: {shell.out}" in result.out
    assert {path.name for path in shell.out.iterdir()} == {
        ".lock",
        "config.yaml",
        "evaluation_results.jsonl",
        "items.jsonl",
        "manifest.json",
        "metrics.json",
        "metrics.jsonl",
        "responses.jsonl",
        "status.json",
    }
    assert json.loads((shell.out / "metrics.json").read_text()) == shell.read("metrics.jsonl")
    assert json.loads((shell.out / "status.json").read_text())["state"] == "complete"
    assert "1.000" in result.out
    assert "run mock: 4/4" in result.err


def test_the_config_can_be_an_option_or_an_argument_but_is_one(shell: Shell) -> None:
    assert shell.call("run", "-c", "CONFIG").code == 0
    assert shell.call("run", "--config", "CONFIG").code == 0
    for words in (["run"], ["run", "CONFIG", "-c", "CONFIG"]):
        result = shell.call(*words)
        assert (result.code, "name one config" in result.err) == (2, True)


def test_modes_do_their_part_of_the_flow(shell: Shell) -> None:
    inference = shell.run("--mode", "inference")
    assert inference.code == 0
    assert "responses: 4 ok" in inference.out
    assert not (shell.out / "evaluation_results.jsonl").exists()
    with shell.counted() as calls:
        scoring = shell.run("--mode", "evaluation")
    assert scoring.code == 0
    assert calls["requests"] == 0
    assert len(shell.read("evaluation_results.jsonl")) == 4
    assert len(shell.read("metrics.jsonl")) == 1
    assert shell.run("--mode", "everything").code == 2


def test_scoring_without_responses_is_told(shell: Shell) -> None:
    result = shell.run("--mode", "evaluation")
    assert result.code == 2
    assert "there is no run" in result.err


def test_another_output_folder(shell: Shell) -> None:
    assert shell.run("-o", "elsewhere").code == 0
    assert (shell.folder / "elsewhere" / "responses.jsonl").exists()
    assert not shell.out.exists()


def test_limit_and_samples_narrow_what_runs_and_keep_what_is_there(shell: Shell) -> None:
    shell.config["sample_params"] = {"num_samples": 3}
    for words, rows in (
        (["--limit", "2", "--num-samples", "1"], 2),
        (["--num-samples", "2"], 8),
        (["--limit", "1"], 9),
        ([], 12),
    ):
        assert shell.run(*words).code == 0
        assert len(shell.keys()) == len(shell.lines()) == rows


def test_concurrency_bounds_the_calls_in_flight(tmp_path: Path) -> None:
    with running(Options(latency_ms=30)) as url:
        shell = Shell(tmp_path, url, items=12)
        assert shell.run("-j", "3").code == 0
        assert stats(url)["max_in_flight"] == 3


def test_a_model_by_its_name_in_the_config(shell: Shell) -> None:
    shell.config["models"] = [shell.model("first"), shell.model("second"), shell.model("third")]
    assert shell.run("-m", "first", "--model", "third").code == 0
    assert models_of(shell) == ["first", "third"]
    assert shell.run("-m", "second").code == 0
    assert models_of(shell) == ["first", "second", "third"]
    unknown = shell.run("-m", "secnd")
    assert unknown.code == 2
    assert "did you mean 'second'?" in unknown.err


def test_a_model_by_its_type_name_and_address(shell: Shell) -> None:
    other = f"openai:other@{shell.url}"
    assert shell.run("-m", other).code == 0
    assert models_of(shell) == ["other"]
    assert shell.run("-m", "mock", "-m", "demo:embedded").code == 0
    assert models_of(shell) == ["embedded", "mock"], (
        "a model of an earlier command line is not in the plan"
    )
    with shell.counted() as calls:
        assert shell.run("-m", other).code == 0
    assert models_of(shell) == ["mock", "other"]
    assert calls["requests"] == 0, "what was paid comes back"


def test_a_model_that_is_a_function(shell: Shell) -> None:
    shell.write("mine.py", "def shouting(prompt):\n    return prompt.upper()\n")
    assert shell.run("-m", "mine.py:shouting").code == 0
    assert shell.read()[0]["response"].startswith("WHAT IS ")
    missing = shell.run("-m", "mine.py:shuting")
    assert missing.code == 2
    assert "did you mean 'shouting'?" in missing.err


def test_settings_override_the_config(shell: Shell) -> None:
    words = [
        "--set",
        "models.0.name=renamed",
        "--set",
        "prompt_template=Say {{question}}",
        "--set",
        "limit=1",
    ]
    assert shell.run(*words).code == 0
    (row,) = shell.read()
    assert (row["model_name"], row["prompt"]) == ("renamed", "Say 0 + 1")
    for setting in ("limit", "limit=none", "limt=3", "=3"):
        assert shell.run("--set", setting).code == 2


def test_long_flags_take_underscores(shell: Shell) -> None:
    assert (
        shell.run(
            "--num_samples", "1", "--output_dir=else_where", "--max_error_rate=0.5", "--no_progress"
        ).code
        == 0
    )
    assert (shell.folder / "else_where" / "responses.jsonl").exists()
    assert shell.call("mock_server", "--help").code == 0


def test_a_dry_run_writes_and_asks_nothing(shell: Shell) -> None:
    shell.save()
    before = shell.files()
    with shell.counted() as calls:
        result = shell.run("--dry-run")
        as_json = shell.run("--dry-run", "--json")
    assert result.code == as_json.code == 0
    assert "to run 4 about" in result.words
    assert as_json.result["missing"] == 4
    assert calls["requests"] == 0
    assert shell.files() == before


def test_no_progress_is_silent(shell: Shell) -> None:
    assert shell.run("--no-progress").err == ""


def test_debug_adds_the_traceback_and_keeps_the_exit_code(shell: Shell) -> None:
    shell.config["dataset"] = "missing.jsonl"
    result = shell.run("--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert "missing.jsonl" in result.err


def test_a_finished_run_asks_nothing_and_changes_no_row(shell: Shell) -> None:
    assert shell.run().code == 0
    before = {
        name: shell.lines(name)
        for name in ("responses.jsonl", "evaluation_results.jsonl", "metrics.jsonl")
    }
    with shell.counted() as calls:
        again = shell.run()
    assert again.code == 0
    assert calls["requests"] == 0
    assert {name: shell.lines(name) for name in before} == before


def test_the_default_folder_comes_from_the_name_so_the_same_command_goes_on(shell: Shell) -> None:
    del shell.config["output_dir"]
    shell.config["name"] = "my experiment"
    folder = shell.folder / "output" / "my experiment"
    for limit, rows in (("2", 2), ("4", 4)):
        assert shell.call("run", "CONFIG", "--limit", limit).code == 0
        assert len((folder / "responses.jsonl").read_text().splitlines()) == rows


@pytest.mark.parametrize(
    "flag", [["--limit", "-1"], ["-j", "0"], ["--max-error-rate", "2"], ["--num-samples", "x"]]
)
def test_values_out_of_range_are_usage_errors(shell: Shell, flag: list[str]) -> None:
    result = shell.run(*flag)
    assert result.code == 2
    assert flag[0] in result.err
