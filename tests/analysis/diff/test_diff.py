"""What differs between two experiments, each part by itself; the numbers are those of `compare`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import assay
from assay.analysis.diff.diff import Diff
from assay.errors import UserError
from assay.reports.wrapping import cells
from tests.analysis.rows import counted, rows_of, save
from tests.support import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.run()
    return lab


def again(lab: Lab, **options: Any) -> Diff:
    lab.run(output_dir=str(lab.folder / "second"))
    return assay.diff(lab.folder / "out", lab.folder / "second", **options)


def edited(folder: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    for row in rows:
        change(row)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_copy_has_no_difference(lab: Lab) -> None:
    copy = lab.folder / "copy"
    shutil.copytree(lab.folder / "out", copy)
    diff = assay.diff(lab.folder / "out", copy)
    assert diff.same
    assert (diff.config, diff.plan, diff.notes) == ([], [], [])
    assert "no difference" in str(assay.sheet(diff))
    assert "scores" not in str(assay.sheet(diff))


def test_the_same_plan_run_twice_has_no_difference_but_times(lab: Lab) -> None:
    assert again(lab).same


def test_every_part_says_what_differs(lab: Lab) -> None:
    lab.config["prompt_templates"] = {"plain": "Now: What is {{question}}?"}
    lab.config["sample_params"]["temperature"] = 0.7
    lab.config["evaluation_methods"].pop()
    diff = again(lab)
    assert not diff.same
    assert {change.key for change in diff.config or ()} == {
        "prompts.plain.text",
        "sample_params.temperature",
        "evaluation_methods.contains",
    }
    plan = {change.key: (change.a, change.b) for change in diff.plan or ()}
    assert plan["task calculator/plain.params.temperature"] == (0.5, 0.7)
    assert plan["task calculator/plain.prompt"] == (
        "What is {{question}}?",
        "Now: What is {{question}}?",
    )
    assert plan["scorer contains"] == ("planned", None)
    assert (diff.labels_only_a, diff.labels_only_b) == (["contains"], [])
    assert [label.label for label in diff.labels] == ["exact_match"]
    assert diff.answers is not None
    assert (diff.answers.same, diff.answers.changed) == (8, 0)


def test_items_that_were_added_removed_and_changed(lab: Lab) -> None:
    lab.rows[1]["ground_truth"] = {"answer": "another"}
    lab.rows[2]["data"]["question"] = "7 + 7"
    del lab.rows[3]
    lab.rows.append({"id": "new", "data": {"question": "1 + 1"}, "ground_truth": {"answer": "2"}})
    items = again(lab).items
    assert items is not None
    assert (items.a, items.b, items.only_a, items.only_b, items.changed) == (4, 4, 1, 1, 2)
    named = {item.item_id: item for item in items.named}
    assert (named["q3"].where, named["new"].where) == ("a", "b")
    (change,) = named["q1"].fields
    assert (change.key, change.a, change.b) == ("ground_truth.answer", "2", "another")
    assert [change.key for change in named["q2"].fields] == ["data.question"]


@settings(max_examples=30, deadline=None)
@given(
    first=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), min_size=1),
    second=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), min_size=1),
)
def test_items_are_told_apart_by_id_and_content(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, int], second: dict[str, int]
) -> None:
    folder = tmp_path_factory.mktemp("items")
    for name, side in (("a", first), ("b", second)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"id": k, "data": v}) + "\n" for k, v in side.items())
        )
    items = assay.diff(folder / "a.jsonl", folder / "b.jsonl", limit=10).items
    assert items is not None
    shared = first.keys() & second.keys()
    assert {item.item_id for item in items.named if item.where == "both"} == {
        key for key in shared if first[key] != second[key]
    }
    assert (items.only_a, items.only_b) == (len(first.keys() - shared), len(second.keys() - shared))


def test_what_was_served_and_how_answers_ended(lab: Lab) -> None:
    copy = lab.folder / "copy"
    shutil.copytree(lab.folder / "out", copy)
    for folder, served, reason in (
        (lab.folder / "out", "m-0613", "stop"),
        (copy, "m-1106", "length"),
    ):
        said = {
            "served_model": served,
            "served_fingerprint": "f",
            "metadata": {"finish_reason": reason},
        }
        edited(folder, "responses.jsonl", lambda row, said=said: row.update(said))
    diff = assay.diff(lab.folder / "out", copy)
    assert not diff.same
    facts = {(each.what, each.value): (each.a, each.b) for each in diff.served}
    assert facts == {
        ("served model", "m-0613"): (8, 0),
        ("served model", "m-1106"): (0, 8),
        ("fingerprint", "f"): (8, 8),
        ("finish reason", "stop"): (8, 0),
        ("finish reason", "length"): (0, 8),
    }
    text = str(assay.sheet(diff))
    assert "m-1106" in text
    assert "fingerprint" not in text  # the same on both sides


def flipped(lab: Lab) -> tuple[Path, Path]:
    copy = lab.folder / "copy"
    shutil.copytree(lab.folder / "out", copy)

    def wrong(row: dict[str, Any]) -> None:
        if row["item_id"] in ("q1", "q2"):
            row |= {"response": "I think\nit is 99", "cost": 0.5, "inference_time": 3.0}
            row |= {"prompt_tokens": 7, "completion_tokens": 3}

    edited(copy, "responses.jsonl", wrong)
    assay.evaluate(copy)
    return lab.folder / "out", copy


def test_scores_and_flips_are_those_of_compare(lab: Lab) -> None:
    first, second = flipped(lab)
    diff = assay.diff(first, second)
    assert [label.label for label in diff.labels] == ["contains", "exact_match"]
    for label in diff.labels:
        comparison = assay.compare([first, second], label=label.label)
        (pair,) = comparison.pairs
        assert label.pair is not None
        for field in ("difference", "ci_low", "ci_high", "p", "verdict", "items", "items_needed"):
            assert getattr(label.pair, field) == getattr(pair, field)
        assert {standing.name: standing.value for standing in comparison.standings} == {
            "out": label.a,
            "copy": label.b,
        }
        assert (label.gained, label.lost) == (0, 2)
        assert [(flip.item_id, flip.a, flip.b) for flip in label.flips] == [
            (flip.item_id, flip.baseline, flip.candidate) for flip in pair.flips
        ]
        texts = {flip.item_id: flip.text for flip in label.flips}
        assert texts["q1"] == [("A", "2"), ("B", "I think"), ("B", "it is 99")]
    assert diff.answers is not None
    assert (diff.answers.same, diff.answers.changed) == (4, 4)


def test_what_it_took(lab: Lab) -> None:
    first, second = assay.diff(*flipped(lab)).use
    assert (first.responses, first.outcomes, first.cost) == (8, {"ok": 8}, 0.0)
    assert (second.responses, second.outcomes, second.cost) == (8, {"ok": 8}, 2.0)
    before = sum(
        row["prompt_tokens"] or 0
        for row in lab.read("responses.jsonl")
        if row["item_id"] in ("q1", "q2")
    )
    assert second.prompt_tokens - first.prompt_tokens == 4 * 7 - before
    assert second.seconds is not None
    assert second.seconds[1] == 3.0


def test_errors_are_counted(lab: Lab) -> None:
    lab.write(
        "model.py",
        """
        def calculator(prompt):
            if "0 + 1" in prompt:
                raise ValueError("no")
            return "1"
        """,
    )
    diff = again(lab)
    assert diff.use[1].outcomes == {"errored": 2, "ok": 6}
    assert "2 errored" in str(assay.sheet(diff))


def test_files_of_rows(tmp_path: Path) -> None:
    first = save(tmp_path / "a", counted(60, 100)) / "evaluation_results.jsonl"
    second = save(tmp_path / "b", counted(80, 100)) / "evaluation_results.jsonl"
    diff = assay.diff(first, second, limit=2)
    (label,) = diff.labels
    assert (label.a, label.b, label.gained, len(label.flips)) == (0.6, 0.8, 20, 2)
    assert label.pair is not None
    assert label.pair.verdict == "better"
    assert diff.items is None
    assert any("no items" in note for note in diff.notes)
    assert "there are no responses to compare" in diff.notes


def test_options_of_compare(lab: Lab) -> None:
    first, second = flipped(lab)
    (label,) = assay.diff(
        first, second, label="contains", where={"item_id": "q1"}, limit=0, level=0.9
    ).labels
    assert (label.label, label.lost, label.flips) == ("contains", 1, [])
    with pytest.raises(UserError, match="no label"):
        assay.diff(first, second, label="contains=nothing")
    with pytest.raises(UserError, match="not both have the label 'nothing'"):
        assay.diff(first, second, label="nothing")
    with pytest.raises(UserError, match="level"):
        assay.diff(first, second, level=2)
    with pytest.raises(UserError, match="given twice"):
        assay.diff(first, first)


def test_runs_of_different_models(lab: Lab) -> None:
    """No task is common: answers are paired by item, prompt and sample."""
    lab.config["models"] = [lab.model("other")]
    diff = again(lab)
    assert diff.answers is not None
    assert (diff.answers.paired_by, diff.answers.same) == ("item, prompt and sample", 8)
    assert {change.key for change in diff.plan or ()} == {
        "task calculator/plain",
        "task other/plain",
    }


def test_unfinished_evidence_is_not_judged(lab: Lab) -> None:
    first, second = flipped(lab)
    manifest = json.loads((second / "manifest.json").read_text())
    manifest["evaluation"]["complete"] = False
    (second / "manifest.json").write_text(json.dumps(manifest))
    diff = assay.diff(first, second)
    assert diff.partial[1]
    assert {label.pair.verdict for label in diff.labels if label.pair} == {"incomplete"}
    diff = assay.diff(first, second, partial=True)
    assert "incomplete" not in {label.pair.verdict for label in diff.labels if label.pair}


def test_secrets_stay_secret(lab: Lab) -> None:
    lab.run(output_dir=str(lab.folder / "second"))
    config = lab.folder / "second" / "config.yaml"
    config.write_text(config.read_text().replace("env_vars: {}", "env_vars:\n  TOKEN: hush-hush"))
    diff = assay.diff(lab.folder / "out", lab.folder / "second")
    assert diff.config == []  # not even that they differ
    assert "hush" not in str(assay.sheet(diff)) + repr(diff)


LONG = "organisation/a-very-long-model-name-with-many-parts-instruct-v3.1-quantised-q4_k_m"
HOSTILE = "\x1b[31mred\x1b[0m <script>alert(1)</script> | **bold** \u202e \r\n" + "word " * 100


@pytest.mark.parametrize("width", [80, 120, 40])
def test_the_terminal_shows_it_within_its_width(lab: Lab, width: int) -> None:
    lab.config["models"] = [lab.model(LONG)]
    lab.run(output_dir=str(lab.folder / "second"))
    edited(
        lab.folder / "second",
        "responses.jsonl",
        lambda row: row.update(response=HOSTILE, served_model=LONG),
    )
    assay.evaluate(lab.folder / "second")
    text = assay.sheet(assay.diff(lab.folder / "out", lab.folder / "second")).form(width=width)
    # paths are not broken
    copied = [line for line in text.splitlines() if not line.startswith(("A  ", "B  "))]
    assert max(map(cells, copied)) <= width
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text


def test_documents_escape_everything(lab: Lab) -> None:
    first, second = flipped(lab)
    edited(second, "responses.jsonl", lambda row: row.update(response=HOSTILE))
    assay.evaluate(second)
    diff = assay.diff(first, second)
    for suffix, harmless in (
        (".html", "&lt;script&gt;"),
        (".md", r"\<script\>"),
        (".json", "<script>"),
    ):
        file = lab.folder / f"diff{suffix}"
        assay.save(diff, file)
        text = file.read_text()
        assert harmless in text
        if suffix != ".json":
            assert "<script>" not in text
            assert "\x1b" not in text
    assert (
        json.loads((lab.folder / "diff.json").read_text())["labels"][0]["flips"][0]["b_answer"]
        == HOSTILE
    )


def test_many_labels_and_no_verdicts(tmp_path: Path) -> None:
    first = save(
        tmp_path / "a", [*rows_of({"q1": True}), *rows_of({"q1": "errored"}, label="x", scorer="x")]
    )
    second = save(
        tmp_path / "b", [*rows_of({"q1": False}), *rows_of({"q1": 0.3}, label="x", scorer="x")]
    )
    diff = assay.diff(first, second)
    assert {label.label for label in diff.labels} == {"match"}
    assert diff.labels_only_b == ["x"]


def test_results_of_another_program_where_they_are(tmp_path: Path) -> None:
    examples = Path(__file__).parents[3] / "examples" / "new_output_structure"
    assay.import_(examples, tmp_path / "imported")
    diff = assay.diff(examples, tmp_path / "imported")
    assert diff.same
    assert diff.a == str(examples)


def test_responses_that_are_no_rows_are_counted_and_named(tmp_path: Path) -> None:
    one, other = (save(tmp_path / name, counted(3, 4)) for name in ("one", "other"))
    row = json.dumps({"item_id": "q00000", "response": "x"})
    (one / "responses.jsonl").write_text(f"{row}\n")
    (other / "responses.jsonl").write_text(f"{row}\n17\n")
    diff = assay.diff(one, other)
    place = f"{other / 'responses.jsonl'}, line 2"
    (note,) = [note for note in diff.notes if "unreadable" in note]
    assert note.startswith(f"1 unreadable line left out (the first: {place}, ")
    assert [side.responses for side in diff.use] == [1, 1]
