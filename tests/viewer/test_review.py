"""Review in the browser: the choice of `assay judge label`, blind, resumable, for several."""

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.analysis.judge.label import LabelFile, Labelling
from assay.viewer.experiments import Experiments
from assay.viewer.pages.review import LONGEST_TEXT, unit_id
from tests.analysis.judged_lab import judged
from tests.viewer.client import Client, viewing


@pytest.fixture
def desk(tmp_path: Path) -> Iterator["Desk"]:
    judged(tmp_path)
    with viewing(tmp_path) as client:
        yield Desk(client, tmp_path / "out")


class Desk:
    """One experiment that people review."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder

    def page(self, annotator: str = "ann", count: int = 8, **query: Any) -> Any:
        return self.client.page(
            "review", experiment="out", annotator=annotator, count=count, **query
        )

    def label(
        self, unit: str, value: float | None, annotator: str = "ann", count: int = 8, **more: Any
    ) -> Any:
        sent = {
            "experiment": "out",
            "unit": unit,
            "value": value,
            "annotator": annotator,
            "count": count,
            **more,
        }
        status, answer = self.client.label({"label": "correct", **sent})
        assert status == 200, answer
        return answer

    def lines(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in (self.folder / "labels.jsonl").read_text().splitlines()
        ]


def ids(units: list[dict[str, Any]]) -> list[str]:
    return [unit["id"] for unit in units]


def test_the_choice_is_that_of_the_command(desk: Desk) -> None:
    page = desk.page(count=10)
    theirs = Labelling(desk.folder, "correct", "ann")
    theirs.choose(10, 0.3, 0)
    assert ids(page["waiting"]) == [unit_id(answer.unit.address) for answer in theirs.waiting]
    assert [unit["answers"] for unit in page["waiting"]] == [
        theirs.views[a.unit.address].answers for a in theirs.order
    ]
    assert (page["label"], page["labels"], page["pairwise"], page["scale"]) == (
        "correct",
        ["correct"],
        False,
        None,
    )


def test_what_is_written_is_what_python_writes(desk: Desk) -> None:
    page = desk.page()
    first, second = ids(page["waiting"])[:2]
    desk.label(first, 1, note="n\u202e", tags=["odd", " odd ", ""])
    theirs = Labelling(desk.folder, "correct", "bob")
    theirs.choose(8, 0.3, 0)
    answer = next(answer for answer in theirs.order if unit_id(answer.unit.address) == second)
    theirs.save(answer, 1)
    desk.label(second, 1, annotator="bob")
    ours, python, browser = desk.lines()
    assert list(ours) == list(python)
    assert (ours["note"], ours["tags"], ours["label"], ours["annotator"]) == (
        "n\u202e",
        ["odd"],
        1,
        "ann",
    )
    del python["time"], browser["time"]
    assert browser == python


def test_the_judge_is_quiet_until_an_answer_is_labelled(desk: Desk) -> None:
    page = desk.page()
    assert set(page["waiting"][0]) == {"id", "question", "reference", "answers"}
    assert "calculator" not in json.dumps(page)
    assert (page["labelled"], page["agreement"]) == ([], [])
    rows = {row.address: row for row in Labelling(desk.folder, "correct").frame.units}
    by_id = {unit_id(address): unit for address, unit in rows.items()}
    for id in ids(page["waiting"])[:4]:
        verdict = by_id[id].passed
        assert desk.label(id, 1)["judge"] == (None if verdict is None else float(verdict))
    page = desk.page()
    assert [entry["unit"]["id"] for entry in page["labelled"]] == ids(
        desk.page("other")["waiting"]
    )[:4]
    assert desk.page("other")["labelled"] == []
    judges = [entry["judge"] for entry in page["labelled"]]
    agreed = sum(judge == 1 for judge in judges) / sum(judge is not None for judge in judges)
    (line,) = [
        line for line in page["agreement"] if line[0].startswith("you and the judge, percent")
    ]
    assert float(line[1]) == pytest.approx(agreed, abs=0.005)


def test_it_resumes_and_labels_can_be_taken_back(desk: Desk) -> None:
    page = desk.page()
    first, second, *rest = ids(page["waiting"])
    desk.label(first, 1)
    desk.label(second, 0, note="why")
    page = desk.page()
    assert (page["done"], ids(page["waiting"])) == (2, rest)
    with viewing(desk.folder.parent) as again:  # another server, another day
        assert ids(Desk(again, desk.folder).page()["waiting"]) == rest
    assert desk.label(second, None)["judge"] is None
    page = desk.page()
    assert (page["done"], set(ids(page["waiting"]))) == (1, {second, *rest})
    desk.label(first, 0)
    (entry,) = desk.page()["labelled"]
    assert (entry["unit"]["id"], entry["label"]) == (first, 0)


def test_two_people_and_two_tabs_at_once_lose_nothing(desk: Desk) -> None:
    """Everybody's list was loaded before anybody labelled; afterwards each label is there as it was given."""
    people = ["ann", "bob", "cid"]
    loaded = {name: ids(desk.page(name, count=12)["waiting"]) for name in people}
    order = random.Random(0)

    def work(name: str) -> None:
        units = loaded[name][:]
        order.shuffle(units)
        for unit in units:
            desk.label(unit, int(unit, 16) % 2, name, 12)

    threads = [threading.Thread(target=work, args=(name,)) for name in (*people, "ann")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desk.lines()) == 48
    latest = LabelFile(desk.folder / "labels.jsonl").latest("correct")
    given = {(unit_id(address), name): record.label for (address, name), record in latest.items()}
    assert given == {(unit, name): int(unit, 16) % 2 for name in people for unit in loaded[name]}
    assert all(0 < record.probability <= 1 and record.stratum_size for record in latest.values())  # type: ignore[operator]


