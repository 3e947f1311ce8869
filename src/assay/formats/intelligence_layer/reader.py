"""Folders of the original, and repositories of the library, as experiments: one for each dataset, or only what one run
or one evaluation is about. Runs are models: their names are the runs' ids, which the players of matches have as well.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.engine.experiment.imports.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    head_of,
    whole_json,
)
from assay.errors import UserError
from assay.registry import reader

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.domain import EvaluationOverview, RunOverview

Row = dict[str, Any]
_KINDS = ("runs", "evaluations")
# what only overviews of this kind have
_FIELDS = {"runs": "dataset_id", "evaluations": "run_overviews"}


@reader
def intelligence_layer(path: Path, *, dataset: str = "") -> list[Foreign]:
    """A folder with datasets, runs and evaluations of the Intelligence Layer, or the folder or overview of one of them.

    Parameters:
    dataset: only the results on the dataset of this id
    """
    place = (path.with_suffix("") if path.suffix == ".json" else path).absolute()
    root, kind, name = path, "", ""
    if place.parent.name in _KINDS and is_overview(
        place.with_name(f"{place.name}.json"), place.parent.name
    ):
        root, kind, name = place.parents[1], place.parent.name, place.name
    elif not path.is_dir() or not is_repository(path):
        return []
    from assay.formats.intelligence_layer.cases import Repository

    try:
        repository = Repository(root, kind, name)
        return [Results(repository, id) for id in repository.datasets() if dataset in ("", id)]
    except (ValueError, TypeError, KeyError) as error:
        fix = "remove the file, or name the folder of one run or evaluation"
        raise UserError(
            f"an overview in this folder cannot be read: {error}", where=str(root), fix=fix
        ) from None


def is_overview(file: Path, kind: str) -> bool:
    """Whether a file says what a run or an evaluation was."""
    if not file.is_file() or f'"{_FIELDS[kind]}"'.encode() not in head_of(file):
        return False
    found = whole_json(file)
    return (
        isinstance(found, dict)
        and {"id", "description", _FIELDS[kind]} <= cast("Row", found).keys()
    )


def is_repository(folder: Path) -> bool:
    """Whether there are runs or evaluations of the original, or of the library, below a folder."""
    for kind in _KINDS:
        for entry in (folder / kind).glob("*"):
            if entry.suffix == ".json" and is_overview(entry, kind):
                return True
            if entry.suffix == ".partial_json" or (entry / "manifest.json").is_file():
                return True
    return False


class Results:
    """What was run and evaluated on one dataset."""

    def __init__(self, repository: Any, dataset: str) -> None:
        self.dataset = dataset
        self._repository = repository
        self._runs: list[RunOverview] = repository.runs(dataset)
        self._evaluations: list[EvaluationOverview] = repository.evaluations(dataset)
        self._problems: list[str] = []
        self._has_items = True

    @property
    def planned(self) -> int:
        return sum(run.failed_example_count + run.successful_example_count for run in self._runs)

    @property
    def rejected(self) -> int:
        return len(self._problems)

    @property
    def source(self) -> Row:
        return {"format": "intelligence_layer", **self._repository.stamp(self.dataset)}

    @property
    def facts(self) -> Row:
        described = {each.id: each.description for each in (*self._runs, *self._evaluations)}
        return {"agents": [run.id for run in self._runs], "descriptions": described}

    def cases(self) -> Iterator[ForeignCase]:
        from assay.formats.intelligence_layer.cases import Cases

        self._problems = []
        made = Cases(self._repository, self._problems.append)
        self._has_items = self._repository.has_items(self.dataset)
        if self._has_items:
            yield from made.items(self.dataset)
        for run in self._runs:
            yield from made.answers(run)
        yield from made.labels(self._evaluations)

    def notes(self) -> list[str]:
        notes: list[str] = []
        if not self._has_items:
            notes.append(
                f"the dataset {self.dataset!r} is not in the folder: there are answers without their questions"
            )
        if self._problems:
            notes.append(f"{len(self._problems):,} files cannot be read: {self._problems[0]}")
        partial = self._repository.partial()
        if partial:
            notes.append(
                f"{len(partial):,} evaluations were not finished and are left out: {partial[0]!r}"
            )
        traces = self._repository.trace_count(self.dataset)
        if traces:
            notes.append(
                f"{traces:,} traces are left where they are: those of the original are not read"
            )
        return notes

    def headlines(self) -> list[Headline]:
        """The numbers of aggregations, which a logic of the user's made."""
        why = "a logic of the user's made it: only its code can say how"
        return [
            Headline(label="", metric=f"{id}.{name}", value=value, reason=why)
            for id, name, value in self._repository.statistics(
                {each.id for each in self._evaluations}
            )
        ]
