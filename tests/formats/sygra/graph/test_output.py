"""The output record: maps, literals, paths into the config, generators."""

from typing import Any

import pytest

from assay.errors import UserError
from assay.formats.sygra.graph.output import OutputGenerator
from tests.formats.sygra.graph.graphs import Bench, chain, llm, mapped, node


def output(output_config: Any, helpers: Any = None, **record: Any) -> Any:
    return Bench(helpers).output(
        chain({"ask": llm()}, output_config=output_config), question="2", **record
    )


def test_from_value_and_what_is_missing() -> None:
    fields = {
        "id": {"from": "id"},
        "said": {"from": "answer"},
        "kind": {"value": "qa", "from": "answer"},
        "none": {"value": None},
        "gone": {"from": "no_such"},
    }
    assert output({"output_map": fields}, id="a") == {
        "id": "a",
        "said": "<2>",
        "kind": "qa",
        "none": None,
        "gone": None,
    }


def test_paths_lead_into_the_whole_config() -> None:
    source = chain(
        {"ask": llm()},
        data_config={"source": [{"repo_id": "a/b"}]},
        output_config={
            "output_map": {
                "repo": {"value": "$data_config.source[0].repo_id"},
                "nested": {"value": {"list": ["$graph_config.nodes.ask.model.name", "plain"]}},
                "price": {"value": "$5"},
            }
        },
    )
    bench = Bench()
    task = bench.task(source, where="tasks/a/graph_config.yaml")
    (row,) = bench.run_task(task, {"question": "2"})
    assert row.output == {"repo": "a/b", "nested": {"list": ["m", "plain"]}, "price": "$5"}
    assert task.notes == [
        "tasks/a/graph_config.yaml: output_config.output_map.price:"
        " '$5' leads nowhere in the config and is taken as text"
    ]


def test_without_a_map_the_whole_state_is_written() -> None:
    ask = llm()
    del ask["output_keys"]
    out = Bench().output(chain({"ask": ask}), question="2")
    assert out == {
        "id": "r0",
        "question": "2",
        "messages": [{"role": "assistant", "content": "<2>", "name": "ask"}],
        "__chat_history__": [],
    }


def test_the_response_is_the_records_json() -> None:
    (row,) = Bench().run(chain({"ask": llm()}, **mapped("answer")), {"question": "é"})
    assert (row.response, row.output) == ('{"answer":"<é>"}', {"answer": "<é>"})


class Generator(OutputGenerator):
    def shout(self, data: Any, state: Any) -> Any:
        return f"{data}{state['question']}!"

    @staticmethod
    async def later(data: Any, state: Any) -> Any:
        return data


class Plain:
    @staticmethod
    def shout(data: Any, state: Any) -> Any:
        return data.upper()


class Whole(OutputGenerator):
    def generate(self, state: Any) -> Any:
        record = super().generate(state)
        return None if state["question"] == "skip" else {**(record or {}), "all": len(state)}


def test_transforms_are_methods_of_the_generator() -> None:
    fields = {
        "a": {"from": "answer", "transform": "shout"},
        "b": {"value": 1, "transform": "later"},
    }
    assert output({"generator": "g", "output_map": fields}, {"g": Generator}) == {
        "a": "<2>2!",
        "b": 1,
    }
    assert output({"generator": "g", "output_map": {"a": fields["a"]}}, {"g": Plain}) == {
        "a": "<2>"
    }


def test_a_generator_may_make_the_record_and_leave_some_out() -> None:
    bench = Bench({"g": Whole})
    config = {"generator": "g", "output_map": {"a": {"from": "answer"}}}
    rows = bench.run(
        chain({"ask": llm()}, output_config=config), {"question": "2"}, {"question": "skip"}
    )
    assert rows[0].output == {"a": "<2>", "all": 5}
    assert (rows[1].output, rows[1].outcome, rows[1].error) == (None, "skipped", None)


def test_a_failing_transform_is_the_records_error() -> None:
    class Broken(OutputGenerator):
        def boom(self, data: Any, state: Any) -> Any:
            raise ValueError("no")

    config = {"generator": "g", "output_map": {"a": {"from": "answer", "transform": "boom"}}}
    error = Bench({"g": Broken}).error(chain({"ask": llm()}, output_config=config), question="2")
    assert error.startswith("NodeFailed: the generator: boom (test_output.py:")


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"output_map": {"a": {}}}, "'a' has no source"),
        ({"output_map": ["a"]}, "not a mapping"),
        (
            {"output_map": {"a": {"from": "answer", "transform": "shuot"}}, "generator": "g"},
            "no method 'shuot'",
        ),
        ({"output_map": {"a": {"from": "answer", "transform": "shout"}}}, "needs a generator"),
        ({"generator": "nope"}, "'nope' cannot be imported"),
        ({"oasst_mapper": {"required": "yes"}}, "oasst_mapper is not offered"),
        ({"data_quality": {"tasks": ["x"]}}, "data_quality is not offered"),
    ],
)
def test_output_configs_that_cannot_work(config: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        Bench({"g": Generator}).task(chain({"ask": llm()}, output_config=config))


def test_values_that_are_no_json() -> None:
    import numpy as np

    class Result:
        def to_dict(self) -> Any:
            return {"correct": True}

    found = {"a": Result(), "b": np.float64(0.5), "c": np.arange(2), "d": {1}, "e": (1, {2: 3})}
    bench = Bench({"f": lambda config, state: found, "bad": lambda config, state: {"a": object()}})
    names = list("abcde")
    source = chain({"f": node("lambda", **{"lambda": "f"}, output_keys=names)}, **mapped(*names))
    assert bench.output(source) == {
        "a": {"correct": True},
        "b": 0.5,
        "c": [0, 1],
        "d": [1],
        "e": [1, {"2": 3}],
    }
    source["graph_config"]["nodes"]["f"]["lambda"] = "bad"
    assert "a object is not a JSON value" in bench.error(source)


def test_a_state_that_is_checked_may_be_refused() -> None:
    def check(state: Any) -> None:
        if state["question"] == "bad":
            raise ValueError("question: must not be bad")

    source = chain({"ask": llm()}, **mapped("answer"), schema_config={"fields": []})
    rows = Bench().run(source, {"question": "good"}, {"question": "bad"}, check=check)
    assert [row.outcome for row in rows] == ["ok", "errored"]
    assert str(rows[1].error).startswith(
        "ValueError: question: must not be bad (test_output.py, line "
    )
