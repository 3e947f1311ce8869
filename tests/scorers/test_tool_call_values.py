"""Calls with several allowed values, declared types, and calls that are written as text: by hand, after the rules that
the Berkeley Function-Calling Leaderboard publishes."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers.tool_call import tool_call
from assay.text.tool_calls import ToolCall, written_calls

WEATHER = {"weather": {"city": ["Paris", "Paris, France"], "days": [2], "unit": ["celsius", ""]}}
TOOLS = [
    {
        "name": "weather",
        "parameters": {
            "type": "dict",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"type": "string"},
                "height": {"type": "float"},
                "places": {"type": "array", "items": {"type": "float"}},
                "span": {"type": "tuple", "items": {"type": "integer"}},
                "exact": {"type": "boolean"},
                "more": {"type": "dict"},
                "any": {"type": "any"},
            },
        },
    }
]


def score(truth: Any, text: str, **params: Any) -> Score:
    settings = {"allowed_values": True, "loose_text": True, "written": True, **params}
    return tool_call(
        Item(id="i", ground_truth=truth), Response(item_id="i", response=text), **settings
    )


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("weather(city='Paris', days=2)", True),
        ("[weather(city='Paris', days=2)]", True),
        ("[weather(days=2, city='paris france', unit='Celsius')]", True),
        ("```python\n[weather(city='Paris', days=2)]\n```", True),
        ("<think>weather(city='Rome')</think>weather(city='Paris', days=2)", True),
        ('{"name": "weather", "arguments": {"city": "Paris", "days": 2}}', True),
        ('[{"name": "weather", "arguments": {"city": "Paris", "days": 2.0}}]', True),
        ("weather(city='Rome', days=2)", False),
        ("weather(city='Paris')", False),
        ("weather(city='Paris', days=3)", False),
        ("weather(city='Paris', days='2')", False),
        ("weather(city='Paris', days=2, unit='kelvin')", False),
        ("weather(city='Paris', days=2, hour=3)", False),
        ("forecast(city='Paris', days=2)", False),
        ("weather(city='Paris', days=2), weather(city='Paris', days=2)", False),
        ("It will rain in Paris.", False),
        ("", False),
    ],
)
def test_several_allowed_values_and_optional_arguments(text: str, passed: bool) -> None:
    for truth in (
        [WEATHER],
        WEATHER,
        {"tool_calls": [{"name": "weather", "arguments": WEATHER["weather"]}]},
    ):
        assert score(truth, text).passed is passed


def test_calls_of_an_answer_count_before_its_text() -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "PARIS", "days": 2}'},
    }
    answer = Response(item_id="i", response="weather(city='Rome')", tool_calls=[call])
    assert tool_call(
        Item(id="i", ground_truth=[WEATHER]),
        answer,
        allowed_values=True,
        loose_text=True,
        written=True,
    ).passed


def test_parallel_calls_in_any_order() -> None:
    truth = [{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}, {"g.h": {}}]
    assert score(truth, "[g.h(), f(a=1), f(a=2)]").passed
    assert score(truth, "f(a=2)\nf(a=1)\ng.h()").passed
    partly = score(truth, "[f(a=2), f(a=2), g.h()]")
    assert (partly.passed, partly.score) == (False, 2 / 3)
    assert not score(truth, "[g.h(), f(a=1), f(a=2)]", order=True).passed


@pytest.mark.parametrize(
    ("argument", "allowed", "given", "passed"),
    [
        ("days", [2], "2", True),
        ("days", [2], "2.0", False),
        ("days", [1], "True", False),
        ("height", [2.0, 3.5], "2", True),
        ("height", [2], "2.0", True),
        ("height", [2], "'2'", False),
        ("height", [-1.5], "-1.5", True),
        ("exact", [True], "True", True),
        ("exact", [True], "true", True),
        ("exact", [True], "1", False),
        ("exact", [True], "'True'", False),
        ("places", [[1.0, 2.5]], "[1, 2.5]", True),
        ("places", [[1.0, 2.5]], "[2.5, 1.0]", False),
        ("places", [[1.0]], "['1.0']", False),
        ("span", [[1, 2]], "(1, 2)", True),
        ("span", [[1, 2]], "(1, 2, 3)", False),
        ("more", [{"name": ["X Y"], "age": [3, ""]}], "{'name': 'x-y'}", True),
        ("more", [{"name": ["X"], "age": [3, ""]}], "{'name': 'X', 'age': 4}", False),
        ("more", [{"name": ["X"]}], "{'name': 'X', 'age': 4}", False),
        ("more", [{"name": ["X"]}], "'X'", False),
        ("any", [["a", {"b": [1]}]], "['A', {'b': 1}]", True),
        ("any", ["x"], "x", True),
        ("any", ["max(1, 2)"], "max(1,2)", True),
        ("any", [None], "None", True),
        ("city", ["New York, NY"], "'new york ny'", True),
        ("city", ["it's"], "'it\"s'", True),
        ("hours", [3], "3", False),
        ("unit", ["", True], "True", True),
        ("places", ["data['x']"], "data['x']", True),
    ],
)
def test_declared_types(argument: str, allowed: list[Any], given: str, passed: bool) -> None:
    truth = {"tool_calls": [{"weather": {argument: allowed}}], "tools": TOOLS}
    assert score(truth, f"weather({argument}={given})", tools="tools").passed is passed


def test_what_is_required_may_not_be_missing() -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"a": {}}, "required": ["a"]}},
        }
    ]
    truth = {"tool_calls": [{"f": {"a": [1, ""]}}], "tools": tools}
    assert score(truth, "f()").passed
    assert not score(truth, "f()", tools="tools").passed
    assert score(truth, "f(a=1)", tools="tools").passed
    with pytest.raises(LookupError, match="a tool needs a `name`"):
        score({**truth, "tools": [{}]}, "f()", tools="tools")


def test_without_lists_the_values_themselves_are_expected() -> None:
    truth = [{"name": "f", "arguments": {"a": [1], "b": "X Y"}}]
    assert score(truth, "f(a=[1], b='x_y')", allowed_values=False).passed
    assert not score(truth, "f(a=1, b='x_y')", allowed_values=False).passed
    assert not score(truth, "f(a=[1], b='x_y')", allowed_values=False, loose_text=False).passed
    assert score(truth, "f(a=[1], b='x_y', c=2)", allowed_values=False, arguments="subset").passed


@pytest.mark.parametrize(
    "text",
    [
        "[weather(city='Paris'",
        "weather(city=)",
        "f('Paris')",
        "f(**x)",
        "[" * 5000,
        "f(" * 90_000,
        '[{"a": 1}]',
    ],
)
def test_calls_that_cannot_be_read_are_unparsed(text: str) -> None:
    assert score([WEATHER], text).outcome == "unparsed"


def test_no_call_is_right_where_none_is_expected() -> None:
    assert score([], "I have no tool for that.").passed
    assert not score([], "weather(city='Paris')").passed


def test_nothing_of_a_text_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert written_calls("f(a=print('x'), b=[1 + 1], c=2**99)") == [
        ToolCall("f", {"a": "print('x')", "b": ["1 + 1"], "c": "2 ** 99"})
    ]
    assert written_calls(f"f(a={2**70})") == [ToolCall("f", {"a": str(2**70)})]
    assert not capsys.readouterr().out


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, max_value=1e15)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "ccc"]), json_values))
def test_what_python_writes_is_read_back(arguments: dict[str, Any]) -> None:
    text = f"f({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
    assert [call.arguments for call in written_calls(text)] == [_small(arguments)]


def _small(value: Any) -> Any:
    if isinstance(value, float) and abs(value) >= 2**63:
        return repr(value)
    if isinstance(value, list):
        return [_small(part) for part in value]
    return {key: _small(part) for key, part in value.items()} if isinstance(value, dict) else value
