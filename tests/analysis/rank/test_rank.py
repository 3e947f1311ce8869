"""Rankings from rows: seats, failures, labels, players by a field, several folders, graphs that fall apart."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.analysis.rank.rank import Ranking, rank
from assay.errors import UserError
from tests.analysis.match_lab import match, won
from tests.analysis.rows import counted, save


def ranked(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Ranking:
    return rank([save(folder, rows)], **{"rounds": 200, **options})


def order(found: Ranking) -> list[str]:
    return [one.player for one in found.standings]


def test_players_wins_and_ranks(tmp_path: Path) -> None:
    rows = won("a", "b", 30, 8, 4) + won("a", "c", 36, 5, 1) + won("b", "c", 20, 18, 4)
    found = ranked(tmp_path, rows)
    assert order(found) == ["a", "b", "c"]
    best = found.standings[0]
    assert (best.wins, best.ties, best.losses, best.matches) == (66, 5, 13, 84)
    assert best.win_rate == pytest.approx(68.5 / 84)
    assert [one.ranks for one in found.standings] == [(1, 1), (2, 3), (2, 3)]
    assert (found.items, found.matches, found.verdicts) == (42, 126, 252)
    assert np.mean([one.value for one in found.standings]) == pytest.approx(1500)
    assert best.ci_low is not None
    assert best.ci_high is not None
    assert best.ci_low < best.value < best.ci_high
    assert found.win_matrix.players == ["a", "b", "c"]
    assert found.win_matrix.wins == [[0, 30, 36], [8, 0, 20], [5, 18, 0]]
    assert found.win_matrix.ties == [[0, 4, 1], [4, 0, 4], [1, 4, 0]]
    assert (found.prior, found.notes) == (0.0, [])


def test_400_points_are_ten_to_one(tmp_path: Path) -> None:
    found = ranked(tmp_path, won("a", "b", 50, 5))
    first, second = found.standings
    assert first.value - second.value == pytest.approx(400)


def test_two_seats_are_one_match_and_disagreement_is_a_tie(tmp_path: Path) -> None:
    rows = won("a", "b", 3, 2)
    rows += match("x", ("a", "b"), 1.0, 0.0)  # each seat's first won
    rows += match("y", ("a", "b"), 1.0, 0.5)
    rows += match("z", ("a", "b"), 1.0, "unparsed")
    rows += match("w", ("a", "b"), "errored", "refused")
    found = ranked(tmp_path, rows)
    first = found.standings[0]
    assert (first.player, first.wins, first.ties, first.losses) == ("a", 3, 3, 2)
    assert (found.disagreements, found.one_sided, found.unread) == (2, 1, 1)
    assert (found.matches, found.verdicts, first.failed) == (8, 18, 3)


def test_one_seat_is_a_match_where_no_pair_was_swapped(tmp_path: Path) -> None:
    rows = [
        row for number in range(9) for row in match(f"q{number}", ("a", "b"), float(number < 6))
    ]
    found = ranked(tmp_path, rows)
    assert (found.standings[0].wins, found.standings[0].losses, found.one_sided) == (6, 3, 0)


def test_samples_of_an_item_are_matches_of_their_own(tmp_path: Path) -> None:
    rows = [
        row
        for sample in range(4)
        for row in match("q", ("a", "b"), float(sample > 0), sample=sample)
    ]
    found = ranked(tmp_path, rows)
    assert (found.items, found.matches) == (1, 4)
    assert found.ci_method == "none: an interval needs at least two items"
    assert [(one.ci_low, one.ranks) for one in found.standings] == [(None, (1, 2)), (None, (1, 2))]


def test_players_in_any_order_and_rows_in_any_order(tmp_path: Path) -> None:
    rows = won("a", "b", 9, 4, 2) + won("b", "c", 7, 6, 1) + won("a", "c", 5, 2)
    turned = [row | {"players": row["players"][::-1], "score": 1 - row["score"]} for row in rows]
    mixed = [
        turned[at] if at % 3 else rows[at] for at in np.random.default_rng(1).permutation(len(rows))
    ]
    # both seats of a pair may be named in different orders: they are still one match
    assert ranked(tmp_path / "a", rows) == ranked(tmp_path / "b", mixed)


@pytest.mark.parametrize("method", ["bradley-terry", "elo", "win-rate"])
def test_every_method_finds_the_order(tmp_path: Path, method: str) -> None:
    rows = won("low", "mid", 8, 22) + won("mid", "top", 9, 21) + won("low", "top", 4, 26)
    found = ranked(tmp_path, rows, method=method)
    assert order(found) == ["top", "mid", "low"]
    assert found.standings[0].ranks == (1, 1)
    assert (found.standings[0].standard_error is not None) == (method == "elo")
    assert found.method == method


def test_labels(tmp_path: Path) -> None:
    rows = won("a", "b", 6, 3)
    rows += [row | {"label": "longer", "score": 1 - row["score"]} for row in rows]
    # failed before it named a label
    rows += match("f", ("a", "b"), "errored", "errored", label="better")
    with pytest.raises(UserError, match="several labels") as caught:
        ranked(tmp_path, rows)
    assert caught.value.fix == "add --label, one of better, longer"
    assert order(ranked(tmp_path, rows, label="better")) == ["a", "b"]
    assert order(ranked(tmp_path, rows, label="longer")) == ["b", "a"]
    with pytest.raises(UserError, match="no match has the label 'beter'") as caught:
        ranked(tmp_path, rows, label="beter")
    assert "better" in caught.value.fix


def test_a_call_without_labels_fails_under_all_of_its_scorer(tmp_path: Path) -> None:
    rows = [row | {"label": "better.style"} for row in won("a", "b", 6, 3)]
    rows += match("f", ("a", "b"), "errored", "errored")
    found = ranked(tmp_path, rows)
    assert (found.label, found.unread, found.standings[0].failed) == ("better.style", 1, 2)


def test_other_rows_are_left_alone(tmp_path: Path) -> None:
    found = ranked(tmp_path, counted(3, 9) + won("a", "b", 6, 3))
    assert (found.matches, found.verdicts) == (9, 18)
    with pytest.raises(UserError, match="not matches") as caught:
        ranked(tmp_path / "none", counted(3, 9))
    assert "judge_pairwise" in caught.value.fix


def test_several_folders_and_the_same_verdict_twice(tmp_path: Path) -> None:
    old = [row | {"key": f"{number:016x}" * 2} for number, row in enumerate(won("a", "b", 9, 4), 1)]
    new = [
        row | {"key": f"{number:016x}" * 2} for number, row in enumerate(won("b", "c", 5, 6), 1000)
    ]
    one = rank([save(tmp_path / "one", old + new)], rounds=200)
    two = rank([save(tmp_path / "two", old), save(tmp_path / "three", new + old[:7])], rounds=200)
    assert one == two


def test_one_seat_in_one_folder_and_two_in_another(tmp_path: Path) -> None:
    single = [row for number in range(5) for row in match(f"s{number}", ("a", "b"), 1.0)]
    found = rank(
        [save(tmp_path / "one", single), save(tmp_path / "two", won("a", "b", 1, 3))], rounds=100
    )
    assert (found.standings[0].wins, found.standings[0].losses, found.one_sided) == (6, 3, 0)


def test_groups_that_never_met_are_named(tmp_path: Path) -> None:
    rows = won("a", "b", 3, 2) + won("c", "d", 3, 2) + won("d", "e", 1, 1)
    for method in ("bradley-terry", "elo"):
        with pytest.raises(UserError, match=r"2 groups that never met: c, d, e \| a, b"):
            ranked(tmp_path, rows, method=method)
    found = ranked(tmp_path, rows, method="win-rate")
    assert "never met: c, d, e | a, b" in found.notes[0]


def test_a_winner_of_everything_is_said_and_stays_finite(tmp_path: Path) -> None:
    rows = won("ace", "b", 12) + won("ace", "c", 12) + won("b", "c", 7, 5)
    found = ranked(tmp_path, rows)
    assert order(found) == ["ace", "b", "c"]
    assert found.standings[0].value < 3000
    assert found.prior == 1
    assert found.notes == [
        "nobody ever won or tied against a better group: ace > b, c; "
        "so each player is given 1 virtual match, half won, half lost"
    ]
    with pytest.raises(UserError, match="ace > b, c"):
        ranked(tmp_path, rows, prior=0.0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (won("a", "b", 5, 0, 4), "wins go one way only"),
        (won("a", "b", 0, 0, 4), "every match is a tie"),
    ],
)
def test_ties_without_a_loss(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    assert said in ranked(tmp_path, rows).notes[0]
    with pytest.raises(UserError, match=said):
        ranked(tmp_path, rows, prior=0.0)


def test_a_player_without_a_verdict_is_not_ranked(tmp_path: Path) -> None:
    rows = won("a", "b", 6, 3) + match("q", ("a", "z"), "errored", "errored")
    found = ranked(tmp_path, rows)
    assert order(found) == ["a", "b"]
    assert found.notes == ["not ranked, because no match of theirs has a verdict: z"]
    with pytest.raises(UserError, match="all calls failed"):
        ranked(tmp_path / "all", match("q", ("a", "z"), "errored", "errored"))


def responses(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def with_answers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose responses' keys are the player's name in hex, in the order of the seats."""
    keys = {name: f"{number:016x}" * 2 for number, name in enumerate(["r1", "r2", "r3"], 1)}
    return [
        row | {"responses": [keys[name] for name in row["players"][:: -1 if row["seat"] else 1]]}
        for row in rows
    ]


