"""The logs of this folder, as they are or edited, and what the reader makes of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from assay.foreign import Foreign, ForeignCase
from assay.formats.promptfoo.reader import promptfoo
from assay.records import Evaluation, Response

LOGS = Path(__file__).parent / "logs"
Log = dict[str, Any]


class Result(NamedTuple):
    foreign: Foreign
    cases: list[ForeignCase]

    def responses(self) -> list[Response]:
        return [case.response for case in self.cases if case.response is not None]

    def items(self) -> list[dict[str, Any]]:
        return [dict(case.item) for case in self.cases if case.item is not None]

    def labels(self, label: str) -> list[Evaluation]:
        return [row for case in self.cases for row in case.evaluations if row.label == label]


def log(name: str) -> Log:
    return json.loads((LOGS / name).read_text())


def rows(content: Log) -> list[Log]:
    return content["results"]["results"]


def read(path: Path) -> Result:
    (foreign,) = promptfoo(path)
    return Result(foreign, list(foreign.cases()))


def edited(
    folder: Path, name: str, change: Callable[[Log], object], indent: int | None = None
) -> Result:
    """What is read of a log after a change."""
    content = log(name)
    change(content)
    file = folder / "edited.json"
    file.write_text(json.dumps(content, indent=indent))
    return read(file)
