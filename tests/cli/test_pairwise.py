"""Relative evaluation from the command line: a judge that is paid per pair, people, kills, and what trace shows."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

import assay
from assay.server import Options, running, stats
from tests.cli.shell import Ended, Shell
from tests.support import wait_for, without_times

ITEMS = 4
SKILLS = {"small": 0.3, "middle": 0.6, "large": 1.0}


@pytest.fixture
def field(shell: Shell) -> Shell:
    """A folder of its own for the run of each player, all judged by the model on the server."""
    for name, skill in SKILLS.items():
        shell.config["models"] = [{"name": name, "type": "demo", "skill": skill}]
        assay.run(shell.save(), mode="inference", output_dir=str(shell.folder / name))
    judge = shell.model("judge", helper=True)
    shell.config |= {
        "models": [judge],
        "evaluation_methods": [{"name": "better", "type": "pairwise"}],
    }
    shell.config["metrics"] = [{"name": "win_rate", "facets": ["model_name"]}]
    del shell.config["dataset"]
    return shell


def play(field: Shell, *words: str, out: str = "out") -> Ended:
    return field.call("evaluate", *words, "-c", "CONFIG", "-o", out, "--no-progress")


def rows(field: Shell, out: str = "out") -> list[dict[str, object]]:
    path = field.folder / out / "evaluation_results.jsonl"
    return sorted(
        (without_times(json.loads(line)) for line in path.read_text().splitlines()),
        key=lambda row: row["key"],
    )


def test_a_model_that_is_added_later_is_paid_for_alone(field: Shell) -> None:
    with field.counted() as calls:
        assert play(field, *SKILLS, out="at-once").code == 0
    assert calls["requests"] == 3 * ITEMS * 2
    with field.counted() as calls:
        first = play(field, "small", "middle")
    assert (first.code, calls["requests"]) == (0, ITEMS * 2)
    with field.counted() as calls:
        added = play(field, "large")
    assert (added.code, calls["requests"]) == (0, 2 * ITEMS * 2), (
        "its two pairs, on each item, in both orders"
    )
    assert "the earlier evaluation in the folder: small, middle" in added.words
    assert rows(field) == rows(field, "at-once")
    with field.counted() as calls:
        again = play(field, *SKILLS)
    assert (again.code, calls["requests"]) == (0, 0)


def test_the_flags_of_a_budget_go_together(field: Shell) -> None:
    for words in (["--pairs", "active"], ["--budget", "3"]):
        said = play(field, *SKILLS, *words)
        assert said.code == 2
        assert "--pairs active and --budget go together" in said.words
    assert play(field, *SKILLS, "--pairs", "active", "--budget", "0").code == 2
    with field.counted() as calls:
        assert play(field, *SKILLS, "--pairs", "active", "--budget", "5").code == 0
    assert (calls["requests"], len(rows(field))) == (10, 10)


def test_a_budget_survives_a_kill(field: Shell) -> None:
    words = [
        "evaluate",
        *SKILLS,
        "-c",
        "CONFIG",
        "-o",
        "out",
        "--no-progress",
        "--pairs",
        "active",
        "--budget",
        "10",
    ]
    with running(Options(latency_ms=60)) as url:
        field.config["models"] = [{"name": "judge", "endpoint": url, "helper": True}]
        field.config["max_concurrency"] = 2
        with field.start(*words) as child:
            wait_for(lambda: len(field.lines("evaluation_results.jsonl")) >= 4)
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert field.call(*words).code == 0
        assert stats(url)["requests"] <= 20 + 2, "at most the calls in flight are paid twice"
    assert set(field.keys("evaluation_results.jsonl").values()) == {1}
    played = Counter(
        (row["item_id"], *row["players"]) for row in field.read("evaluation_results.jsonl")
    )
    assert (len(played), set(played.values())) == (10, {2})


def test_people_label_pairs_and_the_next_evaluation_fills_the_rows(field: Shell) -> None:
    field.config["evaluation_methods"] = [
        {"name": "better", "type": "pairwise", "params": {"decide": "people"}}
    ]
    assert play(field, "small", "large").code == 0
    waiting = [row for row in rows(field) if row["outcome"] == "skipped"]
    assert len(waiting) == ITEMS
    labelling = assay.label(field.folder / "out", annotator="me")
    assert "small" not in str([*labelling.views.values()]), "nobody sees who answered"
    for answer in labelling.waiting[:3]:
        labelling.save(answer, 0.5)
    filled = field.call("evaluate", "out", "--no-progress")
    assert filled.code == 0, filled.said
    assert Counter(row["outcome"] for row in rows(field)) == {"scored": 3, "skipped": 1}
    assert {row["score"] for row in rows(field) if row["outcome"] == "scored"} == {0.5}


def test_people_label_pairs_in_a_file(field: Shell) -> None:
    method = {"name": "better", "type": "pairwise", "params": {"decide": "people"}}
    field.config["evaluation_methods"] = [method]
    assert play(field, "small", "large").code == 0
    assert field.call("judge", "label", "out", "-o", "answers.csv").code == 0
    head, *lines = (field.folder / "answers.csv").read_text().splitlines()
    assert [line[0] for line in lines] == [","] * ITEMS, "the first column is to be filled in"
    words = ["first", "tie", "second"]
    labelled = [word + line for word, line in zip(words, lines, strict=False)]
    (field.folder / "answers.csv").write_text("\n".join([head, *labelled, *lines[3:], ""]))
    named = f"evaluation_methods.0.params.labels={field.folder / 'answers.csv'}"
    filled = field.call("evaluate", "out", "--no-progress", "--set", named)
    assert filled.code == 0, filled.said
    scored = [row["score"] for row in rows(field) if row["outcome"] == "scored"]
    assert sorted(scored) == [0, 0.5, 1]


def test_trace_shows_both_seats_of_a_match_and_why(field: Shell) -> None:
    assert play(field, *SKILLS).code == 0
    traced = field.call("trace", "out", "q1")
    assert traced.code == 0
    said = traced.out
    assert said.count("match better, sample 0: ") == 3
    block = said[said.index("match better, sample 0: large vs small") :].splitlines()[:8]
    assert [
        line.split(":")[0].strip() for line in block if line.startswith("    ") and line[4] != " "
    ] == [
        "large first",
        "small first",
    ]
    assert any(line.strip().startswith("reason:") for line in block)
    assert "response:" in said, "the answers are those of the runs elsewhere"
    found = json.loads(field.call("trace", "out", "q1", "--json", "-m", "large").out)
    assert [match["players"] for match in found["matches"]] == [
        ["large", "middle"],
        ["large", "small"],
    ]
    assert [[row["seat"] for row in match["evaluations"]] for match in found["matches"]] == [
        [0, 1],
        [0, 1],
    ]
    assert [sample["evaluations"] for sample in found["samples"]] == [[]]
    assert found["matches"][0]["evaluations"][0]["metrics"][0]["metric_name"] == "win_rate"


def test_sql_sees_the_responses_of_all_runs(field: Shell) -> None:
    assert play(field, *SKILLS).code == 0
    counted = field.call(
        "sql", "out", "select model_name, count(*) as n from responses group by 1", "--json"
    )
    assert counted.code == 0, counted.said
    assert sorted(row["model_name"] for row in counted.events()) == sorted(SKILLS)


def test_one_config_may_hold_all_players(shell: Shell) -> None:
    shell.config["models"] = [
        {"name": name, "type": "demo", "skill": skill} for name, skill in SKILLS.items()
    ]
    shell.config["models"].append(shell.model("judge", helper=True))
    shell.config["evaluation_methods"] = [
        {"name": "better", "type": "pairwise", "params": {"model": "judge"}}
    ]
    shell.config["metrics"] = [{"name": "win_rate", "params": {"player": "large"}}]
    with shell.counted() as calls:
        assert shell.run("--no-progress").code == 0
    assert calls["requests"] == 3 * ITEMS * 2
    shell.config["models"].append({"name": "huge", "type": "demo", "skill": 1.0})
    with shell.counted() as calls:
        assert shell.run("--no-progress").code == 0
    assert calls["requests"] == 3 * ITEMS * 2, "the new model meets the three others"
    assert {Path(name).name for name in shell.files() if "superseded" in name} == set()
