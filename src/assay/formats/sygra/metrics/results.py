"""What unit metrics give to aggregator metrics, and what every metric says about itself."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec

from assay.errors import UserError

Settings = TypeVar("Settings", bound=msgspec.Struct)
_YES, _NO = {"yes", "y", "on", "t"}, {"no", "n", "off", "f"}


class BadParameter(UserError, ValueError):
    """A metric's parameter is missing or wrong; a ValueError, because that is what helpers expect."""


class UnknownName(UserError, KeyError):
    """A metric, a column or a key of the state is not there."""


@dataclass
class UnitMetricResult:
    """Whether one prediction is right, with both sides and whatever the metric found out."""

    correct: bool
    golden: dict[str, Any]
    predicted: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for side in ("golden", "predicted"):
            if not isinstance(getattr(self, side), dict):
                raise ValueError(f"{side} must be a dictionary")
        if not isinstance(self.metadata, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.metadata = {}

    def to_dict(self) -> dict[str, Any]:
        return {
            "correct": self.correct,
            "golden": self.golden,
            "predicted": self.predicted,
            "metadata": self.metadata,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "UnitMetricResult":
        return cls(
            correct=data.get("correct", False),
            golden=data.get("golden", {}),
            predicted=data.get("predicted", {}),
            metadata=data.get("metadata", {}),
        )


class BaseMetricMetadata(msgspec.Struct, kw_only=True):
    """How a metric is called and read."""

    name: str
    display_name: str
    description: str
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    metric_type: str = "industry"

    def model_dump(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


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


def settings(kind: type[Settings], given: Mapping[str, Any], owner: str) -> Settings:
    """The parameters that a metric knows, leniently converted (`"yes"`, `"3"`); others are ignored, as in SyGra."""
    fields = _fields(kind)
    known = {each.name: _truth(given[each.name], each.type) for each in fields if each.name in given}
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadParameter(f"{owner}: {error}".replace(" - at `$.", " in `"), fix=_parameters(fields)) from None


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _truth(value: Any, kind: Any) -> Any:
    if kind is bool and isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    return value


def _parameters(fields: tuple[msgspec.structs.FieldInfo, ...]) -> str:
    return "parameters: " + ", ".join(f"{each.name}{' (required)' * each.required}" for each in fields)
