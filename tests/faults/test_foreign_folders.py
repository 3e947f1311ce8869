"""Folders that somebody else made: nothing that they name runs or is read before the user says so.

Every command is called on a folder whose config and manifest name a Python file, or files outside, wherever a config
can name one; the file leaves a mark when it runs. Links in place of files that are written are never written through.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import assay
from assay.cli import COMMANDS, group, main
from assay.engine.experiment import trust
from assay.errors import AssayError, UserError
from assay.viewer.pages import NAMES
from tests.viewer.client import viewing

CODE = """
from pathlib import Path
Path(__file__).with_name("mark").write_text("ran")
def score(item, response): return 1.0
def measure(evaluation_results, facets, **params): return {"value": 1.0}
def answer(prompt): return "4"
def rows(): return [{"id": "1", "question": "2 + 2", "ground_truth": "4"}]
def write(export): ...
"""
PLAIN: dict[str, Any] = {"evaluation_methods": ["exact_match"], "metrics": ["mean"]}
NAMED: dict[str, dict[str, Any]] = {  # every way in which a config names code or a file
    "scorer": {"evaluation_methods": ["code.py:score"]},
    "scorer by path": {
        "evaluation_methods": [{"type": "custom", "path": "code.py", "function_name": "score"}]
    },
    "scorer by module": {
        "evaluation_methods": [{"type": "custom", "module": "os.path", "function_name": "join"}]
    },
    "dotted scorer": {"evaluation_methods": ["code.score"]},
    "decider": {
        "evaluation_methods": [
            {"name": "p", "type": "pairwise", "params": {"decide": "code.py:score"}}
        ]
    },
    "judge": {
        "evaluation_methods": [{"judge": {"model": "judge", "prompt": "Is {{response}} right?"}}],
        "models": [
            {"name": "judge", "type": "openai", "base_url": "http://127.0.0.1:9/v1", "helper": True}
        ],
    },
    "prompt of a judge": {
        "evaluation_methods": [{"judge": {"model": "demo:judge", "prompt": "/etc/hostname"}}]
    },
    "weights": {
        "evaluation_methods": [
            {"name": "e", "type": "embedding_similarity", "params": {"model": "a/b"}}
        ]
    },
    "file at home": {
        "evaluation_methods": [
            {"name": "e", "type": "is_json", "params": {"schema": "~/private.json"}}
        ]
    },
    "metric": {"metrics": ["code.py:measure"]},
    "metric by path": {"metrics": [{"name": "m", "path": "code.py", "function_name": "measure"}]},
    "class of a format": {
        "metrics": [{"name": "m", "type": "sygra.user_metric", "params": {"metric": "code.Metric"}}]
    },
    "model": {"models": ["code.py:answer"]},
    "python model": {
        "models": [{"name": "m", "type": "python", "path": "code.py", "function_name": "answer"}]
    },
    "program": {"models": [{"name": "m", "type": "llama.cpp", "path": "code.py"}]},
    "replay": {"models": [{"name": "m", "type": "replay", "path": "/etc/hostname"}]},
    "gguf": {"models": [{"name": "m", "type": "gguf", "path": "/etc/hostname"}]},
    "output": {"outputs": [{"type": "code.py:write"}]},
    "output elsewhere": {"outputs": [{"type": "csv", "path": "/nonexistent/out.csv"}]},
    "log elsewhere": {"logging": {"file": "/nonexistent/assay.log"}},
    "environment": {"env_vars": {"LD_PRELOAD": "code.so"}},
    "gate": {"gates": [{"metric": "code.py:measure", "min": 0.5}]},
    "baseline": {"gates": [{"max_drop": 0.1, "baseline": "/etc"}]},
}
IN_GATE = {"metric", "metric by path", "class of a format", "gate", "baseline"}
IN_AGGREGATE = {
    "metric",
    "metric by path",
    "class of a format",
    "output",
    "output elsewhere",
    "log elsewhere",
} | {"environment"}
NEVER_USED = {"gate", "baseline"}


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a state directory of their own, who has not said anything yet."""
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ASSAY_TRUST", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An experiment in a folder, as this user's Assay left it."""
    folder = tmp_path / "made"
    items = [
        {"id": str(n), "question": f"What is {n} + 1?", "ground_truth": str(n + 1)}
        for n in range(3)
    ]
    assay.run({"dataset": items, "models": ["demo:small"], **PLAIN}, output_dir=str(folder))
    return folder


def named(folder: Path, changes: dict[str, Any]) -> Path:
    """The folder with another config, which a stranger wrote, and the file that it names."""
    (folder / "code.py").write_text(CODE)
    config = {"name": "foreign", "models": ["demo:small"], **PLAIN, **changes}
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def ran(folder: Path) -> bool:
    return (folder / "mark").exists()


def refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except AssayError as error:
        return str(error)
    return ""


