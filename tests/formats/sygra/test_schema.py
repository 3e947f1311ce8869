"""`schema_config`: types and rules, with pydantic itself as the oracle for what converts."""

from typing import Any, Optional

import pydantic
import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.formats.sygra.data.schema import row_schema
from tests.formats.sygra.data_support import load

TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "none": type(None),
    "any": Any,
    "list[str]": list[str],
    "list[int]": list[int],
    "dict[str,int]": dict[str, int],
    "dict[str, list[float]]": dict[str, list[float]],
    "list[dict[str, any]]": list[dict[str, Any]],
    "tuple[int, str]": tuple[int, str],
    "set[int]": set[int],
}
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 2.5, -3.0]),
    st.sampled_from(
        [
            "",
            "1",
            " 2 ",
            "3.0",
            "2.5",
            "x",
            "yes",
            "No",
            "true",
            "off",
            "1e2",
            "1.",
            "+1",
            "1_0",
            "١",
            "nan",
            "1.50",
            "00.0",
            "2.0 ",
        ]
    ),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab1"), inner, max_size=2)
    ),
)


def fields(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"fields": list(entries)}


def wrong(config: dict[str, Any], record: Any) -> list[str]:
    return row_schema(config, load=load)(record)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(TYPES)), VALUES)
def test_types_take_what_pydantic_takes(name: str, value: Any) -> None:
    try:
        pydantic.TypeAdapter(TYPES[name]).validate_python(value)
        wanted = True
    except pydantic.ValidationError:
        wanted = False
    found = wrong(fields({"name": "f", "type": name}), {"f": value, "more": 1})
    assert (not found) == wanted, found


def test_the_documented_example() -> None:
    config = fields(
        {"name": "id", "type": "int", "is_greater_than": 99999},
        {"name": "conversation", "type": "list[dict[str, any]]"},
        {"name": "tags", "type": "list[str]"},
    )
    record = {"id": 130426, "conversation": [{"role": "user", "content": "x"}], "tags": ["a"]}
    assert wrong(config, record) == []
    assert wrong(config, {**record, "id": "130426"}) == []
    assert wrong(config, {**record, "id": 5}) == ["id: 5 is not greater than 99999"]
    assert wrong(config, {"id": "x", "tags": [1]}) == [
        "id: 'x' is not a whole number",
        "conversation: it is missing",
        "tags: 1 is not text",
    ]


@pytest.mark.parametrize(
    ("rule", "bound", "good", "bad"),
    [("is_greater_than", 1, 2, 1), ("is_less_than", 1, 0, 1), ("is_equal_to", "a", "a", "b")],
)
def test_rules(rule: str, bound: Any, good: Any, bad: Any) -> None:
    config = fields({"name": "f", "type": "any", rule: bound})
    assert wrong(config, {"f": good}) == []
    assert len(wrong(config, {"f": bad})) == 1
    assert len(wrong(config, {"f": None})) == 1


class Model(pydantic.BaseModel):
    id: int
    label: Optional[str] = None  # noqa: UP045  as task folders write it

    @pydantic.field_validator("id")
    @classmethod
    def positive(cls, value: int) -> int:
        if value < 0:
            raise ValueError("id cannot be negative")
        return value


class Raises:
    @staticmethod
    def model_validate(record: Any) -> None:
        raise KeyError("x")


def test_pydantic_classes() -> None:
    config = {"schema": f"{__name__}.Model"}
    assert wrong(config, {"id": "3", "more": 1}) == []
    assert wrong(config, {"id": -1}) == ["id: Value error, id cannot be negative"]
    assert wrong(config, {}) == ["id: Field required"]
    assert wrong({"schema": f"{__name__}.Raises"}, {}) == ["KeyError: 'x'"]


@pytest.mark.parametrize(
    ("config", "what", "where"),
    [
        ({}, "'schema' or 'fields'", "schema_config"),
        ({"fields": []}, "'schema' or 'fields'", "schema_config"),
        ({"schema": "math.gone"}, "cannot be imported", "schema_config.schema"),
        ({"schema": "math.pi"}, "is not a schema", "schema_config.schema"),
        (fields({"name": "a"}), "needs 'name' and 'type'", "schema_config.fields[0]"),
        (
            fields({"name": "a", "type": "lisr"}),
            "'lisr' is not a type",
            "schema_config.fields[0].type",
        ),
        (
            fields({"name": "a", "type": "list[str"}),
            "is not a type",
            "schema_config.fields[0].type",
        ),
        (
            fields({"name": "a", "type": "list[str]]"}),
            "is not a type",
            "schema_config.fields[0].type",
        ),
        (
            fields({"name": "a", "type": "str | int"}),
            "is not a type",
            "schema_config.fields[0].type",
        ),
        (fields({"name": "a", "type": ""}), "needs 'name' and 'type'", "schema_config.fields[0]"),
        (
            fields({"name": "a", "type": "int", "is_more_than": 1}),
            "unknown rule",
            "schema_config.fields[0]",
        ),
    ],
)
def test_bad_schemas(config: dict[str, Any], what: str, where: str) -> None:
    with pytest.raises(UserError) as caught:
        row_schema(config, load=load)
    assert what in caught.value.what
    assert caught.value.where == where


def test_a_misspelt_type_names_the_nearest() -> None:
    with pytest.raises(UserError) as caught:
        row_schema(fields({"name": "a", "type": "lisr"}), load=load)
    assert "did you mean 'list'?" in caught.value.fix
