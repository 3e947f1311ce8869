"""Response files as rows of ours: both layouts, any order, and everything that can be wrong with them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.mixeval.dataset import mixeval
from assay.formats.mixeval.finding import ModelFiles
from assay.formats.mixeval.responses import Import
from assay.records import Response
from assay.store.index import ItemIndex
from assay.store.items import encode_item, normalise
from assay.store.memory_log import MemoryLog
from assay.text.json_stream import file_entries
from tests.formats.mixeval.folder import VERSION
from tests.formats.mixeval.folders import rows, write_both

KINDS = ("free-form", "multiple-choice")


class Files:
    """The two files of a model, and what their import gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        log = MemoryLog("items.jsonl")
        for place, row in mixeval(str(write_both(folder)), version=VERSION):
            log.append(encode_item(normalise(row, place), place) + b"\n")
        self.items = ItemIndex(log)
        self.rows: dict[str, list[Any]] = {kind: rows(kind, ["a", "b", "c"]) for kind in KINDS}

    def read(self) -> tuple[list[Response], Import]:
        files = {kind: self.folder / f"m_{kind}.jsonl" for kind in KINDS}
        for kind, path in files.items():
            lines = [row if isinstance(row, str) else json.dumps(row) for row in self.rows[kind]]
            path.write_text("".join(line + "\n" for line in lines))
        imported = Import(ModelFiles(model="m", files=files), self.items)
        return list(imported.responses()), imported


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_rows_become_responses_in_the_order_of_the_files(files: Files) -> None:
    files.rows["free-form"].reverse()
    found, imported = files.read()
    assert [row.item_id for row in found][:3] == ["free-form/2", "free-form/1", "free-form/0"]
    assert [row.response for row in found] == ["c", "b", "a", "a", "b", "c"]
    assert {row.outcome for row in found} == {"ok"}
    assert imported.odd.notes() == {}
    assert len({row.key for row in found}) == 6


def test_keys_depend_on_entry_model_and_answer_alone(files: Files) -> None:
    first = {row.item_id: row.key for row in files.read()[0]}
    files.rows["free-form"].reverse()
    files.rows["multiple-choice"][0]["response"] = "other"
    second = {row.item_id: row.key for row in files.read()[0]}
    assert {id for id in first if first[id] != second[id]} == {"multiple-choice/0"}


def test_null_is_an_error_and_empty_is_an_answer(files: Files) -> None:
    files.rows["free-form"][0]["response"] = None
    files.rows["free-form"][1]["response"] = ""
    del files.rows["free-form"][2]["response"]
    found, imported = files.read()
    assert [row.outcome for row in found[:3]] == ["errored", "ok", "errored"]
    assert imported.odd.found == {"null": (2, "free-form/0"), "empty": (1, "free-form/1")}


def test_missing_and_extra_ids_are_counted_with_the_first(files: Files) -> None:
    files.rows["free-form"] = [
        {**files.rows["free-form"][0], "id": "77"},
        *files.rows["free-form"][1:],
    ]
    found, imported = files.read()
    assert len(found) == 5
    assert imported.odd.found == {"extra": (1, "free-form/77"), "missing": (1, "free-form/0")}


def test_an_id_that_is_a_number_is_the_same_id(files: Files) -> None:
    files.rows["free-form"][1]["id"] = 1
    assert files.read()[1].odd.notes() == {}


def test_a_repeated_id_is_refused_with_both_places(files: Files) -> None:
    files.rows["multiple-choice"].append(files.rows["multiple-choice"][1])
    with pytest.raises(UserError, match="two responses have the id '1'") as caught:
        files.read()
    assert "m_multiple-choice.jsonl:2 and " in caught.value.where
    assert caught.value.where.endswith("m_multiple-choice.jsonl:4")


def test_another_input_is_no_response_to_the_entry(files: Files) -> None:
    files.rows["free-form"][1]["formated_input"] = "Question: something else?"
    found, imported = files.read()
    assert [row.outcome for row in found[:3]] == ["ok", "errored", "ok"]
    assert imported.odd.found == {"different": (1, "free-form/1")}


def test_without_the_input_prompt_context_and_options_are_compared(files: Files) -> None:
    for row in files.rows["multiple-choice"]:
        del row["formated_input"]
    files.rows["multiple-choice"][2]["options"] = ["5", "7", "6"]
    assert files.read()[1].odd.found == {"different": (1, "multiple-choice/2")}


def test_a_chat_template_around_the_input_is_none_of_another_version(files: Files) -> None:
    for row in files.rows["free-form"]:
        row["formated_input"] = f"<user>{row['formated_input']}\n</user>"
    assert files.read()[1].odd.notes() == {}


def test_another_version_is_refused(files: Files) -> None:
    for row in (*files.rows["free-form"], *files.rows["multiple-choice"][:1]):
        row["formated_input"] = "Question: of last year?"
    with pytest.raises(UserError, match=r"4 of 6 stored inputs .* first is that of 'free-form/0'"):
        files.read()


def test_only_unknown_ids_are_refused(files: Files) -> None:
    for kind in KINDS:
        files.rows[kind] = [{**row, "id": f"x{row['id']}"} for row in files.rows[kind]]
    with pytest.raises(UserError, match="none of the 6 responses"):
        files.read()


def test_a_bad_line_costs_itself_alone(files: Files) -> None:
    whole = json.dumps(files.rows["free-form"][1])
    files.rows["free-form"][1] = whole[: len(whole) // 2]
    files.rows["multiple-choice"].insert(1, "[1]")
    found, imported = files.read()
    assert [row.item_id for row in found[:2]] == ["free-form/0", "free-form/2"]
    assert imported.odd.found["broken"][0] == 1
    assert "m_free-form.jsonl:2" in imported.odd.found["broken"][1]
    assert imported.odd.found["no_id"][0] == 1
    assert imported.odd.found["missing"] == (1, "free-form/1")


def test_what_json_cannot_hold_is_no_reason_to_stop(files: Files) -> None:
    files.rows["free-form"][0]["response"] = "half \ud83d of a smile"
    files.rows["free-form"][1]["weight"] = float("nan")
    files.rows["free-form"][2] = {**files.rows["free-form"][2], "response": {"text": "8"}}
    found, imported = files.read()
    assert [row.response for row in found[:3]] == ["half ? of a smile", "b", '{"text": "8"}']
    assert imported.odd.notes() == {}


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8, 0.99])
def test_half_a_list_gives_its_first_half(tmp_path: Path, cut: float) -> None:
    text = json.dumps([{"id": str(number), "response": "x" * 20} for number in range(50)], indent=1)
    path = tmp_path / "half.json"
    path.write_text(text[: int(len(text) * cut)])
    broken: list[str] = []
    found = [row["id"] for _, row in file_entries(path, broken.append)]
    assert found == [str(number) for number in range(len(found))]
    assert abs(len(found) - 50 * cut) <= 2
    assert len(broken) == 1


@given(
    st.lists(
        st.fixed_dictionaries({"id": st.text(min_size=1), "response": st.none() | st.text()}),
        max_size=5,
    )
)
def test_every_layout_gives_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, given: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("layouts")
    texts = {
        "lines.jsonl": "".join(json.dumps(row) + "\n" for row in given),
        "blank.jsonl": "\n".join(json.dumps(row, ensure_ascii=False) + "\n" for row in given),
        "list.json": json.dumps(given, indent=2),
        "spread.json": "\n".join(json.dumps(row, indent=2) for row in given),
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        assert [row for _, row in file_entries(path, pytest.fail)] == given
