"""Statistics of values that come one by one and need not be kept."""

from abc import ABC, abstractmethod
from math import sqrt
from typing import Generic, TypeVar

T = TypeVar("T")
Output = TypeVar("Output")


class Accumulator(ABC, Generic[T, Output]):
    @abstractmethod
    def add(self, value: T) -> None: ...

    @abstractmethod
    def extract(self) -> Output:
        """What the values so far come to."""


class MeanAccumulator(Accumulator[float, float]):
    """Mean and spread by Welford's updates: equal values have a spread of exactly 0. Nothing added is 0.0."""

    def __init__(self) -> None:
        self._n = 0
        self._mean = 0.0
        self._squares = 0.0  # of the distances to the mean

    def add(self, value: float) -> None:
        self._n += 1
        distance = value - self._mean
        self._mean += distance / self._n
        self._squares += distance * (value - self._mean)

    def extract(self) -> float:
        return self._mean

    def standard_deviation(self) -> float:
        """Of these values, not of a population that they were drawn from: divided by n."""
        return sqrt(self._squares / self._n) if self._n else 0.0

    def standard_error(self) -> float:
        return self.standard_deviation() / sqrt(self._n) if self._n > 1 else 0.0
