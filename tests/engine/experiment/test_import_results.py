"""Whatever a reader gives becomes an experiment: read once, nothing dropped, the program's own numbers beside ours."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay import registry
from assay.engine.experiment.imports.headlines import check_headlines
from assay.engine.experiment.imports.results import Imported, import_results
from assay.errors import UserError
from assay.foreign import (
    ForeignCase,
    Headline,
    content_id,
    files_below,
    key_of,
    without_secrets,
)
from assay.records import Evaluation, Response
from assay.store.stores import FlatStore

NAME = "tool_of_test_import_results"


def answer(
    id: str, score: float | None, *, text: str = "", sample: int = 0, **more: Any
) -> ForeignCase:
    row = Response(
        item_id=id,
        sample_id=f"{id}_sample_{sample}",
        sample_index=sample,
        model_name="m",
        key=key_of("t", id, text, sample),
    )
    fields: dict[str, Any] = {
        "item_id": id,
        "sample_index": sample,
        "model_name": "m",
        "label": "right",
        "scorer": "right",
    }
    outcome = "errored" if score is None else "scored"
    label = Evaluation(
        **fields,
        score=score,
        outcome=outcome,
        key=key_of("t", id, text, sample, "right"),
        responses=[row.key],
    )
    return ForeignCase({"id": id, "data": {"question": text or id}}, row, [label], **more)


class Tool:
    """An experiment of this test's own tool."""

    read = 0

    def __init__(
        self, cases: list[ForeignCase], headlines: list[Headline] | None = None, **more: Any
    ) -> None:
        self._cases, self._headlines = cases, headlines or []
        self.dataset = more.get("name", "sums")
        self.planned: int | None = more.get("planned")
        self.rejected: int = more.get("rejected", 0)
        self.version = more.get("version", 1)
        self.files: list[dict[str, str]] = []

    @property
    def source(self) -> dict[str, Any]:
        return {"format": NAME, "version": self.version, "files": self.files}

    @property
    def facts(self) -> dict[str, Any]:
        return {"models": ["m"]}

    def cases(self) -> Iterator[ForeignCase]:
        Tool.read += 1
        yield from self._cases

    def notes(self) -> list[str]:
        return ["as it was"]

    def headlines(self) -> list[Headline]:
        return self._headlines


TOOLS: list[Tool] = []


@pytest.fixture(autouse=True)
def tool() -> None:
    """Its reader, for one test."""

    @registry.reader(name=NAME)
    def read(path: Path) -> list[Tool]:
        return TOOLS


def imported(folder: Path, *tools: Tool) -> list[Imported]:
    TOOLS[:] = tools
    source = folder / "log"
    source.touch()
    return import_results(source, folder / "out", format_name=NAME)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_one_pass_gives_every_file(tmp_path: Path) -> None:
    Tool.read = 0
    (result,) = imported(
        tmp_path, Tool([answer("a", 1.0, spans=[{"name": "call"}]), answer("b", None)])
    )
    out = tmp_path / "out"
    assert Tool.read == 1
    assert [row["id"] for row in rows(out, "items.jsonl")] == ["a", "b"]
    assert [row["item_id"] for row in rows(out, "responses.jsonl")] == ["a", "b"]
    assert [row["outcome"] for row in rows(out, "evaluation_results.jsonl")] == [
        "scored",
        "errored",
    ]
    assert rows(out, "traces.jsonl")[0]["spans"] == [{"name": "call"}]
    assert (result.items, result.responses, result.evaluations) == (
        2,
        {"ok": 2},
        {"scored": 1, "errored": 1},
    )
    assert result.notes == ["as it was"]
    (again,) = imported(tmp_path, Tool([answer("c", 1.0)]))
    assert (Tool.read, again) == (1, result), "an unchanged source is not read again"
    (changed,) = imported(tmp_path, Tool([answer("c", 1.0)], version=2))
    assert (changed.items, changed.responses) == (1, {"ok": 1})


def test_an_item_of_several_samples_is_one_item(tmp_path: Path) -> None:
    (result,) = imported(tmp_path, Tool([answer("a", 1.0), answer("a", 0.0, sample=1)]))
    assert (result.items, result.responses) == (1, {"ok": 2})


