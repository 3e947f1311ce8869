"""Few-shot examples: seeded, the same for the same item, and never the item itself."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.prompts._few_shot import FewShot
from assay.prompts.jinja import jinja
from assay.records import Item
from tests.support import Lab


def item(number: int, **more: Any) -> Item:
    fields: dict[str, Any] = {
        "id": f"i{number}",
        "data": {"question": f"{number} + 1"},
        "ground_truth": number + 1,
    }
    return Item(**{**fields, **more})


POOL = [item(number) for number in range(10)]
OTHER = item(100)


def contents(few_shot: FewShot, template: Any = "{{question}}", asked: Item = OTHER) -> list[str]:
    return [message["content"] for message in jinja(template, few_shot=few_shot).render(asked)]


def test_examples_are_turns_before_the_question() -> None:
    template = [
        {"role": "system", "content": "Short."},
        {"role": "user", "content": "Q: {{question}}"},
    ]
    messages = jinja(template, few_shot=FewShot(items=POOL, n=2, pick="first")).render(OTHER)
    assert messages == [
        {"role": "system", "content": "Short."},
        {"role": "user", "content": "Q: 0 + 1"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Q: 1 + 1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "Q: 100 + 1"},
    ]


def test_turns_of_their_own() -> None:
    turns = [{"role": "user", "content": "{{question}} = {{ground_truth}}"}]
    assert contents(FewShot(items=POOL, n=1, pick="first", messages=turns)) == [
        "0 + 1 = 1",
        "100 + 1",
    ]


def test_examples_as_text() -> None:
    few_shot = FewShot(
        items=POOL, n=2, pick="first", text="{{question}} is {{answer}}.", separator="|"
    )
    assert contents(few_shot, "{{examples}}: {{question}}") == ["0 + 1 is 1.|1 + 1 is 2.: 100 + 1"]
    assert contents(FewShot(items=POOL, n=1, pick="first"), "{{examples}}\n{{question}}") == [
        "0 + 1\n1\n100 + 1"
    ]


def test_a_text_that_is_shown_nowhere_is_refused() -> None:
    with pytest.raises(UserError, match="does not show `examples`"):
        jinja("{{question}}", few_shot=FewShot(items=POOL, text="{{question}}"))


def test_the_choice_depends_on_seed_and_item_alone() -> None:
    first = contents(FewShot(items=POOL, n=4))
    assert contents(FewShot(items=POOL, n=4)) == first
    assert contents(FewShot(items=POOL, n=4, seed=1)) != first
    assert contents(FewShot(items=POOL, n=4), asked=item(101))[:-1] != first[:-1]


@pytest.mark.parametrize(
    "asked",
    [
        item(3),
        item(3, id="another"),
        item(99, id="i3"),
        item(3, id="another", data={"question": "  3 +  1 ", "level": "easy"}),
    ],
)
@pytest.mark.parametrize("pick", ["random", "first"])
def test_an_item_is_never_its_own_example(asked: Item, pick: Any) -> None:
    shown = contents(FewShot(items=POOL, n=9, pick=pick), asked=asked)
    assert "3 + 1" not in shown[:-1]
    problem = jinja("{{question}}", few_shot=FewShot(items=POOL, n=10, pick=pick)).check(asked)
    assert problem is not None
    assert "9 remain without the item itself" in problem


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.integers(0, 40))
def test_n_different_examples_or_a_problem(size: int, n: int, seed: int, asked: int) -> None:
    few_shot = FewShot(items=[item(number) for number in range(size)], n=n, seed=seed)
    try:
        prompt = jinja("{{question}}", few_shot=few_shot)
    except UserError:
        assert size < n
        return
    if prompt.check(item(asked)) is not None:
        assert size - (asked < size) < n
        return
    shown = [
        message["content"] for message in prompt.render(item(asked)) if message["role"] == "user"
    ]
    assert len(set(shown)) == len(shown) == n + 1


def test_an_example_without_what_its_template_shows() -> None:
    few_shot = FewShot(items=[item(1, ground_truth=None)], n=1)
    assert "example 'i1'" in str(jinja("{{question}}", few_shot=few_shot).check(OTHER))


def test_the_text_tells_examples_apart() -> None:
    texts = {
        jinja("{{question}}", few_shot=few_shot).text
        for few_shot in (
            FewShot(items=POOL, n=2),
            FewShot(items=POOL, n=3),
            FewShot(items=POOL, n=2, seed=1),
            FewShot(items=POOL[1:], n=2),
            FewShot(items=[*POOL[1:], item(0, ground_truth="one")], n=2),
        )
    }
    assert len(texts) == 5


def test_from_a_file_of_the_config_and_an_edit_runs_the_cells_it_touches(lab: Lab) -> None:
    shots = ['{"question": "7 + 7", "answer": "14"}\n', '{"question": "8 + 8", "answer": "16"}\n']
    lab.write("shots.jsonl", "".join(shots))
    few_shot = {"path": str(lab.folder / "shots.jsonl"), "n": 1, "pick": "first"}
    lab.config["prompt_templates"] = {
        "shown": {"text": "What is {{question}}?", "few_shot": few_shot},
        "bare": "What is {{question}}?",
    }
    assert lab.run().ran == 16
    row = next(
        row for row in lab.read("responses.jsonl") if row["metadata"]["prompt_template"] == "shown"
    )
    assert [message["content"] for message in row["messages"]] == [
        "What is 7 + 7?",
        "14",
        "What is 0 + 1?",
    ]
    assert lab.run().ran == 0
    lab.write("shots.jsonl", "".join(reversed(shots)))
    assert lab.run().ran == 8


def test_from_the_datasets_own_items(lab: Lab) -> None:
    lab.config["prompt_templates"] = {"p": {"text": "What is {{question}}?", "few_shot": {"n": 3}}}
    lab.run()
    for row in lab.read("responses.jsonl"):
        asked = [message["content"] for message in row["messages"] if message["role"] == "user"]
        assert len(set(asked)) == 4
    lab.config["prompt_templates"]["p"]["few_shot"]["n"] = 4
    with pytest.raises(UserError, match="3 remain without the item itself"):
        lab.run()
