"""What unit metrics give to aggregator metrics, what each metric says about itself, and the registries of both.

Built-in metrics are there from the first look on. A name that was not registered may also be an entry point (group
`assay.sygra_unit_metrics` or `assay.sygra_aggregator_metrics`) or the dotted path of a class.
"""

import importlib
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import msgspec

from assay import registry
from assay.formats.sygra.types import Config, Row
from assay.sdk import AssayError, UserError, nearest

B = TypeVar("B", bound="type[BuiltIn]")
C = TypeVar("C", bound=type[Any])
logger = logging.getLogger("assay")
_YES, _NO = {"yes", "y", "on", "t"}, {"no", "n", "off", "f"}


class BadParameter(UserError, ValueError):
    """A metric's parameter is missing or wrong; a ValueError, because that is what helpers expect."""


class UnknownName(UserError, KeyError):
    """A metric, a column or a key of the state is not there."""


@dataclass
class UnitMetricResult:
    """Whether one prediction is right, with both sides and whatever the metric found out."""

    correct: bool
    golden: Row
    predicted: Row
    metadata: Row = field(default_factory=Row)

    def __post_init__(self) -> None:
        if not isinstance(self.golden, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("golden must be a dictionary")
        if not isinstance(self.predicted, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("predicted must be a dictionary")
        if not isinstance(self.metadata, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.metadata = {}

    def to_dict(self) -> Row:
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Config) -> "UnitMetricResult":
        golden, predicted = data.get("golden", {}), data.get("predicted", {})
        return cls(data.get("correct", False), golden, predicted, data.get("metadata", {}))


class BaseMetricMetadata(SimpleNamespace):
    """How a metric is called and read, and whatever else its author says about it."""

    def __init__(
        self,
        *,
        name: str,
        display_name: str,
        description: str,
        range: tuple[float, float] = (0.0, 1.0),
        higher_is_better: bool = True,
        metric_type: str = "custom",
        **more: Any,
    ) -> None:
        super().__init__(
            name=name,
            display_name=display_name,
            description=description,
            range=range,
            higher_is_better=higher_is_better,
            metric_type=metric_type,
            **more,
        )

    def model_dump(self) -> Row:
        return dict(vars(self))


def error_text(error: Exception) -> str:
    """Return what an error says, without the quotes that a KeyError puts around it."""
    if isinstance(error, AssayError):
        return error.what
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text or type(error).__name__


class ConfiguredMetric(ABC):
    """What unit and aggregator metrics share. The parameters of the YAML are in `self.config`."""

    metadata: BaseMetricMetadata

    def __init__(self, **config: Any) -> None:
        self.config = config
        self.validate_config()
        self.metadata = self.get_metadata()

    @abstractmethod
    def validate_config(self) -> None:
        """Look at `self.config` and keep what is needed; ValueError if it is wrong."""

    @abstractmethod
    def get_metadata(self) -> BaseMetricMetadata: ...

    def get_metric_name(self) -> str:
        return self.metadata.name


class BaseUnitMetric(ConfiguredMetric):
    """What a user's own unit metric inherits from."""

    @abstractmethod
    def evaluate(self, golden: list[Any], predicted: list[Any]) -> list[UnitMetricResult]:
        """A result for each pair."""


class BaseAggregatorMetric(ConfiguredMetric):
    """What a user's own aggregator metric inherits from."""

    @abstractmethod
    def calculate(self, results: list[UnitMetricResult]) -> Row: ...

    def _count_correct(self, results: Sequence[UnitMetricResult]) -> int:
        return sum(1 for result in results if result.correct)

    def _safe_divide(self, numerator: float, denominator: float) -> float:
        return numerator / denominator if denominator else 0.0


class BuiltIn(ConfiguredMetric):
    """A metric of ours, as `built_in` describes it. Its parameters are leniently converted (`"yes"`, `"3"`) and become
    attributes; others are ignored, as in SyGra."""

    about: ClassVar[BaseMetricMetadata]
    parameters: ClassVar[type[msgspec.Struct]]
    fields: ClassVar[tuple[msgspec.structs.FieldInfo, ...]]

    def validate_config(self) -> None:
        config = {
            field.name: _truth(self.config[field.name], field.type)
            for field in self.fields
            if field.name in self.config
        }
        try:
            parameters = msgspec.convert(config, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            names = ", ".join(
                f"{field.name}{' (required)' * field.required}" for field in self.fields
            )
            what = f"{type(self).__name__}: {error}".replace(" - at `$.", " in `")
            raise BadParameter(what, fix=f"parameters: {names}") from None
        vars(self).update(msgspec.structs.asdict(parameters))

    def get_metadata(self) -> BaseMetricMetadata:
        return self.about


def built_in(
    registry: "MetricRegistry",
    name: str,
    title: str,
    description: str,
    *,
    metric_type: str = "industry",
) -> Callable[[B], B]:
    """Describe and register a metric of ours. What its class annotates are its parameters, and their meanings are in
    its docstring, from where the scorer or the engine's metric of that name has them as well."""

    def decorate(kind: B) -> B:
        declared = inspect.get_annotations(kind).items()
        fields = [
            (key, type_, getattr(kind, key)) if hasattr(kind, key) else (key, type_)
            for key, type_ in declared
        ]
        kind.parameters = msgspec.defstruct(
            kind.__name__, fields, namespace={"__doc__": kind.__doc__}
        )
        kind.fields = msgspec.structs.fields(kind.parameters)
        kind.about = BaseMetricMetadata(
            name=name, display_name=title, description=description, metric_type=metric_type
        )
        registry.register(name, kind)
        return kind

    return decorate


def _truth(value: Any, kind: Any) -> Any:
    if kind is bool and isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    return value


class MetricRegistry:
    """Classes of one kind by name; `home` is the module that defines the built-in ones."""

    def __init__(self, kind: str, base: type[ConfiguredMetric], home: str) -> None:
        self.kind = kind
        self._base = base
        self._home = f"{__package__}.{home}"
        self._group = f"assay.sygra_{kind.lower()}_metrics"
        self._registered: dict[str, type[Any]] = {}

    @property
    def _metrics(self) -> dict[str, type[Any]]:
        importlib.import_module(self._home)
        return self._registered

    def register(self, name: str, metric_class: type[Any]) -> None:
        """The last one wins, with a warning where it is another class, not a helper that is loaded again."""
        if not name or not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("Metric name must be a non-empty string")
        if not isinstance(metric_class, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"metric_class must be a class, got {type(metric_class)}")
        if not issubclass(metric_class, self._base):
            raise ValueError(
                f"metric_class must inherit from {self._base.__name__}, got {metric_class.__name__}"
            )
        old = self._registered.get(name, metric_class)
        if (old.__module__, old.__qualname__) != (
            metric_class.__module__,
            metric_class.__qualname__,
        ):
            logger.warning(
                "%s metric %r: %s replaces %s", self.kind, name, metric_class.__name__, old.__name__
            )
        self._registered[name] = metric_class

    def get_metric(self, name: str, **params: Any) -> Any:
        """An instance of the metric, made with these parameters."""
        return self.get_metric_class(name)(**params)

    def get_metric_class(self, name: str) -> type[Any]:
        metric_class = self._metrics.get(name) or self._elsewhere(name)
        if metric_class is None:
            names = self.list_metrics()
            raise UnknownName(
                f"{self.kind} metric {name!r} not found in registry. Available metrics: {names}",
                fix=nearest(str(name), names),
            )
        return metric_class

    def name_of(self, written: str, metric: ConfiguredMetric) -> str:
        """The name of a metric that a task's author wrote, perhaps as the dotted path of its class."""
        if "." not in written or self.has_metric(written):
            return written
        names = [name for name, kind in self._metrics.items() if kind is type(metric)]
        return names[0] if names else metric.get_metric_name()

    def has_metric(self, name: str) -> bool:
        return name in self._metrics

    def list_metrics(self) -> list[str]:
        return sorted(self._metrics)

    def unregister(self, name: str) -> bool:
        return self._metrics.pop(name, None) is not None

    def clear(self) -> None:
        """Forget all metrics, the built-in ones as well."""
        self._metrics.clear()

    def get_metrics_info(self) -> dict[str, dict[str, str]]:
        return {
            name: {"class": metric_class.__name__, "module": metric_class.__module__}
            for name, metric_class in self._metrics.items()
        }

    def decorator(self, name: str) -> Callable[[C], C]:
        def decorate(metric_class: C) -> C:
            if not issubclass(metric_class, self._base):
                word = f"@{self.kind.lower()}_metric"
                raise TypeError(
                    f"{metric_class.__name__} must inherit from {self._base.__name__} to use the {word} decorator"
                )
            self.register(name, metric_class)
            return metric_class

        return decorate

    def _elsewhere(self, name: str) -> type[Any] | None:
        entry = registry._entry_points(self._group).get(name)
        module, _, attribute = str(name).rpartition(".")
        try:
            metric_class = entry.load() if entry is not None else None
            if (
                metric_class is None
                and module
                and all(part.isidentifier() for part in name.split("."))
            ):
                metric_class = getattr(importlib.import_module(module), attribute, None)
        except Exception as error:
            where = entry.value if entry is not None else module
            what = (
                f"{self.kind} metric {name!r} cannot be imported: {type(error).__name__}: {error}"
            )
            raise UnknownName(what, where=where) from error
        if metric_class is not None and not (
            isinstance(metric_class, type) and issubclass(metric_class, self._base)
        ):
            raise UnknownName(
                f"{self.kind} metric {name!r} is not a class that inherits from {self._base.__name__}"
            )
        return metric_class


UnitMetricRegistry = MetricRegistry("Unit", BaseUnitMetric, "unit")
AggregatorMetricRegistry = MetricRegistry("Aggregator", BaseAggregatorMetric, "counting")
unit_metric = UnitMetricRegistry.decorator
aggregator_metric = AggregatorMetricRegistry.decorator
