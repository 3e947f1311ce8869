"""Answers from an earlier `responses.jsonl`: the same messages and sample index get the same answer again.

In memory there are 16 bytes an answer (digest and place in the file); the text is read when it is asked for.
"""

import asyncio
from collections.abc import Iterator
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay import reading
from assay.models.record import REPLAYED
from assay.sdk import (
    ROWS_FILE,
    CallError,
    Completion,
    JsonMapping,
    LaneError,
    Message,
    Model,
    PermanentError,
    Request,
    Response,
    UserError,
    model,
    nearest,
)
from assay.store.log import FileLog
from assay.store.table.decode import read_rows
from assay.store.table.join import Lookup
from assay.text.media import nameless
from assay.text.messages import messages_text

_encode = msgspec.json.Encoder(order="sorted").encode


class _Asked(msgspec.Struct):
    """The part of a response row that says what was asked."""

    sample_index: int = 0
    model_name: str = ""
    prompt: str = ""
    error: Any = None
    outcome: str = "ok"
    messages: list[Message] | None = None


_decode_response = msgspec.json.Decoder(Response).decode


@model(free=True, reach="runs")
def replay(name: str, *, path: str, model: str | None = None) -> Model:
    """The answers of `model` (or of the only one there) in the responses at `path`, a file or its folder."""
    file = Path(path)
    file = file / ROWS_FILE["run"] if file.is_dir() else file
    if not file.is_file():
        raise UserError(
            f"there are no responses at {path!r}",
            where=f"model {name!r}",
            fix="give a responses.jsonl or its folder",
        )
    return ReplayModel(name, file, model)


class ReplayModel:
    """Looks answers up; the file is indexed at the first request, and must not change while it is used."""

    by_reference = True

    def __init__(self, name: str, file: Path, source: str | None) -> None:
        self.name = name
        self.file = file
        self.source = source
        with reading.opened(file) as content:
            found = file_digest(content, lambda: blake2b(digest_size=16)).hexdigest()
        self.identity: JsonMapping = {
            "type": "replay",
            "name": name,
            "model": source,
            "content": found,
        }
        self._indexing = asyncio.Lock()
        self._rows = FileLog(file)
        self._answers: Lookup | None = None

    async def complete(self, request: Request) -> Completion:
        async with self._indexing:
            answers = self._answers or await asyncio.to_thread(self._index)
        plain = _as_prompt(messages_text(request.messages))
        asked = [_digest(each, request.sample_index) for each in (request.messages, plain)]
        begin, end = answers.ranges(np.array(asked, np.uint64))
        found = end[end > begin]
        if not len(found):
            raise PermanentError(
                f"no recorded answer for these messages and sample {request.sample_index}",
                where=str(self.file),
                fix="record them first: run the same prompts with the real model",
            )
        # of rows that answer the same request the last one counts, as after a retry
        place = int(answers.order[found[0] - 1])
        return _completion_of(_decode_response(self._rows.read(place)))

    def _index(self) -> Lookup:
        models: set[str] = set()
        asked = np.fromiter(self._asked_before(models), [("digest", "u8"), ("place", "i8")])
        if problem := self._wrong_model(models):
            raise problem
        self._answers = Lookup(asked["digest"], asked["place"])
        return self._answers

    def _asked_before(self, models: set[str]) -> Iterator[tuple[int, int]]:
        """Yield the digests of what was asked; of the rows, torn and foreign lines hold no answer."""
        for place, row in read_rows(self._rows, _Asked):
            if row.error is None and row.outcome in ("ok", "refused"):
                models.add(row.model_name)
                if self.source in (None, row.model_name):
                    asked = row.messages or _as_prompt(row.prompt)
                    yield _digest(asked, row.sample_index), place

    def _wrong_model(self, models: set[str]) -> CallError | None:
        if self.source is None and len(models) > 1:
            what = f"the responses are those of {len(models)} models"
            return LaneError(
                what,
                where=str(self.file),
                fix=f"say which one: `model:` {', '.join(sorted(models))}",
            )
        if self.source is not None and self.source not in models:
            what = f"there are no responses of the model {self.source!r}"
            return LaneError(what, where=str(self.file), fix=nearest(self.source, models))
        return None

    async def close(self) -> None:
        self._rows.close()


def _as_prompt(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def _digest(messages: list[Message], sample_index: int) -> int:
    state = blake2b(_encode(nameless(messages)), digest_size=8)
    state.update(b"\0%d" % sample_index)
    return int.from_bytes(state.digest(), "big")


def _completion_of(row: Response) -> Completion:
    """Return what was answered. It costs nothing to hear it again, so the price is left out."""
    return Completion(
        text=row.response,
        finish_reason=row.metadata.get("finish_reason"),
        response_id=row.metadata.get("response_id"),
        refused=row.outcome == "refused",
        **{field: getattr(row, field) for field in REPLAYED},
    )
