"""Rules that hold for every context."""

import datetime
import json
import random

import numpy as np
from hypothesis import given, strategies as st

from assay.formats.lm_eval.asking.documents import Generators, chat, join, plain, turn
from assay.formats.lm_eval.asking.fewshot import ContextSampler, FirstNSampler
from assay.formats.lm_eval.asking.rows import jsonable

texts = st.text(st.sampled_from("ab \n\t é"), max_size=4)


@given(texts, texts, texts)
def test_join(first: str, second: str, delimiter: str) -> None:
    whole = join(first, second, delimiter)
    if not first or not second or first[-1].isspace() or second[0].isspace():
        assert whole == first + second
    else:
        assert whole == first + delimiter + second


@given(texts, texts, texts, texts, texts)
def test_a_turn_as_plain_text(
    question: str, answer: str, prefix: str, delimiter: str, end: str
) -> None:
    """The text that the harness's documentation describes: question, delimiter, prefix and answer, end."""
    text = plain(turn(question, answer, None, prefix, delimiter, end))
    if not prefix:
        assert text == (question + delimiter + answer + end if answer else question)
    else:
        apart = (
            delimiter if question and not (question[-1].isspace() or prefix[0].isspace()) else ""
        )
        assert text == question + apart + (join(prefix, answer, " ") + end if answer else prefix)


@given(st.lists(st.tuples(texts, texts.filter(bool)), max_size=3), texts, texts, st.booleans())
def test_one_turn_has_the_text_of_all(
    shots: list[tuple[str, str]], question: str, prefix: str, described: bool
) -> None:
    system = [{"role": "system", "content": "s", "delimiter": ""}] if described else []
    before = [
        part for asked, answer in shots for part in turn(asked, answer, None, None, " ", "\n\n")
    ]
    last = turn(question, None, None, prefix, " ", "")
    messages = [*system, *before, *last]
    several, one = chat(messages), chat(messages, multiturn=False)
    assert [part["content"] for part in several] == [part["content"] for part in messages]
    assert [part["role"] for part in one] == ["system"] * described + ["user"] + [
        "assistant"
    ] * bool(prefix)
    assert one[described]["content"] == plain(before) + question
    assert plain(messages).startswith("s" * described + one[described]["content"])


@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 2**32))
def test_draws(count: int, place: int, seed: int) -> None:
    """One more is drawn for a document that may be among the examples, and the stream goes on from there."""
    docs = [{"n": number} for number in range(10)]
    sampler, oracle = ContextSampler(docs).set_rnd(seed), random.Random(seed)
    for _ in range(3):
        drawn = [doc for doc in oracle.sample(docs, count + 1) if doc != docs[place]][:count]
        assert sampler.sample(count, eval_doc=docs[place]) == drawn
        assert sampler.sample(count) == oracle.sample(docs, count)
    first = [doc for doc in docs if doc != docs[place]][:count]
    assert FirstNSampler(docs).sample(count, eval_doc=docs[place]) == first


def test_the_generators_are_in_place_only_within() -> None:
    random.seed(99)
    np.random.seed(98)
    outside = random.Random(99), np.random.RandomState(98)
    generators, python, numpy = Generators(), random.Random(0), np.random.RandomState(1234)
    for _ in range(3):
        with generators.in_place():
            assert (random.random(), np.random.rand()) == (python.random(), numpy.rand())
        assert (random.random(), np.random.rand()) == (outside[0].random(), outside[1].rand())


def test_values_that_json_can_carry() -> None:
    value = {
        "t": (1, 2.5),
        "d": datetime.datetime(2020, 1, 2),
        "s": {3},
        "np": [np.int64(4), np.float32(0.5), np.bool_(True), np.array([[1], [2]])],
        "nan": float("nan"),
        1: None,
        None: np.float64(2.0),
    }
    plain_value = {
        "t": [1, 2.5],
        "d": "2020-01-02 00:00:00",
        "s": [3],
        "np": [4, 0.5, True, [[1], [2]]],
        "nan": None,
    }
    assert jsonable(value) == plain_value | {"1": None, "null": 2.0}
    assert json.loads(json.dumps(jsonable(value), allow_nan=False)) == jsonable(value)
