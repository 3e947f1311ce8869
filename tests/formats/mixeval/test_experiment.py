"""Both flows from files to files: scores against sums done by hand, and nothing paid or scored twice."""

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.mixeval import evaluation_prompts
from assay.formats.mixeval.experiment import MixEvalRun, MixEvalScore, Result
from assay.formats.mixeval.metric import ModelScores
from assay.formats.mixeval.plans import MixEvalOptions, parsers_of
from assay.threads import run_blocking
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import CHOICE, FREE, write_both, write_model

FREE_ANSWERS = ["Oslo", "It is Bergen.", "8"]
BEST = "rule-compat+rule"
CHOICE_ANSWERS = ["B", "**A**", "no idea"]  # the protocol's parser finds no letter in the last two


class Lab:
    """A folder with data, response files and what comes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data: dict[str, Any] = {"data": str(write_both(folder)), "version": VERSION}
        self.choice: dict[str, Any] = {}
        self.done: dict[str, int] = {}

    def options(self, **more: Any) -> MixEvalOptions:
        place = {"output_dir": str(self.folder / "out")}
        return MixEvalOptions(**{**place, **self.data, **self.choice, **more})

    def score(self, *paths: Path, **more: Any) -> Result:
        step = MixEvalScore([str(path) for path in paths], self.options(**more))
        result = run_blocking(step.run)
        self.done = {lane.name: lane.done for lane in step.progress.of("evaluate")}
        return result

    def run(self, *models: str, **more: Any) -> Result:
        step = MixEvalRun(self.options(models=models, **more))
        result = run_blocking(step.run)
        self.done = {lane.name: lane.done for lane in step.progress.of("run")}
        return result

    def read(self, name: str, model: str = "m") -> list[dict[str, Any]]:
        path = self.folder / "out" / model / "mixeval" / VERSION / name
        return [json.loads(line) for line in path.read_text().splitlines()]

    def model(self, name: str, body: str = "return 'B' if 'letter' in prompt else 'Oslo'") -> str:
        """A model that is a function; every call is a line in `paid`."""
        note = f"with open({str(self.paid)!r}, 'a') as file: file.write('x\\n')"
        code = f"def {name}(prompt):\n    {note}\n    {body}\n"
        path = self.folder / f"{name}.py"
        path.write_text(code)
        return f"{path}:{name}"

    @property
    def paid(self) -> Path:
        return self.folder / "paid.txt"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def by_label(result: Result, model: str = "m") -> dict[str, ModelScores]:
    return {one.label: one for one in result.scored[0].scores if one.model == model}


# ---- scoring files


def test_both_scores_stand_side_by_side(lab: Lab) -> None:
    scores = by_label(lab.score(write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)))
    assert list(scores) == ["rule-compat", BEST]
    draw = random.Random(42)
    drawn = [draw.choice("AB") == "A", draw.choice("ABC") == "C"]
    free, choice = round(2 / 3, 3), round((1 + sum(drawn)) / 3, 3)
    assert scores["rule-compat"].compatible["overall"] == pytest.approx(
        free * 3 / 6 + choice * 3 / 6, abs=1e-15
    )
    assert scores["rule-compat"].cells["overall"].guessed == 2
    ours = scores[BEST].cells
    assert (ours["overall"].value, ours["overall"].unparsed) == (pytest.approx(4 / 6), 1)
    assert (ours["overall"].entries, ours["overall"].unique) == (6, 5)
    assert (ours["TriviaQA"].value, ours["PIQA"].value, ours["AGIEval"].value) == (0.5, 1.0, 0.0)


def test_letters_are_drawn_in_the_order_of_the_file(lab: Lab) -> None:
    answers = ["none", "none", "none"]
    lab.score(write_model(lab.folder, "m", FREE_ANSWERS, answers, order=[2, 0, 1]))
    rows = lab.read("judge_results_mp_rule.jsonl")
    draw = random.Random(42)
    expected = [(str(n), draw.choice("ABCDE"[: len(CHOICE[n]["options"])])) for n in (2, 0, 1)]
    assert [(row["id"], row["parsed_result"]) for row in rows] == expected
    assert [row["eval_result"] for row in rows] == [
        "ABC".index(x) == CHOICE[int(n)]["target"][0] for n, x in expected
    ]
    assert all(row["guessed"] for row in rows)


def test_verdict_files_have_the_rows_and_what_was_read(lab: Lab) -> None:
    lab.score(write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS))
    rows = lab.read("judge_results_ff_rule.jsonl")
    assert [row["eval_result"] for row in rows] == [True, False, True]
    assert [row["parsed_result"] for row in rows] == [["oslo"], ["bergen"], [8.0]]
    assert [{key: row[key] for key in entry} for row, entry in zip(rows, FREE, strict=True)] == FREE
    whole = json.loads((lab.folder / f"out/m/mixeval/{VERSION}/score.json").read_text())
    assert next(iter(whole)) == "overall"
    assert set(whole) == {"overall", "TriviaQA", "DROP", "MMLU", "PIQA", "AGIEval"}


def test_the_guidelines_list_scores_as_lines_do(lab: Lab) -> None:
    lines = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    first = lab.score(lines).scored[0].scores
    array = write_model(lab.folder / "array", "m", FREE_ANSWERS, CHOICE_ANSWERS, array=True)
    assert lab.score(array).scored[0].scores == first


def test_a_second_command_scores_nothing_anew(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    first = lab.score(folder)
    assert lab.done == {"rule-compat": 6, "rule": 6}
    assert lab.score(folder).scored == first.scored
    assert sum(lab.done.values()) == 0
    write_model(lab.folder, "m", ["Oslo", "Oslo", "8"], CHOICE_ANSWERS)
    assert by_label(lab.score(folder))[BEST].cells["TriviaQA"].value == 1.0
    assert lab.done == {"rule-compat": 1, "rule": 1}


def test_problems_are_told_again_by_a_second_command(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", ["Oslo", None, ""], CHOICE_ANSWERS)
    first = lab.score(folder)
    assert first.problems == [
        "m on mixeval: 1 responses are null and are not scored, the first is 'free-form/1'"
    ]
    assert first.notes == ["m on mixeval: 1 responses are empty, the first is 'free-form/2'"]
    again = lab.score(folder)
    assert (again.problems, again.notes) == (first.problems, first.notes)
    cell = by_label(again)[BEST].cells["overall"]
    assert (cell.entries, cell.errored, cell.unparsed) == (5, 1, 1)


def test_one_models_bad_files_do_not_cost_the_others(lab: Lab) -> None:
    write_model(lab.folder, "good", FREE_ANSWERS, CHOICE_ANSWERS)
    bad = write_model(lab.folder, "bad", FREE_ANSWERS, CHOICE_ANSWERS)
    path = bad / f"mixeval/{VERSION}/bad_close_freeform.jsonl"
    path.write_text(path.read_text() * 2)
    result = lab.score(lab.folder / "responses")
    assert {one.model for one in result.scored[0].scores} == {"good"}
    assert len(result.problems) == 1
    assert "two responses have the id '0'" in result.problems[0]
    with pytest.raises(UserError, match="two responses have the id"):
        lab.score(bad)
    assert not (lab.folder / f"out/bad/mixeval/{VERSION}/score.json").exists()


def test_a_file_of_one_kind_is_scored_by_itself(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    (folder / f"mixeval/{VERSION}/m_close_freeform.jsonl").unlink()
    result = lab.score(folder)
    cell = by_label(result)[BEST].cells["overall"]
    assert (cell.entries, cell.missing, cell.multiple_choice) == (3, 3, 3)
    assert "3 entries have no response" in result.notes[0]


def test_parsers_may_differ_by_kind_and_be_your_own(lab: Lab) -> None:
    (lab.folder / "mine.py").write_text(
        "def short(response, ground_truth, **params):\n    return len(response) < 5\n"
    )
    lab.choice = {
        "free_form_parser": f"{lab.folder}/mine.py:short",
        "multi_choice_parser": "rule-compat",
    }
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    scores = by_label(lab.score(folder))
    assert list(scores) == ["short+rule-compat"]
    cells = scores["short+rule-compat"].cells
    assert (cells["TriviaQA"].value, cells["DROP"].value, cells["MMLU"].value) == (0.5, 1.0, 1.0)
    assert cells["overall"].guessed == 2


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"parser": "rul"}, "unknown parser 'rul'"),
        ({"parser": "rule"}, "no longer read by `rule`"),
        (
            {"free_form_parser": "rule", "multi_choice_parser": "rule-compat"},
            "--parser rule-compat",
        ),
        ({"parser": "judge"}, "which model judges"),
        ({"parser": "gone.py:f"}, "there is no file 'gone.py'"),
        ({"judged": True, "judge": "demo:x"}, "asks no judge"),
    ],
)
def test_parsers_that_are_none_are_refused(lab: Lab, choice: dict[str, Any], said: str) -> None:
    lab.choice = choice
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    if choice.get("judged"):
        (folder / f"mixeval/{VERSION}/judge_results_ff_model_judge_x.jsonl").write_text("{}\n")
    with pytest.raises(UserError) as caught:
        lab.score(folder)
    assert said in str(caught.value)
    assert not (lab.folder / "out").exists()


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        ({}, ["rule-compat", BEST]),
        ({"judge": "wise"}, ["judge", "rule-compat", "judge+rule"]),
        ({"multi_choice_parser": "rule-compat"}, ["rule-compat"]),
        ({"multi_choice_parser": "judge", "judge": "wise"}, ["judge"]),
        ({"free_form_parser": "rule-compat", "judge": "wise"}, [BEST]),
    ],
)
def test_a_kind_without_a_parser_has_the_best_that_there_is(
    lab: Lab, choice: dict[str, str], shown: list[str]
) -> None:
    """The judge for free-form answers if one is named, else the protocol's rule; `rule` for multiple choice."""
    assert list(parsers_of(lab.options(**choice)).shown) == shown