def test_calibration_follows(tmp_path: Path) -> None:
    """The table of people against the judge is that of the grades which were sent."""
    judged(tmp_path, "graded")
    units = {
        unit_id(unit.address): unit.address.item
        for unit in Labelling(tmp_path / "out", "graded").frame.units
    }
    expected = {(person, judge): 0 for person in (True, False) for judge in (True, False)}
    with viewing(tmp_path) as client:
        query = {"experiment": "out", "annotator": "ann", "count": 30}
        for unit in client.page("review", **query)["waiting"]:
            item = int(units[unit["id"]][1:])
            theirs = item % 5 + 1
            mine = theirs if item // 5 % 2 else 6 - theirs  # half of those of each grade
            expected[mine >= 4, theirs >= 4] += 1
            status, answer = client.label(
                {**query, "label": "graded", "unit": unit["id"], "value": mine}
            )
            assert (status, answer) == (200, {"judge": theirs})
        page = client.page("review", **query)
    assert (page["done"], page["waiting"]) == (30, [])
    (calibration,) = assay.calibrate(tmp_path / "out", threshold=4).calibrations
    table = calibration.counted
    assert {
        (True, True): table.tp,
        (False, True): table.fp,
        (True, False): table.fn,
        (False, False): table.tn,
    } == expected
    assert min(expected.values()) > 0


def test_grades(tmp_path: Path) -> None:
    judged(tmp_path, "graded")
    with viewing(tmp_path) as client:
        page = client.page("review", experiment="out", annotator="ann", count=6)
        assert (page["scale"], page["pairwise"]) == ([1, 2, 3, 4, 5], False)
        units = {
            unit_id(unit.address): unit
            for unit in Labelling(tmp_path / "out", "graded").frame.units
        }
        given = {
            "experiment": "out",
            "label": "graded",
            "annotator": "ann",
            "unit": page["waiting"][0]["id"],
        }
        status, answer = client.label({**given, "value": 6})
        assert (status, answer["fix"]) == (422, "a grade from 1 to 5")
        status, answer = client.label({**given, "value": 4})
        item = units[page["waiting"][0]["id"]].address.item
        assert (status, answer["judge"]) == (200, int(item[1:]) % 5 + 1)
        (entry,) = client.page("review", experiment="out", annotator="ann", count=6)["labelled"]
        assert entry["label"] == 4


def test_pairs_are_labelled_in_the_order_that_is_shown(tmp_path: Path) -> None:
    """The judge always prefers `one`: whoever chooses its answer, wherever it is shown, agrees with the judge."""
    judged(tmp_path, "better", items=12)
    with viewing(tmp_path) as client:
        page = client.page("review", experiment="out", annotator="ann", count=12)
        assert page["pairwise"]
        theirs = Labelling(tmp_path / "out", "better", "ann")
        theirs.choose(12, 0.3, 0)
        views = {
            unit_id(answer.unit.address): theirs.views[answer.unit.address]
            for answer in theirs.order
        }
        assert {view.swapped for view in views.values()} == {True, False}
        for unit in page["waiting"]:
            value = 0 if views[unit["id"]].swapped else 1
            given = {
                "experiment": "out",
                "label": "better",
                "annotator": "ann",
                "unit": unit["id"],
                "value": value,
            }
            status, answer = client.label({**given, "count": 12})
            assert status == 200, answer
        # the first player's payoff
        assert {record.label for record in theirs.mine().values()} == {1}
        labelled = client.page("review", experiment="out", annotator="ann", count=12)["labelled"]
        assert {
            entry["label"] == (0 if views[entry["unit"]["id"]].swapped else 1) for entry in labelled
        } == {True}
        scores = {unit_id(unit.address): unit.score for unit in theirs.frame.units}
        for entry in labelled:
            swapped, score = views[entry["unit"]["id"]].swapped, scores[entry["unit"]["id"]]
            assert entry["judge"] == (score if not swapped or score is None else 1 - score)
        tie = {
            "experiment": "out",
            "label": "better",
            "annotator": "ann",
            "unit": labelled[0]["unit"]["id"],
        }
        assert client.label({**tie, "value": 0.5, "count": 12})[0] == 200
        assert client.label({**tie, "value": 0.7, "count": 12})[0] == 422


