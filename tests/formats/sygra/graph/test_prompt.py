"""Prompts of nodes: what is filled in, what is not, and what is said about a variable that is missing."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.formats.sygra.graph.llm import Prompt, Template
from tests.formats.sygra.graph.graphs import Bench, chain, llm

values = st.one_of(
    st.text(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=3),
)


@given(
    st.lists(st.text(alphabet="a%s {}\n\"'é", max_size=8), min_size=1, max_size=4),
    st.lists(values, min_size=4),
)
def test_templates_are_format_strings(pieces: list[str], found: list[Any]) -> None:
    """The oracle is Python's own str.format."""
    escaped = [piece.replace("{", "{{").replace("}", "}}") for piece in pieces]
    text = "".join(f"{piece}{{v{n}}}" for n, piece in enumerate(escaped))
    state = {f"v{n}": value for n, value in enumerate(found)}
    assert Template(text, "t").render(state) == text.format(**state)


@pytest.mark.parametrize("text", ["{x!r} {x}", "{n:>5}|{n:.2f}", "{n:05d}{{}}"])
def test_conversions_and_formats(text: str) -> None:
    state = {"x": "é'", "n": 3}
    assert Template(text, "t").render(state) == text.format(**state)


def test_braces_in_values_are_not_read_again() -> None:
    bench = Bench()
    bench.run(
        chain({"ask": llm('Say {{lit}} and {question}, as {"x"}'.replace('{"x"}', "50%"))}),
        {"question": "{a} {{"},
    )
    assert bench.sent() == [[{"role": "user", "content": "Say {lit} and {a} {{, as 50%"}]]


def test_a_block_keeps_its_last_line_feed_and_columns_may_have_arrows() -> None:
    bench = Bench()
    bench.run(chain({"ask": llm("Q: {users->name}\n")}), {"users->name": "Ann"})
    assert bench.sent()[0][0]["content"] == "Q: Ann\n"


def test_a_missing_variable_is_named_with_what_there_is() -> None:
    bench = Bench()
    rows = bench.run(
        chain({"ask": llm("{question} {hint}")}), {"question": "?"}, {"question": "?", "hint": "!"}
    )
    assert rows[0].error is not None
    assert "node 'ask': the prompt needs 'hint', which" in rows[0].error
    assert "id, messages, question" in rows[0].error
    assert (rows[0].outcome, rows[0].error_kind, rows[1].outcome) == ("errored", "permanent", "ok")


def test_no_attribute_of_a_value_can_be_reached() -> None:
    assert "needs 'question.__class__'" in Bench().error(
        chain({"ask": llm("{question.__class__}")}), question="?"
    )


@pytest.mark.parametrize("text", ['Reply {"answer": 1}', "a } b", "{ open", "{}", "{0}"])
def test_braces_that_name_nothing(text: str) -> None:
    with pytest.raises(UserError) as caught:
        Prompt([{"user": text}], "prompt")
    assert "{{ and }}" in caught.value.fix
    assert caught.value.where == "prompt[0]"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("text", "list of messages"),
        ([], "list of messages"),
        ([{"user": "a", "system": "b"}], "one role"),
        ([{"robot": "a"}], "'robot' is not a role"),
        ([{"user": 3}], "is a int"),
    ],
)
def test_what_is_no_prompt(source: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        Prompt(source, "prompt")


def test_images_one_or_many() -> None:
    parts = [{"type": "text", "text": "See {n}"}, {"type": "image_url", "image_url": "{shots}"}]
    prompt = Prompt([{"system": "s"}, {"user": parts}], "prompt")
    assert prompt.names == {"n", "shots"}

    def filled(shots: Any) -> Any:
        return prompt.render({"n": 2, "shots": shots})[1]["content"]

    one = {"type": "image_url", "image_url": {"url": "data:1"}}
    assert filled("data:1") == [{"type": "text", "text": "See 2"}, one]
    assert filled(["data:1", {"url": "u"}])[1:] == [
        one,
        {"type": "image_url", "image_url": {"url": "u"}},
    ]
    with pytest.raises(UserError, match="needs 'shots'"):
        prompt.render({"n": 2})
