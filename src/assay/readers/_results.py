"""What readers of other programs' files have in common."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from assay import reading
from assay.engine.experiment.dataset import content_stamp
from assay.foreign import Headline, Rejected, Repeats, Rest, answer_text
from assay.sdk import JsonMapping, JsonObject, Response, as_object, canonical, count_of, id_hash
from assay.store.keyset import Seen
from assay.text.json_stream import BrokenJson, json_parts, storable

T = TypeVar("T")
_LARGEST = 1 << 22  # bytes of a YAML file


def small_yaml(file: Path) -> JsonObject:
    """Return the mapping in a small YAML file; an empty one if there is none."""
    if not file.is_file() or file.stat().st_size > _LARGEST:
        return {}
    try:
        text = reading.text(file, errors="replace")
        found = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError, OSError):
        return {}
    return as_object(found)


def without_empty(fields: JsonMapping) -> JsonObject:
    """Return the fields that are not empty; 0 and false are values."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def first_filled(fields: JsonMapping, names: Iterable[str]) -> str:
    """Return the first of these fields that has a value, as text; "" if none has."""
    return str(next((fields[name] for name in names if fields.get(name)), ""))


def tokens_of(usage: JsonMapping, prompt: str, completion: str, total: str = "") -> JsonObject:
    """Return a response's counts of tokens, from the fields with these names."""
    names = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {ours: count_of(usage.get(theirs)) for ours, theirs in names.items()}


def response_of(item_id: str, model: str, sample: int, answer: Any, **fields: Any) -> Response:
    """Return an answer as a row. What is not text is kept as `output`, beside its JSON."""
    own: JsonObject = {
        "sample_id": f"{item_id}_sample_{sample}",
        "sample_index": sample,
        "total_samples": sample + 1,
        "response": answer_text(answer),
        "output": None if isinstance(answer, str) else answer,
    }
    return Response(item_id=item_id, model_name=model, **{**own, **fields})


def pass_rate(label: str, counts: Sequence[int | float], **fields: Any) -> list[Headline]:
    """Return the share of the first of these counts; nothing where there are none."""
    if not sum(counts):
        return []
    rate = counts[0] / sum(counts)
    own: JsonObject = {"of": "passed", "reduce": "none", **fields}
    return [Headline(label=label, metric="pass_rate", value=rate, **own)]


class NewItems:
    """Tells which items are new in a file, and what is said about each."""

    def __init__(self) -> None:
        self._seen = Seen()

    def add(self, *thing: str) -> bool:
        """Return whether a thing comes for the first time."""
        return self._seen.add(id_hash("\0".join(thing)))

    def keep_others(self, response: Response, about: JsonObject | None, *, new: bool) -> None:
        """Put what a test says about its item into the response, where the item has something else."""
        if not about:
            return
        is_first = self.add("about", response.item_id, canonical(about).hex())
        if is_first and not new:
            response.metadata["test_case"] = about


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
        self.odd, self.repeats, self.items = Counter[str](), Repeats(), NewItems()
        self.further: list[str] = []  # notes

    @property
    def source(self) -> JsonObject:
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
