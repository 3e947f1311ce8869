import msgspec
import pytest

from assay.formats.mixeval.metric import ModelScores, ScoreCell, scores_view


def scores(model: str, label: str, value: float | None, **counts: int) -> ModelScores:
    zero = dict.fromkeys((field.name for field in msgspec.structs.fields(ScoreCell)), 0)
    made = {
        **zero,
        "value": value,
        "low": value,
        "high": value,
        "entries": 9,
        "unique": 7,
        **counts,
    }
    cell = msgspec.convert(made, ScoreCell)
    return ModelScores(
        model=model, label=label, cells={"overall": cell, "MMLU": cell}, compatible={}
    )


def shown(given: list[ModelScores], width: int = 100) -> list[str]:
    text = scores_view("mixeval 1", given, level=0.9).form(width=width)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line.strip("─ ")]


def test_one_model_by_benchmark_with_both_parsers() -> None:
    given = [scores("m", "rule-compat", 0.5, guessed=3), scores("m", "rule", 0.25)]
    assert shown(given) == [
        "mixeval 1: m",
        "benchmark rule-compat 90% interval guessed rule 90% interval entries unique",
        "overall 0.500 0.500–0.500 3 0.250 0.250–0.250 9 7",
        "MMLU 0.500 0.500–0.500 3 0.250 0.250–0.250 9 7",
    ]


def test_a_narrow_terminal_gets_a_table_for_each_parser() -> None:
    given = [scores("m", "rule-compat", 0.5), scores("m", "rule", None)]
    lines = shown(given, 60)
    assert "benchmark rule-compat 90% interval entries unique" in lines
    assert "benchmark rule 90% interval entries unique" in lines
    assert "overall – – 9 7" in lines


def test_models_are_in_the_order_of_the_last_parser() -> None:
    given = [
        scores(model, label, value)
        for model, values in {"a": (0.9, 0.1), "b": (0.1, 0.9), "c": (0.5, 0.9)}.items()
        for label, value in zip(("rule-compat", "rule"), values, strict=True)
    ]
    lines = shown(given)
    assert [line.split()[0] for line in lines if line.split()[0] in "abc"] == ["b", "c", "a"]
    assert "overall 0.900 0.900 0.100" in lines


@pytest.mark.parametrize("name", ["\x1b[31mred\x1b[0m", "[bold]loud[/bold]"])
def test_names_cannot_command_the_terminal(name: str) -> None:
    text = "\n".join(shown([scores(name, "rule", 0.5), scores("other", "rule", 0.4)]))
    assert "\x1b" not in text
    assert "red" in text or "[bold]loud[/bold]" in text
