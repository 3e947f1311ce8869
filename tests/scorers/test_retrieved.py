"""Retrieved and relevant documents in the shapes that people have, and what a ranking of them is worth."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from assay.records import Item, Response
from assay.scorers._retrieved import (
    Document,
    average_precision,
    flat,
    grades,
    holds,
    ndcg,
    reciprocal_rank,
    relevant,
    retrieved,
    sentences,
    support_of,
    texts,
)

TWO = [Document("a", "one"), Document("b", "two")]


def found(docs: Any, field: str | None = None, **places: Any) -> list[Document]:
    item = Item(
        id="i",
        data=places.get("data"),
        metadata=places.get("item_metadata", {}),
        extra=places.get("extra", {}),
    )
    response = Response(
        item_id="i", output=places.get("output", docs), metadata=places.get("metadata", {})
    )
    return retrieved(item, response, field)


@pytest.mark.parametrize(
    "documents",
    [
        [{"doc_id": "a", "content": "one"}, {"doc_id": "b", "content": "two"}],
        [{"id": "a", "text": "one", "score": 0.9}, {"id": "b", "text": "two", "title": "B"}],
        [
            {"rank": 2, "doc_id": "b", "content": "two"},
            {"rank": 1, "doc_id": "a", "content": "one"},
        ],
    ],
)
def test_documents_in_their_shapes(documents: Any) -> None:
    assert found({"retrieved_docs": documents}) == TWO


def test_documents_that_are_only_texts_or_only_ids() -> None:
    assert found({"contexts": ["one", "two"]}) == [Document("one", "one"), Document("two", "two")]
    assert found({"context": "one text"}) == [Document("one text", "one text")]
    assert found({"docs": [7, {"_id": 8}]}) == [Document("7", ""), Document("8", "")]
    assert texts([Document("7", ""), Document("x", " "), Document("y", "y")]) == ["y"]
    assert found({"documents": []}) == []


def test_where_documents_are_looked_for() -> None:
    everywhere: dict[str, Any] = {
        "output": {"docs": ["output"]},
        "metadata": {"docs": ["metadata"]},
        "data": {"docs": ["data"], "deep": {"er": ["down"]}},
        "extra": {"docs": ["extra"]},
        "item_metadata": {"docs": ["item"]},
    }
    for place in ("output", "metadata", "data", "extra", "item_metadata"):
        assert found(None, **everywhere)[0].text == place.removesuffix("_metadata")
        everywhere[place] = {"output": None, "data": everywhere["data"]}.get(place, {})
        everywhere["data"] = (
            {"deep": everywhere["data"]["deep"]} if place == "data" else everywhere["data"]
        )
    assert found(None, "deep.er", **everywhere)[0].text == "down"
    assert found(None, "item.data.deep.er", **everywhere)[0].text == "down"
    assert found(None, "response.metadata.x", metadata={"x": ["m"]})[0].text == "m"


@pytest.mark.parametrize(
    ("documents", "field", "said"),
    [
        (None, None, "no retrieved documents"),
        ({"docs": 3}, None, "must be a list, found int"),
        ({"docs": [None]}, None, "must be a text or have a text or an id, found 'None'"),
        ({"docs": [{"score": 1}]}, None, "must be a text or have"),
        ({"docs": []}, "passages", "in 'passages'"),
    ],
)
def test_no_documents(documents: Any, field: str | None, said: str) -> None:
    with pytest.raises(LookupError, match=said):
        found(documents, field)


@pytest.mark.parametrize(
    ("truth", "field", "expected"),
    [
        (["a", 7], None, {"a": 1.0, "7": 1.0}),
        ("a", None, {"a": 1.0}),
        ({"relevant_ids": ["a"]}, None, {"a": 1.0}),
        ({"qrels": {"a": 2, "b": 0}}, None, {"a": 2.0}),
        ({"gold_docs": [{"doc_id": "a", "grade": 3}, {"id": "b"}]}, None, {"a": 3.0, "b": 1.0}),
        ({"mine": ["b"], "relevant": ["a"]}, "mine", {"b": 1.0}),
    ],
)
def test_relevant_documents(truth: Any, field: str | None, expected: dict[str, float]) -> None:
    assert relevant(Item(id="i", ground_truth=truth), field) == expected


@pytest.mark.parametrize(
    "truth", [None, [], {}, {"answer": "x"}, {"qrels": {"a": 0}}, {"relevant": []}]
)
def test_no_relevant_document(truth: Any) -> None:
    with pytest.raises(LookupError, match=r"no relevant document|has none of"):
        relevant(Item(id="i", ground_truth=truth))
    with pytest.raises(LookupError, match="no field 'mine'"):
        relevant(Item(id="i", ground_truth={"other": 1}), "mine")


GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3).map(float), min_size=1)
RANKINGS = st.permutations("abcdefghij").flatmap(
    lambda ids: st.integers(0, 10).map(lambda size: ids[:size])
)


@given(GRADES, RANKINGS, st.integers(1, 12))
def test_ndcg_is_scikit_learns(graded: dict[str, float], ranked: list[str], k: int) -> None:
    ids = [*ranked, *(id for id in "abcdefghijkl" if id not in ranked)]
    true = [graded.get(id, 0.0) for id in ids]
    unseen = [grade if id in ranked else 0.0 for id, grade in zip(ids, true, strict=True)]
    places = -np.arange(len(ids))
    best = ndcg_score([true], [true], k=k)
    ideal = np.sort(true)[::-1][:k] @ (1 / np.log2(np.arange(2, 2 + min(k, len(true)))))
    gained = sum(grade / np.log2(place + 2) for place, grade in enumerate(unseen[:k]))
    assert best == pytest.approx(1.0)
    assert ndcg(grades(ranked, graded, k), graded, k) == pytest.approx(gained / ideal)
    if len(ranked) >= k:
        assert ndcg(grades(ranked, graded, k), graded, k) == pytest.approx(
            ndcg_score([true], [places], k=k)
        )


@given(GRADES, st.permutations("abcdefgh"))
def test_rankings_against_scikit_learn(graded: dict[str, float], ranked: list[str]) -> None:
    given_grades = grades(ranked, graded)
    hits = [id in graded for id in ranked]
    assert average_precision(given_grades) == pytest.approx(
        average_precision_score(hits, -np.arange(8))
    )
    assert reciprocal_rank(given_grades) == 1 / (1 + hits.index(True))


def test_a_document_counts_once() -> None:
    assert grades(["a", "a", "b"], {"a": 2.0, "b": 1.0}) == [2.0, 0.0, 1.0]
    assert ndcg([1.0, 0.0, 3.0], {"a": 3.0, "b": 1.0}, 3, "exponential") == pytest.approx(
        (1 + 7 / 2) / (7 + 1 / np.log2(3))
    )


def test_support_by_words() -> None:
    assert flat("It's  3.14!") == "it s 3 14"
    assert sentences("One. Two is 3.14! ") == ["One", "Two is 3.14"]
    assert (holds("a party", "art"), holds("a party", "art", whole_words=False)) == (False, True)
    assert support_of("The cat, dog", ["a cat."], "plain", {"the"}) == 0.5
    assert support_of("The cat, dog", ["a cat."], "split", {"the"}) == 0.0
    assert support_of("the", ["the"], "plain", {"the"}) is None
    assert support_of("cat", [], "plain", ()) == 0.0
