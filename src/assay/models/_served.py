"""The OpenAI client with a server of its own, started at the first request or by `open`, ended by `close`."""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from assay.errors import TransientError, UserError
from assay.interfaces import Completion, Request
from assay.models._docker import Docker
from assay.models._local_server import Launch, LocalServer
from assay.models.openai import OpenAIModel


class ServedModel(OpenAIModel):
    """`exclusive` is true where we start the server: such models should not be used side by side."""

    def __init__(
        self, name: str, *, type: str, model_path: str | None, server: LocalServer | None, **client: Any
    ) -> None:
        super().__init__(name, **client)
        self.identity: Mapping[str, Any] = {**self.identity, "type": type, "model_path": model_path}
        self.server = server
        self.exclusive = server is not None
        self._starting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the server and wait until it is healthy; nothing if it is, or if it is not ours."""
        if self.server is None:
            return
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_server(self.server))
        await asyncio.shield(self._starting)  # a call that is given up does not give up the server

    async def _start_server(self, server: LocalServer) -> None:
        self.connect(await server.start(self.sent))

    async def complete(self, request: Request) -> Completion:
        if self.server is not None and (self._starting is None or not self._starting.done()):
            await self.open()
        elif self._starting is not None:
            self._starting.result()
        try:
            return await super().complete(request)
        except TransientError as error:
            if self.server is not None and error.unreachable:
                self.server.check()
            raise

    async def close(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.wait([starting])
        await super().close()
        if self.server is not None:
            await self.server.stop()


def served_model(
    name: str,
    *,
    type: str,
    in_container: Callable[[Docker, int], Launch],
    model_name: str,
    model_path: str | None,
    command: str | list[str] | None,
    docker: Docker | None,
    port: int | None,
    start_timeout: float,
    log: str | None,
    **client: Any,
) -> ServedModel:
    """The client, with a server of its own if the model's keys say how to start one."""
    where = f"model {name!r}"
    launch = None
    if command is not None and docker is not None:
        raise UserError("`command` and `docker` are two ways to start a server", where=where, fix="remove one of them")
    if docker is not None:
        launch, port = partial(in_container, docker), docker.host_port or port
    elif command is not None:
        launch = _command(command, port, model_path, model_name, where)
    server = LocalServer(name, launch, port=port, start_timeout=start_timeout, log=log) if launch else None
    return ServedModel(name, type=type, model_path=model_path, server=server, model_name=model_name, **client)


def _command(
    command: str | list[str], port: int | None, model_path: str | None, model_name: str, where: str
) -> Callable[[int], Launch]:
    """The user's own command; `{port}`, `{model_path}` and `{model_name}` in it are filled in."""
    words = shlex.split(command) if isinstance(command, str) else command
    if not words:
        raise UserError("`command` is empty", where=where, fix="write how the server is started")
    if port is None and not any("{port}" in word for word in words):
        raise UserError("the command does not say the port", where=where, fix="write `{port}` in it, or give `port:`")
    if model_path is None and any("{model_path}" in word for word in words):
        raise UserError("the command needs the model's path", where=where, fix="give `model_path:`")

    def launch(chosen: int) -> Launch:
        filled = {"{port}": str(chosen), "{model_path}": model_path or "", "{model_name}": model_name}
        return Launch([_replaced(word, filled) for word in words])

    return launch


def _replaced(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
