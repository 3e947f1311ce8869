"""`assay plan`: the numbers before a run, after it, and after an edit."""

from typing import Any

from tests.cli.shell import Shell


def plan(shell: Shell, *words: str) -> dict[str, Any]:
    before = shell.out.exists() and sorted(path.stat().st_mtime_ns for path in shell.out.rglob("*"))
    with shell.counted() as calls:
        result = shell.call("plan", "CONFIG", "--json", *words)
    assert result.code == 0
    assert calls["requests"] == 0
    after = shell.out.exists() and sorted(path.stat().st_mtime_ns for path in shell.out.rglob("*"))
    assert after == before, "looking changes nothing"
    return result.result


def numbers(found: dict[str, Any]) -> tuple[int, ...]:
    return tuple(
        found[name] for name in ("planned", "selected", "present", "missing", "stale", "returning")
    )


def test_the_numbers_follow_runs_and_edits(shell: Shell) -> None:
    shell.config["sample_params"] = {"num_samples": 2}
    first = plan(shell)
    assert numbers(first) == (8, 8, 0, 8, 0, 0)
    assert first["prompt_tokens"] > 0
    assert numbers(plan(shell, "--limit", "1", "--num-samples", "1")) == (8, 1, 0, 1, 0, 0)
    assert shell.run("--limit", "3").code == 0
    assert numbers(plan(shell)) == (8, 8, 6, 2, 0, 0)
    assert shell.run().code == 0
    done = plan(shell)
    assert numbers(done) == (8, 8, 8, 0, 0, 0)
    assert done["prompt_tokens"] == 0

    shell.config["prompt_template"] = "How much is {{question}}?"
    assert numbers(plan(shell)) == (8, 8, 0, 8, 8, 0)
    assert shell.run().code == 0
    shell.config["prompt_template"] = "What is {{question}}?"
    assert numbers(plan(shell)) == (8, 8, 8, 0, 8, 8), "rows that were set aside come back"


def test_errors_are_counted_apart(shell: Shell) -> None:
    shell.write("mine.py", "def broken(prompt):\n    raise ValueError('no')\n")
    shell.config["models"] = ["mine.py:broken"]
    assert shell.run().code == 1
    assert numbers(plan(shell)) == (4, 4, 4, 0, 0, 0)
    again = plan(shell, "--retry-errors")
    assert (again["missing"], again["retried"]) == (4, 4)


def test_the_text_says_the_same(shell: Shell) -> None:
    assert shell.run("--limit", "1").code == 0
    lines = [" ".join(line.split()) for line in shell.call("plan", "CONFIG").out.splitlines()]
    assert lines[0].startswith("4 items × 1 tasks × 1 samples")
    assert lines[2].startswith("planned 4 ")
    assert lines[4].startswith("present 1 ")
    assert lines[5].startswith("to run 3 ")


def test_a_bad_dataset_is_found_here_too(shell: Shell) -> None:
    shell.rows.append(shell.rows[0])
    result = shell.call("plan", "CONFIG")
    assert result.code == 2
    assert "two items have the id 'q0'" in result.err
