"""What SyGra left as an experiment."""

import json
from pathlib import Path

import pytest

from assay.engine.experiment.imports.results import import_results
from assay.errors import UserError
from tests.cli.shell import Shell
from tests.formats.exchanged import read, rows_of
from tests.formats.sygra.folder import Folder
from tests.formats.sygra.originals import ORIGINAL, unit, write_original
from tests.formats.sygra.test_verbs import with_post

METADATA = {  # as the original writes it
    "metadata_version": "1.0.0",
    "execution": {"task_name": "tasks.qa", "timing": {"start_time": "2026-01-01T10:00:00"}},
    "aggregate_statistics": {"records": {"total_processed": 4, "total_failed": 1}},
    "models": {"eval_model": {}},
}


def test_a_run_is_an_experiment(folder: Folder) -> None:
    """With metadata as the original leaves them; one record failed, one answer is wrong."""
    answers = "{'q1': 'no', 'q2': [][0] if state['id'] == 'q2' else ''}"
    with_post(
        folder, f"return {{'predicted_answer': {answers}.get(state['id']) or resp.message.content}}"
    )
    keys = {"predicted_key": "text", "golden_key": "text"}
    folder.aggregators.append(
        {"name": "f1_score", "params": keys, "unit_metrics_results": "exact_match_result"}
    )
    result = folder.call()
    assert result.ok
    stamp = Path(result.output).stem.removeprefix("output_")
    folder.write(f"out/metadata/metadata_tasks_qa_{stamp}.json", json.dumps(METADATA))
    (foreign,) = read(folder.out, "sygra")
    items, responses, evaluations = rows_of(foreign)
    assert (foreign.dataset, foreign.planned, foreign.notes()) == ("tasks.qa", 4, [])
    assert [item.id for item in items] == ["q0", "q1", "q2", "q3"]
    assert items[0].data == {"question": "What is 0 + 1?"}
    assert [item.ground_truth for item in items] == ["1", "2", None, "4"]
    assert [(row.response, row.outcome) for row in responses] == [
        ("1", "ok"), ("no", "ok"), ("", "errored"), ("4", "ok"),
    ]  # fmt: skip
    assert "IndexError" in str(responses[2].error)
    assert {row.model_name for row in responses} == {"eval_model"}
    assert [(row.label, row.passed, row.outcome) for row in evaluations] == [
        ("exact_match_result", True, "scored"),
        ("exact_match_result", False, "scored"),
        ("exact_match_result", None, "errored"),
        ("exact_match_result", True, "scored"),
    ]
    assert evaluations[1].detailed_results["predicted"] == {"text": "no"}
    (result,) = import_results(folder.out, folder.base / "imported", format_name="sygra")
    lines = {line.metric: line for line in result.headlines}
    assert lines["accuracy"].theirs == lines["accuracy"].ours == pytest.approx(2 / 3)
    assert lines["accuracy"].with_failures == 0.5
    assert lines["f1_score.average_f1_score"].equal
    assert foreign.facts["metadata"][0]["execution"]["task_name"] == "tasks.qa"


def test_the_original_without_metadata(tmp_path: Path) -> None:
    write_original(tmp_path)
    (foreign,) = read(tmp_path, "sygra")
    items, responses, evaluations = rows_of(foreign)
    assert items[0].data == {"original_index": 5, "problem": "Where?", "question": "Where?"}
    assert items[0].ground_truth == "Art"
    assert [row.response for row in responses] == ["art", "", "Art"]
    assert [row.outcome for row in responses] == ["ok", "errored", "ok"]
    assert [row.outcome for row in evaluations] == ["scored", "errored", "scored"]
    assert len({item.id for item in items}) == 3
    (result,) = import_results(tmp_path, tmp_path / "imported")
    lines = {line.metric: line for line in result.headlines}
    assert (lines["exact_match-accuracy"].ours, lines["exact_match-accuracy"].with_failures) == (
        0.5,
        pytest.approx(1 / 3),
    )
    assert lines["exact_match-precision.average_precision"].equal
    assert lines["exact_match-pass@k.pass@2"].equal
    assert lines["other-accuracy.accuracy"].equal is None
    assert all(line.reason or line.equal for line in result.headlines)


def test_ids_come_from_content_and_not_from_places(tmp_path: Path) -> None:
    ids: list[dict[str, str]] = []
    for number, records in enumerate((ORIGINAL, ORIGINAL[::-1])):
        (tmp_path / f"{number}.json").write_text(json.dumps(records))
        (foreign,) = read(tmp_path / f"{number}.json", "sygra")
        rows = rows_of(foreign)
        ids.append({row.response: row.item_id for row in rows[1]})
    assert ids[0] == ids[1]


