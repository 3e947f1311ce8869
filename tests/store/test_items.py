import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.records import Item
from assay.store.items import decode_item, encode_item, normalise, normalise_all

from .conftest import unhurried

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
names = st.sampled_from(["id", "data", "ground_truth", "metadata", "question", "answer", "topic"])


def test_a_row_with_data() -> None:
    data = {"question": "2+2?", "answer": "4"}
    item = normalise({"id": "q1", "data": data, "topic": "sums", "metadata": {"level": 1}})
    assert item == Item(
        id="q1", data=data, ground_truth=data, metadata={"level": 1}, extra={"topic": "sums"}
    )


def test_a_given_ground_truth_wins_even_if_null() -> None:
    assert normalise({"id": "a", "data": {"q": 1}, "ground_truth": "4"}).ground_truth == "4"
    assert normalise({"id": "a", "data": {"q": 1}, "ground_truth": None}).ground_truth is None
    assert normalise({"id": "a", "q": 1, "ground_truth": ["4", "four"]}).ground_truth == [
        "4",
        "four",
    ]


def test_bare_data_is_no_ground_truth() -> None:
    assert normalise({"id": "a", "data": "translate this"}).ground_truth is None


def test_a_flat_row() -> None:
    item = normalise({"id": 7, "question": "2+2?", "answer": "4", "metadata": {"level": 1}})
    fields = {"question": "2+2?", "answer": "4"}
    assert item == Item(id="7", data=fields, ground_truth=fields, metadata={"level": 1})


def test_metadata_that_is_no_object_is_an_ordinary_field() -> None:
    assert normalise({"id": "a", "q": 1, "metadata": "text"}).data == {"q": 1, "metadata": "text"}
    assert normalise({"id": "a", "data": 1, "metadata": "text"}).extra == {"metadata": "text"}


@pytest.mark.parametrize(
    ("given_id", "text"), [(7, "7"), (1.5, "1.5"), (True, "true"), ("x/y", "x/y"), (0, "0")]
)
def test_scalar_ids_become_text(given_id: Any, text: str) -> None:
    assert normalise({"id": given_id, "q": 1}).id == text


def test_rows_without_ids_get_their_content_hash() -> None:
    row = {"question": "2+2?", "answer": "4"}
    # golden: these ids are in row keys on users' disks
    assert normalise(row).id == "b81d9276c52c7e01"
    assert (
        normalise({"answer": "4", "question": "2+2?", "id": None}).id
        != normalise({"answer": "5"}).id
    )
    assert normalise(dict(reversed(row.items()))).id == normalise(row).id


def test_repeats_without_ids_are_numbered() -> None:
    first, other = {"q": 1}, {"q": 2}
    ids = [item.id for item in normalise_all([first, other, first, first, {"id": "own", "q": 1}])]
    assert ids == [ids[0], ids[1], f"{ids[0]}-2", f"{ids[0]}-3", "own"]


@pytest.mark.parametrize("row", [17, "text", ["a"], None])
def test_a_row_must_be_an_object(row: Any) -> None:
    with pytest.raises(UserError) as caught:
        list(normalise_all([{"q": 1}, row], "questions.jsonl"))
    assert caught.value.where == "questions.jsonl, row 2"


@pytest.mark.parametrize("bad", [["a"], {"a": 1}])
def test_an_id_must_be_a_scalar(bad: Any) -> None:
    with pytest.raises(UserError, match="an id must be text or a number"):
        normalise({"id": bad, "q": 1}, "here")


@pytest.mark.parametrize("bad", [object(), {("a", "b"): 1}, "\ud800"])
def test_what_is_not_json_is_refused(bad: Any) -> None:
    with pytest.raises(UserError, match="cannot be written as JSON"):
        encode_item(normalise({"id": "a", "q": bad}))
    with pytest.raises(UserError, match="cannot be written as JSON"):
        encode_item(normalise({"q": bad}))


def test_a_bad_line_names_its_place() -> None:
    with pytest.raises(UserError) as caught:
        decode_item(b"{not json", "items.jsonl, line 3")
    assert caught.value.where == "items.jsonl, line 3"


def test_an_implicit_ground_truth_is_not_stored() -> None:
    assert json.loads(encode_item(normalise({"id": "a", "q": 1}))) == {"id": "a", "data": {"q": 1}}
    assert json.loads(encode_item(normalise({"id": "a", "q": 1, "ground_truth": None}))) == {
        "id": "a",
        "data": {"q": 1},
        "ground_truth": None,
    }


@unhurried
@given(
    st.dictionaries(names, values, max_size=6).filter(
        lambda row: not isinstance(row.get("id"), (list, dict))
    )
)
def test_the_stored_row_gives_the_same_item(row: dict[str, Any]) -> None:
    item = normalise(row)
    assert decode_item(encode_item(item)) == item
    assert encode_item(decode_item(encode_item(item))) == encode_item(item)
