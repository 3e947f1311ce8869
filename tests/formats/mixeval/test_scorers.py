"""MixEval's parsers as scorers, alone and in an ordinary config."""

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import UserError
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.threads import run_blocking
from tests.cli.shell import Shell
from tests.formats.mixeval.folder import VERSION, free_form, multiple_choice, numbered, write_data

OPTIONS = ["a red hat", "Blue shoes", "green gloves", "(D)no clothes"]


def score(
    name: str, text: str, kind: str = MULTIPLE_CHOICE, truth: Any = None, **params: Any
) -> Any:
    item = Item(
        id="x",
        data={"options": OPTIONS} if kind == MULTIPLE_CHOICE else {},
        ground_truth=truth or ([1] if kind == MULTIPLE_CHOICE else ["5"]),
        metadata={"problem_type": kind},
    )
    return scorer.get(name)(item, Response(item_id="x", response=text), **params)


@pytest.mark.parametrize("parser", ["rule", "rule-compat"])
def test_of_a_target_with_two_options_the_first_is_right(parser: str) -> None:
    for text, right in (("C", True), ("B", False)):
        assert score("mixeval.choice", text, truth=[2, 1], parser=parser).passed is right


@pytest.mark.parametrize(
    "text",
    [
        "B",
        "b",
        "B)",
        '"B"',
        "**B**",
        "**B.**",
        "**B. Blue shoes**",
        r"\boxed{B}",
        "B: text",
        "The answer is B.",
        "blue shoes",
        "<think>A?</think>B",
        "B\n\n**Solution:**\n\n11 + 14 = 25, so A and D are out.",
        "B.\n\n**Explanation:** It is not (A), for a red hat is no pair.",
    ],
)
def test_what_the_rule_sees(text: str) -> None:
    found = score("mixeval.choice", text)
    assert (found.passed, found.score, found.outcome, found.details) == (
        True,
        1.0,
        "scored",
        {"parsed": "B"},
    )
    assert score("mixeval.answer", text) == found


@pytest.mark.parametrize("text", ["", "E", "A or B", "no idea", "B, C"])
def test_what_the_rule_does_not_guess(text: str) -> None:
    found = score("mixeval.choice", text)
    assert (found.passed, found.score, found.outcome) == (None, None, "unparsed")


def test_the_protocol_s_parser_marks_what_it_would_draw() -> None:
    assert score("mixeval.choice", "**B**", parser="rule-compat").outcome == "unparsed"
    assert score("mixeval.choice", "It is not B but C", parser="rule-compat").details == {
        "parsed": "B"
    }
    assert score("mixeval.choice", "I say (A)", parser="rule-compat").passed is False


def test_free_form_by_the_protocol_s_parser() -> None:
    assert (
        score(
            "mixeval.freeform", "Paris is big.", FREE_FORM, ["Paris"], parser="rule-compat"
        ).passed
        is False
    )
    assert score("mixeval.freeform", "", FREE_FORM, parser="rule-compat").passed is False


@pytest.mark.parametrize("name", ["mixeval.freeform", "mixeval.answer"])
@pytest.mark.parametrize("params", [{}, {"parser": "rule"}])
def test_free_form_by_rule_is_refused(tmp_path: Path, name: str, params: dict[str, str]) -> None:
    """What 0.1 read by its own rule is neither read nor counted by another one under that name."""
    with pytest.raises(UserError, match="no longer read by `rule`"):
        score(name, "5", FREE_FORM, **params)
    write_data(tmp_path / "data", FREE, MULTIPLE)
    made = config(tmp_path)
    made["evaluation_methods"] = [{"name": "rule", "type": name, "params": params}]
    with pytest.raises(UserError) as caught:
        run_blocking(assay.experiment(made).run)
    assert "evaluation_methods[0]" in str(caught.value)
    assert "`parser: rule-compat` or mixeval.judge_freeform" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_each_scorer_leaves_the_other_kind_alone() -> None:
    assert score("mixeval.choice", "5", FREE_FORM) == []
    assert score("mixeval.freeform", "B") == []
    assert isinstance(score("mixeval.answer", "5", FREE_FORM, parser="rule-compat"), Score)


@pytest.mark.parametrize("parser", ["rule", "rule-compat"])
def test_base_models_are_cut_short_if_asked(parser: str) -> None:
    asked_on = "B\n\nWhich?\nA. x\n(C)"
    assert score("mixeval.choice", asked_on, parser=parser, trim_base=True).passed is True
    went_on = "The sum is 5\n\n\nQuestion: What is 2 + 4?\nThe answer is 6"
    if parser == "rule-compat":
        found = score("mixeval.freeform", went_on, FREE_FORM, parser=parser, trim_base=True)
        assert found.passed is True


# ---- in an ordinary config


FREE = [
    free_form("What is 2 + 3?", "5", benchmark_name="GSM8k"),
    free_form("What is the capital of France?", "Paris"),
    free_form("What is the capital of Atlantis?", "Poseidonia"),
]
MULTIPLE = [
    multiple_choice("What is 2 + 2?", 1, options=["3", "4"]),
    multiple_choice("What is 1 + 2?", options=["3", "4"]),
]


