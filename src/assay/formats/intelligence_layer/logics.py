"""What users write to judge: the logics, the types that their classes settle, and what tells two of them apart."""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from types import CellType
from typing import Any, Generic, TypeVar, final, get_args, get_origin

import msgspec

from assay.formats.intelligence_layer.domain import (
    AggregatedEvaluation,
    Evaluation,
    Example,
    ExpectedOutput,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.types import Input, Output, is_pydantic
from assay.sdk import JsonObject, digest
from assay.usercode import identity

_DEPTH = 4
_NOT_USERS = {"assay", *sys.stdlib_module_names}


class EvaluationLogic(ABC, Generic[Input, Output, ExpectedOutput, Evaluation]):
    """Implement `do_evaluate`."""

    @abstractmethod
    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        """The result for one example, from the outputs of all runs in the order in which the runs were named."""


class SingleOutputEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """For the runs of one task: implement `do_evaluate_single_output`."""

    @final
    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        assert len(output) == 1, f"this logic takes one output of an example, got {len(output)}"
        return self.do_evaluate_single_output(example, output[0].output)

    @abstractmethod
    def do_evaluate_single_output(
        self, example: Example[Input, ExpectedOutput], output: Output
    ) -> Evaluation: ...


class AggregationLogic(ABC, Generic[Evaluation, AggregatedEvaluation]):
    """Implement `aggregate`."""

    @abstractmethod
    def aggregate(self, evaluations: Iterable[Evaluation]) -> AggregatedEvaluation:
        """The statistics of all results that are not failures; they can be read once."""


def arguments_of(kind: type, ancestor: type) -> JsonObject:
    """The types by the names of the ancestor's type variables; those that no class in between settles are left out."""
    names = [variable.__name__ for variable in ancestor.__parameters__]  # type: ignore[attr-defined]
    settled_types = zip(names, _arguments(kind, ancestor), strict=True)
    return {name: argument for name, argument in settled_types if not isinstance(argument, TypeVar)}


def settled_type(owner: object, types: JsonObject, name: str, method: str) -> Any:
    """The type of this name; a TypeError says how to give it where the classes do not."""
    if name not in types:
        raise TypeError(
            f"the type {name} cannot be found in the type arguments of the logic: "
            f"name it there, or override {method}() in {type(owner).__name__}"
        )
    return types[name]


def _arguments(kind: type, ancestor: type) -> tuple[Any, ...]:
    if kind is ancestor:
        return ancestor.__parameters__  # type: ignore[attr-defined]
    for base in kind.__dict__.get("__orig_bases__", kind.__bases__):
        parent: Any = get_origin(base) or base
        if isinstance(parent, type) and issubclass(parent, ancestor):
            variables: tuple[Any, ...] = getattr(parent, "__parameters__", ())
            types = dict(zip(variables, get_args(base) or variables, strict=True))
            return tuple(_with_types(argument, types) for argument in _arguments(parent, ancestor))
    raise TypeError(f"{kind.__name__} does not inherit from {ancestor.__name__}")


def _with_types(argument: Any, types: dict[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return types.get(argument, argument)
    variables = getattr(argument, "__parameters__", ())  # such as list[T]
    return (
        argument[tuple(types.get(variable, variable) for variable in variables)]
        if variables
        else argument
    )


def identity_of(logic: object) -> JsonObject:
    """JSON values that change when results of the logic may."""
    name = f"{type(logic).__module__}.{type(logic).__qualname__}"
    return {
        "logic": name,
        "code": _code(type(logic)),
        "attributes": _description(vars(logic), _DEPTH),
    }


@lru_cache(64)  # what a class runs is what was loaded, whatever becomes of its file
def _code(kind: type) -> list[str]:
    """The identities of the class's own functions and of those it inherits; of several in one file, of one."""
    functions: JsonObject = {}
    for owner in kind.__mro__:
        if owner.__module__.split(".")[0] not in _NOT_USERS:
            for value in vars(owner).values():
                function = inspect.unwrap(getattr(value, "__func__", value))
                if inspect.isfunction(function):
                    file = function.__code__.co_filename
                    functions[file if Path(file).is_file() else function.__qualname__] = function
    return sorted(map(identity, functions.values()))


def _description(value: Any, depth: int) -> Any:
    """Data as it is, a function by its code, another object by its class and its attributes."""
    try:
        return msgspec.to_builtins(
            value, str_keys=True, order="deterministic", enc_hook=_model_data
        )
    except (TypeError, ValueError, RecursionError):  # a client, a lock, or something that has one
        pass
    if inspect.isroutine(value) or isinstance(value, partial):
        return _function(value, depth)
    if hasattr(type(value), "tobytes"):  # numbers of numpy's
        return digest("array", value.tobytes()).hex()
    name = type(value).__qualname__
    if not depth:
        return name
    if isinstance(value, (list, tuple)):
        return [_description(each, depth - 1) for each in value]
    attributes = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return [name, {str(key): _description(each, depth - 1) for key, each in attributes.items()}]


def _function(value: Any, depth: int) -> Any:
    """A function and what it was made with; those of one file are told apart by their lines."""
    if isinstance(value, partial):
        return _description([value.func, value.args, value.keywords], depth)
    if inspect.ismethod(value):
        return _description([value.__func__, value.__self__], depth)
    if not inspect.isfunction(value):
        return identity(value)
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
    return [
        identity(value),
        value.__code__.co_firstlineno,
        _description([value.__defaults__, cells], depth),
    ]


def _model_data(value: Any) -> Any:
    """No object but a model is asked what it holds: others, such as mocks, may answer anything."""
    if not is_pydantic(type(value)):
        raise TypeError
    return value.model_dump(mode="json")
