"""Values of the user's types to JSON and back."""

import dataclasses
import subprocess
import sys
import threading
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from assay.formats.intelligence_layer.connectors import JsonSerializable, SerializableDict
from assay.formats.intelligence_layer.types import ModelRecord, from_json, to_json
from tests.formats.intelligence_layer.labs import Question, QuestionData, QuestionStruct


class Colour(Enum):
    RED = "red"


class Whole(BaseModel):
    question: Question
    many: list[QuestionData]
    when: datetime


@dataclasses.dataclass
class WithModel:
    question: Question
    number: int = 0


class StructWithModel(msgspec.Struct):
    questions: list[Question]


@dataclasses.dataclass(kw_only=True)
class Own(ModelRecord):
    id: UUID
    colour: Colour = Colour.RED


NOW = datetime(2024, 5, 22, 9, 43, 37, 428758, UTC)
VALUES: list[tuple[Any, Any]] = [
    (1, int),
    (True, bool),
    ("text", str),
    (None, type(None)),
    (1.5, float),
    ([1, 2], list[int]),
    ({"a": None}, dict[str, Any]),
    (Question(text="q"), Question),
    ([Question(text="q")], list[Question]),
    ({"k": Question(text="q")}, dict[str, Question]),
    (Question(text="q"), Question | str),
    ("q", Question | str),
    (None, Question | None),
    (QuestionData("q"), QuestionData),
    (QuestionStruct("q"), QuestionStruct),
    (WithModel(Question(text="q"), 3), WithModel),
    (StructWithModel([Question(text="q")]), StructWithModel),
    (Whole(question=Question(text="q"), many=[QuestionData("d")], when=NOW), Whole),
    (NOW, datetime),
    (Colour.RED, Colour),
    ({1, 2}, set[int]),
    (("a", 1), tuple[str, int]),
    (Own(id=UUID(int=5)), Own),
]


@pytest.mark.parametrize(("value", "type"), VALUES)
def test_a_value_comes_back_equal_and_of_its_type(value: Any, type: Any) -> None:
    data = msgspec.json.decode(msgspec.json.encode(to_json(value)))
    back = from_json(data, type)
    assert back == value
    assert back.__class__ is value.__class__


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_plain_json_is_its_own_json(value: Any) -> None:
    assert to_json(value) == value
    for anything in (Any, object, JsonSerializable):
        assert from_json(value, anything) == value


@pytest.mark.parametrize(
    ("data", "type"), [("1", int), (None, str), ({"txt": "q"}, Question), (1, list[Question])]
)
def test_what_does_not_fit_is_refused_as_pydantic_does(data: Any, type: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        from_json(data, type)


@pytest.mark.parametrize("type", [QuestionStruct, QuestionData])
def test_what_does_not_fit_is_a_value_error(type: Any) -> None:
    with pytest.raises(ValueError, match="text"):
        from_json({}, type)


def test_pydantic_may_be_strict() -> None:
    class Strict(BaseModel, strict=True):
        when: datetime

    assert from_json(to_json(Strict(when=NOW)), Strict).when == NOW


def test_what_json_cannot_hold_is_named() -> None:
    with pytest.raises(TypeError, match="lock"):
        to_json({"lock": threading.Lock()})


def test_nothing_imports_pydantic_by_itself() -> None:
    code = (
        "import sys; from assay.formats.intelligence_layer.types import from_json, to_json\n"
        "import assay.formats.intelligence_layer.core\n"
        "assert from_json(to_json([1]), list[int]) == [1]\n"
        "try: from_json('x', int)\n"
        "except ValueError: pass\n"
        "else: sys.exit('not refused')\n"
        "sys.exit(sum(name in sys.modules for name in ('pydantic', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_records_have_what_code_uses_of_models() -> None:
    own = Own(id=UUID(int=5))
    assert own.model_dump() == {"id": UUID(int=5), "colour": Colour.RED}
    assert own.model_dump(mode="json") == {"id": str(UUID(int=5)), "colour": "red"}
    assert Own.model_validate_json(own.model_dump_json(indent=2)) == own
    assert SerializableDict == dict[str, JsonSerializable]
