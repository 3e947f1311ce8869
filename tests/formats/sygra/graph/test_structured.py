"""Structured output: what the server is asked for, and what counts as an answer."""

from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.sygra.graph import ModelUse
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped

FIELDS = {
    "topic": {"type": "str", "description": "One topic."},
    "sure": {"type": "float", "default": 0.5},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"type": "string", "description": "One topic."},
        "sure": {"type": "number"},
    },
    "required": ["topic", "sure"],
    "additionalProperties": False,
}


def asking(structured: Any, *answers: str, **use: Any) -> tuple[Bench, Any]:
    waiting = list(answers)
    bench = Bench(answer=lambda messages: waiting.pop(0))
    ask = llm(
        model={"name": "m", "parameters": {"temperature": 0}, "structured_output": structured}
    )
    (row,) = bench.run(
        chain({"ask": ask}, **mapped("answer")),
        {"question": "2"},
        models={"m": ModelUse("m", **use)},
    )
    assert row.output is not None, row.error
    return bench, row.output["answer"]


def test_the_server_is_asked_for_the_schema() -> None:
    bench, answer = asking({"schema": {"fields": FIELDS}}, ' {"topic": "Art", "sure": "0.9"}\n')
    assert answer == '{"topic": "Art", "sure": "0.9"}'
    assert bench.asked[0].params == {
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "DynamicModel", "strict": True, "schema": SCHEMA},
        },
    }


def test_other_servers_are_asked_in_their_own_way() -> None:
    bench, _ = asking({"schema": {"fields": FIELDS}}, '{"topic": "Art"}', native="guided_json")
    assert bench.asked[0].params == {"temperature": 0, "guided_json": SCHEMA}
    bench, _ = asking({"schema": {"fields": FIELDS}}, '{"topic": "Art"}', native="none")
    assert bench.asked[0].params == {"temperature": 0}
    assert '"additionalProperties":false' in bench.sent()[0][-1]["content"]
    assert len(bench.asked) == 1


@pytest.mark.parametrize(
    "text", ['Here:\n```json\n{"topic": "Art"}\n```', 'It is {"topic": "Art"}, surely.']
)
def test_json_in_prose_counts(text: str) -> None:
    bench, answer = asking({"schema": {"fields": FIELDS}}, text)
    assert (answer, len(bench.asked)) == ('{"topic":"Art"}', 1)


@pytest.mark.parametrize(
    "bad", ["no json", '{"sure": 1}', '{"topic": 3}', '["topic"]', '{"topic": "a", "sure": "x"}']
)
def test_a_bad_answer_is_asked_for_once_more(bad: str) -> None:
    bench, answer = asking({"schema": {"fields": FIELDS}}, bad, '{"topic": "Art"}')
    assert answer == '{"topic": "Art"}'
    first, second = bench.asked
    assert second.params == {"temperature": 0}
    assert second.messages[-1]["content"].startswith("2\n\n")
    assert "JSON schema" in second.messages[-1]["content"]
    assert first.messages == [{"role": "user", "content": "2"}]


def test_if_that_fails_too_the_text_is_returned() -> None:
    bench, answer = asking({"schema": {"fields": FIELDS}}, "bad", " worse ")
    assert (answer, len(bench.asked)) == ("worse", 2)


def test_off_is_off() -> None:
    bench, answer = asking({"enabled": False, "schema": {"fields": FIELDS}}, "text")
    assert (answer, bench.asked[0].params) == ("text", {"temperature": 0})


def test_a_model_may_bring_its_structure_and_a_node_may_have_its_own() -> None:
    bench, _ = asking({}, '{"topic": "Art"}', structured_output={"schema": {"fields": FIELDS}})
    assert "response_format" in bench.asked[0].params
    bench = Bench(answer=lambda messages: '{"topic": "Art"}')
    bench.output(
        chain({"ask": llm(structured_output={"schema": {"name": "T", "fields": FIELDS}})}),
        question="2",
    )
    assert bench.asked[0].params["response_format"]["json_schema"]["name"] == "T"


def test_a_pydantic_class() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Topic(pydantic.BaseModel):
        topic: str = "x"
        inner: Inner

    bench = Bench({"t.Topic": Topic}, lambda messages: '{"topic": "Art", "inner": {"n": "3"}}')
    ask = llm(model={"name": "m", "structured_output": {"schema": "t.Topic"}})
    bench.output(chain({"ask": ask}), question="2")
    sent = bench.asked[0].params["response_format"]["json_schema"]
    assert (sent["name"], sent["schema"]["required"]) == ("Topic", ["topic", "inner"])
    assert sent["schema"]["$defs"]["Inner"]["additionalProperties"] is False
    assert len(bench.asked) == 1


@pytest.mark.parametrize(
    ("structured", "where"),
    [
        ({"schema": {"fields": {"a": {"type": "string_"}}}}, "structured_output.schema.fields.a"),
        ({"schema": {"fields": {}}}, "structured_output.schema"),
        ({"schema": "json.dumps"}, "structured_output.schema"),
        ({"schema": 3}, "structured_output.schema"),
    ],
)
def test_schemas_that_are_none(structured: Any, where: str) -> None:
    import json

    ask = llm(model={"name": "m", "structured_output": structured})
    with pytest.raises(UserError) as caught:
        Bench({"json.dumps": json.dumps}).task(chain({"ask": ask}))
    assert caught.value.where == f"graph_config.nodes.ask.model.{where}"
