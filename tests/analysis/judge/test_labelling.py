"""Which answers are chosen to be labelled: what tells most, what is random, and that estimates stay sound."""

import json
import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.analysis.judge.label import LabelFile, agreement_in, chosen_before, record
from assay.analysis.judge.label_frame import Address, Frame, Unit, read_frame
from assay.analysis.judge.labelling import BLOT, MOST_TELLING, ChosenAnswer, choose, views, waiting
from assay.datasets._labels import read_labels
from assay.engine.experiment.resolve import find_source
from assay.errors import UserError
from tests.analysis.judged_lab import judged
from tests.support import Lab


def frame_of(telling: Sequence[float]) -> Frame:
    units = [
        Unit(Address(f"q{n}", 0, "m", f"{n:032x}"), (f"{n:032x}",), degree)
        for n, degree in enumerate(telling)
    ]
    return Frame(label="correct", units=units)


def telling_in(lab: Lab, label: str = "") -> dict[str, float]:
    return {
        unit.address.item: unit.telling
        for unit in read_frame(find_source(lab.folder / "out"), label).units
    }


# ---- how much an answer tells


def test_disagreement_and_missing_verdicts_tell_most(tmp_path: Path) -> None:
    lab = judged(tmp_path, items=16)
    lab.run()
    # what the two judges say of item n
    divided = {n for n in range(16) if (n % 4 > 0) != (n % 8 > 1)}
    assert {item for item, degree in telling_in(lab).items() if degree == 1} == {
        f"q{n}" for n in (3, *divided)
    }
    assert {degree for degree in telling_in(lab).values() if degree < 1} == {0.0}


def test_answers_near_the_threshold_tell_more_and_the_scale_is_found(tmp_path: Path) -> None:
    lab = judged(tmp_path, "graded", items=10)
    frame = read_frame(find_source(tmp_path / "out"))
    assert frame.scale == (1, 5)
    degrees = telling_in(lab)
    # grades 1 to 5, threshold 3.5
    assert [degrees[f"q{n}"] for n in range(5)] == pytest.approx([0, 0.4, 0.8, 0.8, 0.4])


def test_a_pair_is_one_answer_and_tells_most_where_its_seats_contradict(tmp_path: Path) -> None:
    lab = judged(tmp_path, "better", items=4)
    frame = read_frame(find_source(tmp_path / "out"))
    assert frame.match
    assert telling_in(lab) == {"q0": 0.5, "q1": 1.0, "q2": 0.0, "q3": 0.0}
    keys = {row["key"]: row["model_name"] for row in lab.read("responses.jsonl")}
    assert [tuple(keys[key] for key in unit.responses) for unit in frame.units] == [
        ("one", "two")
    ] * 4


def test_failed_responses_are_no_answers(tmp_path: Path) -> None:
    lab = judged(tmp_path, items=6)
    lab.write(
        "model.py", "def calculator(prompt):\n    return '1' if '5 +' not in prompt else 1 / 0\n"
    )
    lab.run()
    rows = {row["item_id"]: row["outcome"] for row in lab.read("evaluation_results.jsonl")}
    assert rows["q5"] == "errored"
    assert set(telling_in(lab)) == {f"q{n}" for n in range(5)}


def test_members_of_a_panel_are_no_choice_and_unknown_labels_are_named(tmp_path: Path) -> None:
    lab = judged(tmp_path, items=4)
    source = find_source(tmp_path / "out")
    assert read_frame(source).label == "correct"
    assert read_frame(source, "correct.kind").label == "correct.kind"
    with pytest.raises(UserError, match="'korrect'") as raised:
        read_frame(source, "korrect")
    assert "did you mean 'correct'" in raised.value.fix
    lab.config["evaluation_methods"] = ["exact_match", "contains"]
    lab.run()
    with pytest.raises(UserError, match="several labels") as raised:
        read_frame(source)
    assert "contains, exact_match" in raised.value.fix