def test_corrections_leave_out_and_correct_entries(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    file = lab.folder / "corrections.jsonl"
    file.write_text(
        '{"id": "free-form/0", "exclude": true}\n{"id": "free-form/1", "target": ["Bergen"]}\n'
    )
    lab.data["corrections"] = str(file)
    result = lab.score(folder)
    assert by_label(result)[BEST].cells["TriviaQA"].value == 1.0
    assert by_label(result)[BEST].cells["TriviaQA"].entries == 1
    assert result.problems == result.notes == []


# ---- judges and their files


def test_judge_files_are_written_and_read_back_without_a_call(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    lab.choice = {
        "parser": "judge",
        "judge": lab.model("wise", "return '[[0.5]]' if 'reference' in prompt else '[[B]]'"),
    }
    scores = by_label(lab.score(folder))["judge"].cells
    assert (scores["TriviaQA"].value, scores["DROP"].value) == (0.5, 0.5)
    assert (scores["MMLU"].value, scores["PIQA"].value) == (1.0, 0.0)
    calls = lab.paid.read_text().count("x")
    assert calls == 6
    assert lab.read("judge_results_ff_model_judge_wise.jsonl")[0]["judge_score"] == 0.5
    assert [row["judge_option"] for row in lab.read("judge_results_mp_model_judge_wise.jsonl")] == [
        "B",
        "B",
        "B",
    ]
    lab.choice = {"judged": True}
    again = by_label(lab.score(lab.folder / "out/m"))
    assert {label: one.cells["overall"].value for label, one in again.items()} == {
        "judged-compat": scores["overall"].value,
        "judged": scores["overall"].value,
    }
    assert lab.paid.read_text().count("x") == calls


def test_drawn_verdicts_of_judge_files_are_seen_through(lab: Lab) -> None:
    """The original writes a random score where it could read none; the text beside it tells."""
    place = lab.folder / "theirs"
    place.mkdir()
    said = [("[[1.0]]", 1.0), ("no idea", 0.3), ("[[0.2]]", 0.2)]
    lines = [
        {**entry, "id": str(n), "response": "?", "judge_response": text, "judge_score": score}
        for n, (entry, (text, score)) in enumerate(zip(FREE, said, strict=True))
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (place / "judge_results_ff_model_judge_gpt.jsonl").write_text(text)
    lab.choice = {"judged": True}
    scores = by_label(lab.score(place), "theirs")
    assert scores["judged-compat"].cells["overall"].value == pytest.approx(1.5 / 3)
    assert scores["judged"].cells["overall"].value == pytest.approx(1.2 / 3)
    assert scores["judged"].cells["overall"].unparsed == 1


# ---- running models


def test_a_run_writes_files_that_score_the_same(lab: Lab) -> None:
    ran = lab.run(lab.model("m"))
    rows = {kind: lab.read(f"m_close_{kind}.jsonl") for kind in ("freeform", "multichoice")}
    for kind, entries in (("freeform", FREE), ("multichoice", CHOICE)):
        assert [row["id"] for row in rows[kind]] == ["0", "1", "2"]
        assert [
            {key: row[key] for key in entry} for row, entry in zip(rows[kind], entries, strict=True)
        ] == entries
        assert all(
            set(row) == {*entries[0], "formated_input", "id", "response"} for row in rows[kind]
        )
    assert rows["freeform"][2]["formated_input"] == (
        "Question: 8 boats, 5 carts.\nHow many boats?\nAnswer the question shortly."
    )
    other = Lab(lab.folder / "again")
    assert other.score(lab.folder / "out").scored[0].scores == ran.scored[0].scores


def test_a_run_may_write_the_guidelines_list(lab: Lab) -> None:
    lab.run(lab.model("m"))
    lab.run(lab.model("m"), layout="array")
    place = lab.folder / f"out/m/mixeval/{VERSION}"
    assert sorted(path.name for path in place.glob("m_close_*")) == [
        "m_close_freeform.json",
        "m_close_multichoice.json",
    ]
    assert [
        row["response"] for row in json.loads((place / "m_close_freeform.json").read_text())
    ] == ["Oslo"] * 3
    assert lab.paid.read_text().count("x") == 6


def test_a_limit_takes_entries_of_both_kinds(lab: Lab) -> None:
    result = lab.run(lab.model("m"), limit=2)
    cell = by_label(result)[BEST].cells["overall"]
    assert (cell.free_form, cell.multiple_choice, cell.missing) == (1, 1, 4)
    lab.run(lab.model("m"))
    assert lab.paid.read_text().count("x") == 6


def test_a_model_that_comes_later_stands_beside_the_first(lab: Lab) -> None:
    lab.run(lab.model("m"))
    result = lab.run(lab.model("other", "return 'A' if 'letter' in prompt else 'Bergen'"))
    assert {one.model for one in result.scored[0].scores} == {"m", "other"}
    assert by_label(result, "other")[BEST].cells["TriviaQA"].value == 0.0
    assert lab.paid.read_text().count("x") == 12
    assert len(lab.read("other_close_freeform.jsonl", "other")) == 3


def test_failed_answers_have_no_row_in_the_files(lab: Lab) -> None:
    body = "assert 'boats' not in prompt\n    return 'B' if 'letter' in prompt else 'Oslo'"
    result = lab.run(lab.model("m", body))
    assert by_label(result)[BEST].cells["overall"].errored == 1
    assert [row["id"] for row in lab.read("m_close_freeform.jsonl")] == ["0", "1"]


def test_both_benchmarks_in_one_command(lab: Lab) -> None:
    lab.data["benchmarks"] = ["mixeval", "mixeval-hard"]
    result = lab.run(lab.model("m"))
    assert [(one.benchmark, one.scores[0].cells["overall"].entries) for one in result.scored] == [
        ("mixeval", 6),
        ("mixeval_hard", 2),
    ]
    assert (lab.folder / f"out/m/mixeval_hard/{VERSION}/m_close_freeform_hard.jsonl").exists()


def test_a_name_never_becomes_a_path(lab: Lab) -> None:
    with pytest.raises(UserError, match="MixEval's own"):
        lab.run(lab.model("m"), settings={"metrics": []})
    settings = {"models.0.name": "../../evil"}
    lab.run(lab.model("m"), settings=settings)
    assert not (lab.folder.parent / "evil").exists()
    assert next(
        path.name for path in (lab.folder / "out").iterdir() if "evil" in path.name
    ).startswith("evil~")


def test_base_models_see_five_examples_and_a_newline(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes = {name: f"{name}\n\n" for name in evaluation_prompts.HASHES}
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in prefixes.items()}
    monkeypatch.setattr(evaluation_prompts, "HASHES", hashes)
    file = lab.folder / "five.json"
    file.write_text(json.dumps(prefixes))
    lab.data |= {"base": True, "five_shot": str(file)}
    lab.run(lab.model("m", "return prompt"))
    row = lab.read("m_close_multichoice.jsonl")[0]
    assert row["response"] == row["formated_input"]
    assert row["formated_input"].startswith("FIVE_SHOT_PREFIX_MULTIPLECHOICE\n\n9 + 16?\nA. 15")
    assert row["formated_input"].endswith("choices directly.\n")


def test_the_version_is_known_where_there_is_only_one(lab: Lab) -> None:
    folder = write_model(lab.folder, "m", FREE_ANSWERS, CHOICE_ANSWERS)
    del lab.data["version"]
    assert lab.score(folder).scored[0].version == VERSION
    lab.data["data"] += f"/mixeval-{VERSION}"
    assert lab.score(folder).scored[0].version == VERSION
    (lab.folder / "data/mixeval-2025-01-01").mkdir()
    lab.data["data"] = str(lab.folder / "data")
    with pytest.raises(UserError, match="which version") as caught:
        lab.score(folder)
    assert "2025-01-01" in caught.value.fix