def test_attempts_are_samples(tmp_path: Path) -> None:
    """An agent's record has a result for each attempt; a post-processor has made rows of them, which are not read."""
    tools = [
        {"correct": ok, "golden": {"tool": "click"}, "predicted": {"tool": tool}}
        for ok, tool in ((False, "type"), (True, "click"))
    ]
    record = {
        "id": 7,
        "mission": "Buy.",
        "tool_match": {f"retry_{n}": each for n, each in enumerate(tools)},
    }
    flat = [{"id": 7, "mission": "Buy.", "tool_match": each} for each in tools]
    (tmp_path / "output.json").write_text(json.dumps([record]))
    (tmp_path / "Flatten.json").write_text(json.dumps(flat))
    (foreign,) = read(tmp_path, "sygra")
    (item,), responses, evaluations = rows_of(foreign)
    assert item.data == {"mission": "Buy.", "question": "Buy."}
    assert [(row.sample_index, row.response) for row in responses] == [
        (0, '{"tool": "type"}'),
        (1, '{"tool": "click"}'),
    ]
    assert [(row.sample_index, row.passed) for row in evaluations] == [(0, False), (1, True)]
    (alone,) = read(tmp_path / "Flatten.json", "sygra")
    assert [(row.item_id, row.sample_index, row.passed) for row in rows_of(alone)[2]] == [
        ("7", 0, False),
        ("7", 1, True),
    ]


def test_lines_with_what_python_writes_and_a_torn_end(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "id": "a",
                "size": float("inf"),
                "half": "\ud800",
                "said": "x",
                "m": unit(True, "x", "x"),
            }
        )
    ]
    lines += [
        "",
        "{",
        json.dumps({"id": "b", "said": "y", "m": unit(False, "x", "y")}),
        '{"id": "c", "m"',
    ]
    (tmp_path / "output.jsonl").write_text("\n".join(lines))
    (foreign,) = read(tmp_path, "sygra")
    _, responses, _ = rows_of(foreign)
    assert [row.item_id for row in responses] == ["a", "b"]
    assert foreign.rejected == 2, "a blank line is nothing"
    assert foreign.notes()[0].startswith("2 places of the files cannot be read")
    import_results(tmp_path, tmp_path / "imported")


def test_a_server_error_in_the_text_is_an_error(tmp_path: Path) -> None:
    text = "###SERVER_ERROR### 503"
    (tmp_path / "x.json").write_text(
        json.dumps([{"id": "a", "said": text, "m": unit(False, "x", text)}])
    )
    (foreign,) = read(tmp_path, "sygra")
    ((_, (response,), _)) = rows_of(foreign)
    assert (response.outcome, response.error, response.response) == ("errored", "503", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "{",
        '[{"id": 1, "output": "x"}]',
        '[{"correct": 1, "golden": 1, "predicted": 1}]',
        "[" * 5000,
    ],
)
def test_what_is_not_sygras_gives_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "output.json").write_text(text)
    (tmp_path / "MetricCollatorPostProcessor.json").write_text(
        '[{"evaluation_summary": {}, "results": {}}]'
    )
    assert read(tmp_path, "sygra") == []


def test_metadata_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "output.json").write_text(json.dumps(ORIGINAL))
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata/metadata_x.json").write_text(
        '{"metadata_version": "2.0.0", "execution": {}}'
    )
    with pytest.raises(UserError, match=r"SyGra's metadata of version '2\.0\.0'"):
        read(tmp_path, "sygra")


def test_a_run_without_metadata_is_called_like_its_file(folder: Folder) -> None:
    result = folder.call()
    (foreign,) = read(folder.out, "sygra")
    assert (foreign.dataset, foreign.facts["metadata"]) == (Path(result.output).stem, [])
    assert [row.response for row in rows_of(foreign)[1]] == ["1", "2", "3", "4"]


def test_an_export_of_an_older_assay_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "output.json").write_text(json.dumps(ORIGINAL))
    file = tmp_path / "metadata/metadata_output.json"
    file.parent.mkdir()
    file.write_text(json.dumps({**METADATA, "assay": {"experiment": "mine"}}))
    with pytest.raises(UserError, match=r"an export of Assay 0\.1") as caught:
        read(tmp_path, "sygra")
    assert caught.value.where == f"{file}: assay"
    assert "import the experiment that was exported" in caught.value.fix
    file.write_text(json.dumps(METADATA))
    (foreign,) = read(tmp_path, "sygra")
    assert len(rows_of(foreign)[1]) == 3


@pytest.mark.parametrize("words", [("export", "--format"), ("convert", "--to")])
def test_sygras_files_are_read_and_not_written(folder: Folder, words: tuple[str, str]) -> None:
    assert folder.call().ok
    verb, flag = words
    target = folder.base / "written"
    where = ["-o", str(target)] if verb == "export" else [str(target)]
    done = Shell(folder.base).call(verb, str(folder.out), *where, flag, "sygra")
    assert done.code == 2
    assert "sygra" in done.err
    assert "ragicamp" in done.err
    assert not target.exists()