def test_several_runs_are_one_player(tmp_path: Path) -> None:
    rows = with_answers(won("r1", "r2", 5, 5) + won("r1", "r3", 8, 2) + won("r2", "r3", 7, 3))
    save(tmp_path, rows)
    models = {1: "small", 2: "small", 3: "large"}
    responses(
        tmp_path,
        [
            {"item_id": "q", "key": f"{n:016x}" * 2, "model_name": models[n], "response": ""}
            for n in models
        ],
    )
    found = rank([tmp_path], by="model_name", rounds=100)
    assert order(found) == ["small", "large"]
    assert (found.standings[0].wins, found.standings[0].losses) == (15, 5)
    assert found.notes == ["10 matches of a player against itself are left out"]
    with pytest.raises(UserError, match="responses without 'temperature'"):
        rank([tmp_path], by="temperature")


def test_players_by_a_field_need_the_responses(tmp_path: Path) -> None:
    save(tmp_path, with_answers(won("r1", "r2", 3, 2)))
    with pytest.raises(UserError, match="need the responses of all matches"):
        rank([tmp_path], by="model_name")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "glicko"}, "no method 'glicko'"),
        ({"level": 1.0}, "level lies between 0 and 1"),
        ({"rounds": 5}, "too few"),
        ({"prior": -1.0}, "number of matches"),
    ],
)
def test_options_out_of_range(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        rank([save(tmp_path, won("a", "b", 2, 2))], **options)


def clustered(folder: Path, passages: int, questions: int) -> Path:
    """Of each passage the same player mostly wins all matches."""
    random = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for passage, chance in enumerate(random.beta(0.4, 0.3, passages).tolist()):
        for number in range(questions):
            payoff = float(random.random() < chance)
            about = {"passage": passage}
            rows += match(f"{passage}-{number}", ("a", "b"), payoff, payoff, metadata=about)
    return save(folder, rows)


@pytest.mark.parametrize("method", ["bradley-terry", "elo", "win-rate"])
def test_rounds_draw_clusters(tmp_path: Path, method: str) -> None:
    folder = clustered(tmp_path / "m", 15, 6)
    plain, named = (rank([folder], method=method, cluster_by=name) for name in ("", "passage"))
    assert (plain.items, plain.notes, named.items) == (90, [], 90)
    assert named.notes == ["clusters: passage (15)"]
    for one, other in zip(plain.standings, named.standings, strict=True):
        assert one.value == pytest.approx(other.value, abs=2)
        assert other.ci_high - other.ci_low > 1.4 * (one.ci_high - one.ci_low)  # type: ignore[operator]
    each = rank([folder], method=method, cluster_by="item_id")
    assert each.standings == plain.standings, "one item each"
    with pytest.raises(UserError, match="'pasage' exists in no row"):
        rank([folder], cluster_by="pasage")


def test_lines_that_are_no_rows_are_counted_and_named(tmp_path: Path) -> None:
    folder = save(tmp_path / "e", won("a", "b", 30, 8, 4))
    whole = rank([folder], rounds=200)
    file = folder / "evaluation_results.jsonl"
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([first, first[:30], "17", "[]", *others, ""]))
    found = rank([folder], rounds=200)
    (note,) = found.notes
    assert note.startswith(f"3 unreadable lines left out (the first: {file}, line 2, ")
    assert found.standings == whole.standings
