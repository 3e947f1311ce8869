"""What the Every Eval Ever schema 0.3.0 asks of a record and of an instance, as far as Assay writes it."""

from typing import Any

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
NUMBER = {"type": "number"}
COUNT = {"type": "integer", "minimum": 0}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object that may have nothing but these fields."""
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def listed(of: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": least}


def one_of(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


def or_null(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


PATH = r"^data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_samples\.jsonl$"
NAMED = ["dataset_name", "source_type"]
DATASET = {
    "oneOf": [
        closed(NAMED, dataset_name=TEXT, source_type={"const": "other"}, additional_details=TEXTS),
        closed(
            NAMED,
            dataset_name=TEXT,
            source_type={"const": "hf_dataset"},
            hf_repo=TEXT,
            samples_number={"type": "integer"},
            additional_details=TEXTS,
        ),
    ]
}
METRIC = {
    **closed(
        ["lower_is_better"],
        metric_id=TEXT,
        metric_name=TEXT,
        metric_kind=TEXT,
        metric_unit=TEXT,
        metric_parameters={
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        },
        lower_is_better={"type": "boolean"},
        score_type=one_of("continuous"),
        min_score=NUMBER,
        max_score=NUMBER,
        additional_details=TEXTS,
    ),
    "dependentRequired": {"score_type": ["min_score", "max_score"]},
}
UNCERTAINTY = closed(
    [],
    standard_error=closed(["value"], value=NUMBER, method=TEXT),
    confidence_interval=closed(
        ["lower", "upper"],
        lower=NUMBER,
        upper=NUMBER,
        confidence_level={"type": "number", "minimum": 0, "maximum": 1},
        method=TEXT,
    ),
    num_samples=COUNT,
)
GENERATION = closed(
    [],
    generation_args=closed(
        [],
        temperature=NUMBER,
        top_p=NUMBER,
        top_k=NUMBER,
        max_tokens={"type": "integer", "minimum": 1},
        prompt_template=TEXT,
    ),
    additional_details=TEXTS,
)
RESULT = closed(
    ["evaluation_name", "source_data", "metric_config", "score_details"],
    evaluation_result_id=TEXT,
    evaluation_name=TEXT,
    source_data=DATASET,
    evaluation_timestamp=TEXT,
    metric_config=METRIC,
    score_details=closed(["score"], score=NUMBER, details=TEXTS, uncertainty=UNCERTAINTY),
    generation_config=GENERATION,
)
MODEL = closed(
    ["name", "id", "additional_details"],
    name=TEXT,
    id={"type": "string", "pattern": "^[^/]+/."},
    developer=TEXT,
    inference_platform=TEXT,
    inference_engine=closed([], name=TEXT, version=TEXT),
    additional_details={
        "type": "object",
        "required": ["deployment_type", "model_availability"],
        "properties": {
            "deployment_type": one_of("self_deployed", "externally_managed", "unknown"),
            "model_availability": one_of("open_weights", "closed_weights", "unknown"),
        },
        "additionalProperties": TEXT,
    },
)
RECORD = closed(
    [
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "model_info",
        "eval_library",
        "evaluation_results",
    ],
    schema_version={"const": "0.3.0"},
    evaluation_id=TEXT,
    evaluation_timestamp=TEXT,
    retrieved_timestamp={"type": "string", "pattern": "^[0-9]+$"},
    source_metadata=closed(
        ["source_type", "source_organization_name", "evaluator_relationship"],
        source_name=TEXT,
        source_type=one_of("documentation", "evaluation_run"),
        source_organization_name=TEXT,
        evaluator_relationship=one_of("first_party", "third_party", "collaborative", "other"),
    ),
    eval_library=closed(["name", "version"], name=TEXT, version=TEXT),
    model_info=MODEL,
    evaluation_results=listed(RESULT, 1),
    detailed_evaluation_results=closed(
        ["format", "file_path"],
        format={"const": "jsonl"},
        file_path={"type": "string", "pattern": PATH},
        hash_algorithm={"const": "sha256"},
        checksum=TEXT,
        total_rows=COUNT,
    ),
)
INSTANCE = closed(
    [
        "schema_version",
        "evaluation_id",
        "model_id",
        "evaluation_name",
        "sample_id",
        "interaction_type",
        "input",
        "answer_attribution",
        "evaluation",
        "output",
    ],
    schema_version={"const": "0.3.0"},
    evaluation_id=TEXT,
    model_id=TEXT,
    evaluation_name=TEXT,
    evaluation_result_id=TEXT,
    sample_id=TEXT,
    sample_hash=TEXT,
    interaction_type={"const": "single_turn"},
    input=closed(
        ["raw", "reference"],
        raw=TEXT,
        reference=listed(TEXT),
        formatted=or_null(TEXT),
        choices=listed(TEXT),
    ),
    output=closed(["raw"], raw=listed(TEXT), reasoning_trace=or_null(listed(TEXT))),
    answer_attribution=listed(
        closed(
            ["turn_idx", "source", "extracted_value", "extraction_method", "is_terminal"],
            turn_idx=COUNT,
            source=TEXT,
            extracted_value=TEXT,
            extraction_method=TEXT,
            is_terminal={"type": "boolean"},
        )
    ),
    evaluation=closed(["score", "is_correct"], score=NUMBER, is_correct={"type": "boolean"}),
    token_usage=or_null(
        closed(
            ["input_tokens", "output_tokens", "total_tokens"],
            input_tokens=COUNT,
            output_tokens=COUNT,
            total_tokens=COUNT,
        )
    ),
    performance=or_null(closed([], latency_ms=NUMBER)),
    error=or_null(TEXT),
    metadata=TEXTS,
)