def test_who_labels(desk: Desk) -> None:
    page = desk.page("")
    assert (page["annotator"], page["waiting"], page["labels"]) == ("", [], ["correct"])
    with viewing(desk.folder.parent, annotator="eve") as client:
        assert Desk(client, desk.folder).page("")["annotator"] == "eve"
        assert Desk(client, desk.folder).page("bob")["annotator"] == "bob"


@pytest.mark.parametrize(
    "change, what",
    [
        ({"annotator": ""}, "not a label"),
        ({"annotator": "  "}, "who labels"),
        ({"annotator": "a\x1b[2J"}, "who labels"),
        ({"annotator": "a\nb"}, "who labels"),
        ({"annotator": "a" * 101}, "not a label"),
        ({"value": "1"}, "not a label"),
        ({"value": 0.5}, "0.5 is not a label of 'correct'"),
        ({"value": 1e308}, "is not a label"),
        ({"unit": "0" * 32}, "no longer part"),
        ({"unit": 3}, "not a label"),
        ({"label": "nothing"}, "no row has the label"),
        ({"experiment": "../out"}, "there is no experiment"),
        ({"experiment": "/etc"}, "there is no experiment"),
        ({"tags": ["t"] * 51}, "not a label"),
        ({"tags": [1]}, "not a label"),
        ({"note": "n" * 20_001}, "not a label"),
        ({"count": 0}, "not a label"),
        ({"count": 10**9}, "not a label"),
    ],
)
def test_what_is_not_a_label(desk: Desk, change: dict[str, Any], what: str) -> None:
    unit = desk.page()["waiting"][0]["id"]
    given = {
        "experiment": "out",
        "label": "correct",
        "annotator": "ann",
        "unit": unit,
        "value": 1,
        "count": 8,
    }
    status, answer = desk.client.label(given | change)
    assert status == 422
    assert what in answer["what"]
    assert not (desk.folder / "labels.jsonl").exists()


def test_json_that_is_none(desk: Desk) -> None:
    headers = {"origin": desk.client.own, "content_type": "application/json"}
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"annotator": "\\ud800"}', b"NaN"):
        assert desk.client.ask("/labels", "POST", body, **headers)[0] == 422


def test_a_file_of_labels_that_is_not_ours_to_write(desk: Desk, tmp_path: Path) -> None:
    unit = desk.page()["waiting"][0]["id"]
    (tmp_path / "elsewhere").write_text("")
    (desk.folder / "labels.jsonl").symlink_to(tmp_path / "elsewhere")
    given = {"experiment": "out", "label": "correct", "annotator": "ann", "unit": unit, "value": 1}
    status, answer = desk.client.label(given)
    assert (status, "link" in answer["what"]) == (422, True)
    assert (tmp_path / "elsewhere").read_text() == ""


def test_files_without_tags_stay_readable(desk: Desk) -> None:
    unit = desk.page()["waiting"][0]["id"]
    desk.label(unit, 1)
    (line,) = desk.lines()
    del line["tags"]
    (desk.folder / "labels.jsonl").write_text(json.dumps(line) + "\n")
    (entry,) = desk.page()["labelled"]
    assert (entry["tags"], entry["label"]) == ([], 1)


def test_long_answers_are_cut_and_say_so(tmp_path: Path) -> None:
    lab = judged(tmp_path, items=4)
    lab.write("model.py", f"def calculator(prompt):\n    return 'x' * {LONGEST_TEXT + 1234}\n")
    lab.run()
    experiments = Experiments([tmp_path])
    from assay.viewer.pages import page

    review = page(experiments, "review", {"experiment": ["out"], "annotator": ["ann"]})
    assert review["waiting"][0]["answers"][0].endswith("… [1,234 more characters are not shown]")
