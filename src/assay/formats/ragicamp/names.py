"""What agents and their files are called.

An agent is a model, with its template where there are several and its sample where there are several. Files have the
seed's names, made safe; a name that is taken by the same agent on another dataset gets the dataset's name as well.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from assay.store.names import safe_name

Samples = Literal["separate", "mean"]
FileKind = Literal["predictions", "summary"]
KINDS: tuple[FileKind, ...] = ("predictions", "summary")


class Cell(NamedTuple):
    """What tells one agent's rows from another's. `sample` is -1 where the samples are one agent."""

    model: str
    template: str
    task: str
    sample: int


def agent_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """The name of each: no longer than it must be for all of them to differ."""
    several_templates = len({cell.template for cell in cells}) > 1
    several_samples = len({cell.sample for cell in cells}) > 1
    tasks = Counter(cell[:2] + cell[3:] for cell in cells)
    names: dict[Cell, str] = {}
    for cell in cells:
        parts = [cell.model or cell.task or "unknown"]
        if several_templates and cell.template:
            parts.append(safe_name(cell.template))
        if tasks[cell[:2] + cell[3:]] > 1:
            parts.append(safe_name(cell.task))
        if several_samples:
            parts.append(f"sample_{cell.sample}")
        names[cell] = "_".join(parts)
    return _apart(names)


def _apart(names: dict[Cell, str]) -> dict[Cell, str]:
    """A number for those that are still called alike, in the order of the cells."""
    taken: set[str] = set()
    for cell in sorted(names):
        name, number = names[cell], 2
        while names[cell] in taken:
            names[cell], number = f"{name}_{number}", number + 1
        taken.add(names[cell])
    return names


def questions_file(folder: Path, dataset: str) -> Path:
    return folder / f"{safe_name(dataset)}_questions.json"


def agent_file(folder: Path, agent: str, kind: FileKind, dataset: str = "") -> Path:
    """With a dataset: the longer name, for an agent whose plain one is taken."""
    stem = f"{safe_name(agent)}_{safe_name(dataset)}" if dataset else safe_name(agent)
    return folder / f"{stem}_{kind}.json"
