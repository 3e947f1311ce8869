"""`assay mixeval` as a user calls it: tables, exit codes, and one clear sentence for every mistake."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Ended, Shell
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import write_both, write_model


class MixEval(Shell):
    def mixeval(self, verb: str, *words: str) -> Ended:
        return self.call("mixeval", verb, *words, "--data", "data", "--no-progress")


@pytest.fixture
def shell(tmp_path: Path, url: str) -> MixEval:
    write_both(tmp_path)
    return MixEval(tmp_path, url)


def test_run_and_score_print_the_same_table(shell: MixEval) -> None:
    both = ["--benchmark", "mixeval", "--benchmark", "mixeval-hard"]
    ran = shell.mixeval("run", "-m", f"mock@{shell.url}", "-m", "demo:small", "-o", "out", *both)
    assert ran.code == 0, ran.said
    scored = shell.mixeval("score", "out", "-o", "scores", *both)
    assert scored.code == 0, scored.said
    tables = [
        [line for line in ended.out.splitlines() if not line.startswith("files:")]
        for ended in (ran, scored)
    ]
    assert tables[0] == tables[1]
    assert (
        "rule-compat 95% interval guessed rule-compat+rule 95% interval unparsed entries unique"
        in ran.words
    )
    assert (shell.folder / f"out/mock/mixeval_hard/{VERSION}/score.json").is_file()
    with shell.counted() as count:
        assert shell.mixeval("run", "-m", f"mock@{shell.url}", "-o", "out", *both).code == 0
    assert count["requests"] == 0


def test_half_a_file_is_scored_and_told(shell: MixEval) -> None:
    folder = write_model(shell.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    path = folder / f"mixeval/{VERSION}/m_close_freeform.jsonl"
    text = path.read_text()
    path.write_text(text[: int(len(text) * 0.8)])
    ended = shell.mixeval("score", str(folder))
    assert ended.code == 1
    assert "problem: m on mixeval: 1 places of the files are not JSON" in ended.err
    assert "note: m on mixeval: 1 entries have no response" in ended.err
    assert "overall" in ended.out
    assert (shell.folder / f"mixeval_scores/m/mixeval/{VERSION}/score.json").is_file()


def test_json_ends_with_the_result(shell: MixEval) -> None:
    folder = write_model(shell.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    result = shell.mixeval("score", str(folder), "--json").result
    assert result["ok"] is True
    assert [one["label"] for one in result["scored"][0]["scores"]] == [
        "rule-compat",
        "rule-compat+rule",
    ]
    assert result["scored"][0]["scores"][1]["cells"]["overall"]["value"] == 1.0
    failed = shell.mixeval("score", "gone", "--json")
    assert (failed.code, failed.result["ok"], failed.result["exit_code"]) == (2, False, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["score", "gone"], "there is no file or folder 'gone'"),
        (["score", "data"], "there are no mixeval responses in 'data'"),
        (["score", "data", "--benchmark", "mixevil"], "did you mean 'mixeval'?"),
        (["score", "data", "--version", "2024-08-12"], "did you mean '2024-08-11'?"),
        (["score", "items.jsonl", "--parser", "jugde"], "did you mean 'judge'?"),
        (["run"], "which model runs?"),
        (["run", "-m", "demo:x", "--base"], "--five-shot FILE"),
        (["run", "-m", "demo:x", "--base", "--five-shot", "gone.py"], "cannot be read"),
        (["run", "-m", "demo:x", "--corrections", "gone.json"], "the corrections cannot be read"),
        (
            ["run", "-m", "demo:x", "--judge-prompts", "config.yaml", "--judge", "demo:j"],
            "no free-form prompt with the protocol's hash",
        ),
        (["run", "-m", "demo:x", "--set", "modles=1"], "did you mean 'models'?"),
        (
            ["run", "-m", "demo:x", "--judge", "demo:x", "--set", "models.0.skill=0.1"],
            "are both called 'x'",
        ),
    ],
)
def test_a_mistake_is_one_clear_error(shell: MixEval, words: list[str], said: str) -> None:
    ended = shell.mixeval(*words)
    assert ended.code == 2, ended.said
    assert said in ended.err
    assert not [path for path in shell.files() if path.endswith(("responses.jsonl", "score.json"))]


def test_an_entry_with_one_option_is_named_and_can_be_left_out(shell: MixEval) -> None:
    path = shell.folder / f"data/mixeval-{VERSION}/mixeval/multiple-choice.json"
    entries = json.loads(path.read_text())
    entries["1"]["options"] = ["only"]
    path.write_text(json.dumps(entries))
    ended = shell.mixeval("run", "-m", "demo:small")
    assert ended.code == 2
    assert "entry 'multiple-choice/1': it has 1 option" in ended.err
    (shell.folder / "fix.jsonl").write_text('{"id": "multiple-choice/1", "exclude": true}\n')
    ended = shell.mixeval("run", "-m", "demo:small", "--corrections", "fix.jsonl")
    assert ended.code == 0, ended.said
    assert "overall" in ended.out


JUDGE = """
def wise(prompt):
    if {when}:
        raise RuntimeError("down")
    return "[[0.5]]" if "reference" in prompt else "[[B]]"
