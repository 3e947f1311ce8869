"""From a YAML or JSON file, or a dict, to one typed Config, with every problem reported at once. Names stay names here:
what they stand for is looked up by the engine, and nothing is run."""

from assay.config.benchmarks import limited as limited
from assay.config.environment import environment as environment
from assay.config.environment import secret as secret
from assay.config.inline import has_objects as has_objects
from assay.config.loader import load as load
from assay.config.loader import parse_model as parse_model
from assay.config.loader import parse_override as parse_override
from assay.config.loader import where as where
from assay.config.resolved import resolved as resolved
from assay.config.resolved import schema as schema
from assay.config.resolved import to_yaml as to_yaml
from assay.config.rules import Need as Need
from assay.config.types import BudgetConfig as BudgetConfig
from assay.config.types import CalibrationConfig as CalibrationConfig
from assay.config.types import Config as Config
from assay.config.types import DatasetConfig as DatasetConfig
from assay.config.types import FewShotConfig as FewShotConfig
from assay.config.types import GateConfig as GateConfig
from assay.config.types import LabelFilter as LabelFilter
from assay.config.types import LoggingConfig as LoggingConfig
from assay.config.types import MethodConfig as MethodConfig
from assay.config.types import MetricConfig as MetricConfig
from assay.config.types import ModelConfig as ModelConfig
from assay.config.types import PolicyConfig as PolicyConfig
from assay.config.types import PriceConfig as PriceConfig
from assay.config.types import PromptConfig as PromptConfig
from assay.config.types import RayConfig as RayConfig
from assay.config.types import SplitConfig as SplitConfig
from assay.config.types import TaskConfig as TaskConfig
