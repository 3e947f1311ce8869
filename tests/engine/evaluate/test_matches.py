"""Matches: who meets whom, in which seat, with which keys; deciders, failures, people; runs that are added later."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

import assay
from assay.engine.evaluate.matches import MatchCalls
from assay.errors import AssayError, ConfigError, UserError
from assay.interfaces import Log
from assay.records import Response
from assay.store.index import ItemIndex
from assay.store.memory_log import MemoryLog
from tests.support import without_times

JUDGE = """
def longer(item, first, second, *, margin=0):
    with open({paid!r}, "a") as file:
        file.write("x")
    gap = len(first.response) - len(second.response)
    return 0.5 if abs(gap) <= margin else float(gap > 0)
"""


class Field:
    """A folder with runs of several players over one dataset, and a config that lets them meet."""

    def __init__(self, folder: Path, items: int = 4) -> None:
        self.folder = folder
        self.items = items
        self.paid = folder / "paid.txt"
        (folder / "judge.py").write_text(JUDGE.format(paid=str(self.paid)))
        self.params: dict[str, Any] = {"decide": "judge.py:longer"}
        self.metrics: list[Any] = []

    def run(
        self, name: str, length: int, *, model: str = "", only: range | None = None, **more: Any
    ) -> Path:
        """A run whose answers have so many letters."""
        folder = self.folder / name
        store = assay.FlatStore(folder)
        rows = [{"id": f"q{i}", "data": {"question": str(i)}} for i in only or range(self.items)]
        assay.DatasetRepository(store).create(rows, name="d", id="d")
        assay.Runner(store).run(
            "d", [assay.function_task(lambda data: "y" * length, name=model or name)], id=name
        )
        path = folder / "responses.jsonl"
        lines = [
            {**json.loads(line), "model_name": model or name, **more}
            for line in path.read_text().splitlines()
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def config(self) -> dict[str, Any]:
        method = {"name": "better", "type": "pairwise", "params": self.params}
        return {"evaluation_methods": [method], "metrics": self.metrics}

    def play(self, *runs: Path, out: str = "together", **options: Any) -> assay.Result:
        config = self.folder / "config.yaml"
        config.write_text(json.dumps(self.config()))
        return assay.evaluate(list(runs), config, output_dir=str(self.folder / out), **options)

    def rows(self, out: str = "together") -> list[dict[str, Any]]:
        return read(self.folder / out / "evaluation_results.jsonl")

    def calls(self) -> int:
        return len(self.paid.read_text()) if self.paid.exists() else 0


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((without_times(row) for row in rows), key=lambda row: row["key"])


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


# ---- who meets whom


def test_every_pair_meets_in_both_seats_and_the_score_is_the_first_players(field: Field) -> None:
    runs = [field.run("c", 3), field.run("a", 1), field.run("b", 2)]
    done = field.play(*runs)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"scored": 4 * 3 * 2}
    rows = field.rows()
    assert {tuple(row["players"]) for row in rows} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {row["score"] for row in rows} == {0.0}, (
        "the second in the alphabet is the longer one, in either seat"
    )
    assert Counter(row["seat"] for row in rows) == {0: 12, 1: 12}
    keys = {row["key"]: row for run in runs for row in read(run / "responses.jsonl")}
    for row in rows:
        seated = [keys[key]["model_name"] for key in row["responses"]]
        assert seated == row["players"][:: -1 if row["seat"] else 1]
    assert len({row["key"] for row in rows}) == len(rows)


def test_one_seat_and_the_deciders_own_parameters(field: Field) -> None:
    field.params |= {"both_seats": False, "margin": 1}
    field.play(field.run("a", 1), field.run("b", 2), field.run("c", 3))
    said = {(tuple(row["players"]), row["seat"], row["score"]) for row in field.rows()}
    assert said == {(("a", "b"), 0, 0.5), (("b", "c"), 0, 0.5), (("a", "c"), 0, 0.0)}


def test_players_may_be_any_field_or_the_run(field: Field) -> None:
    one, two = field.run("one", 1, model="m", quality="x"), field.run("two", 2, model="m")
    with pytest.raises(UserError, match="needs two players, found 'm'"):
        field.play(one, two)
    field.params["players"] = "run"
    field.play(one, two)
    assert {tuple(row["players"]) for row in field.rows()} == {("one", "two")}
    field.params["players"] = "style"
    with pytest.raises(UserError, match="no field 'style'"):
        field.play(one, two)
    field.params["players"] = "item_id"
    with pytest.raises(UserError, match="cannot tell players apart"):
        field.play(one, two)


def test_another_name_of_a_player_is_another_row(field: Field) -> None:
    runs = (
        field.run("one", 1, model="m", metadata={"tier": "gold"}),
        field.run("two", 2, metadata={"tier": "tin"}),
    )
    field.play(*runs)
    field.params["players"] = "metadata.tier"
    field.play(*runs)
    assert {tuple(row["players"]) for row in field.rows()} == {("gold", "tin")}


def test_several_runs_of_one_model_are_told_apart_by_their_names(field: Field) -> None:
    runs = field.run("a1", 1, model="a"), field.run("a2", 3, model="a"), field.run("b", 2)
    with pytest.raises(
        UserError, match="two responses to item 'q0' belong to one player 'a'"
    ) as caught:
        field.play(*runs)
    assert "players: run" in caught.value.fix
    field.params["players"] = "run"
    field.play(*runs)
    assert Counter((*row["players"], row["score"]) for row in field.rows()) == {
        ("a1", "a2", 0.0): 8,
        ("a1", "b", 0.0): 8,
        ("a2", "b", 1.0): 8,
    }


def test_an_answer_that_two_runs_have_alike_is_one(field: Field) -> None:
    runs = field.run("a", 1), field.run("b", 2)
    copy = field.run("copy", 1, model="a")
    (copy / "responses.jsonl").write_bytes((runs[0] / "responses.jsonl").read_bytes())
    field.play(*runs)
    field.play(*runs, copy, out="again")
    assert comparable(field.rows("again")) == comparable(field.rows())


def test_two_answers_of_one_run_to_one_item_are_no_player(field: Field) -> None:
    run, other = field.run("a", 1), field.run("b", 2)
    with (run / "responses.jsonl").open("a") as file:
        file.write(
            json.dumps({**read(run / "responses.jsonl")[0], "key": "other", "response": "z"}) + "\n"
        )
    with pytest.raises(UserError, match="two responses to item 'q0' belong to one player 'a'"):
        field.play(run, other)


# ---- different items, failures


def test_runs_over_different_items_meet_where_both_have_an_answer(field: Field) -> None:
    runs = field.run("a", 1), field.run("b", 2, only=range(1, 6)), field.run("c", 3)
    done = field.play(*runs)
    met = Counter((*row["players"], row["item_id"]) for row in field.rows())
    expected = [
        (x, y, q)
        for x, y in combinations("abc", 2)
        for q in range(6)
        if q in answered(x) & answered(y)
    ]
    assert met == {(x, y, f"q{q}"): 2 for x, y, q in expected}
    (note,) = [note for note in done.notes if "different items" in note]
    assert "of 6 a 4, b 5, c 4" in note
    field.params["items"] = "refuse"
    with pytest.raises(UserError, match="answer different items") as caught:
        field.play(*runs, out="refused")
    assert "items: intersection" in caught.value.fix


def answered(player: str) -> set[int]:
    return set(range(1, 6)) if player == "b" else set(range(4))


def test_runs_over_different_datasets_are_refused(field: Field) -> None:
    one = field.run("a", 1)
    store = assay.FlatStore(field.folder / "b")
    assay.DatasetRepository(store).create(
        [{"id": "q0", "data": {"question": "another"}}], name="d", id="d"
    )
    assay.Runner(store).run("d", [assay.function_task(lambda data: "y", name="b")], id="b")
    with pytest.raises(UserError, match="two different items 'q0'"):
        field.play(one, field.folder / "b")
    assert field.calls() == 0


def test_a_match_in_which_a_response_failed_is_skipped_or_counted(field: Field) -> None:
    good, bad = field.run("a", 1), field.run("b", 2)
    path = bad / "responses.jsonl"
    rows = read(path)
    rows[0] |= {"outcome": "errored", "error": "boom", "response": ""}
    rows[1] |= {"outcome": "refused", "response": ""}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = field.play(good, bad)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"scored": 4, "skipped": 4}
    failed = [row for row in field.rows() if row["outcome"] == "skipped" and row["item_id"] == "q0"]
    assert {row["error"] for row in failed} == {"the response of 'b' is errored: boom"}
    paid = field.calls()
    field.params["skip_on_any_failure"] = False
    done = field.play(good, bad)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"scored": 4, "errored": 2, "refused": 2}
    assert field.calls() == paid, "matches that were played are not played again"


def test_responses_whose_item_is_gone_meet_nobody(field: Field) -> None:
    runs = field.run("a", 1), field.run("b", 2)
    for run in runs:
        with (run / "responses.jsonl").open("a") as file:
            file.write(
                json.dumps({"item_id": "gone", "model_name": run.name, "response": "y"})
                + "\n{torn\n"
            )
    done = field.play(*runs)
    assert {row["item_id"] for row in field.rows()} == {"q0", "q1", "q2", "q3"}
    assert any(
        "2 responses belong to items that are not in the dataset" in note for note in done.notes
    )
    assert sum("are partial: 5 of 4 responses; 1 unreadable" in note for note in done.notes) == 2


# ---- adding a run later


def test_a_run_that_is_added_later_plays_only_its_own_matches(field: Field) -> None:
    a, b, c, d = (
        field.run(name, length) for name, length in zip("abcd", (2, 1, 4, 3), strict=True)
    )
    field.metrics = [{"name": "win_rate", "facets": ["model_name"]}]
    field.play(a, b, c, d, out="at once")
    assert field.calls() == 6 * 4 * 2
    field.paid.unlink()
    field.play(a, b)
    assert field.calls() == 1 * 4 * 2
    first = {row["key"]: row for row in field.rows()}
    done = field.play(c)
    assert any("runs of the earlier evaluation in the folder: a, b" in note for note in done.notes)
    assert field.calls() == 3 * 4 * 2
    done = field.play(d, a)
    assert field.calls() == 6 * 4 * 2
    assert comparable(field.rows()) == comparable(field.rows("at once"))
    assert [row for row in field.rows() if row["key"] in first] == list(first.values()), (
        "old rows stay as they are"
    )
    at_once, later = (field.folder / out / "metrics.jsonl" for out in ("at once", "together"))
    assert at_once.read_bytes() == later.read_bytes()
    field.play(field.folder / "together")
    assert field.calls() == 6 * 4 * 2


def test_two_earlier_evaluations_are_joined_and_every_pair_that_never_met_meets(
    field: Field,
) -> None:
    a, b, c, d = (
        field.run(name, length) for name, length in zip("abcd", (2, 1, 4, 3), strict=True)
    )
    field.play(a, b, c, d, out="at once")
    field.paid.unlink()
    field.play(a, b, out="ab")
    field.play(c, d, out="cd")
    assert field.calls() == 2 * 4 * 2
    done = field.play(field.folder / "ab", field.folder / "cd")
    assert field.calls() == 6 * 4 * 2, "four pairs had never met"
    assert comparable(field.rows()) == comparable(field.rows("at once"))
    assert (
        sum("rows of an earlier evaluation are used where they fit" in note for note in done.notes)
        == 2
    )


def test_without_a_match_a_folder_holds_the_run_that_is_named(field: Field) -> None:
    a, b = field.run("a", 1), field.run("b", 2)
    config = {
        "evaluation_methods": [
            {"name": "short", "type": "length_check", "params": {"max_length": 1}}
        ]
    }
    for run in (a, b):
        assay.evaluate(run, config, output_dir=str(field.folder / "out"))
        assert {row["model_name"] for row in field.rows("out")} == {run.name}


def test_responses_that_are_gone_do_not_take_their_matches_with_them(field: Field) -> None:
    a, b, c = (field.run(name, 1) for name in "abc")
    field.play(a, b)
    a.rename(field.folder / "elsewhere")
    with pytest.raises(UserError, match="responses of an earlier run are gone"):
        field.play(c)
    with pytest.raises(UserError, match="responses of an earlier run are gone"):
        field.play(field.folder / "together", c, out="other")
    assert len(field.rows()) == 8


def test_an_evaluation_that_broke_off_remembers_its_runs(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c = (field.run(name, length) for length, name in enumerate("abc"))
    with monkeypatch.context() as patched:
        patched.setattr("assay.engine.evaluate.evaluate.rows_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            field.play(a, b)
    field.play(c)
    assert {tuple(row["players"]) for row in field.rows()} == {("a", "b"), ("a", "c"), ("b", "c")}


def test_the_folder_may_be_named_with_the_run_that_is_added(field: Field) -> None:
    a, b, c = field.run("a", 1), field.run("b", 2), field.run("c", 3, only=range(2, 7))
    field.play(a, b)
    field.play(field.folder / "together", c)
    assert Counter(tuple(row["players"]) for row in field.rows()) == {
        ("a", "b"): 8,
        ("a", "c"): 4,
        ("b", "c"): 4,
    }


def test_several_sources_need_a_folder(field: Field) -> None:
    runs = field.run("a", 1), field.run("b", 1)
    with pytest.raises(UserError, match="it is not clear where") as caught:
        assay.evaluate(runs, field.config())
    assert "-o" in caught.value.fix


def test_runs_of_a_repository_find_their_items(field: Field) -> None:
    store = assay.FolderStore(field.folder / "repository")
    assay.DatasetRepository(store).create(
        [{"id": "q", "data": {"question": "?"}}], name="d", id="d"
    )
    for name, length in (("a", 1), ("b", 2)):
        task = assay.function_task(lambda data, length=length: "y" * length, name=name)
        assay.Runner(store).run("d", [task], id=name)
    field.params["players"] = "task"
    field.play(field.folder / "repository/runs/a", field.folder / "repository/runs/b")
    assert [(row["players"], row["score"]) for row in field.rows()] == [(["a", "b"], 0.0)] * 2


# ---- a budget of matches


def test_a_budget_plays_that_many_matches_and_a_larger_one_goes_on(field: Field) -> None:
    runs = [field.run(name, length) for length, name in enumerate("abcde")]
    field.play(*runs, budget=10)
    assert (len(field.rows()), field.calls()) == (20, 20)
    before = {row["key"]: row for row in field.rows()}
    field.play(*runs, budget=10)
    assert field.calls() == 20
    field.play(*runs, budget=25)
    assert field.calls() == 50
    after = {row["key"]: row for row in field.rows()}
    assert {key: after[key] for key in before} == before
    played = Counter((row["item_id"], *row["players"]) for row in after.values())
    assert set(played.values()) == {2}
    field.play(*runs, budget=10_000)
    assert field.calls() == 10 * 4 * 2, "no more matches than there are"
    field.play(*runs)
    assert field.calls() == 10 * 4 * 2


def test_matches_that_cannot_be_played_cost_no_budget(field: Field) -> None:
    runs = [field.run(name, 1, **({"outcome": "errored"} if name == "c" else {})) for name in "abc"]
    done = field.play(*runs, budget=4)
    assert done.evaluation is not None
    assert done.evaluation.counts["scored"] == 8


def test_a_budget_needs_matches(field: Field) -> None:
    config = {"evaluation_methods": ["is_json"]}
    with pytest.raises(UserError, match="needs a method that plays them"):
        assay.evaluate(field.run("a", 1), config, output_dir=str(field.folder / "x"), budget=5)


# ---- people


def test_people_decide_and_what_nobody_has_decided_waits(field: Field) -> None:
    field.params = {"decide": "people"}
    runs = field.run("a", 1), field.run("b", 2)
    done = field.play(*runs)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"skipped": 4}
    assert {row["error"] for row in field.rows()} == {"waiting for a person"}
    assert {row["seat"] for row in field.rows()} == {0}, "a person sees a pair once"
    label = {"sample": 0, "model": "a vs b", "scorer": "better"}
    votes = [
        ("q0", "x", 1),
        ("q0", "y", 1),
        ("q0", "z", 0),
        ("q1", "x", 0),
        ("q1", "y", 1),
        ("q2", "x", 0.5),
    ]
    path = field.folder / "together" / "labels.jsonl"
    path.write_text(
        "".join(
            json.dumps({**label, "item": q, "annotator": who, "label": vote}) + "\n"
            for q, who, vote in votes
        )
    )
    done = field.play(*runs)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"scored": 3, "skipped": 1}
    said = {row["item_id"]: row["score"] for row in field.rows()}
    assert said == {"q0": 1.0, "q1": 0.5, "q2": 0.5, "q3": None}, "without a majority it is a tie"
    with path.open("a") as file:
        file.write(json.dumps({**label, "item": "q0", "annotator": "y", "label": ""}) + "\n")
        file.write(json.dumps({**label, "item": "q0", "annotator": "x", "label": 0}) + "\n")
    field.play(*runs)
    assert {row["item_id"]: row["score"] for row in field.rows()}["q0"] == 0.0
    assert field.calls() == 0


def test_people_have_a_file_of_their_own(field: Field) -> None:
    (field.folder / "said.csv").write_text("item,model,label\nq1,a vs b,second\n")
    field.params = {"decide": "people", "labels": "said.csv"}
    field.play(field.run("a", 1), field.run("b", 2))
    assert [row["score"] for row in field.rows() if row["outcome"] == "scored"] == [0.0]
    assay.evaluate(field.folder / "together")
    assert [row["score"] for row in field.rows() if row["outcome"] == "scored"] == [0.0]


def test_the_folders_own_config_finds_its_decider(field: Field) -> None:
    field.play(field.run("a", 1), field.run("b", 2))
    (field.folder / "config.yaml").unlink()
    before = (field.folder / "together/evaluation_results.jsonl").read_bytes()
    assay.evaluate(field.folder / "together")
    assert (field.folder / "together/evaluation_results.jsonl").read_bytes() == before


# ---- wrong settings


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"decide": "judge_pairwse"}, "did you mean 'judge_pairwise'"),
        ({"decide": "exact_match"}, "'exact_match' looks at one answer"),
        ({"decide": "pairwise"}, "cannot decide for itself"),
        ({"decide": "people", "model": "x"}, "people have no parameter 'model'"),
        ({"decide": "people", "labels": "nowhere.csv"}, "there is no file 'nowhere.csv'"),
        ({"decide": "judge.py:longer", "margn": 1}, "did you mean 'margin'"),
        ({"items": "some"}, "items"),
        ({"both_seats": "perhaps"}, "both_seats"),
        ({"decide": "judge_pairwise"}, "which model judges?"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_played(
    field: Field, params: dict[str, Any], said: str
) -> None:
    field.params = params
    with pytest.raises(ConfigError) as caught:
        field.play(field.run("a", 1), field.run("b", 2))
    assert said in str(caught.value)
    assert "evaluation_methods" in str(caught.value)


def test_the_method_itself_decides_nothing() -> None:
    with pytest.raises(AssayError, match="decides nothing itself"):
        assay.scorer.get("pairwise")(None, None, None)


# ---- against a brute force


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("pqr"), st.integers(0, 3), st.integers(0, 2)),
        unique=True,
        min_size=2,
        max_size=20,
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_matches_are_those_of_a_brute_force(
    cells: list[tuple[str, int, int]], both: bool, random: Any
) -> None:
    items = MemoryLog()
    items.append(b"".join(b'{"id":"q%d","data":{}}\n' % number for number in range(3)))
    known = [cell for cell in cells if cell[1] < 3]
    expected = Counter(
        (*sorted((one[0], two[0])), f"q{one[1]}", one[2], seat)
        for one, two in combinations(known, 2)
        if one[0] != two[0] and one[1:] == two[1:]
        for seat in ((0, 1) if both else (0,))
    )
    shuffled = random.sample(cells, len(cells))
    logs: list[tuple[str, Log]] = []
    for number in range(2):
        log = MemoryLog()
        for player, item, sample in shuffled[number::2]:
            row = Response(
                item_id=f"q{item}",
                sample_index=sample,
                model_name=player,
                key=f"{player}{item}{sample}",
            )
            log.append(msgspec.json.encode(row) + b"\n")
        logs.append((str(number), log))
    scorer = assay.bind_scorer(lambda item, first, second: 0.5, name="m")
    scorer.both_seats = both
    if len({cell[0] for cell in cells}) < 2:
        return
    matches = MatchCalls(scorer, logs, ItemIndex(items))
    calls = list(matches.calls())
    found = Counter(
        (*(call.players or ()), call.case.item.id, call.case.responses[0].sample_index, call.seat)
        for call in calls
    )
    assert found == expected
    assert len({call.key for call in calls}) == len(calls) == matches.count