def test_two_items_of_one_id_are_told_apart(tmp_path: Path) -> None:
    cases = [
        answer("1", 1.0, text="first"),
        answer("1", 0.0, text="second"),
        answer("1", 0.5, text="second", sample=1),
    ]
    (result,) = imported(tmp_path, Tool(cases))
    out = tmp_path / "out"
    first, second = (row["id"] for row in rows(out, "items.jsonl"))
    assert first == "1"
    assert second.startswith("1~")
    assert [row["item_id"] for row in rows(out, "responses.jsonl")] == [first, second, second]
    evaluations = rows(out, "evaluation_results.jsonl")
    assert [row["item_id"] for row in evaluations] == [first, second, second]
    assert [row["responses"] for row in evaluations] == [
        [row["key"]] for row in rows(out, "responses.jsonl")
    ]
    assert len({row["key"] for row in evaluations}) == 3
    assert "ids of their own" in result.notes[0]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "1~"]), st.sampled_from("abc")),
        min_size=1,
        max_size=12,
    )
)
def test_every_answer_keeps_the_item_that_it_is_about(asked: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as place:
        first = [answer("1", 1.0, text=text) for text in "ab"]
        imported(Path(place), Tool(first))
        # the id that an item of another one's id gets
        taken = rows(Path(place, "out"), "items.jsonl")[-1]["id"]
        cases = [
            answer(taken, 0.0, text="c"),
            *first,
            *(answer(id, 1.0, text=text) for id, text in asked),
        ]
        wanted = [case.item["data"]["question"] for case in cases if case.item]
        imported(Path(place), Tool(cases, version=2))
        items = {
            row["id"]: row["data"]["question"] for row in rows(Path(place, "out"), "items.jsonl")
        }
        assert len(items) == len(rows(Path(place, "out"), "items.jsonl")), "no id twice"
        answers = rows(Path(place, "out"), "responses.jsonl")
        assert [items[row["item_id"]] for row in answers] == wanted


def test_a_reader_of_another_contract_is_told_so(tmp_path: Path) -> None:
    @registry.reader(name="reader_of_another_contract")
    def read(path: Path) -> list[Any]:
        return [object()]

    (tmp_path / "log").touch()
    with pytest.raises(UserError, match="it gives has no `cases`"):
        import_results(tmp_path / "log", tmp_path / "out", format_name="reader_of_another_contract")


def test_what_was_planned_and_is_missing_makes_it_partial(tmp_path: Path) -> None:
    (result,) = imported(tmp_path, Tool([answer("a", 1.0)], planned=3))
    manifest = FlatStore(tmp_path / "out").manifest("run", "out")
    assert manifest is not None
    assert (manifest.complete, manifest.planned, result.planned) == (False, 3, 3)


def test_several_experiments_get_a_folder_each(tmp_path: Path) -> None:
    results = imported(
        tmp_path,
        Tool([answer("a", 1.0)]),
        Tool([answer("a", 0.0)]),
        Tool([answer("a", 0.0)], name="x/y"),
    )
    folders = [Path(result.folder).name for result in results]
    assert folders[:2] == ["sums", "sums-2"]
    assert len(set(folders)) == 3
    assert all((tmp_path / "out" / folder / "responses.jsonl").exists() for folder in folders)


def test_numbers_of_the_program_are_checked(tmp_path: Path) -> None:
    cases = [answer("a", 1.0), answer("b", 1.0), answer("c", 0.0), answer("d", None)]
    spread = math.sqrt(1 / 3) / math.sqrt(3)
    headlines = [
        Headline(
            label="right", metric="accuracy", value=2 / 3, stderr=spread, where={"model_name": "m"}
        ),
        Headline(label="right", metric="rounded", value=0.6667),
        Headline(label="right", metric="all", value=0.5, failed_as=0.0),
        Headline(label="right", metric="wrong", value=0.7),
        Headline(label="right", metric="odd", value=0.7, reason="nobody knows"),
        Headline(label="right", metric="own", value=0.7, ours=0.7),
        Headline(label="right", metric="nobody", value=0.7, where={"model_name": "other"}),
    ]
    (result,) = imported(tmp_path, Tool(cases, headlines))
    accuracy, rounded, every, wrong, odd, own, nobody = result.headlines
    assert (accuracy.equal, accuracy.items, accuracy.failed, accuracy.with_failures) == (
        True,
        3,
        1,
        0.5,
    )
    assert accuracy.ours_stderr == pytest.approx(spread)
    assert (rounded.equal, every.equal, wrong.equal, odd.equal, own.equal) == (
        True,
        True,
        False,
        None,
        True,
    )
    assert (odd.reason, nobody.ours, nobody.equal) == ("nobody knows", None, None)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["mean", "median", "mode", "max", "none"]),
)
def test_a_headline_is_the_plain_formula(
    scores: list[tuple[int, float | None]], reduce: Any
) -> None:
    from statistics import mean, median, mode
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        cases = [answer(f"q{item}", score, sample=at) for at, (item, score) in enumerate(scores)]
        headline = Headline(label="right", metric="x", value=None, reduce=reduce)
        imported(Path(place), Tool(cases, [headline]))
        log = FlatStore(Path(place) / "out").log("evaluation", "out")
        (checked,) = check_headlines([headline], log, "")
    items: dict[int, list[float]] = {}
    for item, score in scores:
        if score is not None:
            items.setdefault(item, []).append(score)
    formulas: dict[str, Any] = {"mean": mean, "median": median, "mode": mode, "max": max}
    values = [score for _, score in scores if score is not None]
    if reduce != "none":
        values = [formulas[reduce](own) for own in items.values()]
    assert checked.failed == sum(score is None for _, score in scores)
    assert checked.items == len(values)
    assert (checked.ours is None) is (not values)
    if values:
        assert checked.ours == pytest.approx(mean(values))


