"""What tests of the evaluator share: questions with known scores, and agents that count how often they are asked."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOON = "when did a person last stand on the moon"
OTHER = "who knows"
CAPITAL = "what is the capital of france"
# scores are in the specification
WORKED = {MOON: "December 1972 maybe", OTHER: "I don't know", CAPITAL: "Paris."}


@dataclass
class Example:
    id: str
    question: str
    answers: list[str]
    metadata: dict[str, Any] = field(default_factory=dict)


class Questions:
    """A dataset as RAGiCamp knows it."""

    def __init__(self, name: str = "natural_questions") -> None:
        self.name = name

    def __iter__(self) -> Iterator[Example]:
        yield Example("0", MOON, ["14 December 1972 UTC", "December 1972", "1972"])
        yield Example("1", OTHER, ["nobody"])
        yield Example("2", CAPITAL, ["Paris"])


class Agent:
    """Answers from a table; an exception in it is raised. `asked` is no setting, so `identity` leaves it out."""

    def __init__(
        self, name: str = "gemma_2b_baseline", answers: Mapping[str, Any] = WORKED
    ) -> None:
        self.name = name
        self.answers = dict(answers)
        self.asked: list[str] = []

    @property
    def identity(self) -> Any:
        return {question: repr(answer) for question, answer in self.answers.items()}

    def answer(self, question: str) -> Any:
        self.asked.append(question)
        found = self.answers[question]
        if isinstance(found, BaseException):
            raise found
        return found


class AsyncAgent(Agent):
    async def answer(self, question: str) -> Any:
        return super().answer(question)


def written(folder: Path, name: str) -> dict[str, Any]:
    return json.loads((folder / name).read_text())