def config(folder: Path) -> dict[str, Any]:
    return {
        "name": "mix",
        "dataset": {
            "type": "mixeval",
            "path": str(folder / "data"),
            "params": {"version": VERSION},
        },
        "models": [{"name": "demo", "type": "demo", "skill": 1.0}],
        "prompt_template": "{{ formated_input }}",
        "evaluation_methods": [
            {"name": "choice", "type": "mixeval.choice"},
            {"name": "free", "type": "mixeval.freeform", "params": {"parser": "rule-compat"}},
            {"name": "compat", "type": "mixeval.answer", "params": {"parser": "rule-compat"}},
        ],
        "metrics": [
            {"name": "mean", "facets": ["metadata.benchmark_name"]},
            {"name": "mean", "facets": ["problem_type"]},
        ],
        "output_dir": str(folder / "out"),
    }


def test_an_ordinary_config(tmp_path: Path) -> None:
    write_data(tmp_path / "data", FREE, MULTIPLE)
    run_blocking(assay.experiment(config(tmp_path)).run)
    rows = [
        json.loads(line) for line in (tmp_path / "out/responses.jsonl").read_text().splitlines()
    ]
    prompts = {row["item_id"]: row["prompt"] for row in rows}
    assert (
        prompts["free-form/0"]
        == "Question: What is 2 + 3?\nAnswer the question. \nLet's think step by step."
    )
    metrics = [
        json.loads(line) for line in (tmp_path / "out/metrics.jsonl").read_text().splitlines()
    ]
    by_name = {
        (row["metadata.benchmark_name"], row["label"]): row
        for row in metrics
        if "metadata.benchmark_name" in row
    }
    assert {key: row["value"] for key, row in by_name.items()} == {
        ("GSM8k", "free"): 1.0,
        ("GSM8k", "compat"): 1.0,
        ("TriviaQA", "free"): 0.5,
        ("TriviaQA", "compat"): 0.5,
        ("MMLU", "choice"): 1.0,
        ("MMLU", "compat"): 1.0,
    }
    by_kind = {
        (row["problem_type"], row["label"]): row["value"]
        for row in metrics
        if "problem_type" in row
    }
    assert by_kind[("free-form", "free")] == pytest.approx(2 / 3)
    assert by_kind[("multiple-choice", "choice")] == 1.0
    assert set(by_kind) == {
        (kind, name)
        for kind, names in (
            ("free-form", ("free", "compat")),
            ("multiple-choice", ("choice", "compat")),
        )
        for name in names
    }


def test_unchanged_data_are_not_scored_again_and_a_corrected_target_is(tmp_path: Path) -> None:
    write_data(tmp_path / "data", FREE, MULTIPLE)
    made = config(tmp_path)
    run_blocking(assay.experiment(made).run)

    def scored() -> int:
        again = assay.experiment(made)
        run_blocking(again.run)
        return sum(lane.done for lane in again.progress.of("evaluate"))

    assert scored() == 0
    (tmp_path / "fixed.json").write_text('[{"id": "free-form/2", "target": ["Atlantis City"]}]')
    made["dataset"]["params"]["corrections"] = str(tmp_path / "fixed.json")
    assert scored() == 3


# ---- bad data through the command line


class Bad:
    """Good data that were run once, and then got broken."""

    def __init__(self, folder: Path) -> None:
        self.shell = Shell(folder)
        self.shell.config = config(folder)
        self.paths = write_data(folder / "data", FREE, MULTIPLE)

    def refuses(self, *said: str) -> None:
        """`assay run` says what is wrong, and nothing that was there is lost."""
        rows = {
            name: self.shell.lines(name)
            for name in ("responses.jsonl", "evaluation_results.jsonl", "items.jsonl")
        }
        ended = self.shell.run()
        assert ended.code == 2, ended.said
        for words in said:
            assert words in ended.words
        assert {name: self.shell.lines(name) for name in rows} == rows


@pytest.fixture
def bad(tmp_path: Path) -> Bad:
    made = Bad(tmp_path)
    run_blocking(assay.experiment(made.shell.config).run)
    assert len(made.shell.lines()) == 5
    return made


def test_duplicate_ids(bad: Bad) -> None:
    one, other = (json.dumps(entry) for entry in FREE[:2])
    bad.paths["free-form"].write_text(f'{{"0": {one}, "1": {other}, "0": {other}}}')
    bad.refuses("'free-form/0'", "free-form.json [0]")


def test_one_option(bad: Bad) -> None:
    bad.paths["multiple-choice"].write_text(
        json.dumps(numbered([*MULTIPLE, multiple_choice(options=["x"])]))
    )
    bad.refuses(
        "entry 'multiple-choice/2': it has 1 option", "multiple-choice.json [2]", "corrections file"
    )


def test_no_options(bad: Bad) -> None:
    entry = multiple_choice()
    del entry["options"]
    bad.paths["multiple-choice"].write_text(json.dumps(numbered([entry])))
    bad.refuses("entry 'multiple-choice/0': it has 0 options")


def test_a_target_out_of_range(bad: Bad) -> None:
    bad.paths["multiple-choice"].write_text(json.dumps(numbered([multiple_choice(target=2)])))
    bad.refuses("its target [2] is none of its 2 options")


def test_half_a_json_file(bad: Bad) -> None:
    bad.paths["free-form"].write_text(json.dumps(numbered(FREE))[:-40])
    bad.refuses("the file is not whole JSON", "free-form.json")


def test_an_unknown_benchmark(bad: Bad) -> None:
    bad.shell.config["dataset"]["params"]["benchmark"] = "mixeval-herd"
    bad.refuses("unknown benchmark 'mixeval-herd'", "did you mean 'mixeval_hard'?")


def test_an_unknown_version(bad: Bad) -> None:
    bad.shell.config["dataset"]["params"]["version"] = "2024-06-17"
    bad.refuses("there is no mixeval of version '2024-06-17'", VERSION)
