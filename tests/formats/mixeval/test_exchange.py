"""Any experiment as MixEval's files and back, and what MixEval itself left as an experiment."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from assay.errors import UserError
from assay.formats.mixeval.compat import Guesses
from assay.records import Evaluation, Item, Response
from tests.cli.shell import Shell
from tests.formats.exchanged import Rows, core, experiments, exported, read, rows_of, store, told
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import rows, write_both, write_model

ANSWERS = (["Oslo", "It is Bergen.", "8"], ["B", "**A**", "no idea"])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_what_is_written_is_read_again(rows: Rows) -> None:
    with TemporaryDirectory() as temporary:
        folder = store(Path(temporary, "source"), rows)
        exported(folder, "mixeval", Path(temporary, "files"))
        (foreign,) = read(Path(temporary, "files"), "mixeval")
        assert told(rows_of(foreign)) == told(rows)
        assert foreign.rejected == 0


def small() -> Rows:
    """Two models, an item of each kind and one without an answer; labels of all outcomes."""
    items = [
        Item(
            id="q1",
            data={"question": "What is the capital of Norway?"},
            ground_truth=["Oslo", "Kristiania"],
        ),
        Item(id="q2", data={"question": "9 + 16?", "options": ["15", "25"]}, ground_truth="B"),
        Item(id="q3", data={"question": "Say something."}, ground_truth=None),
    ]
    said = {
        "m": [("q1", "Oslo", "ok"), ("q2", "B", "ok"), ("q3", "something", "ok")],
        "n/o": [("q1", "", "errored"), ("q2", "A", "refused")],
    }
    responses: list[Response] = []
    evaluations: list[Evaluation] = []
    for model, answers in said.items():
        for id, text, outcome in answers:
            key = f"{model}{id}"
            error = "lost" if outcome == "errored" else None
            row = Response(
                item_id=id, model_name=model, response=text, outcome=outcome, error=error, key=key
            )  # type: ignore[arg-type]
            responses.append(row)
            if id == "q3":
                continue
            score = None if outcome == "errored" else float(text in ("Oslo", "B"))
            label = Evaluation(
                item_id=id,
                model_name=model,
                label="exact",
                scorer="exact",
                responses=[key],
                key=key,
            )
            label.score, label.passed = score, None if score is None else bool(score)
            label.outcome = "errored" if outcome == "errored" else "scored"
            evaluations.append(label)
    return items, responses, evaluations


def test_our_own_scoring_takes_what_is_written(tmp_path: Path) -> None:
    store(tmp_path / "source", small())
    notes = exported(tmp_path / "source", "mixeval", tmp_path / "out", version="2026-01-01")
    assert notes == [
        "2 answers failed, or their items have no accepted answer: they are in unscored.jsonl",
    ]
    shell = Shell(tmp_path)
    ended = shell.call("mixeval", "score", "out", "--data", "out/data", "-o", "scored", "--json")
    assert ended.code == 0, ended.said
    scores = {
        (one["model"], one["label"]): one["cells"]["overall"]
        for one in ended.result["scored"][0]["scores"]
    }
    assert scores["m", "rule-compat+rule"]["value"] == 1.0
    first, second = sorted(
        path.name
        for path in (tmp_path / "out").iterdir()
        if path.name[0] == "n" or path.name == "m"
    )
    assert scores[second, "rule-compat+rule"]["entries"] == 1
    assert json.loads((tmp_path / f"out/{first}/mixeval/2026-01-01/score.json").read_text()) == {
        "overall": 1.0,
        "source": 1.0,
    }


def test_an_experiment_with_one_kind_of_items_is_scored_again(tmp_path: Path) -> None:
    items, responses, evaluations = small()
    keep = [row for row in evaluations if row.item_id == "q1" and row.model_name == "m"]
    store(tmp_path / "source", (items[:1], responses[:1], keep))
    exported(tmp_path / "source", "mixeval", tmp_path / "out", version="2026-01-01")
    ended = Shell(tmp_path).call(
        "mixeval", "score", "out", "--data", "out/data", "-o", "scored", "--json"
    )
    assert ended.code == 0, ended.said


def test_without_extras_the_core_is_kept(tmp_path: Path) -> None:
    store(tmp_path / "source", small())
    exported(tmp_path / "source", "mixeval", tmp_path / "out", extras=False)
    assert "assay" not in "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json*"))
    (foreign,) = read(tmp_path / "out", "mixeval")
    assert core(rows_of(foreign)) == core(small())


# ---- what MixEval wrote


def responses_in(folder: Path) -> Path:
    write_both(folder)
    write_model(folder, "first", *ANSWERS)
    return folder / "responses"


def test_response_files_alone_are_an_experiment(tmp_path: Path) -> None:
    (foreign,) = read(responses_in(tmp_path), "mixeval")
    items, responses, evaluations = rows_of(foreign)
    assert (foreign.dataset, foreign.planned, foreign.notes(), evaluations) == (
        f"mixeval-{VERSION}",
        None,
        [],
        [],
    )
    assert [item.id for item in items] == [
        f"{kind}/{n}" for kind in ("free-form", "multiple-choice") for n in range(3)
    ]
    assert items[2].data["context"] == "8 boats, 5 carts."
    assert items[2].ground_truth == ["8"]
    assert items[2].metadata["benchmark_name"] == "DROP"
    assert {row.model_name for row in responses} == {"first"}
    assert [row.response for row in responses] == [*ANSWERS[0], *ANSWERS[1]]
    assert (
        responses[0].prompt
        == "Question: What is the capital of Norway?\nAnswer the question shortly."
    )


def test_the_data_beside_them_say_what_was_planned(tmp_path: Path) -> None:
    responses_in(tmp_path)
    write_model(tmp_path, "second", *ANSWERS)
    (foreign,) = read(tmp_path, "mixeval")  # nobody answered mixeval-hard
    assert len(rows_of(foreign)[0]) == 6
    assert foreign.planned == 12


@pytest.mark.parametrize("layout", ["lines", "array", "in one folder", "one file"])
def test_any_layout_is_recognised_by_content(tmp_path: Path, layout: str) -> None:
    made = rows("free-form", ANSWERS[0])
    text = (
        json.dumps(made) if layout == "array" else "".join(json.dumps(row) + "\n" for row in made)
    )
    (tmp_path / "some.jsonl").write_text(text)
    (foreign,) = read(tmp_path / "some.jsonl" if layout == "one file" else tmp_path, "mixeval")
    _, responses, _ = rows_of(foreign)
    assert [row.response for row in responses] == ANSWERS[0]
    assert foreign.dataset == "mixeval"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "no JSON",
        "[" * 5000,
        '{"id": 1, "response": "x"}\n',
        '{"item_id": "a", "label": "b", "score": 1.0, "benchmark_name": "x"}\n',
        '{"0": {"prompt": "p", "target": ["t"], "benchmark_name": "b"}}',
    ],
)
def test_what_is_not_mixevals_gives_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "model_close_freeform.jsonl").write_text(text)
    assert read(tmp_path, "mixeval") == []


def test_bad_lines_nulls_and_unfinished_runs_are_told(tmp_path: Path) -> None:
    made = rows("free-form", ["Oslo", None, "8"])
    place = tmp_path / "m" / "mixeval" / VERSION
    place.mkdir(parents=True)
    lines = [json.dumps(row) + "\n" for row in made]
    (place / "m_close_freeform.jsonl").write_text(lines[0] + "{\n[1]\n" + lines[1] + lines[2][:40])
    (place / "status_close_freeform.json").write_text(
        '{"args": {}, "status": {"status": "in progress"}}'
    )
    (foreign,) = read(tmp_path, "mixeval")
    _, responses, _ = rows_of(foreign)
    assert [(row.response, row.outcome) for row in responses] == [("Oslo", "ok"), ("", "errored")]
    assert foreign.rejected == 3
    broken, no_id, null, unfinished = foreign.notes()
    assert broken.startswith("2 places of the files cannot be read")
    assert "are not objects with an `id`" in no_id
    assert null.startswith("1 responses are null")
    assert "was not finished" in unfinished


def test_two_responses_to_one_entry_are_refused(tmp_path: Path) -> None:
    made = rows("free-form", ANSWERS[0])
    (tmp_path / "m_freeform.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*made, made[0]])
    )
    (foreign,) = read(tmp_path, "mixeval")
    with pytest.raises(UserError, match="two responses of 'm' have the id '0'"):
        rows_of(foreign)


def test_entries_that_share_an_id_are_told_apart(tmp_path: Path) -> None:
    """Two models that answered different versions, in folders that do not say so."""
    for model, prompt in (("a", "one?"), ("b", "two?")):
        row = {**rows("free-form", ANSWERS[0])[0], "prompt": prompt}
        (tmp_path / f"{model}_freeform.jsonl").write_text(json.dumps(row) + "\n")
    (foreign,) = read(tmp_path, "mixeval")
    items, responses, _ = rows_of(foreign)
    assert {item.data["prompt"] for item in items} == {"one?", "two?"}
    assert [row.item_id for row in responses] == [item.id for item in items]
    assert items[0].id == "free-form/0"
    assert items[1].id.startswith("free-form/0~")
    assert "1 entries have an id that another entry has" in foreign.notes()[0]


def test_verdicts_and_the_headline(tmp_path: Path) -> None:
    """`score.json` comes out of the verdicts to the last digit; what the original drew is unparsed."""
    responses_in(tmp_path)
    shell = Shell(tmp_path)
    ended = shell.call(
        "mixeval",
        "score",
        "responses",
        "--data",
        "data",
        "--parser",
        "rule-compat",
        "-o",
        "responses",
    )
    assert ended.code == 0, ended.said
    place = tmp_path / "responses/first/mixeval" / VERSION
    score = json.loads((place / "score.json").read_text())
    for name in ("items.jsonl", "manifest.json", "scores.json"):
        (place / name).unlink()
    (foreign,) = read(tmp_path / "responses", "mixeval")
    _, responses, evaluations = rows_of(foreign)
    by_id = {row.item_id: row for row in evaluations}
    assert {row.label for row in evaluations} == {"rule-compat"}
    assert by_id["free-form/0"].passed
    assert not by_id["free-form/1"].passed
    assert by_id["multiple-choice/1"].outcome == "unparsed"
    assert {row.responses[0] for row in evaluations} == {row.key for row in responses}
    assert "2 verdicts were drawn by chance" in foreign.notes()[0]
    headlines = {line.metric: line for line in foreign.headlines()}
    assert headlines.keys() == score.keys()
    for name, line in headlines.items():
        assert (line.value, line.ours) == (score[name], score[name])
        assert line.where["model_name"] == "first"


def test_a_judges_verdicts_without_their_responses(tmp_path: Path) -> None:
    """Judge files alone hold all: responses, texts of the judge, scores; what it did not say was drawn."""
    said = ["The score: [[0.5]]", "I cannot tell.", "[[1.0]]"]
    drawn = [0.5, 0.3, 1.0]
    free = [
        {**row, "judge_response": text, "judge_score": score}
        for row, text, score in zip(rows("free-form", ANSWERS[0]), said, drawn, strict=True)
    ]
    letters = ["[[B]]", "[[Z]]", "?"]
    options = ["B", "Z", Guesses().draw(3)]
    choice = [
        {**row, "judge_response": text, "judge_option": option}
        for row, text, option in zip(
            rows("multiple-choice", ANSWERS[1]), letters, options, strict=True
        )
    ]
    for short, made in (("ff", free), ("mp", choice)):
        file = tmp_path / f"judge_results_{short}_model_judge_wise-1.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in made))
    (tmp_path / "score.json").write_text('{"overall": 0.5}')
    (foreign,) = read(tmp_path, "mixeval")
    _, responses, evaluations = rows_of(foreign)
    assert len(responses) == len(evaluations) == 6
    assert {row.label for row in evaluations} == {"wise-1"}
    assert [row.score for row in evaluations] == [0.5, None, 1.0, 1.0, 0.0, None]
    assert [row.outcome for row in evaluations].count("unparsed") == 2
    assert evaluations[0].detailed_results["explanation"] == "The score: [[0.5]]"
    (line,) = foreign.headlines()
    right = float(options[2] == "C")
    assert line.ours == pytest.approx(round(1.8 / 3, 3) / 2 + round((1 + right) / 3, 3) / 2)


def test_nothing_of_others_is_replaced(tmp_path: Path) -> None:
    store(tmp_path / "source", small())
    exported(tmp_path / "source", "mixeval", tmp_path / "out", version="v")
    exported(tmp_path / "source", "mixeval", tmp_path / "out", version="v")
    file = tmp_path / "out/m/mixeval/v/m_close_freeform.jsonl"
    file.write_text("mine")
    with pytest.raises(UserError, match="Assay did not write"):
        exported(tmp_path / "source", "mixeval", tmp_path / "out", version="v")
    assert file.read_text() == "mine"
    with pytest.raises(UserError, match="several files"):
        exported(tmp_path / "source", "mixeval", None)  # type: ignore[arg-type]
