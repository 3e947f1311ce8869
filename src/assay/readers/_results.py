"""What readers of other programs' files have in common."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from assay import reading
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import Rejected, Repeats, Rest, Row, fields_of
from assay.text.json_stream import BrokenJson, json_parts, storable

T = TypeVar("T")
_LARGEST = 1 << 22  # bytes of a YAML file


def small_yaml(file: Path) -> Row:
    """Return the mapping in a small YAML file; an empty one if there is none."""
    if not file.is_file() or file.stat().st_size > _LARGEST:
        return {}
    try:
        text = reading.text(file, errors="replace")
        found = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError, OSError):
        return {}
    return fields_of(found)


class FileResults:
    """What the experiments of most formats have in common: their files, how often what was odd in these, and answers
    that come again. `said` has the note about each odd thing, with its count and those of others by their names."""

    format: str
    said: Mapping[str, str] = {}
    version: Mapping[str, Any] = {}  # what tells, beside files, that earlier copies are outdated
    planned: int | None = None

    def __init__(self, dataset: str, *files: Path) -> None:
        self.dataset, self.files = dataset, files
        self.begin()

    def begin(self) -> None:
        """Forget what an earlier pass has counted."""
        self.rest, self.unread = Rest(), Rejected()
        self.odd, self.repeats = Counter[str](), Repeats()
        self.further: list[str] = []  # notes

    @property
    def source(self) -> dict[str, Any]:
        stamps = [content_stamp(file.absolute()) for file in self.files]
        return {"format": self.format, **self.version, "files": stamps}

    @property
    def rejected(self) -> int:
        return self.unread.count

    def notes(self) -> list[str]:
        odd = self.odd
        said = [text.format(odd[name], **odd) for name, text in self.said.items() if odd[name]]
        return [*self.unread.notes(), *said, *self.further, *self.rest.notes()]


class JsonResults(FileResults):
    """The results in one file of JSON, which are read part by part: `rows` are the names of lists of rows."""

    rows: Collection[str]

    def _parts(self, *inside: str) -> Iterator[tuple[str, int | None, Any]]:
        try:
            with reading.opened(self.files[0]) as file:
                for name, number, value in json_parts(file, inside):
                    is_row = number is not None and name.rpartition(".")[2] in self.rows
                    yield storable(name), number, value if is_row else storable(value)
        except ValueError as error:
            cut = isinstance(error, BrokenJson) and error.at_end
            self.unread.add(f"{self.files[0]}: {'it ends in the middle' if cut else error}")

    def _rows_of_shape(
        self, rows: Iterable[tuple[str, Any]], shape: type[T]
    ) -> Iterator[tuple[T, Any]]:
        """Yield each row in its shape, and whole; what has another shape is counted."""
        for place, raw in rows:
            try:
                plain = storable(raw)
                row = msgspec.convert(plain, shape)
            except (ValueError, RecursionError) as error:
                self.unread.add(f"{place}: {error}")
                continue
            yield row, plain
