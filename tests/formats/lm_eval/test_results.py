"""Values, numbers and standard errors against the harness's own, in results/*.json (made by results/make.py)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import UserError
from assay.formats.lm_eval.scoring.aggregations import aggregate, higher_is_better, stderr
from assay.formats.lm_eval.scoring.results import results
from assay.formats.lm_eval.tasks.definition import Definition, Hook

FOLDER = Path(__file__).parent / "results"
CASES = sorted(file.stem for file in FOLDER.glob("*.json"))


def real(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"!function"}:
            return Hook(f"own.{value['!function']}", str(FOLDER))
        return {key: real(entry) for key, entry in value.items()}
    return [real(entry) for entry in value] if isinstance(value, list) else value


def case_of(name: str) -> tuple[Definition, dict[str, Any]]:
    case = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Definition(task=name, file=str(FOLDER / f"{name}.yaml"), **real(case["config"])), case


def scored(definition: Definition, case: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for row in case["rows"]:
        values = results(
            definition,
            row["doc"],
            row["target"],
            row["choices"],
            row["answers"],
            multiple_target=case["multiple_target"],
        )
        made = {",".join(key): value for key, value in values.items()}
        rows.append(msgspec.json.decode(msgspec.json.encode(made)))
    return rows


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_harness(name: str) -> None:
    definition, case = case_of(name)
    if "error" in case:
        with pytest.raises(UserError, match=case["error"]):
            numbers(definition, case)
        return
    rows = scored(definition, case)
    assert rows == [row["values"] for row in case["rows"]]
    for key, values in columns(rows).items():
        metric, _, pipe = key.partition(",")
        assert aggregate(definition, metric, values) == pytest.approx(
            case["numbers"][key], rel=1e-12, abs=1e-12
        )
        theirs = case["numbers"][f"{metric}_stderr,{pipe}"]
        ours = stderr(definition, metric, values, 2500)
        assert ours == (None if theirs == "N/A" else pytest.approx(theirs, rel=1e-9, abs=1e-12))
        assert higher_is_better(definition, metric) == case["higher_is_better"].get(metric)


def numbers(definition: Definition, case: dict[str, Any]) -> dict[str, float]:
    made = columns(scored(definition, case)).items()
    return {key: aggregate(definition, key.partition(",")[0], values) for key, values in made}


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row[key] for row in rows if key in row] for key in keys}
