"""`assay evaluate`: scoring rows that are there, ours and others', without a model."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ConfigError, LockedError, RunFailed, UserError
from assay.store.stores import FlatStore
from tests.cli.shell import Shell
from tests.support import Lab


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.run()
    return lab


def test_the_command_prints_the_table_and_calls_no_model(shell: Shell) -> None:
    assert shell.run("--mode", "inference").code == 0
    with shell.counted() as calls:
        first = shell.call("evaluate", str(shell.out), "--no-progress")
    assert (first.code, calls["requests"]) == (0, 0)
    assert "exact_match pass_rate 1.000" in first.words
    assert f"files: {shell.out}" in first.out
    before = shell.files()
    assert shell.call("evaluate", str(shell.out), "--no-progress").out == first.out
    assert {name for name, content in shell.files().items() if before.get(name) != content} <= {
        "out/.lock"
    }
    shell.config["models"][0]["api_key"] = "${NO_SUCH_KEY}"
    result = shell.call("evaluate", str(shell.out), "-c", "config.yaml", "--json")
    assert result.code == 0, "scoring needs no key"
    assert result.result["evaluation"]["counts"] == {"scored": 4}


def test_failures_are_results_of_json(shell: Shell) -> None:
    result = shell.call("evaluate", "nowhere", "--json")
    assert result.code == 2
    assert "nowhere" in result.result["error"]


def test_an_edit_scores_what_it_touches(lab: Lab) -> None:
    paid = lab.calls()
    before = lab.read("evaluation_results.jsonl")
    methods = [
        "exact_match",
        {"name": "contains", "type": "contains", "params": {"case_sensitive": True}},
    ]
    result = assay.evaluate(lab.folder / "out", {**lab.config, "evaluation_methods": methods})
    after = lab.read("evaluation_results.jsonl")
    assert lab.calls() == paid
    kept = [row for row in before if row["scorer"] == "exact_match"]
    assert [row for row in after if row["scorer"] == "exact_match"] == kept
    assert result.evaluation is not None
    assert result.evaluation.counts == {"scored": 16}
    assert len(result.metrics) == 2
    bare = {**lab.config, "evaluation_methods": ["exact_match"], "metrics": []}
    assert any(
        "of earlier evaluations" in note for note in assay.evaluate(lab.folder / "out", bare).notes
    )


def test_another_folder_reads_the_rows_where_they_are(lab: Lab, tmp_path: Path) -> None:
    source = lab.folder / "out"
    before = {path.name: path.read_bytes() for path in source.iterdir() if path.is_file()}
    out = tmp_path / "again"
    result = assay.evaluate(source, output_dir=str(out))
    assert {path.name: path.read_bytes() for path in source.iterdir() if path.is_file()} == before
    assert not (out / "responses.jsonl").exists()
    assert not (out / "items.jsonl").exists()
    assert (out / "metrics.jsonl").read_bytes() == before["metrics.jsonl"]
    manifest = (out / "manifest.json").read_bytes()
    again = assay.evaluate(out)
    assert again.metrics == result.metrics
    assert (out / "manifest.json").read_bytes() == manifest, (
        "the folder knows where its responses are"
    )


def test_a_moved_folder_needs_no_dataset(lab: Lab) -> None:
    (lab.folder / "items.jsonl").unlink()
    moved = (lab.folder / "out").rename(lab.folder / "moved")
    assert len(assay.evaluate(moved).metrics) == 2


def foreign(folder: Path, **more: Any) -> Path:
    """Rows as the first seed's own program writes them: without our keys."""
    rows = [
        {
            "item_id": f"q{number}",
            "sample_index": 0,
            "model_name": "m",
            "response": str(number + 1),
            "metadata": {"model_id": "m", "weight": float("nan")},
            "error": "timed out" if number == 3 else None,
            **more,
        }
        for number in range(4)
    ]
    return write_lines(folder / "responses.jsonl", rows)


CONFIG: dict[str, Any] = {
    "evaluation_methods": ["exact_match"],
    "metrics": [{"name": "pass_rate", "facets": ["model_id"]}],
}


def dataset(folder: Path, count: int = 4) -> str:
    rows = [{"id": f"q{number}", "data": {"answer": str(number + 1)}} for number in range(count)]
    return str(write_lines(folder / "data.jsonl", rows))


def test_foreign_rows_with_a_dataset(tmp_path: Path) -> None:
    path = foreign(tmp_path / "een")
    result = assay.evaluate(
        path, {**CONFIG, "dataset": dataset(tmp_path)}, output_dir=str(tmp_path / "out")
    )
    (row,) = result.metrics
    assert (row["value"], row["model_id"], row["errored_count"]) == (1.0, "m", 1)
    assert sorted(file.name for file in path.parent.iterdir()) == ["responses.jsonl"]


