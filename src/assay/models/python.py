"""A user's own function as a model: `f(prompt)`, `f(messages)` or `f(request)`, sync or async.

Which one it is follows from the name of its first parameter, once. It returns text, a Completion, or a dict
with a Completion's fields.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from assay.registry import load_function
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    Model,
    PermanentError,
    Request,
    TransientError,
    UserError,
    model,
    nearest,
)
from assay.text.messages import messages_text
from assay.threads import Threads

MOST_THREADS = 4096  # the lane decides how many calls there are

_FIELDS = Completion.__struct_fields__


@model(reach="runs")
def python(
    name: str,
    *,
    path: str | None = None,
    function_name: str | None = None,
    function: Callable[..., Any] | None = None,
    params: JsonObject | None = None,
) -> Model:
    """The function `function_name` of the file `path`, or a given `function`; `params` are its keywords."""
    where = f"model {name!r}"
    if function is None:
        if not path or not function_name:
            raise UserError(
                "a python model needs a function",
                where=where,
                fix="give `path: file.py` and `function_name: …`",
            )
        function = load_function(path, function_name, where=where)
    return PythonModel(name, function, params or {}, where)


class PythonModel:
    """Calls the function; a sync one runs in a thread, so it may block."""

    def __init__(
        self, name: str, function: Callable[..., Any], params: JsonObject, where: str
    ) -> None:
        from assay.usercode import identity

        self.name = name
        self._function = function
        self._params = params
        self._threads: Threads | None = None
        self._argument = _argument(function, params, where)
        self._is_async = inspect.iscoroutinefunction(
            inspect.unwrap(function)
        ) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object whose call is async
        )
        self.identity: JsonMapping = {
            "type": "python",
            "name": name,
            "function": getattr(function, "__qualname__", type(function).__qualname__),
            "code": identity(function),
            "params": params,
        }

    async def complete(self, request: Request) -> Completion:
        call = partial(self._function, self._argument(request), **self._params)
        try:
            result = call() if self._is_async else await self._in_thread(call, request.timeout)
            if isinstance(result, Awaitable):
                async with asyncio.timeout(request.timeout):
                    result = await result
        except TimeoutError:
            raise TransientError(
                f"{self.name!r} gave no answer within {request.timeout:g} s",
                overload=True,
                timed_out=True,
                fix="raise `timeout`",
            ) from None
        return self._completion(result)

    async def _in_thread(self, call: Callable[[], Any], timeout: float) -> Any:
        if self._threads is None:
            self._threads = Threads(MOST_THREADS)
        return await self._threads.call(call, timeout)

    def _completion(self, result: Any) -> Completion:
        if isinstance(result, str):
            return Completion(text=result)
        if isinstance(result, Completion):
            return result
        if not isinstance(result, dict):
            raise PermanentError(
                f"{self.name!r} returned {type(result).__name__}, not an answer",
                fix="return a string, a Completion, or a dict with its fields",
            )
        fields: JsonObject = result
        unknown = next((key for key in fields if key not in _FIELDS), None)
        if unknown is not None:
            raise PermanentError(
                f"{self.name!r} returned a dict with the unknown field {unknown!r}",
                fix=nearest(str(unknown), _FIELDS),
            )
        try:
            return msgspec.convert(fields, Completion)
        except msgspec.ValidationError as error:
            raise PermanentError(
                f"{self.name!r} returned a dict that is not an answer: {error}"
            ) from None

    async def close(self) -> None:
        """Let the threads end; one whose function hangs is left behind."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.close()


def _argument(
    function: Callable[..., Any], params: JsonMapping, where: str
) -> Callable[[Request], Any]:
    """Return what the function's first parameter asks for; also check that the other parameters fit."""
    try:
        signature = inspect.signature(function)
        signature.bind(None, **params)
    except TypeError as error:
        raise UserError(
            f"{getattr(function, '__name__', 'the function')} cannot be called with one argument and "
            f"params {sorted(params)}: {error}",
            where=where,
            fix="define it as f(prompt), f(messages) or f(request), with keywords for `params`",
        ) from None
    first = next(iter(signature.parameters), "")
    if first == "messages":
        return lambda request: request.messages
    if first == "request":
        return lambda request: request
    return lambda request: messages_text(request.messages)
