"""RAGiCamp's three files from any experiment: their names, their numbers, and a folder that many write to."""

import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.analysis.look.export import Export, Tables
from assay.engine.experiment.resolve import find_source
from assay.errors import ConfigError, StoreError, UserError
from assay.registry import writer
from assay.store.seal import seal
from assay.store.stores import FlatStore
from tests.cli.shell import Shell
from tests.support import Lab

FLAKY = """
import hashlib

def answer(prompt):
    if "3 + 1" in prompt:
        raise RuntimeError("no threes")
    draw = hashlib.sha256(prompt.encode()).digest()[0]
    return str(eval(prompt.split("What is")[-1].split("?")[0]) + draw % 2)
"""


def export(source: Path, folder: Path, **params: Any) -> list[str]:
    return writer.get("ragicamp")(
        Export(Tables(find_source(source)), "responses", folder), **params
    )


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix == ".json"
    }


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Two models, two templates, three samples, an item that fails."""
    lab = Lab(tmp_path, items=5)
    lab.write("model.py", FLAKY.replace("answer", "calculator"))
    lab.config["models"] = [lab.model("one"), lab.model("org/two")]
    lab.config["prompt_templates"] = {
        "plain": "What is {{question}}?",
        "polite": "Please: What is {{question}}?",
    }
    lab.config["num_samples"] = lab.config.pop("sample_params")["num_samples"] + 1
    lab.config["max_retries"] = 0
    return lab


def test_two_models_two_templates_three_samples(lab: Lab) -> None:
    lab.run()
    out = lab.folder / "rc"
    export(lab.folder / "out", out, dataset="sums")
    predictions = {load(path)["agent_name"]: load(path) for path in out.glob("*_predictions.json")}
    wanted = {
        f"{m}_{t}_sample_{s}"
        for m in ("one", "org/two")
        for t in ("plain", "polite")
        for s in range(3)
    }
    assert set(predictions) == wanted
    assert (out / "one_plain_sample_0_predictions.json").exists()
    assert all(path.parent == out for path in out.rglob("*.json")), (
        "a slash in a name makes no folder"
    )
    by_place = {
        (r["model_name"], r["metadata"]["prompt_template"], r["sample_index"], r["item_id"]): r
        for r in lab.read("responses.jsonl")
    }
    labels: dict[Any, dict[str, float]] = {}
    for row in lab.read("evaluation_results.jsonl"):
        labels.setdefault(row["responses"][0], {})[row["label"]] = row["score"]
    for found in predictions.values():
        assert (found["dataset_name"], found["num_examples"], found["num_failed"]) == ("sums", 4, 1)
        assert [row["question_id"] for row in found["predictions"]] == ["q0", "q1", "q2", "q4"]
        for row in (*found["predictions"], *found["failed"]):
            place = (
                found["model_name"],
                found["prompt_template"],
                found["sample_index"],
                row["question_id"],
            )
            response = by_place[place]
            if row["question_id"] == "q3":
                assert (row["prediction"], row["error"]) == ("", response["error"])
                assert set(row["metrics"].values()) == {None}
            else:
                assert row["prediction"] == response["response"]
                assert row["metrics"] == labels[response["key"]]
    questions = load(out / "sums_questions.json")
    assert questions["num_questions"] == 5
    assert questions["questions"][0]["all_acceptable_answers"] == ["1"]


def test_the_statistics_are_those_of_the_predictions(lab: Lab) -> None:
    lab.run()
    out = lab.folder / "rc"
    for samples in ("separate", "mean"):
        export(lab.folder / "out", out / samples, samples=samples)
        for path in (out / samples).glob("*_predictions.json"):
            summary = load(path.with_name(path.name.replace("predictions", "summary")))
            for metric, found in summary["metric_statistics"].items():
                values = [row["metrics"][metric] for row in load(path)["predictions"]]
                assert (
                    found["mean"]
                    == summary["overall_metrics"][metric]
                    == pytest.approx(statistics.fmean(values))
                )
                assert (found["min"], found["max"], found["count"]) == (min(values), max(values), 4)
                assert found["std"] == pytest.approx(statistics.pstdev(values))
                assert found["median"] == pytest.approx(statistics.median(values))
                assert found["errors"] == 1
                assert found["ci_low"] <= found["mean"] <= found["ci_high"]


def test_the_mean_of_samples(lab: Lab) -> None:
    lab.run()
    out = lab.folder / "rc"
    export(lab.folder / "out", out, samples="mean")
    assert sorted(path.name.partition("~")[0] for path in out.glob("*_predictions.json")) == [
        "one_plain_predictions.json", "one_polite_predictions.json", "org-two_plain", "org-two_polite",
    ]  # fmt: skip
    found = load(out / "one_plain_predictions.json")
    assert (found["num_examples"], found["num_failed"]) == (4, 1)
    assert found["failed"][0]["error"]
    for row in (*found["predictions"], *found["failed"]):
        assert row["num_samples"] == len(row["predictions"]) == 3
        own = [
            evaluation["score"]
            for evaluation in lab.read("evaluation_results.jsonl")
            if evaluation["item_id"] == row["question_id"]
            and evaluation["model_name"] == "one"
            and evaluation["metadata"]["prompt_template"] == "plain"
            and evaluation["label"] == "exact_match"
            and evaluation["outcome"] == "scored"
        ]
        wanted = statistics.fmean(own) if own else None
        assert row["metrics"]["exact_match"] == (None if wanted is None else pytest.approx(wanted))


def test_the_order_of_rows_on_disk_changes_nothing(lab: Lab) -> None:
    lab.run()
    export(lab.folder / "out", lab.folder / "first")
    for name in ("responses.jsonl", "evaluation_results.jsonl"):
        path = lab.folder / "out" / name
        lines = path.read_text().splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        path.write_text("".join(lines))
    store = FlatStore(lab.folder / "out")
    for kind in ("run", "evaluation"):
        manifest = store.manifest(kind, store.ids(kind)[0])
        assert manifest is not None
        seal(manifest, store.log(kind, manifest.id))
        store.put_manifest(manifest)
    export(lab.folder / "out", lab.folder / "second")
    assert files(lab.folder / "first") == files(lab.folder / "second")


def test_one_model_and_template_has_the_seeds_names(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["sample_params"] = {}
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    assert list(files(tmp_path / "rc")) == [
        "calculator_predictions.json", "calculator_summary.json", "items_questions.json",
    ]  # fmt: skip
    assert not any(path.is_dir() for path in (tmp_path / "rc").iterdir())


def test_one_agent_on_two_datasets(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["sample_params"] = {}
    lab.run()
    for dataset in ("first", "second", "first"):
        export(tmp_path / "out", tmp_path / "rc", dataset=dataset)
    assert list(files(tmp_path / "rc")) == [
        "calculator_predictions.json", "calculator_second_predictions.json", "calculator_second_summary.json",
        "calculator_summary.json", "first_questions.json", "second_questions.json",
    ]  # fmt: skip
    assert load(tmp_path / "rc/calculator_predictions.json")["dataset_name"] == "first"
    export(tmp_path / "out", tmp_path / "rc", dataset="second", plain_names=True)
    assert load(tmp_path / "rc/calculator_predictions.json")["dataset_name"] == "second"


def test_the_questions_never_shrink(tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=4)
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    path = tmp_path / "rc/items_questions.json"
    before = load(path)
    before["questions"].insert(1, {"id": "theirs", "question": "?", "more": [1]})
    path.write_text(json.dumps({**before, "split": "dev"}))
    lab.rows = [
        {"id": "q9", "question": "9 + 1", "answer": "10"},
        {**lab.rows[2], "ground_truth": {"answer": "9"}},
    ]
    lab.run()
    export(tmp_path / "out", tmp_path / "rc")
    after = load(path)
    assert [row["id"] for row in after["questions"]] == ["q0", "theirs", "q1", "q2", "q3", "q9"]
    assert (after["num_questions"], after["split"]) == (6, "dev")
    assert after["questions"][1] == {"id": "theirs", "question": "?", "more": [1]}
    assert after["questions"][3]["expected_answer"] == "9"


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '{"dataset_name": "items", "questions": [{"id": "old", "que']
)
def test_a_broken_questions_file_is_set_aside(tmp_path: Path, text: str) -> None:
    lab = Lab(tmp_path)
    lab.run()
    (tmp_path / "rc").mkdir()
    (tmp_path / "rc/items_questions.json").write_text(text)
    notes = export(tmp_path / "out", tmp_path / "rc")
    assert "items_questions.json.broken" in notes[0]
    assert (tmp_path / "rc/items_questions.json.broken").read_text() == text
    assert load(tmp_path / "rc/items_questions.json")["num_questions"] == 4


def test_processes_side_by_side_lose_no_question(tmp_path: Path) -> None:
    """Six agents, each with questions of its own and one that all share, into one folder at once."""
    for number in range(6):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        items = [
            {"id": id, "data": {"question": id}, "ground_truth": "x"}
            for id in ("shared", f"own{number}")
        ]
        (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
        response = {"item_id": "shared", "model_name": f"agent{number}", "response": "x"}
        (folder / "responses.jsonl").write_text(json.dumps(response) + "\n")
    script = "import sys; from tests.formats.ragicamp.test_export import export; from pathlib import Path\n"
    script += "export(Path(sys.argv[1]), Path(sys.argv[2]), dataset='d')"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / f"run{n}"), str(tmp_path / "rc")]
        )
        for n in range(6)
    ]
    assert [child.wait(60) for child in children] == [0] * 6
    found = load(tmp_path / "rc/d_questions.json")
    assert {row["id"] for row in found["questions"]} == {"shared", *(f"own{n}" for n in range(6))}
    assert found["num_questions"] == len(found["questions"]) == 7
    assert len(list((tmp_path / "rc").glob("agent*_predictions.json"))) == 6


def test_labels_of_two_scorers_and_answers_without_a_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "items.jsonl").write_text('{"id": "a", "data": "what?", "ground_truth": []}\n')
    (folder / "responses.jsonl").write_text(
        '{"item_id": "a", "model_name": "m", "response": "", "key": "k"}\n'
    )
    base = {"item_id": "a", "model_name": "m", "responses": ["k"]}
    rows = [
        {**base, "label": "good", "scorer": "one", "score": 0.5},
        {**base, "label": "good", "scorer": "two", "passed": True},
        {**base, "label": "unparsed", "scorer": "one", "outcome": "unparsed"},
        {**base, "label": "errored", "scorer": "one", "outcome": "errored", "error": "?"},
        {**base, "label": "match", "scorer": "one", "score": 1.0, "responses": ["k", "k2"]},
    ]
    (folder / "evaluation_results.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    notes = export(folder, tmp_path / "rc")
    (row,) = load(tmp_path / "rc/m_predictions.json")["failed"]
    assert row["error"] == "errored: ?"
    assert row["metrics"] == {"errored": None, "one.good": 0.5, "two.good": 1.0, "unparsed": 0.0}
    assert load(tmp_path / "rc/out_questions.json")["questions"][0] == {
        "id": "a", "question": "what?", "expected_answer": None, "all_acceptable_answers": [],
        "item": {"id": "a", "data": "what?", "ground_truth": []},
    }  # fmt: skip
    assert "1 evaluations are of matches" in notes[0]


def test_only_the_seeds_fields_unless_more_is_asked_for(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.config["sample_params"] = {}
    lab.run()
    fields = ["question_id", "question", "prediction", "metrics", "metadata"]
    for extras, wanted in ((False, fields), (True, [*fields, "response", "evaluations"])):
        export(tmp_path / "out", tmp_path / "rc", extras=extras)
        row = load(tmp_path / "rc/calculator_predictions.json")["predictions"][0]
        assert list(row) == wanted
        assert row["metadata"] == {}


def test_outputs_of_a_config(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.rows = [{"id": "1", "question": "1 + 1", "answer": "2"}]
    lab.write("items.jsonl", json.dumps(lab.rows[0]) + "\n")
    lab.config["outputs"] = [
        "ragicamp",
        {"type": "ragicamp", "path": str(tmp_path / "there"), "params": {"samples": "mean"}},
        {"type": "csv", "table": "metrics"},
    ]
    result = assay.run(lab.config)
    assert (tmp_path / "out/ragicamp/calculator_sample_1_summary.json").exists()
    assert (tmp_path / "there/calculator_summary.json").exists()
    assert (tmp_path / "out/metrics.csv").read_text().startswith("metric_name,")
    assert any("written to" in note for note in result.notes)
    for wrong, said in (
        ("ragicmap", "unknown writer"),
        ({"ragicamp": {"sampels": 1}}, "no parameter 'sampels'"),
    ):
        calls = lab.calls()
        with pytest.raises(ConfigError, match="problem") as caught:
            assay.run({**lab.config, "outputs": [wrong], "sample_params": {"num_samples": 9}})
        assert said in str(caught.value)
        assert lab.calls() == calls, "found before anything is spent"


def test_the_commands(shell: Shell) -> None:
    shell.config["outputs"] = ["ragicamp"]
    assert shell.run("--no-progress").code == 0
    assert (shell.out / "ragicamp/mock_predictions.json").exists()
    done = shell.call(
        "export", "out", "--format", "ragicamp", "-o", "rc", "--plain-names", "--set", "dataset=d"
    )
    assert (done.code, done.said) == (0, "")
    assert (shell.folder / "rc/d_questions.json").exists()
    done = shell.call("import", "rc", "-o", "back")
    assert done.code == 0
    assert "responses: 4 ok of 1 model\n" in done.out
    assert (shell.folder / "back/responses.jsonl").exists()
    (found,) = shell.call("import", "rc", "-o", "back", "--from", "ragicamp", "--json").events()
    assert (found["items"], found["evaluations"]) == (4, {"scored": 4})
    assert "mock" in shell.call("aggregate", "back").out
    assert shell.call("trace", "back", "q0").code == 0
    for words, said in (
        (("export", "out", "--format", "ragicamp"), "name a folder with -o"),
        (
            ("export", "out", "--format", "csv", "--plain-names"),
            "csv has no parameter 'plain_names'",
        ),
        (("import", "nowhere", "-o", "x"), "there is no file or folder 'nowhere'"),
        (("import", "out/config.yaml", "-o", "x"), "holds nothing that can be imported"),
        (("import", "rc", "-o", "x", "--from", "ragikamp"), "did you mean 'ragicamp'?"),
        (("import", "rc", "-o", "out"), "choose another folder with -o"),
    ):
        failed = shell.call(*words)
        assert failed.code == 2
        assert said in failed.err


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.run()
    with pytest.raises(StoreError):
        export(tmp_path / "out", tmp_path / "items.jsonl" / "x")
    with pytest.raises(UserError, match="several files"):
        writer.get("ragicamp")(Export(Tables(find_source(tmp_path / "out")), "responses", None))
