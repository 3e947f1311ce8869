"""The index follows the rows: it grows with them, and is made anew when they change, or when it is damaged itself."""

import json
import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.engine.experiment.resolve import find_source
from assay.errors import UserError
from assay.viewer.experiments import Experiments
from assay.viewer.index import opening
from assay.viewer.index.index import Index, load
from assay.viewer.index.opening import open_index
from assay.viewer.index.view import View
from assay.viewer.pages import page
from tests.support import Lab
from tests.viewer.generated import (
    Row,
    evaluations,
    experiment,
    items,
    read,
    responses,
    samples,
    write,
)


@pytest.fixture(autouse=True, name="state")
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(opening, "_LEAST_SAVED", 0)
    return tmp_path / "state"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each index was made: `anew`, `continued`, or as a `preview`."""
    made: list[str] = []
    make = opening.make

    def noted(source: Any, before: Index | None, logs: Any, most: int | None = None) -> Index:
        made.append("preview" if most else "anew" if before is None else "continued")
        return make(source, before, logs, most)

    monkeypatch.setattr(opening, "make", noted)
    return made


def rows_of(experiments: Experiments, label: str = "match", **query: Any) -> list[tuple[Any, ...]]:
    answer = page(experiments, "samples", {"label": [label], "limit": ["500"], **query})
    names = ("item", "task", "sample", "outcome", "verdict", "passed", "score", "length")
    return [tuple(row[name] for name in names) for row in answer["rows"]]


def expected(folder: Path, label: str = "match") -> list[tuple[Any, ...]]:
    names = ("item", "task", "sample", "outcome", "verdict", "passed", "score", "length")
    return [tuple(row[name] for name in names) for row in samples(folder, label)]


def append(path: Path, rows: list[Row], end: str = "\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(json.dumps(row) for row in rows) + end)


def test_an_experiment_that_grows_continues_its_index(tmp_path: Path, made: list[str]) -> None:
    folder = tmp_path / "runs/e"
    rows = responses(1, 20)
    judged = evaluations(rows, 2)
    write(folder / "responses.jsonl", rows[:10])
    write(folder / "evaluation_results.jsonl", judged[:5])
    write(
        folder / "items.jsonl",
        [{"id": f"q{at:03}", "data": {}, "metadata": {"kind": "k"}} for at in range(20)],
    )
    (folder / "manifest.json").write_text("{}")
    experiments = Experiments([tmp_path / "runs"])
    assert rows_of(experiments) == expected(folder)
    for step in range(1, 6):
        more = rows[20 * step - 10 : 20 * step + 10]
        append(
            folder / "responses.jsonl",
            [{**row, "metadata": {**row["metadata"], "late": step}} for row in more],
        )
        append(folder / "evaluation_results.jsonl", judged[40 * step - 35 : 40 * step + 5])
        assert rows_of(experiments) == expected(folder)
        assert len(rows_of(experiments, where=[f"late={step}"])) == len(more)
    assert made == ["anew"] + ["continued"] * 5
    fresh = Experiments([tmp_path / "runs"])
    shutil.rmtree(tmp_path / "state")
    assert rows_of(fresh) == rows_of(experiments)
    assert made[-1] == "anew"


def test_half_a_line_counts_once_it_is_whole(tmp_path: Path, made: list[str]) -> None:
    folder = experiment(tmp_path / "runs/e", 3)
    rows = responses(4, 2)
    experiments = Experiments([tmp_path / "runs"])
    before = rows_of(experiments)
    line = json.dumps({**rows[0], "item_id": "q001"})
    with (folder / "responses.jsonl").open("a") as file:
        file.write(line[:50])
    assert rows_of(experiments) == before
    with (folder / "responses.jsonl").open("a") as file:
        file.write(line[50:])  # whole, although its line feed is to come
    assert rows_of(experiments) == expected(folder) != before
    with (folder / "responses.jsonl").open("a") as file:
        file.write(
            "\n" + "not JSON\n\n[1, 2]\n" + json.dumps({**rows[1], "item_id": "q002"}) + "\n"
        )
    after = rows_of(experiments)
    assert len(after) == len(before) + 2
    assert after == expected_without_lists(folder)
    assert made == ["anew", *["continued"] * (len(made) - 1)]


def expected_without_lists(folder: Path) -> list[tuple[Any, ...]]:
    rows = [row for row in read(folder / "responses.jsonl") if isinstance(row, dict)]
    copy = folder.parents[1] / "copy"
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    write(copy / "responses.jsonl", rows)
    return expected(copy)


def test_a_row_that_is_appended_twice_counts_once(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "runs/e", 5)
    experiments = Experiments([tmp_path / "runs"])
    before = rows_of(experiments)
    append(folder / "responses.jsonl", read(folder / "responses.jsonl")[:3])
    assert rows_of(experiments) == before


@pytest.mark.parametrize("change", ["replaced", "edited", "shorter", "moved", "copied", "dataset"])
def test_an_index_of_other_rows_is_made_anew(tmp_path: Path, made: list[str], change: str) -> None:
    folder = experiment(tmp_path / "runs/e", 6)
    path = folder / "responses.jsonl"
    experiments = Experiments([tmp_path / "runs"])
    rows_of(experiments)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    if change == "replaced":  # longer, by another file of the same name
        path.with_name("new").write_bytes(
            b"".join(lines[::-1]) + lines[0].replace(b'"key": "', b'"key": "f')
        )
        os.replace(path.with_name("new"), path)
    elif change == "edited":  # in place, as long as before
        path.write_bytes(content.replace(b'"sample_index": 1', b'"sample_index": 0', 1))
    elif change == "shorter":
        path.write_bytes(b"".join(lines[:-4]))
    elif change == "moved":  # in place, and longer
        path.write_bytes(
            b"".join([*lines[4:], *lines[:4], lines[0].replace(b'"key": "', b'"key": "f')])
        )
    elif change == "copied":  # the same bytes in another file, whose time differs
        path.with_name("new").write_bytes(content)
        os.replace(path.with_name("new"), path)
    else:
        write(
            folder / "items.jsonl",
            [{"id": "q000", "data": {"question": "new"}, "metadata": {"kind": "new"}}],
        )
        assert page(experiments, "samples", {"where": ["kind=new"]})["total"] == 6
        assert made == ["anew", "anew"]
        return
    assert rows_of(experiments) == expected(folder)
    assert made == ["anew", "anew"]


def test_segments_are_read_as_well(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "runs/e", 7)
    whole = rows_of(Experiments([tmp_path / "runs"]))
    complete = shutil.copytree(folder, tmp_path / "complete")
    lines = (folder / "responses.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "responses.d").mkdir()
    (folder / "responses.d/b.jsonl").write_text("".join(lines[30:]), encoding="utf-8")
    (folder / "responses.jsonl").write_text("".join(lines[:30]), encoding="utf-8")
    experiments = Experiments([tmp_path / "runs"])
    assert rows_of(experiments) == whole
    found = page(experiments, "samples", {"search": ["beta"], "limit": ["500"]})["total"]
    texts = [row["texts"] for row in samples(complete, "match")]
    assert found == sum(any("beta" in text.lower() for text in each) for each in texts) > 0


def test_an_index_outlives_the_process_and_its_own_damage(
    tmp_path: Path, made: list[str], state: Path
) -> None:
    experiment(tmp_path / "runs/e", 8)
    first = rows_of(Experiments([tmp_path / "runs"]))
    (file,) = (state / "index").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert (state / "index").stat().st_mode & 0o077 == 0
    assert rows_of(Experiments([tmp_path / "runs"])) == first
    assert made == ["anew"]
    content = file.read_bytes()
    half = len(content) // 2
    # header, columns
    changed = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in (100, half)]
    for broken in (*changed, content[:half], content[:-3], b"", b"x"):
        file.write_bytes(broken)
        assert load(file) is None
        assert rows_of(Experiments([tmp_path / "runs"])) == first
    assert made == ["anew"] * 7
    assert load(file) is not None


def test_a_state_directory_that_cannot_be_written_costs_only_time(
    tmp_path: Path, state: Path
) -> None:
    folder = experiment(tmp_path / "runs/e", 9)
    state.write_text("a file")
    assert rows_of(Experiments([tmp_path / "runs"])) == expected(folder)


def test_little_is_not_worth_a_file(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("ASSAY_STATE_DIR", str(state))
    folder = experiment(tmp_path / "runs/e", 9)
    assert rows_of(Experiments([tmp_path / "runs"])) == expected(folder)
    assert not state.exists()


def test_an_old_index_does_not_stand_in_for_one_that_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = experiment(tmp_path / "runs/e", 9)
    assert rows_of(Experiments([tmp_path / "runs"])) == expected(folder)
    shutil.rmtree(folder)
    experiment(folder, 10, of=3)

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Index, "copy", full)
    assert rows_of(Experiments([tmp_path / "runs"])) == expected(folder)


def test_a_large_index_is_made_while_the_first_rows_are_shown(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = experiment(tmp_path / "runs/e", 10, of=80)
    monkeypatch.setattr(opening, "_LITTLE", 0)
    monkeypatch.setattr(opening, "_PREVIEW", 4096)
    begun, work = [], opening._work

    def waiting(*args: Any) -> None:
        begun.append(args)

    monkeypatch.setattr(opening, "_work", waiting)
    experiments = Experiments([tmp_path / "runs"])
    answer = page(experiments, "samples", {})
    assert 0 < answer["indexed"] < 0.5
    first = read(folder / "responses.jsonl")[: len(answer["rows"])]
    assert [row["item"] for row in answer["rows"]] == [row["item_id"] for row in first]
    work(*begun[0])
    monkeypatch.setattr(opening, "_work", work)
    answer = page(experiments, "samples", {})
    assert (answer["indexed"], answer["all"]) == (None, 480)
    assert made == ["preview", "anew"]


def test_what_goes_wrong_in_the_background_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment(tmp_path / "runs/e", 11)

    def failing(*args: Any) -> Any:
        raise MemoryError

    make = opening.make
    monkeypatch.setattr(opening, "make", failing)
    experiments = Experiments([tmp_path / "runs"])
    with pytest.raises(MemoryError):
        open_index(experiments, "e", wait=True)
    monkeypatch.setattr(opening, "make", make)
    assert len(open_index(experiments, "e", wait=True)[0]) == 72


# ---- which rows count


def test_rows_that_do_not_count_are_not_listed(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "lab").mkdir()
    lab = Lab(tmp_path / "lab", items=30)
    lab.run()
    folder = tmp_path / "lab/out"
    experiments = Experiments([folder])
    (id,) = experiments.list()
    assert len(open_index(experiments, id)[0]) == 60
    content = (folder / "responses.jsonl").read_bytes()
    at = content.find(b'"response":"')
    damaged = content[: at + 12] + b"9" + content[at + 13 :] + content.splitlines(keepends=True)[-1]
    (folder / "responses.jsonl").write_bytes(damaged)
    index, _ = open_index(experiments, id)
    shown = [line for log in find_source(folder).logs("run") for _, line in log.scan()]
    assert 0 < len(shown) < 61
    assert list(index.read_rows("run", range(len(index)))) == shown
    append(
        folder / "responses.jsonl", [{**json.loads(shown[-1]), "key": "f" * 32, "sample_index": 7}]
    )
    assert len(open_index(experiments, id)[0]) == len(shown) + 1
    assert made == ["anew"] * 3  # what does not count may count when the rest of its call has come


def test_rows_that_an_evaluation_was_made_from_elsewhere_are_indexed(tmp_path: Path) -> None:
    runs: list[Path] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        lab = Lab(tmp_path / name)
        lab.config["models"] = [lab.model(name)]
        lab.run()
        runs.append(tmp_path / name / "out")
    assay.evaluate(
        runs, scorers=["exact_match"], metrics=["pass_rate"], output_dir=str(tmp_path / "both")
    )
    experiments = Experiments([tmp_path / "both"])
    (id,) = experiments.list()
    rows = page(experiments, "samples", {"limit": ["500"]})["rows"]
    own = [row for run in runs for row in read(run / "responses.jsonl")]
    assert [(row["key"], row["answer"]) for row in rows] == [
        (row["key"], row["response"]) for row in own
    ]
    assert {row["verdict"] for row in rows} == {"scored"}
    traced = page(experiments, "sample", {"item": ["q1"], "experiment": [id]})["experiments"][0][
        "samples"
    ]
    assert json.loads(msgspec.json.encode(traced)) == json.loads(
        msgspec.json.encode(assay.trace(tmp_path / "both", "q1").samples)
    )


def test_foreign_rows_without_keys_are_joined_by_where_they_stand(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "runs/e", 12, keys=False)
    for label in ("match", "grade"):
        assert rows_of(Experiments([tmp_path / "runs"]), label) == expected(folder, label)


def test_foreign_rows_may_be_written_anyhow(tmp_path: Path) -> None:
    folder = tmp_path / "runs/e"
    lines = [
        '{"item_id": 5, "response": null, "output": {"a": [1]}, "model_name": "m"}',
        '{"item_id": "a", "response": "x", "inference_time": NaN, "metadata": null, "error": {"code": 5}}',
        '{"item_id": "a", "sample_index": "one", "metadata": {"deep": {"er": 1}, "k": [1]}, "total_tokens": 3.0}',
        '{"item_id": "b", "metadata": {"k": "text", "deep": 5}, "outcome": "strange", "cost": true}',
        '{"response": "nobody asked"}',
    ]
    folder.mkdir(parents=True)
    (folder / "responses.jsonl").write_bytes(
        "\n".join(lines).encode() + b'\n{"item_id": "c", "prompt": "\xff"}\n'
    )
    labels = [
        {"item_id": 5, "model_name": "m", "label": {"name": "ok"}, "passed": True},
        {"item_id": "a", "label": "ok", "score": float("nan")},
        {"item_id": "b", "label": "ok"},
    ]
    (folder / "evaluation_results.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in labels)
    )
    (folder / "manifest.json").write_text("{}")
    experiments = Experiments([tmp_path / "runs"])
    rows = page(experiments, "samples", {})["rows"]
    assert [row["item"] for row in rows] == ["5", "a", "a", "b"]
    assert [row["outcome"] for row in rows] == ["ok", "errored", "ok", "ok"]
    assert [row["verdict"] for row in rows] == ["scored", "errored", "errored", "errored"]
    assert [row["answer"] for row in rows] == ['{"a":[1]}', "x", "", ""]
    assert [row["length"] for row in rows] == [9, 1, 0, 0]
    assert page(experiments, "samples", {"where": ["k=text", "deep=5"]})["total"] == 1


def test_only_labels_are_samples_too_but_matches_are_not(tmp_path: Path) -> None:
    rows = responses(13, 5, keys=False)
    judged = evaluations(rows, 14)
    match = {
        "item_id": "q000",
        "label": "better",
        "scorer": "better",
        "outcome": "scored",
        "passed": True,
        "score": 1.0,
    }
    match |= {
        "players": ["small", "large"],
        "model_name": "small vs large",
        "seat": 0,
        "responses": ["a" * 32, "b" * 32],
    }
    write(tmp_path / "runs/e/evaluation_results.jsonl", [*judged, match])
    (tmp_path / "runs/e/manifest.json").write_text("{}")
    answer = page(
        Experiments([tmp_path / "runs"]), "samples", {"label": ["match"], "limit": ["500"]}
    )
    assert sorted(answer["labels"]) == ["grade", "match"]
    assert answer["facets"]["model_name"] == ["large", "small"]
    places = list(
        dict.fromkeys((row["item_id"], row["model_name"], row["sample_index"]) for row in judged)
    )
    assert [(row["item"], row["model"], row["sample"]) for row in answer["rows"]] == places
    verdicts = {
        (row["item_id"], row["model_name"], row["sample_index"]): row
        for row in judged
        if row["label"] == "match"
    }
    for row in answer["rows"]:
        verdict = verdicts.get(
            (row["item"], row["model"], row["sample"]), {"outcome": "", "score": None}
        )
        assert (row["verdict"], row["score"]) == (verdict["outcome"], verdict["score"])


def test_a_facet_has_at_most_a_thousand_values(tmp_path: Path) -> None:
    rows = [
        {
            "item_id": f"q{at}",
            "model_name": "m",
            "response": "",
            "metadata": {"few": at % 1000, "many": at % 1001},
        }
        for at in range(2002)
    ]
    write(tmp_path / "runs/e/responses.jsonl", rows[:1500])
    (tmp_path / "runs/e/manifest.json").write_text("{}")
    experiments = Experiments([tmp_path / "runs"])
    index, _ = open_index(experiments, "e")
    assert set(index.state.facets.values) == {"few"}
    append(tmp_path / "runs/e/responses.jsonl", rows[1500:])
    index, _ = open_index(experiments, "e")
    assert set(index.state.facets.values) == {"few"}
    assert page(experiments, "samples", {"where": ["few=1"]})["total"] == 3
    codes, texts = View([("e", index)]).facet("few") or ([], [])
    assert [texts[code] for code in codes] == [str(at % 1000) for at in range(2002)]
    assert len(page(experiments, "samples", {})["facets"]["few"]) == 100


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ({}, 0),
        ({"items": '{"id": "a", "data": {}}\n'}, 0),
        ({"responses": "\n\n", "evaluation_results": ""}, 0),
        ({"responses": "not JSON\n{\n", "evaluation_results": "nope\n", "items": "zzz\n[]\n"}, 0),
        (
            {
                "responses": '{"item_id": "a", "metadata": {"x": '
                + "[" * 100_000
                + "]" * 100_000
                + "}}\n"
            },
            0,
        ),
        (
            {
                "responses": '{"item_id": "a\\u0000\\ud800", "metadata": {"a\\"b": 1, "\\ud800": 2}}\n'
            },
            1,
        ),
        (
            {
                "responses": "".join(
                    f'{{"item_id": "a", "metadata": {{"m{at}": 1}}}}\n' for at in range(300)
                )
            },
            300,
        ),
    ],
)
def test_whatever_a_folder_holds_has_a_page(
    tmp_path: Path, files: dict[str, str], rows: int
) -> None:
    (tmp_path / "runs/e").mkdir(parents=True)
    for name, text in {"manifest": "{}", **files}.items():
        (tmp_path / "runs/e" / f"{name}.{'json' if name == 'manifest' else 'jsonl'}").write_text(
            text
        )
    experiments = Experiments([tmp_path / "runs"])
    for query in (
        {},
        {"search": ["a"], "sort": ["item"]},
        {"only": ["disagree"], "sort": ["disagreement"]},
    ):
        assert page(experiments, "samples", query)["all"] == rows
        assert page(experiments, "matrix", query)["total"] <= rows
    if rows == 300:
        assert len(page(experiments, "samples", {})["facets"]) < 70


def test_pages_may_be_asked_for_at_once_while_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_LITTLE", 20_000)
    folder = tmp_path / "runs/e"
    rows = responses(20, 100)
    judged = evaluations(rows, 21)
    write(folder / "responses.jsonl", rows[:10])
    write(folder / "evaluation_results.jsonl", judged[:10])
    (folder / "manifest.json").write_text("{}")
    experiments = Experiments([tmp_path / "runs"])

    def asking(number: int) -> list[int]:
        queries = (
            {"sort": ["item"]},
            {"search": ["beta"]},
            {"only": ["disagree"]},
            {"where": ["model_id=small"]},
        )
        return [page(experiments, "samples", queries[(number + at) % 4])["all"] for at in range(25)]

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(asking, number) for number in range(4)]
        for at in range(10, len(rows), 20):
            append(folder / "responses.jsonl", rows[at : at + 20])
            append(folder / "evaluation_results.jsonl", judged[at : at + 20])
        totals = [future.result() for future in asked]
    assert all(0 < total <= len(rows) for each in totals for total in each)
    assert len(open_index(experiments, "e", wait=True)[0]) == len(rows)


def test_a_row_that_is_no_text_throughout_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "runs/e"
    folder.mkdir(parents=True)
    row = b'{"item_id": "a", "prompt": "%s", "response": "", "model_name": "m"}\n'
    (folder / "responses.jsonl").write_bytes(row % b"\xff" + row % "é".encode())
    (folder / "manifest.json").write_text("{}")
    assert page(Experiments([tmp_path / "runs"]), "samples", {})["total"] == 1


def test_of_several_labels_of_an_answer_the_first_counts(tmp_path: Path) -> None:
    rows = responses(22, 3)
    judged = evaluations(rows, 23)
    write(tmp_path / "runs/e/responses.jsonl", rows)
    write(
        tmp_path / "runs/e/evaluation_results.jsonl",
        [*judged, *({**row, "score": 0.5} for row in judged)],
    )
    write(tmp_path / "runs/e/items.jsonl", items(3))
    (tmp_path / "runs/e/manifest.json").write_text("{}")
    assert rows_of(Experiments([tmp_path / "runs"]), "grade") == expected(
        tmp_path / "runs/e", "grade"
    )


def test_a_label_of_two_scorers_is_two_labels(tmp_path: Path) -> None:
    rows = responses(24, 3)
    judged = evaluations(rows, 25, labels=("match",))
    other = [
        {**row, "scorer": "other", "passed": None, "score": None, "outcome": "unparsed"}
        for row in judged
    ]
    other[0] |= {"passed": True, "score": 1.0, "outcome": "scored"}
    folder = tmp_path / "runs/e"
    write(folder / "responses.jsonl", rows)
    write(folder / "items.jsonl", items(3))
    (folder / "manifest.json").write_text("{}")
    write(folder / "evaluation_results.jsonl", judged)
    experiments = Experiments([tmp_path / "runs"])
    alone = rows_of(experiments, "match")
    write(folder / "evaluation_results.jsonl", [*judged, *other])
    answer = page(experiments, "samples", {"label": ["match (match)"], "limit": ["500"]})
    assert answer["labels"] == ["match (match)", "match (other)"]
    assert rows_of(experiments, "match (match)") == alone
    assert {
        row["verdict"] for row in page(experiments, "samples", {"label": ["match (other)"]})["rows"]
    } <= {
        "",
        "scored",
        "unparsed",
    }
    compared = assay.compare([folder], facet="model_name", label="match (match)")
    assert len(compared.standings) == len({row["model_name"] for row in rows})
    with pytest.raises(UserError, match="has no label 'match'"):
        assay.compare([folder], facet="model_name", label="match")