def ended(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit:
        main(list(words))
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert "internal error" not in said
    assert "Traceback" not in said
    code = exit.value.code
    return code if isinstance(code, int) else 1, said


@pytest.mark.parametrize("way", NAMED)
def test_evaluate_and_aggregate_name_what_a_foreign_folder_reaches(made: Path, way: str) -> None:
    named(made, NAMED[way])
    verbs: list[tuple[Callable[..., Any], bool]] = [
        (assay.evaluate, way not in NEVER_USED),
        (assay.aggregate, way in IN_AGGREGATE),
        (assay.gate, way in IN_GATE),
    ]
    for verb, wants in verbs:
        said = refusal(lambda verb=verb: verb(made))
        assert (
            "not of your Assay's making" in said and "--trust" in said and "belongs to" in said
        ) == wants, said
        assert not ran(made)


def commands() -> list[tuple[str, ...]]:
    """Every command and sub-command."""
    found: list[tuple[str, ...]] = []
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        found += (
            [(name, inner) for inner in command.commands]
            if isinstance(command, click.Group)
            else [(name,)]
        )
    return found


LINES: dict[
    str, list[list[str]]
] = {  # what a command is called with where a folder is not its only argument
    "compare": [["{0}", "{0}2"], ["{0}", "--facet", "model_name"]],
    "trace": [["{0}", "1"]],
    "sql": [["{0}", "select * from responses"]],
    "export": [
        ["{0}", "-f", "csv"],
        ["{0}", "-f", "ragicamp", "-o", "out"],
        ["{0}", "-f", "parquet", "-o", "a.parquet"],
    ],
    "gate": [["{0}", "--min", "0.1"], ["{0}"]],
    "dataset add": [["{0}/items.jsonl", "--name", "x"]],
    "dataset show": [["x", "--repository", "{0}"]],
    "dataset ls": [["--repository", "{0}"]],
    "judge label": [["{0}", "-o", "answers.csv"]],
    "import": [["{0}", "-o", "imported"]],
    "init": [["plain", "new"]],
    "show": [["mean"]],
    "mixeval run": [["--data", "{0}", "-o", "{0}", "-m", "demo:small"]],
    "mixeval score": [["{0}", "--data", "{0}"]],
    "sygra": [["--task", "absent", "--output_dir", "{0}", "--num_records", "1"]],
}
# they take a config: what is named on the command line runs
USERS_WORD = ("run", "plan", "validate")


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_no_command_runs_a_file_that_only_a_foreign_folder_names(
    made: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] in (*USERS_WORD, "mock-server", "view"):  # view: the next test
        return
    all_named(made)
    shutil.copytree(made, f"{made}2")
    for line in LINES.get(" ".join(words), [["{0}"]]):
        ended(*words, *(word.format(made) for word in line), capsys=capsys)
        assert not ran(made)
        assert not ran(Path(f"{made}2"))


def all_named(made: Path) -> None:
    changes: dict[str, Any] = {}
    for way in ("scorer", "metric", "model", "output"):
        changes |= NAMED[way]
    named(
        made,
        {
            **changes,
            "gates": [{"metric": "code.py:measure", "min": 0.1}],
            "dataset": "code.py:rows",
        },
    )


def test_no_page_of_the_viewer_runs_it_either(made: Path) -> None:
    all_named(made)
    with viewing(made) as client:
        answers = {name: client.ask(f"/data/{name}")[0] for name in NAMES}
        one = client.ask(f"/data/leaderboard?experiment={made.name}")[0]
    assert answers["leaderboard"] == answers["samples"] == one == 200, answers
    assert not ran(made)


def test_trust_runs_it_and_is_remembered_until_something_changes(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named(made, NAMED["scorer"])
    code, said = ended("evaluate", str(made), capsys=capsys)
    assert code == 2
    assert f"runs {made}/code.py:score (evaluation_methods[0])" in " ".join(said.split())
    assert ended("evaluate", str(made), "--trust", capsys=capsys)[0] == 0
    assert ran(made)
    trust._Process.trusts = False  # another process
    assert ended("evaluate", str(made), capsys=capsys)[0] == 0
    shutil.copytree(made, f"{made}2")
    assert ended("evaluate", f"{made}2", capsys=capsys)[0] == 2
    (made / "code.py").write_text(CODE + "\n")
    assert ended("evaluate", str(made), capsys=capsys)[0] == 2


def test_ci_trusts_by_a_variable(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named(made, NAMED["metric"])
    monkeypatch.setenv("ASSAY_TRUST", "1")
    assay.aggregate(made)
    assert ran(made)


def test_what_the_user_ran_is_his_wherever_it_moves(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    items = [{"id": "1", "question": "What is 1 + 1?", "ground_truth": "2"}]
    config = {
        "dataset": items,
        "models": ["demo:small"],
        "evaluation_methods": ["code.py:score"],
        "metrics": ["mean"],
    }
    assay.run(config, output_dir="first")
    shutil.move("first", "second")
    assert assay.evaluate("second").metrics
    text = Path("second/config.yaml").read_text()
    Path("second/config.yaml").write_text(
        text.replace("function_name: score", "function_name: answer")
    )
    with pytest.raises(UserError, match=r"code\.py:answer"):  # it came back with another function
        assay.evaluate("second")
    Path("second/config.yaml").write_text(text)
    Path("second/.env").write_text("LD_PRELOAD=evil.so\n")
    with pytest.raises(UserError, match="environment variables"):
        assay.evaluate("second")


def test_a_foreign_config_does_not_become_ones_own_by_being_taken_over(
    made: Path, tmp_path: Path
) -> None:
    named(made, NAMED["scorer"] | NAMED["baseline"])
    assay.aggregate(made, output_dir=str(tmp_path / "mine"))
    with pytest.raises(UserError, match="not of your Assay's making"):
        assay.gate(tmp_path / "mine")


@pytest.mark.parametrize(
    "verb", ["export", "compare", "trace", "rank", "evaluate", "sql", "aggregate"]
)
def test_rows_elsewhere_are_read_for_ones_own_evaluation_only(
    made: Path, tmp_path: Path, verb: str
) -> None:
    assay.evaluate(
        made,
        {"evaluation_methods": ["exact_match"], "metrics": ["mean"]},
        output_dir=str(tmp_path / "own"),
    )
    calls: dict[str, Callable[[], Any]] = {
        "export": lambda: assay.export(tmp_path / "own", "csv", output=str(tmp_path / "out.csv")),
        "compare": lambda: assay.compare([tmp_path / "own"], facet="model_name"),
        "trace": lambda: assay.trace(tmp_path / "own", "1"),
        "rank": lambda: assay.rank([tmp_path / "own"]),
        "evaluate": lambda: assay.evaluate(tmp_path / "own"),
        "sql": lambda: assay.sql([tmp_path / "own"], "select * from responses"),
        "aggregate": lambda: assay.aggregate(tmp_path / "own"),
    }
    assert "not of your Assay's making" not in refusal(calls[verb])
    shutil.rmtree(tmp_path / "state")
    assert f"reads {made}/responses.jsonl" in refusal(calls[verb])


def test_a_link_to_rows_outside_is_reading_outside(made: Path, tmp_path: Path) -> None:
    (made / "evaluation_results.jsonl").rename(tmp_path / "private.jsonl")
    (made / "evaluation_results.jsonl").symlink_to(tmp_path / "private.jsonl")
    with pytest.raises(UserError, match=r"private.jsonl|evaluation_results.jsonl"):
        assay.compare([made], facet="model_name")


def test_a_read_only_home_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "file" / "state"))
    items = [{"id": "1", "question": "What is 1 + 1?", "ground_truth": "2"}]
    result = assay.run({"dataset": items, "models": ["demo:small"], **PLAIN}, output_dir="made")
    assert len([note for note in result.notes if "cannot be written" in note]) == 1


# ---- links in place of what is written


WRITTEN = [
    *(".lock", "manifest.json", "status.json", "config.yaml", "metrics.json", "metrics.jsonl"),
    *("responses.jsonl", "evaluation_results.jsonl", "items.jsonl", "calls.jsonl", "labels.jsonl"),
    *("superseded", "rejected", "responses.d", "evaluation_results.d", "items.d", ".assay-written"),
    *(
        f".{name}.PID.tmp"
        for name in ("manifest.json", "config.yaml", "responses.jsonl", "out.csv")
    ),
]


@pytest.mark.parametrize("name", WRITTEN)
def test_no_link_is_written_through(made: Path, tmp_path: Path, name: str) -> None:
    """Whatever the commands say: the user's own files behind the link stay, and no file is made there."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "responses.jsonl").write_text('{"mine": 1}\n')
    name = name.replace("PID", str(os.getpid()))
    is_folder = "." not in name or name.endswith(".d")
    target = precious if is_folder else precious / "responses.jsonl"
    if (made / name).is_file() and name.endswith(".jsonl"):
        target = precious / name
        shutil.copy(made / name, target)
    (made / name).unlink(missing_ok=True)
    (made / name).symlink_to(target)
    before = {path.name: path.read_bytes() for path in precious.iterdir()}
    config = {
        "dataset": str(tmp_path / "made2.jsonl"),
        "models": ["demo:small"],
        "num_samples": 2,
        **PLAIN,
    }
    (tmp_path / "made2.jsonl").write_text(
        '{"id": "9", "question": "What is 9 + 1?", "ground_truth": "10"}\n'
    )
    assay.trust()
    for call in (
        lambda: assay.run(config, output_dir=str(made)),
        lambda: assay.evaluate(made, {"evaluation_methods": ["contains"], "metrics": ["mean"]}),
        lambda: assay.aggregate(made, {"metrics": ["count"]}),
        lambda: assay.export(made, "csv", output=str(made / "out.csv"), force=True),
        lambda: assay.label(made, annotator="me"),
    ):
        refusal(call)
    assert {path.name: path.read_bytes() for path in precious.iterdir()} == before


def test_the_folder_itself_may_be_behind_a_link(made: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made)
    assert assay.evaluate(tmp_path / "link").metrics == assay.aggregate(made).metrics