"""


def test_a_judge_that_fails_in_part_says_so(shell: MixEval) -> None:
    folder = write_model(shell.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    shell.write("wise.py", JUDGE.format(when="'boats' in prompt"))
    words = ["score", str(folder), "--parser", "judge", "--judge", "wise.py:wise"]
    ended = shell.mixeval(*words)
    assert ended.code == 0, ended.said
    assert "errors: m on mixeval: 1 of 3 rows of judge_freeform: RuntimeError: down" in ended.words
    assert "(for example item free-form/2)" in ended.words
    place = shell.folder / f"mixeval_scores/m/mixeval/{VERSION}"
    assert set(json.loads((place / "score.json").read_text())) == {
        "overall",
        "TriviaQA",
        "MMLU",
        "PIQA",
        "AGIEval",
    }
    (beside,) = json.loads((place / "scores.json").read_text())
    assert beside["cells"]["overall"]["errored"] == 1
    assert beside["errors"][0].startswith("1 of 3 rows of judge_freeform")
    assert "1 of 3 rows" in shell.mixeval(*words, "--json").result["errors"][0]


def test_a_judge_that_fails_always_fails_the_command(shell: MixEval) -> None:
    folder = write_model(shell.folder, "m", ["Oslo", "Oslo", "8"], ["B", "A", "C"])
    shell.write("wise.py", JUDGE.format(when="'reference' in prompt"))
    words = ["score", str(folder), "--parser", "judge", "--judge", "wise.py:wise"]
    ended = shell.mixeval(*words)
    assert ended.code == 1
    assert "errors: m on mixeval: 3 of 3 rows of judge_freeform: RuntimeError: down" in ended.words
    assert "every row of these is an error: judge_freeform on m on mixeval" in ended.err
    result = shell.mixeval(*words, "--json").result
    assert (result["ok"], result["failed"]) == (False, ["judge_freeform on m on mixeval"])


def test_a_model_that_fails_always_fails_the_run(shell: MixEval) -> None:
    shell.write("down.py", "def down(prompt):\n    raise RuntimeError('down')\n")
    ended = shell.mixeval("run", "-m", "down.py:down", "-m", "demo:small", "-o", "out")
    assert ended.code == 1
    assert "errors: mixeval: 6 of 6 rows of down: RuntimeError: down" in ended.words
    assert "rows of rule" not in ended.words
    assert "every row of these is an error: down on mixeval" in ended.err


def test_a_judge_that_fails_for_one_model_of_two(shell: MixEval) -> None:
    shell.write("wise.py", JUDGE.format(when="'loud' in prompt"))
    for name in ("loud", "calm"):
        shell.write(f"{name}.py", f"def {name}(prompt):\n    return {name!r}\n")
    words = [
        "-m",
        "loud.py:loud",
        "-m",
        "calm.py:calm",
        "--parser",
        "judge",
        "--judge",
        "wise.py:wise",
        "-o",
        "out",
    ]
    ended = shell.mixeval("run", *words)
    assert ended.code == 1
    assert "judge of loud on mixeval" in ended.err


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ([], 1536),
        (["--set", "sample_params.max_tokens=7"], 7),
        (["--base", "--five-shot", "five.json"], 399),
    ],
)
def test_answers_are_as_long_as_in_the_original(
    shell: MixEval, words: list[str], sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.formats.mixeval import plans

    folder = shell.folder / "out/mixeval" / VERSION
    options = plans.MixEvalOptions(
        data="data", base="--base" in words, models=[f"mock@{shell.url}", "vllm:big"]
    )
    settings = {"sample_params": {"max_tokens": 7}} if "--set" in words else {}
    options.settings = settings
    config, _ = plans.config_of(options, "mixeval", VERSION, folder, "run")
    mock, local = (
        {**config.sample_params, **model.inference}["max_tokens"] for model in config.models
    )
    assert (mock, local) == (sent, 512 if sent == 1536 else sent)


def test_what_was_run_without_a_limit_is_not_asked_for_again(shell: MixEval) -> None:
    words = ["run", "-m", f"mock@{shell.url}", "-o", "out"]
    assert shell.mixeval(*words).code == 0
    file = shell.folder / "out/mixeval" / VERSION / "config.yaml"
    assert "max_tokens: 1536" in file.read_text()
    with shell.counted() as count:
        assert shell.mixeval(*words).code == 0
    assert count["requests"] == 0
