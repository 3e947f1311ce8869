"""RAGiCamp's agents as a task of the engine: whatever has a `name` and answers questions.

`answer(question)` may be async; one that is not runs in a thread, so that others continue meanwhile. With a batch size,
`batch_answer(questions)` is asked for several at once. What an agent raises is its answer's error, never the end.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from assay.errors import PermanentError, UserError
from assay.formats.ragicamp.state import state_of
from assay.interfaces import Answer, Context, Work
from assay.records import Item
from assay.store.keys import canonical, digest
from assay.text.template import question, variables

UNKNOWN = "unknown"
ASYNC_CONCURRENCY = 16
BATCH_METHODS = ("batch_answer", "answer_batch", "batch")
_LINGER = 0.02  # seconds without a further question after which a batch goes out as it is
_TEXTS = ("answer", "text", "prediction", "response")
OURS = ("model_id", "prompt_template", "finish_reason", "response_id")


def name_of(thing: Any) -> str:
    """The name of an agent or a dataset."""
    return str(getattr(thing, "name", None) or UNKNOWN)


class AgentTask:
    """`concurrency` is how many calls the agent gets at a time, `width` how many questions wait for one."""

    def __init__(
        self, agent: Any, *, batch_size: int | None = None, max_concurrency: int | None = None
    ) -> None:
        single, batch = _methods(agent)
        if single is None and batch is None:
            fix = "an agent has a `name` and `answer(question)`, or `batch_answer(questions)`"
            raise UserError(f"{type(agent).__name__} answers no questions", where="agent", fix=fix)
        for name, number in (("batch_size", batch_size), ("max_concurrency", max_concurrency)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be at least 1, got {number}", where=name)
        if batch_size is not None and batch is None:
            fix = f"give it {' or '.join(BATCH_METHODS)}, or leave batch_size out"
            raise UserError(f"{name_of(agent)!r} takes no batches", where="batch_size", fix=fix)
        size = batch_size or (16 if single is None else 1)
        asks = batch if single is None or size > 1 else single
        # An agent that is not async may not be safe to call from several threads: it has to be asked for.
        self.concurrency = max_concurrency or (
            ASYNC_CONCURRENCY if inspect.iscoroutinefunction(asks) else 1
        )
        self.width = self.concurrency * size
        self.name = self.model_name = name_of(agent)
        self.lane = ""
        self.facets: Mapping[str, Any] = {"model_id": self.name}
        self.identity: Mapping[str, Any] = {"agent": self.name, "state": state_of(agent)}
        self._code = digest("ragicamp-agent", canonical(self.identity))
        self._single = single
        self._places = asyncio.Semaphore(self.concurrency)
        self._batches = _Batches(self._ask_many, size) if asks is batch else None
        self._batch = batch

    def prepare(self, item: Item) -> Work:
        asked = question(variables(item))
        return Work(digest("question", self._code, asked.encode()), asked, prompt=asked)

    async def run(self, work: Work, context: Context) -> Answer:
        if self._batches is not None:
            return answer_of(await self._batches.answer(work.payload, context))
        return answer_of(await self._ask(self._single, work.payload, context))

    async def _ask(self, method: Any, asked: Any, context: Context) -> Any:
        async with self._places:
            if inspect.iscoroutinefunction(method):
                return await method(asked)
            result = await context.thread(lambda: method(asked))
            return await result if inspect.isawaitable(result) else result

    async def _ask_many(self, questions: list[str], context: Context) -> Sequence[Any]:
        """An answer, or an exception, for each. Where a batch fails as a whole its questions are asked one by one."""
        try:
            found = await self._ask(self._batch, questions, context)
            several = isinstance(found, Sequence) and not isinstance(found, str)
            answers = cast("Sequence[Any]", found) if several else ()
            if len(answers) != len(questions):
                given = len(answers) or type(found).__name__
                raise PermanentError(
                    f"a batch of {len(questions)} questions got {given} for answers"
                )
            return answers
        except (Exception, SystemExit) as error:
            if self._single is None:
                return [error] * len(questions)
        return [await self._one(asked, context) for asked in questions]

    async def _one(self, asked: str, context: Context) -> Any:
        try:
            return await self._ask(self._single, asked, context)
        except (Exception, SystemExit) as error:
            return error


def _methods(agent: Any) -> tuple[Any, Any]:
    """What answers one question, and what answers several; None where there is no such method."""
    single = getattr(agent, "answer", None)
    several = (getattr(agent, name, None) for name in BATCH_METHODS)
    return (single if callable(single) else None), next(
        (method for method in several if callable(method)), None
    )


class _Batches:
    """Gathers questions that wait at the same time. The last ones do not wait for others that never come."""

    def __init__(self, ask: Callable[[list[str], Context], Any], size: int) -> None:
        self._ask = ask
        self._size = size
        self._waiting: list[tuple[str, asyncio.Future[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def answer(self, asked: str, context: Context) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((asked, future))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if len(self._waiting) >= self._size:
            self._send(context)
        else:
            self._timer = loop.call_later(_LINGER, self._send, context)
        found = await future
        if isinstance(found, BaseException):
            raise found
        return found

    def _send(self, context: Context) -> None:
        batch, self._waiting = self._waiting, []
        task = asyncio.get_running_loop().create_task(self._settle(batch, context))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _settle(
        self, batch: list[tuple[str, "asyncio.Future[Any]"]], context: Context
    ) -> None:
        found = await self._ask([asked for asked, _ in batch], context)
        for (_, future), answer in zip(batch, found, strict=True):
            if not future.done():
                future.set_result(answer)


def answer_of(found: Any) -> Answer:
    """Text, an object or a dict with the text and perhaps `metadata`; anything else is an error."""
    if isinstance(found, str):
        return Answer(text=found)
    if isinstance(found, (int, float)):
        return Answer(text=str(found))
    fields = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None
    parts = {
        name: (fields.get(name) if fields is not None else getattr(found, name, None))
        for name in _TEXTS
    }
    text = next((value for value in parts.values() if isinstance(value, (str, int, float))), None)
    if text is None:
        known = " or ".join(_TEXTS[:2])
        raise PermanentError(
            f"an answer is text, or has a text as `{known}`; found {type(found).__name__}"
        )
    given = fields.get("metadata") if fields is not None else getattr(found, "metadata", None)
    return Answer(text=str(text), metadata=_metadata(given))


def _metadata(given: Any) -> dict[str, Any]:
    """What the agent says about its answer, as JSON; names that our rows use for themselves begin with `agent_`."""
    if not given:
        return {}
    try:
        plain = msgspec.to_builtins(given, str_keys=True, enc_hook=_plain)
        fields = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"metadata": plain}
        return msgspec.json.decode(
            msgspec.json.encode(
                {f"agent_{key}" if key in OURS else key: value for key, value in fields.items()}
            )
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PermanentError(f"the answer's metadata cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Objects of any class by their attributes, such as retrieved documents."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)
