"""What an evaluator is given as its dataset, as rows of ours: an object that yields questions, or a path."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from assay.config import Config, load
from assay.engine.experiment.dataset import open_dataset
from assay.errors import UserError
from assay.formats.ragicamp.agent_task import UNKNOWN, name_of
from assay.formats.ragicamp.readers import read
from assay.formats.ragicamp.rows import Row, id_of, item_row

_FIELDS = ("id", "question", "answers", "answer", "expected_answer", "all_acceptable_answers", "context", "metadata")


class Examples:
    """A dataset's name and rows. Each pass begins anew, as long as the object that was given can be read again."""

    def __init__(self, given: Any) -> None:
        self._results = None
        self._config: Config | None = None
        self._given: Iterable[Any] = ()
        if isinstance(given, (str, Path)):
            self._open(Path(given))
            return
        self.name = name_of(given)
        found = given if isinstance(given, Iterable) else getattr(given, "examples", None)
        if not isinstance(found, Iterable):
            fix = "give a path, or an object with a `name` that yields id, question and answers"
            raise UserError(
                f"an object of the type {type(cast('Any', given)).__name__} is no dataset", where="dataset", fix=fix
            )
        self._given = cast("Iterable[Any]", found)

    def _open(self, path: Path) -> None:
        if path.is_dir() or path.suffix == ".json":
            found = read(path) if path.exists() else []
            if len(found) > 1:
                names = ", ".join(one.dataset for one in found)
                raise UserError(f"there are several datasets in {str(path)!r}: {names}", fix="name one questions file")
            if found:
                self._results, self.name = found[0], found[0].dataset
                return
        self._config = load({"name": UNKNOWN, "dataset": str(path), "models": ["demo:none"]}, environ={})
        self.name = path.name.partition(".")[0] or UNKNOWN

    def rows(self) -> Iterator[tuple[str, Row]]:
        """(place, dataset row) of each."""
        if self._results is not None:
            yield from self._results.items()
        elif self._config is not None and self._config.dataset is not None:
            yield from open_dataset(self._config.dataset, Path(self._config.base))
        else:
            for number, example in enumerate(self._given):
                place = f"{self.name} [{number}]"
                yield place, _row(example, number, place)


def _row(example: Any, number: int, place: str) -> Row:
    if isinstance(example, Mapping):
        row = dict(cast("Mapping[str, Any]", example))
    else:
        row = {name: getattr(example, name) for name in _FIELDS if getattr(example, name, None) is not None}
    if "data" in row and "question" not in row:
        return row  # a row of ours
    if not isinstance(row.get("question"), str):
        fix = "an example has `id`, `question` and `answers`"
        raise UserError(f"an example without a question: {type(example).__name__}", where=place, fix=fix)
    one = row.pop("answer", None)
    if row.get("answers") is None and one is not None:
        row["answers"] = one
    answers = row.get("answers")
    if answers is not None and not isinstance(answers, (str, Mapping)) and isinstance(answers, Iterable):
        row["answers"] = list(cast("Iterable[Any]", answers))
    return item_row(row, id_of(row, number))
