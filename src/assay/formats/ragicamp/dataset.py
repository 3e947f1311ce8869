"""Questions as datasets: RAGiCamp's files in a config (`dataset: {type: ragicamp, path: outputs}`), and what an
evaluator is given: an object that yields questions, or a path."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from assay.config import load
from assay.engine.experiment.dataset import open_dataset
from assay.formats.ragicamp.reader import UNKNOWN, RagicampResults, results_at
from assay.formats.ragicamp.rows import id_of, item_row
from assay.sdk import JsonMapping, JsonObject, UserError, dataset, nearest

_FIELDS = (
    "id",
    "question",
    "answers",
    "answer",
    "expected_answer",
    "all_acceptable_answers",
    "context",
    "metadata",
)


def name_of(thing: Any) -> str:
    """Return the name of an agent or a dataset."""
    return str(getattr(thing, "name", None) or UNKNOWN)


def stamp(name: str, *, dataset: str = "") -> JsonObject:
    """Return what tells that the files are still those that were read."""
    return dict(_results(name, dataset).source)


@dataset(name="ragicamp", stamp=stamp)
def ragicamp(name: str, *, dataset: str = "") -> Iterator[tuple[str, JsonObject]]:
    """The questions of RAGiCamp's results: a folder, or one of its files.

    Parameters:
    dataset: the name of the dataset, where the folder has several
    """
    yield from _results(name, dataset).items()


def _results(name: str, wanted: str) -> RagicampResults:
    path = Path(name)
    if not path.exists():
        raise UserError(
            f"there is no file or folder {name!r}", where="dataset.path", fix="correct the path"
        )
    found = results_at(path)
    chosen = [one for one in found if one.dataset == wanted] if wanted else found
    if len(chosen) == 1:
        return chosen[0]
    names = [one.dataset for one in found]
    if not names:
        fix = "name a folder that holds a …_questions.json or predictions"
        raise UserError(f"{name!r} holds nothing of RAGiCamp's", where="dataset.path", fix=fix)
    what = f"there is no dataset {wanted!r}" if wanted else f"there are {len(names)} datasets"
    fix = (
        nearest(wanted, names)
        if wanted
        else f"add `params: {{dataset: …}}`, one of: {', '.join(names)}"
    )
    raise UserError(f"{what} in {name!r}", where="dataset.params.dataset", fix=fix)


class NamedExamples(NamedTuple):
    """A dataset's name, and its (place, dataset row) pairs. Each pass begins anew, as long as the object that was given
    can be read again."""

    name: str
    rows: Callable[[], Iterator[tuple[str, JsonObject]]]


def examples_of(given: Any) -> NamedExamples:
    """The examples of a path, or of an object that yields them."""
    if isinstance(given, (str, Path)):
        return _from_path(Path(given))
    source = given if isinstance(given, Iterable) else getattr(given, "examples", None)
    if not isinstance(source, Iterable):
        fix = "give a path, or an object with a `name` that yields id, question and answers"
        what = f"an object of the type {type(cast('Any', given)).__name__} is not a dataset"
        raise UserError(what, where="dataset", fix=fix)
    name = name_of(given)
    return NamedExamples(name, partial(_from_object, name, cast("Iterable[Any]", source)))


def _from_path(path: Path) -> NamedExamples:
    if path.is_dir() or path.suffix == ".json":
        results = results_at(path) if path.exists() else []
        if len(results) > 1:
            names = ", ".join(result.dataset for result in results)
            raise UserError(
                f"there are several datasets in {str(path)!r}: {names}",
                fix="name one questions file",
            )
        if results:
            return NamedExamples(results[0].dataset, results[0].items)
    config = load({"name": UNKNOWN, "dataset": str(path), "models": ["demo:none"]}, environ={})
    assert config.dataset is not None
    return NamedExamples(
        path.name.partition(".")[0] or UNKNOWN,
        partial(open_dataset, config.dataset, Path(config.base)),
    )


def _from_object(name: str, examples: Iterable[Any]) -> Iterator[tuple[str, JsonObject]]:
    for number, example in enumerate(examples):
        place = f"{name} [{number}]"
        yield place, _row(example, number, place)


def _row(example: Any, number: int, place: str) -> JsonObject:
    if isinstance(example, Mapping):
        row = dict(cast("JsonMapping", example))
    else:
        row = {
            name: getattr(example, name)
            for name in _FIELDS
            if getattr(example, name, None) is not None
        }
    if "data" in row and "question" not in row:
        return row  # a row of ours
    if not isinstance(row.get("question"), str):
        fix = "an example has `id`, `question` and `answers`"
        raise UserError(
            f"an example without a question: {type(example).__name__}", where=place, fix=fix
        )
    one = row.pop("answer", None)
    if row.get("answers") is None and one is not None:
        row["answers"] = one
    answers = row.get("answers")
    if (
        answers is not None
        and not isinstance(answers, (str, Mapping))
        and isinstance(answers, Iterable)
    ):
        row["answers"] = list(cast("Iterable[Any]", answers))
    return item_row(row, id_of(row, number))
