"""Judges through the whole engine: rows, panels, rubrics, matches, and what is paid again after an edit."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.engine.experiment.experiment import Result
from assay.errors import ConfigError
from assay.registry import scorer
from tests.support import Lab

YES = '{"reason": "as it should be", "verdict": "yes"}'


class Court(Lab):
    """A lab whose judges say what a script says: `say(text, request)` gets the rendered prompt of a call."""

    def __init__(
        self, folder: Path, script: str = f"return {YES!r}", judges: tuple[str, ...] = ("judge",)
    ) -> None:
        super().__init__(folder, items=3)
        self.config |= {"sample_params": {"num_samples": 1}, "metrics": ["mean"]}
        self.config["models"] += [
            {
                "name": name,
                "type": "python",
                "path": str(folder / "judge.py"),
                "function_name": "judge",
                "helper": True,
            }
            | {"params": {"name": name}}
            for name in judges
        ]
        self.says(script)

    def says(self, script: str) -> None:
        lines = "\n".join(f"    {line}" for line in script.splitlines())
        self.write(
            "judge.py",
            "import json, pathlib\nfrom assay.text.messages import messages_text\n"
            f"def say(name, text, request):\n{lines}\n"
            f"def judge(request, *, name):\n    with open({str(self.folder / 'asked.jsonl')!r}, 'a') as file:\n"
            "        file.write(json.dumps([name, request.messages, request.params]) + '\\n')\n"
            "    return say(name, messages_text(request.messages), request)\n",
        )

    def judge(self, type: str = "judge", **params: Any) -> list[dict[str, Any]]:
        """The rows of one judge called `j`, sorted by item, label and seat."""
        self.config["evaluation_methods"] = [{"name": "j", "type": type, "params": params}]
        self.run()
        return sorted(
            self.read("evaluation_results.jsonl"),
            key=lambda row: (row["item_id"], row["label"], row["seat"]),
        )

    def asked(self) -> list[Any]:
        path = self.folder / "asked.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def court(tmp_path: Path) -> Court:
    return Court(tmp_path)


def test_a_verdict_is_a_row_with_the_judges_identity(court: Court) -> None:
    rows = court.judge()
    assert [(row["label"], row["passed"], row["score"], row["outcome"]) for row in rows] == [
        ("j", True, 1.0, "scored")
    ] * 3
    details = rows[0]["detailed_results"]
    assert (details["verdict"], details["reason"]) == ("yes", "as it should be")
    assert details["judge"]["model"] == "judge"
    assert (len(details["judge"]["id"]), len(details["judge"]["prompt"])) == (16, 12)
    assert len({row["detailed_results"]["judge"]["id"] for row in rows}) == 1
    (_, messages, params), *_ = court.asked()
    assert params == {"temperature": 0.0}
    assert [message["role"] for message in messages] == ["system", "user"]


def test_the_identity_is_what_is_sent_beside_the_texts(court: Court) -> None:
    def identity(**params: Any) -> str:
        return court.judge(**params)[0]["detailed_results"]["judge"]["id"]

    first = identity(criterion="Is it polite?")
    assert identity(criterion="Is it polite?", threshold=0.9, rule="mean", tries=3) == first
    changes: list[dict[str, Any]] = [
        {"criterion": "Is it kind?"},
        {"temperature": 1.0},
        {"params": {"top_p": 0.5}},
    ]
    changes.append({"prompt": "Judge {{answer}} by {{criterion}}. {{scale}}"})
    assert (
        len({first, *(identity(**{"criterion": "Is it polite?", **change}) for change in changes)})
        == 5
    )


def test_texts_of_others_are_fenced_and_the_judge_is_told(court: Court) -> None:
    court.rows[0]["data"]["question"] = "0 + 1"
    court.judge(prompt="Look at {{answer}} and {{question}} and {{reference}}, {{item.id}}.")
    (text,) = [
        message["content"]
        for _, (message,), _ in court.asked()
        if message["content"].endswith(", q0.")
    ]
    mark = text.partition("tags that end in -")[2][:12]
    assert f"<answer-{mark}>\n" in text
    assert f"\n</answer-{mark}>" in text
    assert f"<question-{mark}>\n" in text
    assert f"<reference-{mark}>\n" in text
    assert "data, whatever they say" in text


def test_a_scale(court: Court) -> None:
    court.says(
        "return json.dumps({'reason': 'x', 'verdict': {'1': 1, '2': 3, '3': 5}[text.partition('<answer-')[2][14]]})"
    )
    rows = court.judge(scale=[1, 5])
    assert [(row["score"], row["passed"]) for row in rows] == [
        (0.0, False),
        (0.5, True),
        (1.0, True),
    ]
    assert [row["detailed_results"]["grade"] for row in rows] == [1, 3, 5]
    rows = court.judge(scale=[1, 5], threshold=4)
    assert [row["passed"] for row in rows] == [False, False, True]
    assert len(court.asked()) == 3, "a threshold asks nobody"


def test_a_new_version_of_the_parser_asks_nobody(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    court.judge()
    before = {row["key"] for row in court.read("evaluation_results.jsonl")}
    monkeypatch.setitem(scorer.get("judge").__assay__, "version", 2)  # type: ignore[attr-defined]
    court.judge()
    assert not before & {row["key"] for row in court.read("evaluation_results.jsonl")}, (
        "all are scored anew"
    )
    assert len(court.asked()) == 3


def test_an_unreadable_answer_is_asked_about_again(court: Court) -> None:
    court.says("return 'Well, perhaps.' if len(request.messages) < 3 else '[[no]]'")
    rows = court.judge()
    assert [row["score"] for row in rows] == [0.0] * 3
    last = court.asked()[-1][1]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user"]
    assert last[2]["content"] == "Well, perhaps."
    assert "JSON" in last[3]["content"]


def test_what_stays_unreadable_is_unparsed_with_the_raw_text(court: Court) -> None:
    court.says("return 'Well, perhaps. ' * 1000")
    rows = court.judge(tries=3)
    assert {row["outcome"] for row in rows} == {"unparsed"}
    assert {row["error"] for row in rows} == {"the judge's answer holds no verdict"}
    details = rows[0]["detailed_results"]
    assert (len(details["raw"]), details["tries"], details["judge"]["model"]) == (4000, 3, "judge")
    assert len(court.asked()) == 9


@pytest.mark.parametrize(
    "script",
    [
        "return 'I cannot help with that.'",
        "return {'refused': True, 'text': ''}",
        "raise ValueError('no')",
    ],
)
def test_a_judge_that_refuses_or_fails_is_errored_and_not_asked_again(
    court: Court, script: str
) -> None:
    court.says(script)
    rows = court.judge()
    assert [(row["outcome"], row["error_kind"], row["score"]) for row in rows] == [
        ("errored", "permanent", None)
    ] * 3
    court.judge()
    assert len(court.asked()) == 3


def test_a_failure_that_may_pass_is_tried_by_the_next_run(court: Court) -> None:
    court.config["max_retries"] = 0
    court.says("from assay.errors import TransientError\nraise TransientError('busy')")
    assert {(row["outcome"], row["error_kind"]) for row in court.judge()} == {
        ("errored", "transient")
    }
    court.says(f"return {YES!r}")
    assert {row["outcome"] for row in court.judge()} == {"scored"}


# ---- panels


VOTES = "return json.dumps({'reason': name, 'verdict': {'a': 'yes', 'b': 'no', 'c': 'yes'}[name]})"


@pytest.mark.parametrize(
    ("rule", "score", "passed"),
    [("majority", 1.0, True), ("mean", 2 / 3, True), ("minimum", 0.0, False)],
)
def test_a_panel(tmp_path: Path, rule: str, score: float, passed: bool) -> None:
    court = Court(tmp_path, VOTES, judges=("a", "b", "c"))
    rows = court.judge(model=["a", "b", "c"], rule=rule)[:4]
    assert [row["label"] for row in rows] == ["j", "j.a", "j.b", "j.c"]
    assert [row["score"] for row in rows[1:]] == [1.0, 0.0, 1.0]
    assert (rows[0]["score"], rows[0]["passed"]) == (pytest.approx(score), passed)
    details = rows[0]["detailed_results"]
    assert details["votes"] == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert (details["rule"], details["judge"]["models"]) == (rule, ["a", "b", "c"])
    assert len({row["key"] for row in rows}) == 1, "one commit"
    assert [row["part"][1] for row in rows] == [4] * 4


def test_another_rule_or_one_member_more_asks_only_whom_it_must(tmp_path: Path) -> None:
    court = Court(tmp_path, VOTES, judges=("a", "b", "c"))
    court.judge(model=["a", "b"])
    court.judge(model=["a", "b"], rule="minimum")
    assert len(court.asked()) == 6
    court.judge(model=["a", "b", "c"])
    assert [name for name, _, _ in court.asked()[6:]] == ["c"] * 3
    court.judge(model=["c"], repeats=3)
    assert len(court.asked()) == 9 + 6, "the first of three is known"


def test_a_tied_vote_does_not_pass(tmp_path: Path) -> None:
    court = Court(tmp_path, VOTES, judges=("a", "b"))
    row = court.judge(model=["a", "b"])[0]
    assert (row["score"], row["passed"]) == (0.5, False)


def test_grades_have_a_majority_of_passes(tmp_path: Path) -> None:
    court = Court(
        tmp_path, "return '[[%d]]' % {'a': 5, 'b': 4, 'c': 1}[name]", judges=("a", "b", "c")
    )
    row = court.judge(model=["a", "b", "c"], scale=[1, 5])[0]
    assert (row["score"], row["passed"]) == (1.0, True)
    row = court.judge(model=["a", "b", "c"], scale=[1, 5], rule="mean", threshold=4)[0]
    assert (row["score"], row["passed"]) == (pytest.approx((1 + 0.75 + 0) / 3), False)


def test_repeats_are_samples_of_their_own(tmp_path: Path) -> None:
    court = Court(tmp_path, "return '[[yes]]' if request.seed % 2 else '[[no]]'")
    rows = court.judge(repeats=5)
    labels = [row["label"] for row in rows[:6]]
    assert labels == ["j", "j.judge.1", "j.judge.2", "j.judge.3", "j.judge.4", "j.judge.5"]
    assert len({row["score"] for row in rows if row["label"] != "j"}) == 2
    assert set(rows[0]["detailed_results"]["votes"]) == {
        f"judge.{number}" for number in range(1, 6)
    }
    again = court.judge(repeats=5, rule="mean")
    assert [row["score"] for row in again if row["label"] != "j"] == [
        row["score"] for row in rows if row["label"] != "j"
    ]
    assert len(court.asked()) == 15


def test_a_member_that_fails_has_no_vote(tmp_path: Path) -> None:
    script = "if name == 'b': raise ValueError('out of order')\nreturn 'Hm.' if name == 'c' else '[[yes]]'"
    court = Court(tmp_path, script, judges=("a", "b", "c"))
    rows = court.judge(model=["a", "b", "c"])[:4]
    assert [row["outcome"] for row in rows] == ["scored", "scored", "errored", "unparsed"]
    assert rows[0]["detailed_results"]["votes"] == {"a": 1.0, "b": None, "c": None}
    rows = court.judge(model=["b", "c"])[:3]
    assert [row["outcome"] for row in rows] == ["unparsed", "errored", "unparsed"]
    assert "out of order" in rows[0]["error"]


# ---- rubrics


CRITERIA = {
    "accuracy": "Is it right?",
    "tone": {"description": "Is it kind?", "weight": 3, "scale": "yes_no"},
}


def test_a_rubric_has_a_label_for_each_criterion_and_their_weighted_mean(court: Court) -> None:
    court.says("return '[[2]]' if 'accuracy: Is it right?' in text else '[[yes]]'")
    rows = court.judge("judge_rubric", criteria=CRITERIA)[:3]
    assert [(row["label"], row["score"]) for row in rows] == [
        ("j", pytest.approx((0.25 + 3) / 4)),
        ("j.accuracy", 0.25),
        ("j.tone", 1.0),
    ]
    assert [row["passed"] for row in rows] == [True, False, True]
    assert rows[0]["detailed_results"]["criteria"] == {"accuracy": 0.25, "tone": 1.0}
    court.judge(
        "judge_rubric",
        criteria={**CRITERIA, "tone": {"description": "Is it warm?", "scale": "yes_no"}},
    )
    assert len(court.asked()) == 6 + 3, "only the criterion that changed"


def test_a_rubric_with_a_panel(tmp_path: Path) -> None:
    court = Court(tmp_path, "return '[[5]]' if name == 'a' else '[[1]]'", judges=("a", "b"))
    rows = court.judge(
        "judge_rubric", model=["a", "b"], rule="mean", criteria=["clarity", "depth"]
    )[:7]
    labels = ["j", "j.clarity", "j.clarity.a", "j.clarity.b", "j.depth", "j.depth.a", "j.depth.b"]
    assert [row["label"] for row in rows] == labels
    assert [row["score"] for row in rows] == [0.5, 0.5, 1.0, 0.0, 0.5, 1.0, 0.0]


def test_a_rubric_without_one_of_its_criteria_has_no_score(court: Court) -> None:
    court.says("return 'Hm.' if 'tone' in text else '[[5]]'")
    rows = court.judge("judge_rubric", criteria=CRITERIA)[:3]
    assert [(row["label"], row["outcome"], row["score"]) for row in rows] == [
        ("j", "unparsed", None),
        ("j.accuracy", "scored", 1.0),
        ("j.tone", "unparsed", None),
    ]


# ---- references


@pytest.mark.parametrize(
    ("verdicts", "said", "score", "passed"),
    [
        ("binary", "correct", 1.0, True),
        ("binary", "incorrect", 0.0, False),
        ("ternary", "partly", 0.5, False),
        ("fractional", 0.7, 0.7, True),
        ("fractional", 0.3, 0.3, False),
    ],
)
def test_correctness(court: Court, verdicts: str, said: Any, score: float, passed: bool) -> None:
    court.says(f"return json.dumps({{'reason': 'x', 'verdict': {said!r}}})")
    court.rows[0]["ground_truth"] = {"answers": ["one", "1", 1]}
    row = court.judge("judge_correctness", verdicts=verdicts)[0]
    assert (row["score"], row["passed"]) == (score, passed)
    assert any(
        "\none\n1\n</reference-" in messages[1]["content"] for _, messages, _ in court.asked()
    )


def test_no_reference_no_call(court: Court) -> None:
    court.rows[0]["ground_truth"] = {}
    rows = court.judge("judge_correctness")
    assert [row["outcome"] for row in rows] == ["errored", "scored", "scored"]
    assert len(court.asked()) == 2


# ---- matches


def test_pairs_are_judged_in_both_orders(court: Court) -> None:
    court.config["models"].insert(1, court.model("other"))
    court.says("return '[[first]]'")
    rows = court.judge("judge_pairwise")
    assert [(row["seat"], row["score"]) for row in rows] == [(0, 1.0), (1, 0.0)] * 3
    assert {row["detailed_results"]["verdict"] for row in rows} == {"first"}
    assert rows[0]["players"] == ["calculator", "other"]


def test_a_divided_panel_is_a_tie(tmp_path: Path) -> None:
    court = Court(tmp_path, "return {'a': '[[first]]', 'b': '[[tie]]'}[name]", judges=("a", "b"))
    court.config["models"].insert(1, court.model("other"))
    rows = court.judge("judge_pairwise", model=["a", "b"])
    assert {row["score"] for row in rows if row["label"] == "j"} == {0.5}
    assert {row["score"] for row in rows if row["label"] == "j.b"} == {0.5}
    assert {(row["seat"], row["score"]) for row in rows if row["label"] == "j.a"} == {
        (0, 1.0),
        (1, 0.0),
    }


# ---- wrong parameters, before anything is paid


@pytest.mark.parametrize(
    ("type", "params", "said"),
    [
        ("judge", {"scale": [5, 1]}, "does not rise"),
        ("judge", {"scale": [1, 2, 3]}, "is none"),
        ("judge", {"scale": [1, 5], "threshold": 6}, "outside the scale from 1 to 5"),
        ("judge", {"threshold": 2}, "outside the scale from 0 to 1"),
        ("judge", {"repeats": 0}, "repeats is 0"),
        ("judge", {"tries": 0}, "tries is 0"),
        ("judge", {"model": ["judge", "judge"]}, "sits twice"),
        ("judge", {"model": "jugde"}, "did you mean 'judge'"),
        ("judge", {"rule": "median"}, "rule"),
        ("judge", {"params": {"model": "x"}}, "must not hold 'model'"),
        ("judge", {"params": {"temperature": 1}}, "own parameter `temperature`"),
        ("judge", {"prompt": "Is this {{answr}} good?"}, "did you mean 'answer'"),
        ("judge", {"prompt": "Is {{question}} good?"}, "does not show 'answer'"),
        ("judge", {"prompt": "Is {{answer good?"}, "cannot be read"),
        ("judge", {"prompt": "Hello.\n[user]\n{{answer}}"}, "before the first part"),
        ("judge", {"prompt": "jugde"}, "did you mean 'judge'"),
        ("judge_correctness", {"prompt": "Is {{answer}} right?"}, "does not show 'reference'"),
        ("judge_pairwise", {"prompt": "Is {{first}} good?"}, "does not show 'second'"),
        ("judge_rubric", {}, "needs the parameter 'criteria'"),
        ("judge_rubric", {"criteria": {}}, "has no criteria"),
        ("judge_rubric", {"criteria": ["clear", "short", "clear"]}, "'clear' is there twice"),
        (
            "judge_rubric",
            {"criteria": [{"clear": "Is it?"}, {"clear": "Was it?"}]},
            "'clear' is there twice",
        ),
        ("judge_rubric", {"criteria": {"clear": {"wieght": 2}}}, "did you mean 'weight'"),
        ("judge_rubric", {"criteria": {"clear": {"weight": 0}}}, "number above 0"),
        ("judge_rubric", {"criteria": {"clear": {"weight": True}}}, "number above 0"),
        ("judge_rubric", {"criteria": {"clear": {"scale": "1-5"}}}, "is none"),
        (
            "judge_rubric",
            {"criteria": {"clear": {"scale": [1, 5], "threshold": 9}}},
            "outside the scale",
        ),
        ("judge_rubric", {"criteria": {"clear": 7}}, "needs a name and a description"),
        ("judge_rubric", {"criteria": [7]}, "needs a name and a description"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_is_paid(
    court: Court, type: str, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        court.judge(type, **params)
    assert said in str(caught.value)
    assert "evaluation_methods" in str(caught.value)
    assert court.calls() == 0
    assert court.asked() == []


# ---- prompts of one's own


def test_a_prompt_in_a_file_pays_again_only_its_own_judge_when_it_changes(court: Court) -> None:
    def run() -> Result:
        return court.run().result

    prompt = court.write(
        "mine.txt", "[system]\nBe brief.\n[user]\n{{answer}} {{criterion}} {{scale}}\n"
    )
    court.config["evaluation_methods"] = [
        {"name": "mine", "type": "judge", "params": {"prompt": str(prompt)}},
        {"name": "ours", "type": "judge"},
    ]
    run()
    assert len(court.asked()) == 6
    court.write(
        "mine.txt", "[system]\nBe very brief.\n[user]\n{{answer}} {{criterion}} {{scale}}\n"
    )
    assert run().evaluation is not None
    changed = court.asked()[6:]
    assert len(changed) == 3
    assert all("Be very brief." in messages[0]["content"] for _, messages, _ in changed)
    rows = court.read("evaluation_results.jsonl")
    assert len({row["detailed_results"]["judge"]["prompt"] for row in rows}) == 2
