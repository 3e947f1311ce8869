import random
from pathlib import Path

import pytest

from assay.errors import UserError
from assay.interfaces import Log
from assay.records import Item
from assay.store import index as index_module
from assay.store.index import ItemIndex, content_hash
from assay.store.items import encode_item
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog


def filled(log: Log, ids: list[str]) -> Log:
    log.append(
        b"".join(encode_item(Item(id=id, data={"n": n})) + b"\n" for n, id in enumerate(ids))
    )
    return log


@pytest.fixture(params=["spread", "colliding"])
def hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "colliding":
        monkeypatch.setattr(index_module, "id_number", lambda item_id: len(item_id))


@pytest.mark.usefixtures("hashes")
def test_items_are_found_by_id(tmp_path: Path) -> None:
    ids = [f"item {n}" for n in range(300)] + ["ä/..", "x" * 10_000]
    random.Random(3).shuffle(ids)
    index = ItemIndex(filled(FileLog(tmp_path / "items.jsonl"), ids))
    assert len(index) == len(ids)
    assert [item.id for item in index] == ids
    for n, id in enumerate(ids):
        item = index.get(id)
        assert item is not None
        assert (item.id, item.data) == (id, {"n": n})
        position = index.position(id)
        assert position is not None
        assert index.log.read(position) == encode_item(item)
    assert index.get("item") is None
    assert index.position("item 300") is None


@pytest.mark.usefixtures("hashes")
def test_repeated_ids_are_refused_with_both_lines() -> None:
    log = filled(MemoryLog(), ["a", "b", "c", "b", "d"])
    with pytest.raises(UserError, match="two items have the id 'b'") as caught:
        ItemIndex(log, source="questions.jsonl")
    assert caught.value.where == "questions.jsonl, lines 2 and 4"


def test_an_empty_dataset_is_fine() -> None:
    index = ItemIndex(MemoryLog())
    assert len(index) == 0
    assert list(index) == []
    assert index.get("a") is None


def test_a_bad_line_is_named() -> None:
    log = filled(MemoryLog(), ["a"])
    log.append(b"\n{broken\n")
    with pytest.raises(UserError) as caught:
        ItemIndex(log)
    assert caught.value.where == "items.jsonl, line 3"


def test_rows_written_by_others_are_understood() -> None:
    log = MemoryLog()
    log.append(b'{"id": 5, "question": "2+2?", "weight": NaN}\n')
    item = ItemIndex(log).get("5")
    assert item is not None
    assert item.data["question"] == "2+2?"


def test_the_content_hash_is_of_the_bytes() -> None:
    log = filled(MemoryLog(), ["a", "b"])
    index = ItemIndex(log)
    assert index.content == content_hash(log) == ItemIndex(filled(MemoryLog(), ["a", "b"])).content
    assert index.content != ItemIndex(filled(MemoryLog(), ["b", "a"])).content
    joined, split = MemoryLog(), MemoryLog()
    joined.append(b'{"id":"a"}\n\n')
    split.append(b'{"id":"a"}\n')
    assert content_hash(joined) != content_hash(split)


def test_sixteen_bytes_an_item() -> None:
    index = ItemIndex(filled(MemoryLog(), [str(n) for n in range(10_000)]))
    held = [part for part in vars(index).values() if hasattr(part, "itemsize")]
    assert sum(part.itemsize * len(part) for part in held) == 16 * len(index)
