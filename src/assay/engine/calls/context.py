"""The door from tasks and scorers to models, threads, random seeds and traces."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import msgspec

from assay.engine.calls.lanes import Lanes
from assay.engine.calls.log import CallLog, PaidCall
from assay.sdk import (
    Completion,
    JsonObject,
    LaneError,
    Log,
    Message,
    Model,
    Request,
    StoreError,
    UserError,
    nearest,
)
from assay.store.keys import call_key, short
from assay.threads import Threads

# branches that run side by side keep their own
_span: ContextVar[int | None] = ContextVar("span", default=None)


@dataclass
class Surroundings:
    """What all rows of a step share: lanes, threads, named models, and the logs for calls and traces."""

    lanes: Lanes
    threads: Threads
    models: Mapping[str, Model]
    make_calls: Callable[[], CallLog]
    traces: Log
    timeout: float | None

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._broken: StoreError | None = None

    @cached_property
    def calls(self) -> CallLog:
        """Opened with the first call that is logged: plain prompt tasks never need it."""
        return self.make_calls()

    @contextmanager
    def storing(self) -> Generator[None]:
        """Have rows stored: what cannot be kept must not be paid. A log of calls that cannot be used stops all lanes."""
        try:
            yield
        except StoreError as error:
            self._broken = self._broken or error
            self.lanes.stop(LaneError(error.what, where=error.where, fix=error.fix))
            raise

    def raise_if_broken(self) -> None:
        """To be asked before a row is written: user code may have swallowed the error."""
        if self._broken is not None:
            raise self._broken

    def model(self, named: "Model | str | None", default: str) -> Model:
        if named is not None and not isinstance(named, str):
            return named
        name = named or default or (next(iter(self.models)) if len(self.models) == 1 else "")
        if name not in self.models:
            what = (
                f"unknown model {name!r}" if name else "the call does not say which model it wants"
            )
            raise UserError(what, fix=nearest(name, self.models))
        return self.models[name]


class RowContext:
    """The context of one row. `owner` is the row's address: editing code does not change it."""

    def __init__(
        self,
        around: Surroundings,
        *,
        item_id: str,
        sample_index: int,
        seed: int,
        owner: bytes,
        name: str,
        model: str,
    ) -> None:
        self.item_id = item_id
        self.sample_index = sample_index
        self.seed = seed
        self._around = around
        self._owner = owner
        self._name = name
        self._model = model
        self._counts: dict[bytes, int] = {}
        self._spans: list[JsonObject] = []
        self._lock = threading.Lock()

    async def complete(
        self,
        messages: list[Message],
        *,
        model: Model | str | None = None,
        step: str = "",
        **params: Any,
    ) -> Completion:
        target = self._around.model(model, self._model)
        with self._around.storing():
            call = self._new_call(target, step, messages, params)
            known = self._around.calls.find(call.key)
        if known is not None:
            return known
        lane = self._around.lanes[target.name]
        seed = self.seed ^ short(call.key) >> 1  # two steps that ask the same are still two samples
        request = Request(messages, params, self.sample_index, seed, lane.limits.timeout)
        started = time.perf_counter()
        call.completion = await lane.send(target, request)
        call.seconds, call.timestamp = time.perf_counter() - started, time.time()
        lane.progress.calls += 1
        lane.progress.tokens += call.completion.total_tokens or 0
        with self._around.storing():
            self._around.calls.add(call)
        return call.completion

    def recall(
        self,
        messages: list[Message],
        *,
        model: Model | str | None = None,
        step: str = "",
        **params: Any,
    ) -> Completion | None:
        target = self._around.model(model, self._model)
        key = call_key(self._owner, step, 0, messages, target.identity, params)
        with self._around.storing():
            return self._around.calls.find(key.hex())

    def _new_call(
        self, target: Model, step: str, messages: list[Message], params: JsonObject
    ) -> PaidCall:
        """Return a call with its key; equal ones have keys of their own however the row's steps
        interleave."""
        asked = messages, target.identity, params
        key = call_key(self._owner, step, 0, *asked)
        ordinal = self._counts.get(key, 0)
        self._counts[key] = ordinal + 1
        if ordinal:
            key = call_key(self._owner, step, ordinal, *asked)
        return PaidCall(
            key=key.hex(),
            item_id=self.item_id,
            owner=self._name,
            step=step,
            ordinal=ordinal,
            model_name=target.name,
            messages=messages,
            params=params,
        )

    def complete_sync(self, messages: list[Message], **asked: Any) -> Completion:
        if _running_loop() is self._around.loop:
            raise UserError(
                "complete_sync would wait for itself here", fix="use `await context.complete(...)`"
            )
        call = self.complete(messages, **asked)
        return asyncio.run_coroutine_threadsafe(call, self._around.loop).result()

    def model(self, named: Model | str | None = None) -> Model:
        return self._around.model(named, self._model)

    async def send(self, model: Model, request: Request) -> Completion:
        return await self._around.lanes.send(model, request)

    async def thread(self, call: Callable[[], Any]) -> Any:
        return await self._around.threads.call(
            partial(copy_context().run, call), self._around.timeout
        )

    @contextmanager
    def span(self, name: str, **data: Any) -> Generator[JsonObject]:
        record: JsonObject = {
            "name": name,
            "parent": _span.get(),
            "start": time.time(),
            "end": None,
            "error": None,
            "data": dict(data),
        }
        with self._lock:
            self._spans.append(record)
            token = _span.set(len(self._spans) - 1)
        try:
            yield record["data"]
        except BaseException as error:
            record["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            record["end"] = time.time()
            _span.reset(token)

    def write_trace(self, key: bytes) -> None:
        """Store the row's spans, if it made any; what is not a JSON value is stored as its text."""
        if self._spans:
            row = {
                "key": key.hex(),
                "item_id": self.item_id,
                "owner": self._name,
                "sample_index": self.sample_index,
            }
            line = msgspec.json.encode({**row, "spans": self._spans}, enc_hook=str)
            self._around.traces.append(line + b"\n")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