def test_fields_of_foreign_responses_are_facets(tmp_path: Path) -> None:
    path = foreign(tmp_path / "een", lab="north")
    config = {
        **CONFIG,
        "dataset": dataset(tmp_path),
        "metrics": [{"name": "mean", "facets": ["lab"]}],
    }
    result = assay.evaluate(path, config, output_dir=str(tmp_path / "out"))
    assert [row["lab"] for row in result.metrics] == ["north"]
    assert (
        assay.aggregate(tmp_path / "out", {"metrics": config["metrics"]}).metrics == result.metrics
    )


def test_items_missing_from_the_dataset_are_error_rows_with_a_note(tmp_path: Path) -> None:
    path = foreign(tmp_path / "een")
    out = tmp_path / "out"
    config = {
        **CONFIG,
        "dataset": dataset(tmp_path, 2),
        "evaluation_methods": ["exact_match", "contains"],
    }
    result = assay.evaluate(path, config, output_dir=str(out))
    assert result.notes == [
        "2 responses belong to 2 items that are not in the dataset: they are error rows"
    ]
    errors = [
        row["error"]
        for row in lines(out / "evaluation_results.jsonl")
        if row["outcome"] == "errored"
    ]
    assert len(errors) == 4
    assert "'q2' is not in the dataset" in errors[0]
    again = assay.evaluate(path, config, output_dir=str(out), retry_errors=True)
    assert again.metrics == result.metrics


def test_a_folder_of_others_is_not_overwritten(tmp_path: Path) -> None:
    config = {**CONFIG, "dataset": dataset(tmp_path)}
    path = foreign(tmp_path / "een")
    with pytest.raises(UserError, match="where the evaluations should go"):
        assay.evaluate(path, config)
    theirs = write_lines(tmp_path / "een" / "evaluation_results.jsonl", [{"item_id": "q0"}])
    with pytest.raises(UserError, match="not Assay's to replace"):
        assay.evaluate(tmp_path / "een", config)
    theirs.unlink()
    write_lines(tmp_path / "een" / "items.jsonl", [{"id": "q0"}])
    with pytest.raises(UserError, match="items of its own"):
        assay.evaluate(tmp_path / "een", config)
    assert lines(tmp_path / "een" / "items.jsonl") == [{"id": "q0"}]


def test_bad_input(tmp_path: Path, lab: Lab) -> None:
    path = foreign(tmp_path / "een")
    out = str(tmp_path / "x")
    with pytest.raises(UserError, match="no ground truth"):
        assay.evaluate(path, CONFIG, output_dir=out)
    with pytest.raises(UserError, match="no config"):
        assay.evaluate(path, output_dir=out)
    with pytest.raises(ConfigError, match="no evaluation method"):
        assay.evaluate(path, {"metrics": ["mean"]}, output_dir=out)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="there are no responses"):
        assay.evaluate(tmp_path / "empty", CONFIG)
    with pytest.raises(UserError, match=r"no file or folder .*een2") as caught:
        assay.evaluate(tmp_path / "een2", CONFIG)
    assert "did you mean 'een'?" in caught.value.fix
    with FlatStore(lab.folder / "out").lock("run", "out"), pytest.raises(LockedError):
        assay.evaluate(lab.folder / "out")


def test_a_corrupt_line_is_noted_and_the_rest_is_scored(tmp_path: Path) -> None:
    path = foreign(tmp_path / "een")
    path.write_text(
        "{broken\n" + json.dumps({"metric_name": "not a response"}) + "\n" + path.read_text()
    )
    config = {**CONFIG, "dataset": dataset(tmp_path)}
    result = assay.evaluate(path, config, output_dir=str(tmp_path / "out"))
    assert result.metrics[0]["total_sample_count"] == 4
    assert any("2 lines of the responses cannot be read" in note for note in result.notes)


def test_a_scorer_that_calls_a_model_without_its_key_says_so(tmp_path: Path) -> None:
    path = foreign(tmp_path / "een")
    (tmp_path / "judge.py").write_text(
        "async def judge(item, response, *, context):\n"
        "    return (await context.complete([{'role': 'user', 'content': 'ok?'}], model='judge')).text == 'yes'\n"
    )
    config = {
        "models": [
            {
                "name": "judge",
                "endpoint": "http://127.0.0.1:9",
                "api_key": "${NO_SUCH_KEY}",
                "helper": True,
            }
        ],
        "evaluation_methods": [
            {"name": "judge", "path": str(tmp_path / "judge.py"), "function_name": "judge"}
        ],
        "dataset": dataset(tmp_path),
    }
    with pytest.raises(RunFailed, match="NO_SUCH_KEY"):
        assay.evaluate(path, config, output_dir=str(tmp_path / "out"))
