"""What tells two logics apart: their source code and the JSON schemas of their types."""

import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

from assay.formats.intelligence_layer.evaluation.aggregation.aggregator import AggregationLogic
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.base_evaluator import EvaluationLogicBase
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.evaluator import EvaluationLogic
from assay.formats.intelligence_layer.generics import arguments_of, settled
from assay.formats.intelligence_layer.record import Record
from assay.formats.intelligence_layer.types import schema_of
from assay.usercode import identity


@dataclass(kw_only=True)
class EvaluationLogicIdentifier(Record):
    logic: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    expected_output_schema: dict[str, Any]
    evaluation_schema: dict[str, Any]


@dataclass(kw_only=True)
class AggregationLogicIdentifier(Record):
    logic: str
    evaluation_schema: dict[str, Any]
    aggregation_schema: dict[str, Any]


def type_to_schema(type_: Any) -> dict[str, Any]:
    return schema_of(type_)


def create_evaluation_logic_identifier(eval_logic: EvaluationLogic[Any, Any, Any, Any]) -> EvaluationLogicIdentifier:
    types = arguments_of(type(eval_logic), EvaluationLogicBase)
    schemas = {name: type_to_schema(settled(eval_logic, types, name, "do_evaluate")) for name in types}
    return EvaluationLogicIdentifier(
        logic=source_of(eval_logic),
        input_schema=schemas["Input"],
        output_schema=schemas["Output"],
        expected_output_schema=schemas["ExpectedOutput"],
        evaluation_schema=schemas["Evaluation"],
    )


def create_aggregation_logic_identifier(aggregation_logic: AggregationLogic[Any, Any]) -> AggregationLogicIdentifier:
    types = arguments_of(type(aggregation_logic), AggregationLogic)
    return AggregationLogicIdentifier(
        logic=source_of(aggregation_logic),
        evaluation_schema=type_to_schema(settled(aggregation_logic, types, "Evaluation", "aggregate")),
        aggregation_schema=type_to_schema(settled(aggregation_logic, types, "AggregatedEvaluation", "aggregate")),
    )


def source_of(logic: object) -> str:
    """The source of a logic's class; where no file holds it, what identifies its code."""
    try:
        return textwrap.dedent(inspect.getsource(type(logic)))
    except (OSError, TypeError):
        methods = (each for each in vars(type(logic)).values() if inspect.isfunction(each))
        return "\n".join(identity(method) for method in methods)
