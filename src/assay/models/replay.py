"""Answers from an earlier `responses.jsonl`: the same messages and sample index get the same answer again.

In memory there are 16 bytes an answer (digest and place in the file); the text is read when it is asked for.
"""

import asyncio
import os
from array import array
from collections.abc import Mapping
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay import reading
from assay.errors import CallError, LaneError, PermanentError, UserError
from assay.interfaces import Completion, Message, Model, Request
from assay.models.record import REPLAYED
from assay.records import ROWS_FILE, Response
from assay.registry import model, nearest
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


_decode_row = msgspec.json.Decoder(_Asked).decode
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
        self.identity: Mapping[str, Any] = {
            "type": "replay",
            "name": name,
            "model": source,
            "content": found,
        }
        self._indexing = asyncio.Lock()
        self._digests: Any = None
        self._offsets: Any = None
        self._descriptor = -1

    async def complete(self, request: Request) -> Completion:
        if self._descriptor < 0:
            async with self._indexing:
                if self._descriptor < 0:
                    await asyncio.to_thread(self._open)
        offset = self._find(request.messages, request.sample_index)
        if offset is None:
            offset = self._find(_as_prompt(messages_text(request.messages)), request.sample_index)
        if offset is None:
            raise PermanentError(
                f"no recorded answer for these messages and sample {request.sample_index}",
                where=str(self.file),
                fix="record them first: run the same prompts with the real model",
            )
        return _completion_of(_decode_response(self._line(offset)))

    def _find(self, messages: list[Message], sample_index: int) -> int | None:
        wanted = np.uint64(_digest(messages, sample_index))
        place = int(np.searchsorted(self._digests, wanted, side="right")) - 1
        return int(self._offsets[place]) if place >= 0 and self._digests[place] == wanted else None

    def _line(self, offset: int) -> bytes:
        pieces: list[bytes] = []
        while piece := os.pread(self._descriptor, 65536, offset):
            head, newline, _ = piece.partition(b"\n")
            pieces.append(head)
            if newline:
                break
            offset += len(piece)
        return b"".join(pieces)

    def _open(self) -> None:
        """Index the file: of rows that answer the same request the last one counts, as after a retry."""
        digests, offsets = array("Q"), array("q")
        models: set[str] = set()
        with reading.opened(self.file) as lines:
            offset = 0
            for line in lines:
                row = _row(line)
                if row is not None and row.error is None and row.outcome in ("ok", "refused"):
                    models.add(row.model_name)
                    if self.source in (None, row.model_name):
                        digests.append(
                            _digest(row.messages or _as_prompt(row.prompt), row.sample_index)
                        )
                        offsets.append(offset)
                offset += len(line)
        if problem := self._wrong_model(models):
            raise problem
        found = np.frombuffer(digests, dtype=np.uint64) if digests else np.zeros(0, dtype=np.uint64)
        order = np.argsort(found, kind="stable")
        self._digests = found[order]
        self._offsets = (
            np.frombuffer(offsets, dtype=np.int64)[order]
            if offsets
            else np.zeros(0, dtype=np.int64)
        )
        self._descriptor = os.open(self.file, os.O_RDONLY)

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
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _as_prompt(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def _digest(messages: list[Message], sample_index: int) -> int:
    state = blake2b(_encode(nameless(messages)), digest_size=8)
    state.update(b"\0%d" % sample_index)
    return int.from_bytes(state.digest(), "big")


# a torn or foreign line holds no answer; the store reports such lines
def _row(line: bytes) -> _Asked | None:
    try:
        return _decode_row(line)
    except msgspec.DecodeError:
        return None


def _completion_of(row: Response) -> Completion:
    """What was answered. It costs nothing to hear it again, so the price is left out."""
    return Completion(
        text=row.response,
        finish_reason=row.metadata.get("finish_reason"),
        response_id=row.metadata.get("response_id"),
        refused=row.outcome == "refused",
        **{field: getattr(row, field) for field in REPLAYED},
    )