def test_a_source_without_an_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no response to import"):
        imported(tmp_path, Tool([ForeignCase({"id": "a", "data": "x"})]))

    assert not (tmp_path / "out").exists()


def test_one_of_several_that_cannot_be_imported_stops_no_other(tmp_path: Path) -> None:
    empty = Tool([], name="empty")
    wrong = Tool([answer("a", 1.0)._replace(item={"data": "no id"})], name="wrong")
    results = imported(tmp_path, empty, Tool([answer("a", 1.0)]), wrong)
    assert [bool(result.folder) for result in results] == [False, True, False]
    assert [result.rejected for result in results] == [1, 0, 1]
    assert results[0].notes == ["empty: there is no item to import"]
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["sums"]
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="there is no item to import"):
        imported(tmp_path / "none", empty, Tool([], name="other"))


def test_rows_that_assay_made_are_never_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "responses.jsonl").write_text('{"item_id": "mine"}\n')
    with pytest.raises(UserError, match="that no import has made"):
        imported(tmp_path, Tool([answer("a", 1.0)]))
    assert (out / "responses.jsonl").read_text() == '{"item_id": "mine"}\n'


def test_an_import_of_other_files_is_not_replaced(tmp_path: Path) -> None:
    def tool(**stamp: str) -> Tool:
        made = Tool([answer("a", 1.0)])
        made.files = [stamp]
        return made

    imported(tmp_path, tool(path="/a/log", content="1"))
    imported(tmp_path, tool(path="/a/log", content="2"))
    imported(tmp_path, tool(path="/moved/log", content="2"))
    with pytest.raises(UserError, match="the folder has an import of '/moved/log'"):
        imported(tmp_path, tool(path="/b/log", content="3"))


def test_a_target_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match="out' is a file, not a folder"):
        imported(tmp_path, Tool([answer("a", 1.0)]))
    assert (tmp_path / "out").read_text() == "mine"


def test_a_file_of_two_formats_is_refused(tmp_path: Path) -> None:
    @registry.reader(name=f"{NAME}_other")
    def other(path: Path) -> list[Tool]:
        return [Tool([answer("a", 1.0)])] if path.name == "both" else []

    TOOLS[:] = [Tool([answer("a", 1.0)])]
    (tmp_path / "both").write_text("x")
    try:
        with pytest.raises(UserError, match="looks like one of") as error:
            import_results(tmp_path / "both", tmp_path / "out")
        assert "--from" in str(error.value)
    finally:
        TOOLS.clear()


def test_settings_lose_their_secrets() -> None:
    settings = {
        "api_key": "sk-1",
        "nested": [{"Authorization": "Bearer x", "temperature": 0}],
        "url": "http://u:p@h/x",
    }
    settings |= {"query": "https://h/v1?api_key=abc&n=1", "api_key_env": None}
    assert without_secrets(settings) == {
        "api_key": "[removed]",
        "nested": [{"Authorization": "[removed]", "temperature": 0}],
        "url": "http://h/x",
        "query": "https://h/v1?[removed]&n=1",
        "api_key_env": None,
    }


def test_ids_come_from_content() -> None:
    assert content_id({"a": 1, "b": [2]}) == content_id({"b": [2], "a": 1}) != content_id({"a": 2})


def test_hidden_files_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("a.json", ".b.json", ".git/c.json", "d/e.json", "f.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in files_below(tmp_path, ".json")] == ["a.json", "e.json"]