def test_evaluations_without_responses_cannot_be_labelled(tmp_path: Path) -> None:
    judged(tmp_path, items=4)
    rows = tmp_path / "elsewhere.jsonl"
    rows.write_bytes((tmp_path / "out" / "evaluation_results.jsonl").read_bytes())
    with pytest.raises(UserError, match="the answers are not there"):
        read_frame(find_source(rows, "evaluation"))


@pytest.mark.parametrize(
    "params, asked, scale",
    [
        ({"criterion": "Is it polite?", "scale": [1, 7]}, "Is it polite?", (1, 7)),
        (
            {"criteria": {"graded": {"description": "Is it short?", "scale": [0, 9]}}},
            "Is it short?",
            (0, 9),
        ),
        ({"criteria": {"graded": "Is it short?"}}, "Is it short?", (1, 5)),
        ({"criteria": ["name", {"graded": "Is it short?"}]}, "Is it short?", (1, 5)),
        ({"criteria": [{"name": "graded", "description": "Is it short?"}]}, "Is it short?", (1, 5)),
        ({}, "", (1, 5)),
    ],
)
def test_what_the_judge_was_asked_is_known_from_the_plan(
    tmp_path: Path, params: dict[str, Any], asked: str, scale: tuple[float, float]
) -> None:
    lab = judged(tmp_path, "graded", items=5)
    lab.config["evaluation_methods"][0]["params"] = params
    lab.run()
    frame = read_frame(find_source(tmp_path / "out"))
    assert (frame.asked, frame.scale) == (asked, scale)


# ---- the choice

degrees = st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0]), min_size=1, max_size=60)


@given(degrees, st.integers(1, 70), st.floats(0.01, 1), st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_the_choice_keeps_its_promises(
    telling: list[float], count: int, random: float, seed: int
) -> None:
    frame = frame_of(telling)
    chosen = choose(frame, count, random=random, seed=seed)
    addresses = [one.unit.address for one in chosen]
    assert len(addresses) == len(set(addresses)) == min(count, len(telling))
    assert sum(one.kind == "random" for one in chosen) >= random * len(chosen)
    strata = {
        one.stratum: [each for each in chosen if each.stratum == one.stratum] for one in chosen
    }
    for one in chosen:
        assert one.probability == pytest.approx(len(strata[one.stratum]) / one.size)
        assert 0 < one.probability <= 1
        assert one.kind == "random" or one.unit.telling > 0
    assert sum({name: each[0].size for name, each in strata.items()}.values()) <= len(telling)
    assert len(strata.get("telling", [])) <= np.ceil(MOST_TELLING * len(telling))
    reversed_rows = Frame(label="correct", units=frame.units[::-1])
    assert [
        one.unit.address for one in choose(reversed_rows, count, random=random, seed=seed)
    ] == addresses
    more = {one.unit.address: one for one in choose(frame, count + 7, random=random, seed=seed)}
    assert set(addresses) <= set(more)
    assert all(more[one.unit.address].stratum == one.stratum for one in chosen)


def estimates(part: float) -> tuple[list[float], list[float], list[float], float]:
    """The pass rate by weights, by the random answers alone, and by all answers alike, for many seeds; and the truth.
    Telling answers fail more often; `part` of the session is done."""
    telling = [1.0 if n % 6 == 0 else 0.0 for n in range(240)]
    frame = frame_of(telling)
    truth = {
        unit.address: float(n % 10 < (3 if unit.telling else 8))
        for n, unit in enumerate(frame.units)
    }
    found: list[tuple[float, float, float]] = []
    for seed in range(300):
        chosen = choose(frame, 60, random=0.3, seed=seed)
        chosen = chosen[: int(part * len(chosen))]
        values = np.array([truth[one.unit.address] for one in chosen])
        weights = np.array([1 / one.probability for one in chosen])
        alone = np.array([one.kind == "random" for one in chosen])
        found.append(
            (
                float(np.average(values, weights=weights)),
                float(values[alone].mean()),
                float(values.mean()),
            )
        )
    weighted, random, unweighted = (list(column) for column in zip(*found, strict=True))
    return weighted, random, unweighted, float(np.mean(list(truth.values())))


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_weights_and_random_answers_alone_give_the_true_rate_even_if_a_session_ends_early(
    part: float,
) -> None:
    weighted, random, unweighted, truth = estimates(part)
    for values in (weighted, random):
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - truth) < 3.5 * error + 0.003
    assert np.mean(unweighted) < truth - 0.15  # without weights the choice would show


