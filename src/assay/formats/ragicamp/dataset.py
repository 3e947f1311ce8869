"""RAGiCamp's questions as a config's dataset: `dataset: {type: ragicamp, path: outputs}`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.formats.ragicamp.readers import Results, read
from assay.registry import dataset, nearest


def stamp(name: str, *, dataset: str = "") -> dict[str, Any]:
    """What tells that the files are still those that were read."""
    return dict(_results(name, dataset).source)


@dataset(name="ragicamp", stamp=stamp)
def ragicamp(name: str, *, dataset: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The questions of RAGiCamp's results, of any generation: a folder, or one of its files.

    Parameters:
    dataset: the name of the dataset, where the folder has several
    """
    yield from _results(name, dataset).items()


def _results(name: str, wanted: str) -> Results:
    path = Path(name)
    if not path.exists():
        raise UserError(f"there is no file or folder {name!r}", where="dataset.path", fix="correct the path")
    found = read(path)
    chosen = [one for one in found if one.dataset == wanted] if wanted else found
    if len(chosen) == 1:
        return chosen[0]
    names = [one.dataset for one in found]
    if not names:
        fix = "name a folder that holds a …_questions.json or predictions"
        raise UserError(f"{name!r} holds nothing of RAGiCamp's", where="dataset.path", fix=fix)
    what = f"there is no dataset {wanted!r}" if wanted else f"there are {len(names)} datasets"
    fix = nearest(wanted, names) if wanted else f"add `params: {{dataset: …}}`, one of: {', '.join(names)}"
    raise UserError(f"{what} in {name!r}", where="dataset.params.dataset", fix=fix)
