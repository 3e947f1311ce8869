"""Templates: what they see, what they refuse, and that the short way renders what Jinja renders."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from assay.errors import UserError
from assay.prompts.jinja import jinja, variables
from assay.records import Item

ITEM = Item(
    id="q1",
    data={"question": "2 + 2", "parts": ["a", "b"]},
    ground_truth={"answer": "4"},
    metadata={"level": 3},
    extra={"topic": "sums"},
)


def text(template: str, item: Item = ITEM) -> str:
    (message,) = jinja(template).render(item)
    assert message["role"] == "user"
    return message["content"]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Q: {{question}}!", "Q: 2 + 2!"),
        ("{{ data.question }} {{data['question']}}", "2 + 2 2 + 2"),
        ("{{id}} {{topic}} {{metadata.level}} {{item.id}}", "q1 sums 3 q1"),
        ("{% for part in parts %}{{loop.index}}{{part}} {% endfor %}", "1a 2b "),
        ("{{ parts|join('-') }} {{ question|upper }}", "a-b 2 + 2"),
        ("no variables", "no variables"),
        ("one\n", "one"),
    ],
)
def test_what_a_template_sees(template: str, expected: str) -> None:
    assert text(template) == expected


@pytest.mark.parametrize("template", ["{{ground_truth}}", "{{item.ground_truth}}", "{{answer}}"])
def test_the_ground_truth_is_out_of_sight(template: str) -> None:
    assert jinja(template).check(ITEM) is not None


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Item(id="1", data={"prompt": "p", "question": "q"}), "p"),
        (Item(id="1", data={"question": "q", "problem": "b"}), "q"),
        (Item(id="1", data={"problem": "b"}), "b"),
        (Item(id="1", data="the text"), "the text"),
        (Item(id="1", data={"x": 1}), '{"x":1}'),
    ],
)
def test_without_a_template_the_item_asks_itself(item: Item, expected: str) -> None:
    assert text("", item) == expected


@pytest.mark.parametrize(
    "template", ["{{ques}}", "{{ques|upper}}", "{% if ques %}x{% endif %}", "{{data.ques}}"]
)
def test_an_undefined_variable_is_a_problem_before_any_call(template: str) -> None:
    problem = jinja(template).check(ITEM)
    assert problem is not None
    assert "ques" in problem
    assert jinja("{{question}}").check(ITEM) is None


def test_the_nearest_name_is_offered() -> None:
    assert "did you mean 'question'?" in str(jinja("{{questoin}}").check(ITEM))


@pytest.mark.parametrize(
    "template", ["{{ 1 / 0 }}", "{{ question + 1 }}", "{{ question|batch }}", "{{ 5|xmlattr }}"]
)
def test_a_template_that_fails_is_a_problem(template: str) -> None:
    assert "the template fails" in str(jinja(template).check(ITEM))


@pytest.mark.parametrize(
    "template", ["{{ question", "{% for %}", "{{ question|nofilter }}", "line\n{% endif %}"]
)
def test_a_template_that_is_none_is_refused(template: str) -> None:
    with pytest.raises(UserError, match="cannot be read") as caught:
        jinja(template, where="prompt.txt")
    assert caught.value.where.startswith("prompt.txt")


@pytest.mark.parametrize(
    "attack",
    [
        "{{ question.__class__ }}",
        "{{ question.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.__class__.__base__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ joiner.__init__.__globals__.os }}",
        "{{ question['__class__'] }}",
        "{{ question|attr('__class__') }}",
        "{{ '{0.__class__}'.format(question) }}",
        "{{ '%s'.__mod__ }}",
        "{{ parts.append('c') }}",
        "{{ metadata.update({'level': 9}) }}",
        "{{ data.pop('question') }}",
        "{{ range(10 ** 9)|list }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
    ],
)
def test_attacks_are_refused(attack: str) -> None:
    try:
        assert jinja(attack).check(ITEM) is not None
    except UserError:
        pass
    assert ITEM.data == {"question": "2 + 2", "parts": ["a", "b"]}
    assert ITEM.metadata == {"level": 3}


def test_the_sandbox_says_that_it_was_the_sandbox() -> None:
    with pytest.raises(SecurityError):
        jinja("{{ question.__class__.__name__ }}").render(ITEM)


def test_chat_messages() -> None:
    prompt = jinja(
        [
            {"role": "system", "content": "Be {{topic}}."},
            {"role": "user", "content": "{{question}}"},
        ],
        name="c",
    )
    assert prompt.render(ITEM) == [
        {"role": "system", "content": "Be sums."},
        {"role": "user", "content": "2 + 2"},
    ]
    assert prompt.name == "c"
    assert prompt.text != jinja([{"role": "user", "content": "{{question}}"}]).text


def test_fields_win_over_the_items_own() -> None:
    item = Item(id="1", data={"id": "mine", "data": "d"}, extra={"id": "extra"})
    assert variables(item)["id"] == "mine"
    assert text("{{id}} {{item.id}}", item) == "mine extra"


environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
values = st.one_of(
    st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers())
)
pieces = st.one_of(
    st.text().filter(lambda piece: "{" not in piece),
    st.sampled_from(
        [
            "{{a}}",
            "{{ b }}",
            "{{-a}}",
            "{{b-}}",
            "{# note #}",
            "\n",
            "\r\n",
            " { ",
            "{{a|string}}",
            "{{a ~ b}}",
        ]
    ),
)


@settings(deadline=None)
@given(st.lists(pieces).map("".join), values, values)
def test_the_short_way_renders_what_jinja_renders(template: str, a: Any, b: Any) -> None:
    item = Item(id="1", data={"a": a, "b": b})
    if template:
        assert text(template, item) == environment.from_string(template).render(a=a, b=b)
