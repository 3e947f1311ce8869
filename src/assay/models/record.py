"""Any model, with every answer also kept in a file that `replay` reads: pay once, run again without the server."""

import os
import time
from pathlib import Path

import msgspec

from assay import registry
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    LaneError,
    Model,
    Request,
    Response,
    UserError,
    make_folder,
    model,
    private_mode,
)
from assay.text.media import separated
from assay.text.messages import messages_text

_encode = msgspec.json.Encoder().encode
REPLAYED = (  # the fields that a row has from its completion as they are
    "prompt_tokens", "completion_tokens", "total_tokens", "served_model", "served_fingerprint", "reasoning",
    "tool_calls", "logprobs",
)  # fmt: skip


@model(reach="runs")
def record(name: str, *, of: JsonObject, path: str) -> Model:
    """The model that `of` describes (its `type` and parameters); its answers are added to the file at `path`."""
    where = f"model {name!r}"
    params = dict(of)
    type_ = params.pop("type", "openai")
    if not isinstance(type_, str) or type_ == "record":
        raise UserError(
            "`of` must describe a model that answers",
            where=where,
            fix="write `of: {type: openai, …}`",
        )
    inner_name = str(params.pop("name", name))
    factory = registry.model.get(type_, where=where)
    return RecordModel(
        name, factory(inner_name, **registry.check_params(factory, params, where=where)), Path(path)
    )


class RecordModel:
    """Passes requests on. Its identity is the wrapped model's, so the rows of a run stay valid without it."""

    def __init__(self, name: str, inner: Model, file: Path) -> None:
        self.name = name
        self.inner = inner
        self.file = file
        self.identity: JsonMapping = inner.identity
        self.exclusive = bool(getattr(inner, "exclusive", False))
        self.schemas = bool(getattr(inner, "schemas", False))
        self._descriptor = -1

    def check(self) -> None:
        """Whatever the wrapped model knows before its first request."""
        if check := getattr(self.inner, "check", None):
            check()

    async def open(self) -> None:
        """Whatever the wrapped model does before its first request."""
        if start := getattr(self.inner, "open", None):
            await start()

    async def complete(self, request: Request) -> Completion:
        if self._descriptor < 0:
            self._descriptor = _appendable(self.file)
        started = time.perf_counter()
        answer = await self.inner.complete(request)
        row = _row_of(request, answer, self.name, time.perf_counter() - started)
        self._write(_encode(row) + b"\n")
        return answer

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise LaneError(
                f"the answer cannot be kept: {error.strerror}", where=str(self.file)
            ) from None
        if written < len(line):
            os.ftruncate(self._descriptor, os.lseek(self._descriptor, 0, os.SEEK_END) - written)
            raise LaneError("the answer cannot be kept: the disk is full", where=str(self.file))

    async def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        await self.inner.close()


def _appendable(file: Path) -> int:
    """The file, open for adding lines; a last line that was torn stays one bad line."""
    try:
        make_folder(file.parent)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, private_mode())
    except OSError as error:
        raise LaneError(f"the answers cannot be kept: {error.strerror}", where=str(file)) from None
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return descriptor


def _row_of(request: Request, answer: Completion, model_name: str, seconds: float) -> Response:
    """The row of one call; it belongs to no item."""
    return Response(
        item_id="",
        sample_index=request.sample_index,
        total_samples=request.sample_index + 1,
        model_name=model_name,
        prompt=messages_text(request.messages),
        response=answer.text,
        inference_time=seconds,
        timestamp=time.time(),
        metadata={
            "model_id": model_name,
            "sampling": request.params,
            "finish_reason": answer.finish_reason,
            "response_id": answer.response_id,
        },
        outcome="refused" if answer.refused else "ok",
        messages=separated(request.messages)[0],
        cost=answer.cost,
        **{field: getattr(answer, field) for field in REPLAYED},
    )