def test_an_enlarged_session_weighs_strata_by_what_is_labelled(tmp_path: Path) -> None:
    frame = frame_of([1.0] * 4 + [0.0] * 36)
    file = LabelFile(tmp_path / "labels.jsonl")
    for count in (10, 30):
        done = {one.address: {"ann"} for one in file.records()}
        for one in waiting(frame, done, "ann", count=count, random=0.3):
            file.append(record(one, label=1, scorer="correct", annotator="ann"))
    rows = read_labels(file.path).only([]).rows
    assert len(rows) == 30
    assert {row.stratum: row.probability for row in rows} == {
        "telling": 1.0,
        "other": pytest.approx(26 / 36),
    }
    assert sum(1 / row.probability for row in rows) == pytest.approx(40)


def test_a_single_answer_can_be_chosen() -> None:
    (only,) = choose(frame_of([0.0]), 50, random=0.3)
    assert (only.kind, only.probability, only.stratum, only.size) == ("random", 1.0, "other", 1)


# ---- who labels what


def items(chosen: Sequence[ChosenAnswer]) -> list[str]:
    return [one.unit.address.item for one in chosen]


def test_what_one_has_labelled_is_not_shown_again() -> None:
    frame = frame_of([0.0] * 30)
    first = waiting(frame, {}, "ann", count=10, random=0.3)
    done = {one.unit.address: {"ann"} for one in first[:4]}
    assert items(waiting(frame, done, "ann", count=10, random=0.3)) == items(first[4:])
    assert (
        waiting(frame, {one.unit.address: {"ann"} for one in first}, "ann", count=10, random=0.3)
        == []
    )


def test_a_second_annotator_gets_half_of_the_first_ones_answers_in_their_order_then_new_ones() -> (
    None
):
    frame = frame_of([1.0] * 6 + [0.0] * 34)
    first = waiting(frame, {}, "ann", count=10, random=0.3)
    done = {one.unit.address: {"ann"} for one in first}
    second = waiting(frame, done, "bob", count=10, random=0.3)
    assert items(second[:5]) == items(first[:5])
    assert not set(items(second[5:])) & set(items(first))
    assert len(second) == 10
    for one in second[:7]:
        done.setdefault(one.unit.address, set()).add("bob")
    assert items(waiting(frame, done, "bob", count=10, random=0.3)) == items(second[7:])


def test_labels_of_answers_that_are_gone_do_not_count() -> None:
    frame = frame_of([0.0] * 12)
    gone = {Address("old", 0, "m", "k"): {"ann", "bob"}}
    assert items(waiting(frame, gone, "ann", count=5, random=0.5)) == items(
        choose(frame, 5, random=0.5)
    )


# ---- what is seen


def test_a_view_shows_question_reference_and_answer_without_names(tmp_path: Path) -> None:
    lab = judged(tmp_path, items=3)
    said = "I am Calculator-7B, the CALCULATOR; a calculators' club, 7b"
    lab.write("model.py", f"def calculator(prompt):\n    return {said!r}\n")
    lab.config["sample_params"] = {"temperature": 0.1}
    lab.run()
    source = find_source(tmp_path / "out")
    frame = read_frame(source)
    seen = views(source, frame.units)
    one = seen[next(unit.address for unit in frame.units if unit.address.item == "q2")]
    assert (one.question, one.reference) == ("2 + 1", "3")
    assert one.answers == [f"I am {BLOT}, the {BLOT}; a calculators' club, 7b"]


