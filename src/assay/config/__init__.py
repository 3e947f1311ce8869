"""From a YAML or JSON file, or a dict, to one typed Config, with every problem reported at once. Names stay names here:
what they stand for is looked up by the engine, and nothing is run."""

from assay.config.benchmarks import limit_changes
from assay.config.environment import environment, secret
from assay.config.inline import has_objects
from assay.config.loader import load, parse_model, parse_override, where
from assay.config.resolved import resolved, schema, to_yaml
from assay.config.rules import Need
from assay.config.types import (
    CalibrationConfig,
    Config,
    DatasetConfig,
    FewShotConfig,
    GateConfig,
    LabelFilter,
    LoggingConfig,
    MethodConfig,
    MetricConfig,
    ModelConfig,
    PolicyConfig,
    PromptConfig,
    RayConfig,
    SplitConfig,
    TaskConfig,
)

__all__ = [
    "CalibrationConfig",
    "Config",
    "DatasetConfig",
    "FewShotConfig",
    "GateConfig",
    "LabelFilter",
    "LoggingConfig",
    "MethodConfig",
    "MetricConfig",
    "ModelConfig",
    "Need",
    "PolicyConfig",
    "PromptConfig",
    "RayConfig",
    "SplitConfig",
    "TaskConfig",
    "environment",
    "has_objects",
    "limit_changes",
    "load",
    "parse_model",
    "parse_override",
    "resolved",
    "schema",
    "secret",
    "to_yaml",
    "where",
]
