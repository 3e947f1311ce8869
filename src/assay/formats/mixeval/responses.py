"""MixEval's response files read as responses of ours: JSON lines, or a JSON list as the guideline shows.

Rows are entries with `id`, `formated_input` and `response`, in any order. What is odd about them is reported.
"""

from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path

import msgspec

from assay.foreign import Oddities
from assay.formats.mixeval.finding import ModelFiles
from assay.formats.mixeval.verdicts import NO_RESPONSE, response_from
from assay.sdk import Item, JsonObject, Response, UserError, canonical, digest, id_hash
from assay.store.index import ItemIndex
from assay.store.keyset import Seen
from assay.text.json_stream import file_entries

_COMPARED = ("prompt", "context", "options")
_SAID = {
    "broken": "{count:,} places of the files are not JSON and are left out: {first}",
    "no_id": "{count:,} rows are not objects with an `id` and are left out, the first at {first}",
    "extra": "{count:,} responses have ids that the data do not have and are left out, the first is {first!r}",
    "different": "{count:,} responses answer another input than the data's and are not scored, the first is {first!r}",
    "null": "{count:,} responses are null and are not scored, the first is {first!r}",
    "empty": "{count:,} responses are empty, the first is {first!r}",
    "missing": "{count:,} entries have no response and are not in the score, the first is {first!r}",
}
# of judge files, whose rows are responses, too
_VERDICT = ("judge_response", "judge_score", "judge_option")
HARMLESS = ("empty", "missing")  # an unfinished run has these, too


class Import:
    """The responses of one model as rows of ours, in the order of the files; counts what is odd about them. Those to
    entries that were `left_out` on purpose are not looked at."""

    def __init__(self, files: ModelFiles, items: ItemIndex, left_out: Container[str] = ()) -> None:
        self.files = files
        self.items = items
        self.left_out = left_out
        self.odd = Oddities(_SAID)
        self.read = False
        self._seen = Seen()
        self._rows = 0

    def responses(self) -> Iterator[Response]:
        """Every readable row that belongs to an entry. Raises if they answer other questions than the data ask."""
        for kind, path in self.files.files.items():
            for place, row in file_entries(path, partial(self.odd.note, "broken")):
                if not isinstance(row, dict) or row.get("id") in (None, ""):
                    self.odd.note("no_id", place)
                    continue
                id = f"{kind}/{row['id']}"
                if id in self.left_out:
                    continue
                if not self._seen.add(id_hash(id)):
                    raise self._repeat_error(path, str(row["id"]), place)
                self._rows += 1
                entry = self.items.get(id)
                if entry is None:
                    self.odd.note("extra", id)
                    continue
                yield self._response(entry, row)
        self._check_version()
        self._find_missing()
        self.read = True

    def _response(self, item: Item, row: JsonObject) -> Response:
        name = self.files.model
        made = response_from(row, item.id, name)
        error = NO_RESPONSE if row.get("response") is None else None
        if error:
            self.odd.note("null", item.id)
        elif not made.response.strip():
            self.odd.note("empty", item.id)
        if _asks_otherwise(row, item.data):
            error = error or "the stored input is not that of the data"
            self.odd.note("different", item.id)
        made.output = {key: row[key] for key in _VERDICT if key in row} or None
        parts = (item.id.encode(), name.encode(), made.response.encode())
        verdict = [] if made.output is None else [canonical(made.output)]
        made.key = digest("mixeval", *parts, *verdict).hex()
        made.prompt = made.prompt or item.data["formated_input"]
        made.error, made.outcome = error, "errored" if error else "ok"
        made.error_kind = "permanent" if error else None
        return made

    def _check_version(self) -> None:
        known = self._rows - self.odd.count("extra")
        count, first = self.odd.found.get("different", (0, ""))
        if self._rows and not known:
            raise UserError(
                f"none of the {self._rows:,} responses belongs to an entry of the data; the first is "
                f"{self.odd.found['extra'][1]!r}",
                where=self._where(),
                fix="check --version, --benchmark and --data",
            )
        if count * 2 > known:
            raise UserError(
                f"these are responses to other questions: {count:,} of {known:,} stored inputs are not the data's; the "
                f"first is that of {first!r}",
                where=self._where(),
                fix="name the version and benchmark that were answered with --version and --benchmark",
            )

    def _find_missing(self) -> None:
        if self._rows - self.odd.count("extra") == len(self.items):
            return
        decode = msgspec.json.Decoder(_EntryId).decode
        for _, line in self.items.log.scan():
            id = decode(line).id
            if self._seen.add(id_hash(id)):
                self.odd.note("missing", id)

    def _repeat_error(self, path: Path, id: str, place: str) -> UserError:
        first = next(
            at
            for at, row in file_entries(path, str)
            if isinstance(row, dict) and str(row.get("id")) == id
        )
        return UserError(
            f"two responses have the id {id!r}",
            where=f"{first} and {place}",
            fix="keep one of them",
        )

    def _where(self) -> str:
        return ", ".join(str(path) for path in self.files.files.values())


class _EntryId(msgspec.Struct):
    id: str


def _asks_otherwise(row: JsonObject, data: JsonObject) -> bool:
    """Return whether a row was made from another input. A chat template or a base model's examples may stand around it."""
    stored = row.get("formated_input")
    if isinstance(stored, str):
        return data["formated_input"] not in stored
    return any(key in row and row[key] != data.get(key) for key in _COMPARED)
