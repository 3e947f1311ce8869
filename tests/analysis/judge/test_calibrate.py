"""Calibrations: exact numbers of small tables, which labels count, what is said about the others, what is kept."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assay
from assay.analysis.judge.calibrate import Calibrated, Calibration, calibrate
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.errors import LockedError, UserError
from assay.stats.intervals import item_contributions, mean_interval, wilson
from assay.store.stores import FlatStore
from tests.analysis.judges import JUDGE, key_of, label, match, response, save, verdict
from tests.support import Lab


def table_of(
    tp: int, fp: int, fn: int, tn: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Verdicts and labels with these counts, one item each."""
    pairs = [(True, 1)] * tp + [(True, 0)] * fp + [(False, 1)] * fn + [(False, 0)] * tn
    rows = [verdict(f"q{n:04}", judge) for n, (judge, _) in enumerate(pairs)]
    return rows, [label(f"q{n:04}", truth) for n, (_, truth) in enumerate(pairs)]


def only(found: Calibrated) -> Calibration:
    (one,) = found.calibrations
    return one


def test_the_numbers_of_a_table(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rows, labels = table_of(40, 6, 10, 24)
    one = only(calibrate(save(tmp_path / "e", rows), labels))
    assert (one.judge, one.models, one.labels, one.items) == (JUDGE, ["j"], 80, 80)
    for table in (one.confusion, one.counted):
        assert (table.tp, table.fp, table.fn, table.tn) == (40, 6, 10, 24)
    for estimate, passes, n in (
        (one.sensitivity, 40, 50),
        (one.specificity, 24, 30),
        (one.base_rate, 50, 80),
        (one.judge_rate, 46, 80),
        (one.agreement.percent, 64, 80),
    ):
        assert (estimate.value, estimate.n) == (pytest.approx(passes / n), n)
        assert (estimate.low, estimate.high) == pytest.approx(wilson(passes, n))
    assert one.agreement.by_majority == 50 / 80
    truth, judge = [row["label"] for row in labels], [row["passed"] for row in rows]
    kappa = one.agreement.kappa
    assert kappa.value == pytest.approx(metrics.cohen_kappa_score(truth, judge))
    assert kappa.low is not None
    assert kappa.high is not None
    assert 0.3 < kappa.low < 0.45 < 0.7 < kappa.high < 0.8


def test_a_perfect_judge_of_few_answers_is_not_certain(tmp_path: Path) -> None:
    rows, labels = table_of(4, 0, 0, 4)
    kappa = only(calibrate(save(tmp_path / "e", rows), labels)).agreement.kappa
    assert kappa.value == kappa.high == 1
    assert kappa.low is not None
    assert kappa.low < 0.5


def test_samples_of_an_item_are_one_cluster(tmp_path: Path) -> None:
    """Four equal samples tell as much as one."""
    random = np.random.default_rng(3)
    judge = random.random(30) < 0.7
    rows = [verdict(f"q{n}", bool(judge[n]), sample) for n in range(30) for sample in range(4)]
    labels = [label(f"q{n}", 1, sample) for n in range(30) for sample in range(4)]
    one = only(calibrate(save(tmp_path / "e", rows), labels))
    item, passed = np.repeat(np.arange(30), 4), np.repeat(judge, 4).astype(float)
    expected = mean_interval(item_contributions(item, passed), samples=120, scale=(0.0, 1.0))
    assert (one.sensitivity.low, one.sensitivity.high) == pytest.approx(
        (expected.low, expected.high)
    )
    assert one.counted.tp + one.counted.fn == 120
    assert 25 < one.confusion.tp + one.confusion.fn < 35
    assert one.specificity.value is None
    assert one.specificity.method == "none: people failed none of the answers"


def test_failed_verdicts(tmp_path: Path) -> None:
    """As in metrics: what cannot be read is a fail, what is an error is nothing."""
    rows, labels = table_of(5, 0, 0, 5)
    rows += [verdict("u", "unparsed"), verdict("r", "refused"), verdict("e", "errored")]
    labels += [label(name, 1) for name in "ure"]
    one = only(calibrate(save(tmp_path / "e", rows), labels))
    assert (one.counted.tp, one.counted.fn, one.counted.tn) == (5, 2, 5)
    assert (one.labels, one.errored) == (13, 1)
    with pytest.raises(UserError, match="no labelled answer has a verdict of the judge 'right'"):
        calibrate(save(tmp_path / "f", [verdict("e", "errored")]), [label("e", 1)])


def test_one_judge_without_verdicts_does_not_hide_the_others(tmp_path: Path) -> None:
    rows, labels = table_of(5, 1, 1, 5)
    rows += [verdict(f"q{n:04}", "errored", label="broken") for n in range(12)]
    found = calibrate(save(tmp_path / "e", rows), labels)
    assert only(found).label == "right"
    assert found.notes == ["no labelled answer has a verdict of the judge 'broken'"]
    split = [row | {"label": 1 - row["label"], "annotator": "bob"} for row in labels]
    with pytest.raises(UserError, match="people disagree about every answer"):
        calibrate(tmp_path / "e", [*labels, *split], label="right")


def test_labels_chosen_with_unequal_chances(tmp_path: Path) -> None:
    """Every false negative was labelled, and a tenth of the rest: plain counts would halve the sensitivity."""
    rows, labels = table_of(400, 0, 100, 200)
    kept = [row | {"probability": 0.1} for row in labels[:400:10]] + labels[400:500]
    kept += [row | {"probability": 0.1} for row in labels[500::10]]
    folder = save(tmp_path / "e", rows)
    one = only(calibrate(folder, kept))
    assert one.sensitivity.value == pytest.approx(0.8)
    assert (one.counted.tp, one.counted.fn) == (40, 100)
    assert one.confusion.tp / (one.confusion.tp + one.confusion.fn) == pytest.approx(0.8)
    assert one.confusion.tp + one.confusion.fn < 140
    assert one.base_rate.value == pytest.approx(500 / 700)
    plain = only(calibrate(folder, [{**row, "probability": 1} for row in kept]))
    assert plain.sensitivity.value == pytest.approx(40 / 140)


# ---- people


def test_several_people(tmp_path: Path) -> None:
    rows, labels = table_of(6, 2, 2, 6)
    first = [row | {"annotator": "ann"} for row in labels]
    second = [
        row | {"annotator": "bob", "label": 1 - row["label"] if n < 3 else row["label"]}
        for n, row in enumerate(labels)
    ]
    third = [row | {"annotator": "cy"} for row in labels[:2]]
    folder = save(tmp_path / "e", rows)
    one = only(calibrate(folder, [*first, *second]))
    assert (one.people.names, one.people.split, one.people.shared, one.labels) == (
        ["ann", "bob"],
        3,
        16,
        13,
    )
    assert one.people.percent.value == pytest.approx(13 / 16)
    settled = only(calibrate(folder, [*first, *second, *third]))
    assert (settled.people.split, settled.labels, settled.counted.tp) == (1, 15, 5)
    alone = only(calibrate(folder, [*first, *second], annotators=["bob"]))
    assert (alone.labels, alone.people.shared) == (16, 0)
    assert alone.people.percent.method == "none: no answer was labelled by two people"


def test_numbers_and_a_threshold(tmp_path: Path) -> None:
    rows, labels = table_of(3, 0, 0, 3)
    graded = [row | {"label": 5 if row["label"] else 2} for row in labels]
    folder = save(tmp_path / "e", rows)
    with pytest.raises(UserError, match="the label 5 is neither 0 nor 1"):
        calibrate(folder, graded)
    assert not stored(folder)
    assert only(calibrate(folder, graded, threshold=4)).counted.tp == 3
    assert only(calibrate(folder, graded, threshold=6)).counted.fp == 3


# ---- which answers


def test_labels_about_nothing_are_said_and_left_out(tmp_path: Path) -> None:
    rows, labels = table_of(5, 1, 1, 5)
    folder = save(tmp_path / "e", rows, items=["q0000", "other"])
    odd = [
        label("nowhere", 1),
        label("other", 1),
        label("q0001", 1, sample=3),
        label("q0002", 1, model="n"),
    ]
    found = calibrate(folder, [*labels, *odd])
    assert only(found).labels == 12
    assert found.notes == [
        "1 label for items that do not exist: 'nowhere' sample 0 (label 13)",
        "1 label for items that were not judged: 'other' sample 0 (label 14)",
        "1 label for samples that the item does not have: 'q0001' sample 3 (label 15)",
        "1 label for models that were not judged (valid: m): 'q0002' sample 0 (label 16)",
    ]
    other = save(tmp_path / "f", rows)
    with pytest.raises(UserError, match="no label is about a judged answer") as error:
        calibrate(other, odd[:1])
    assert "items that do not exist: 'nowhere'" in error.value.fix
    assert not stored(other)


def test_several_models_and_prompts(tmp_path: Path) -> None:
    rows = [verdict(f"q{n}", True, model=model) for n in range(3) for model in ("a", "b")]
    labels = [label(f"q{n}", 1) for n in range(3)]
    folder = save(tmp_path / "e", rows)
    with pytest.raises(UserError, match="which answer is meant") as error:
        calibrate(folder, labels)
    assert error.value.fix == "add `model` to the labels, one of a, b"
    assert only(calibrate(folder, [row | {"model": "b"} for row in labels])).labels == 3
    twice = save(tmp_path / "f", [*rows, verdict("q0", False, model="a", responses=["ff" * 16])])
    with pytest.raises(UserError, match="2 answers to item 'q0'") as error:
        calibrate(twice, [label("q0", 1, model="a")])
    assert "add `response`" in error.value.fix
    found = calibrate(
        twice, [label("q0", 1, model="a", response="ff" * 16), label("q1", 1, model="a")]
    )
    assert only(found).counted.fn == 1


def test_every_judge_by_itself_and_labels_for_one(tmp_path: Path) -> None:
    """Labels for a panel are about its members too, but those for a rubric's criterion are about nothing else."""
    judges = {
        "right": ["j", "k"],
        "right.j": ["j"],
        "right.k.2": ["k"],
        "style.short": ["j"],
        "style": ["j"],
    }
    rows: list[dict[str, Any]] = []
    for name, models in judges.items():
        named = {"model": models[0]} if len(models) == 1 else {"models": models}
        scorer = name.split(".")[0]
        details = {"judge": {"id": f"{name:>16}", **named}}
        rows += [
            verdict(f"q{n}", n < 5, label=name, scorer=scorer, detailed_results=details)
            for n in range(9)
        ]
    rows += [
        verdict(f"q{n}", True, label="exact", scorer="exact", detailed_results={"judge": 3})
        for n in range(9)
    ]
    folder = save(tmp_path / "e", rows)
    labels = [label(f"q{n}", n < 4, scorer="right") for n in range(9)]
    labels += [label(f"q{n}", n < 3, scorer="style.short") for n in range(9)]
    found = calibrate(folder, labels)
    tables = {one.label: one.counted.fp for one in found.calibrations}
    assert tables == {"right": 1, "right.j": 1, "right.k.2": 1, "style.short": 2}
    assert found.notes == ["no label is about 'style'"]
    assert [one.label for one in calibrate(folder, labels, label="right.j").calibrations] == [
        "right.j"
    ]
    assert set(stored(folder)) == set(tables)
    with pytest.raises(UserError, match="no judge gave the label 'exact'"):
        calibrate(folder, labels, label="exact")


def test_matches(tmp_path: Path) -> None:
    """Both seats are one verdict; seats that contradict each other are a tie."""
    said = {"w": (1.0, 1.0), "l": (0.0, 0.0), "t": (0.5, 0.5), "d": (1.0, 0.0)}
    rows = [
        match(f"{name}{n}", payoff, seat)
        for name in said
        for n in range(4)
        for seat, payoff in enumerate(said[name])
    ]
    labels = [
        label(f"{name}{n}", value)
        for name, value in (("w", 1), ("l", 0), ("t", "tie"), ("d", "first"))
        for n in range(4)
    ]
    found = calibrate(save(tmp_path / "e", rows), labels, label="right")
    one = only(found)
    assert (one.match, one.ties, one.counted.tp, one.counted.tn) == (True, 8, 4, 4)
    assert one.agreement.percent.value == pytest.approx(12 / 16)
    assert one.position_bias.value == pytest.approx(4 * 0.5 / 16)
    assert list(one.corrected) == ["a vs b"]
    with pytest.raises(UserError, match="no label is about a judged answer"):
        calibrate(tmp_path / "e", labels)


# ---- rows and folders


def test_bad_sources(tmp_path: Path) -> None:
    rows, labels = table_of(2, 1, 1, 2)
    with pytest.raises(UserError, match="no row was given by a judge"):
        calibrate(save(tmp_path / "a", [verdict("q", True, detailed_results={})]), labels)
    two = [*rows[:-1], rows[-1] | {"detailed_results": {"judge": {"id": "ff"}}}]
    with pytest.raises(UserError, match="the label 'right' was given by 2 different judges"):
        calibrate(save(tmp_path / "b", two), labels)
    folder = save(tmp_path / "c", rows)
    with pytest.raises(UserError, match="there are no people's labels") as error:
        calibrate(folder)
    assert f"assay judge label {folder}" in error.value.fix
    with pytest.raises(UserError, match="a confidence level"):
        calibrate(folder, labels, level=95)


def test_rows_from_elsewhere_are_compared_and_nothing_is_stored(tmp_path: Path) -> None:
    rows, labels = table_of(5, 1, 1, 5)
    folder = save(tmp_path / "e", rows)
    (folder / "manifest.json").unlink()
    found = calibrate(folder / "evaluation_results.jsonl", labels)
    assert found.stored == ""
    assert found.notes == ["nothing was stored: these rows are not in an experiment's folder"]
    assert not (folder / "manifest.json").exists()


def stored(folder: Path) -> dict[str, Any]:
    manifest = FlatStore(folder).manifest("evaluation", folder.name)
    assert manifest is not None
    return manifest.metadata.get("calibrations", {})


def test_what_was_found_is_stored_beside_the_rest(tmp_path: Path) -> None:
    rows, labels = table_of(5, 1, 1, 5)
    folder = save(
        tmp_path / "e", rows, metadata={"kept": 1, "calibrations": {"old": {"judge": "x"}}}
    )
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    found = calibrate(folder)
    assert found.stored == str(folder / "manifest.json")
    kept = stored(folder)
    assert set(kept) == {"old", "right"}
    assert kept["right"]["confusion"] == {"tp": 5, "fp": 1, "fn": 1, "tn": 5}
    assert kept["right"]["judge"] == JUDGE
    before = (folder / "manifest.json").read_bytes()
    with FlatStore(folder).lock("evaluation", folder.name), pytest.raises(LockedError):
        calibrate(folder)
    assert (folder / "manifest.json").read_bytes() == before


JUDGE_FILE = """
from hashlib import sha256
from assay.interfaces import Score

def strict(item, response, *, limit: int = 3):
    'Passes right answers, and every wrong one that is long.'
    right = response.response == item.ground_truth["answer"]
    judge = {"model": "j", "id": sha256(str(limit).encode()).hexdigest()[:16], "prompt": "p"}
    return Score(passed=right or len(response.response) > limit, details={"judge": judge})
"""


def test_through_the_engine_and_kept_by_later_runs(tmp_path: Path) -> None:
    lab = Lab(tmp_path, items=20)
    lab.write("judging.py", JUDGE_FILE)
    for number, row in enumerate(lab.rows):
        row["ground_truth"]["answer"] = row["ground_truth"]["answer"] if number % 4 else "nothing"
    method: dict[str, Any] = {
        "name": "strict",
        "type": "custom",
        "path": str(tmp_path / "judging.py"),
    }
    lab.config["evaluation_methods"] = [
        method | {"function_name": "strict", "params": {"limit": 1}}
    ]
    lab.config["metrics"] = [{"name": "corrected_pass_rate"}]
    lab.run()
    labels = [label(f"q{n}", bool(n % 4), sample) for n in range(15) for sample in range(2)]
    one = only(assay.calibrate(tmp_path / "out", labels))
    assert (one.label, one.sensitivity.value) == ("strict", 1.0)
    assert one.counted.fp == sum(2 for n in range(0, 15, 4) if len(str(n + 1)) > 1)
    lab.run()
    rows = lab.read("metrics.jsonl")
    assert rows[0]["value"] == pytest.approx(0.75, abs=0.1)
    method["params"] = {"limit": 5}
    lab.config["evaluation_methods"] = [method | {"function_name": "strict"}]
    lab.run()
    assert stored(tmp_path / "out")["strict"]["judge"] == one.judge
    assert lab.read("metrics.jsonl")[0]["value"] is None


def test_the_same_input_gives_the_same_numbers_in_any_order(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    rows = [verdict(f"q{n % 30}", bool(random.random() < 0.6), n // 30) for n in range(90)]
    answers = [
        response(f"q{n % 30}", "x" * int(random.integers(1, 99)), n // 30) for n in range(90)
    ]
    labels = [label(f"q{n % 30}", int(random.random() < 0.6), n // 30) for n in range(60)]
    one = only(calibrate(save(tmp_path / "e", rows, answers), labels))
    other = only(calibrate(save(tmp_path / "f", rows[::-1], answers[::-1]), labels[::-1]))
    one.created = other.created = 0.0
    assert one.length_bias.value is not None
    assert one == other


def test_a_threshold_is_for_labels_on_a_scale(tmp_path: Path) -> None:
    """Of two judges one was labelled with grades; the other one's labels stay the verdicts that they are."""
    rows, labels = table_of(3, 0, 0, 3)
    rows += [row | {"label": "graded", "scorer": "graded"} for row in rows]
    given = [row | {"scorer": "right"} for row in labels]
    given += [row | {"scorer": "graded", "label": 1 + 4 * row["label"]} for row in labels]
    found = calibrate(save(tmp_path / "e", rows), given, threshold=3)
    assert {one.label: one.counted.tp for one in found.calibrations} == {"graded": 3, "right": 3}


@pytest.mark.parametrize(
    ("own", "models", "said"),
    [
        ([], ["j"], "gave none of the answers itself"),
        (["m"], ["j"], "labelled only the judge's own answers"),
        (["m"], ["j", "m"], "not recorded"),
    ],
)
def test_whose_answers_are_its_own(
    tmp_path: Path, own: list[str], models: list[str], said: str
) -> None:
    rows, labels = table_of(3, 0, 0, 3)
    folder = save(tmp_path / "e", rows, metadata={"own_answers": {"right": own}})
    store = FlatStore(folder)
    manifest = store.manifest("evaluation", "e")
    assert manifest is not None
    manifest.plan = {"scorers": [{"name": "right", "params": {"model": models}}]}
    store.put_manifest(manifest)
    assert said in only(calibrate(folder, labels)).self_preference.method


def test_stored_labels_reach_the_metric_of_each_model(tmp_path: Path) -> None:
    rows = [
        verdict(f"q{n:03}", n % 5 < 3, model=model) for n in range(60) for model in ("a", "b", "c")
    ]
    labels = [
        label(f"q{n:03}", int(n % 7 < 4), model=model, probability=0.5)
        for n in range(0, 60, 2)
        for model in ("a", "b")
    ]
    folder = save(tmp_path / "e", rows)
    found = only(calibrate(folder, labels))
    kept = stored(folder)["right"]["labelled"]
    assert {key: [truth, 2.0] for key, (truth, _) in kept.items()} == kept
    assert kept[key_of("q004", 0, "b")[:16]] == [0.0, 2.0]
    assert len(kept) == 60
    metric = bind_metric(type="corrected_pass_rate", facets=["model_name"])
    a, b, c = Aggregator(FlatStore(folder)).aggregate([folder.name], [metric])
    for row in (a, b):
        of_model = found.corrected[row["model_name"]].ppi
        assert (row["value"], row["ci_low"], row["ci_high"], row["ci_method"]) == (
            pytest.approx(of_model.value),
            pytest.approx(of_model.low),
            pytest.approx(of_model.high),
            of_model.method,
        )
    assert c["ci_method"] == "rogan_gladen"
    assert c["value"] == found.corrected["c"].rogan_gladen.value
    assert (c["ci_low"], c["ci_high"]) == pytest.approx(
        (found.corrected["c"].rogan_gladen.low, found.corrected["c"].rogan_gladen.high)
    )
    assert found.corrected["c"].ppi.method == "none: labels of at least two items are needed"


def test_labels_of_matches_are_not_stored(tmp_path: Path) -> None:
    rows = [match(f"q{n}", float(n % 2), seat) for n in range(8) for seat in (0, 1)]
    folder = save(tmp_path / "e", rows)
    calibrate(folder, [label(f"q{n}", int(n % 3 > 0)) for n in range(8)], label="right")
    assert stored(folder)["right"]["labelled"] == {}


def test_lines_that_are_no_rows_are_counted_and_named(tmp_path: Path) -> None:
    rows, labels = table_of(40, 6, 10, 24)
    folder = save(tmp_path / "e", rows)
    file = tmp_path / "rows.jsonl"
    text = (folder / "evaluation_results.jsonl").read_text()
    file.write_text(f'{text}{{"item_id": "q1"\n[]\n')
    found = calibrate(file, labels, keep=False)
    (note,) = [note for note in found.notes if "unreadable" in note]
    assert note.startswith(f"2 unreadable lines left out (the first: {file}, line 81, ")
    assert only(found).labels == 80