def test_the_seats_of_a_pair_are_drawn(tmp_path: Path) -> None:
    lab = judged(tmp_path, "better", items=40)
    lab.write("model.py", "def calculator(request):\n    return 'same'\n")
    source = find_source(tmp_path / "out")
    units = read_frame(source).units
    seen = views(source, units)
    swapped = sum(view.swapped for view in seen.values())
    assert 8 < swapped < 32
    assert views(source, units) == seen
    assert sum(view.swapped for view in views(source, units, seed=1).values()) != 0


# ---- the file


def one_choice() -> ChosenAnswer:
    return choose(frame_of([0.0] * 5), 1, random=1.0)[0]


def test_the_last_line_counts_and_null_takes_back(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    chosen = one_choice()
    for label in (1, None, 0):
        file.append(record(chosen, label=label, scorer="correct", annotator="ann", note="hm"))
    file.append(record(chosen, label=1, scorer="correct", annotator="bob"))
    file.append(record(chosen, label=None, scorer="correct", annotator="bob"))
    latest = file.latest("correct")
    assert {name: one.label for (_, name), one in latest.items()} == {"ann": 0, "bob": None}
    assert [one.unit for one in chosen_before(frame_of([0.0] * 5), latest.values())] == [
        chosen.unit
    ]
    assert [(row.annotator, row.value) for row in read_labels(file.path).rows] == [("ann", 0.0)]
    line = json.loads(file.path.read_text().splitlines()[0])
    assert line["probability"] == 0.2
    assert {
        "item",
        "sample",
        "model",
        "response",
        "scorer",
        "label",
        "annotator",
        "chosen",
        "time",
    } <= set(line)


def test_a_torn_last_line_is_cut_off_by_the_next_session(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    file.append(record(one_choice(), label=1, scorer="correct", annotator="ann"))
    with open(file.path, "ab") as torn:
        torn.write(b'{"item": "q1", "lab')
    again = LabelFile(file.path)
    assert len(list(again.records())) == 1
    again.append(record(one_choice(), label=0, scorer="correct", annotator="ann"))
    assert [one.label for one in again.records()] == [1, 0]


def _append_many(path: str, name: str) -> None:
    file = LabelFile(Path(path))
    for number in range(60):
        file.append(
            record(one_choice(), label=number, scorer="correct", annotator=name, note=name * 3000)
        )


def test_two_sessions_at_once_tear_no_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_append_many, args=(str(path), name)) for name in ("ann", "bob")]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    said = [(one.annotator, one.label) for one in LabelFile(path).records()]
    assert [label for name, label in said if name == "ann"] == list(range(60))
    assert [label for name, label in said if name == "bob"] == list(range(60))


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"item": "q1", "label": 1}\n{"label": 0}\n')
    with pytest.raises(UserError, match="not a label") as raised:
        list(LabelFile(path).records())
    assert raised.value.where.endswith("line 2")


def test_the_agreement_of_annotators(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    ann, bob = [1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 1]
    chosen = choose(frame_of([0.0] * 8), 8, random=1.0)
    for name, labels in (("ann", ann), ("bob", bob)):
        for one, label in zip(chosen, labels, strict=False):
            file.append(record(one, label=label, scorer="correct", annotator=name))
    file.append(record(chosen[6], label=1, scorer="correct", annotator="bob"))
    file.append(record(chosen[7], label=1, scorer="another", annotator="bob"))
    found = agreement_in(file, "correct", ordered=False)
    assert found["percent"].value == pytest.approx(4 / 6)
    chance = (4 / 6) ** 2 + (2 / 6) ** 2
    assert found["cohen_kappa"].value == pytest.approx((4 / 6 - chance) / (1 - chance))
    assert agreement_in(file, "another", ordered=False) == {}
