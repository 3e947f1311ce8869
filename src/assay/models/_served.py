"""Local servers that speak the OpenAI API: the client, and a server for it that a command or a container starts.

The server is started at the first request or by `open`, and ended by `close`.
"""

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

import msgspec

from assay.errors import TransientError, UserError
from assay.interfaces import Completion, Likelihood, Likelihoods, Request
from assay.models._local_server import Launch, LocalServer
from assay.models.openai import OpenAIModel

MODELS = "/models"


class Docker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`models_volume` is a folder of this machine, seen as /models inside; `args` go to the server, `options` to
    `docker run`; `env` names variables that are handed on."""

    image: str = ""
    host_port: int | None = None
    models_volume: str | None = None
    gpus: str | None = "all"
    env: list[str] = []
    args: list[str] = []
    options: list[str] = []


def container(
    docker: Docker, options: list[str], *, image: str, port: int, inner_port: int, args: list[str]
) -> Launch:
    """Only loopback reaches the container; its own name makes sure that it can be removed whatever happens."""
    name = f"assay-{secrets.token_hex(6)}"
    command = ["docker", "run", "--rm", "--name", name, "-p", f"127.0.0.1:{port}:{inner_port}"]
    if docker.gpus and docker.gpus != "none":
        ours = os.environ.get("CUDA_VISIBLE_DEVICES", "")  # of a worker that has some of a node's
        command += ["--gpus", f'"device={ours}"' if ours and docker.gpus == "all" else docker.gpus]
    if volume := docker.models_volume:
        command += ["-v", volume if ":" in volume else f"{volume}:{MODELS}"]
    for variable in docker.env:
        command += ["-e", variable]
    command += [*options, *docker.options, docker.image or image, *args, *docker.args]
    return Launch(command, cleanup=["docker", "rm", "--force", name])


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that models of local servers share.

    Parameters:
    model_name: what the server calls the model; by default its name here
    model_path: the model's files: a folder, a file, or the name of a repository
    api: which of the two OpenAI APIs is spoken
    api_key: the variable that holds the key, as `${VAR}`, for servers that want one
    revision: the version of the model, as part of its identity
    extra_body: further keys of each request
    headers: further headers of each request
    stream: whether answers come in pieces, so that rows have their times
    command: how a server is started; `{port}`, `{model_path}` and `{model_name}` in it are filled in
    docker: the container that a server is started in
    port: the port that the server listens on; any free one if null
    log: the file that the server's output goes to
    """

    model_name: str | None = None
    model_path: str | None = None
    api: Literal["chat", "completions"] = "chat"
    api_key: str | None = None
    revision: str | None = None
    extra_body: dict[str, Any] | None = None
    headers: dict[str, str] | None = None
    stream: bool = False
    command: str | list[str] | None = None
    docker: Docker | None = None
    port: int | None = None
    log: str | None = None


class ServedModel(OpenAIModel):
    """`exclusive` is true where we start the server: such models should not be used side by side."""

    def __init__(
        self,
        name: str,
        *,
        type: str,
        model_path: str | None,
        server: LocalServer | None,
        **client: Any,
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
        async with self._running():
            return await super().complete(request)

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        async with self._running():
            return await super().likelihood(request)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        """With the server started; if it cannot be reached, it says why it ended."""
        if self.server is not None and (self._starting is None or not self._starting.done()):
            await self.open()
        elif self._starting is not None:
            self._starting.result()
        try:
            yield
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
    settings: Served,
    *,
    type: str,
    endpoint: str,
    start_timeout: float,
    in_container: Callable[[Docker, int], Launch],
) -> ServedModel:
    """The client, with a server of its own if the settings say how to start one."""
    model_name, docker, port = settings.model_name or name, settings.docker, settings.port
    launch = None
    if docker is not None and settings.command is not None:
        what = "`command` and `docker` are two ways to start a server"
        raise UserError(what, where=f"model {name!r}", fix="remove one of them")
    if docker is not None:
        launch, port = partial(in_container, docker), docker.host_port or port
    elif settings.command is not None:
        launch = _command(
            settings.command, port, settings.model_path, model_name, f"model {name!r}"
        )
    return ServedModel(
        name,
        type=type,
        model_path=settings.model_path,
        server=LocalServer(name, launch, port=port, start_timeout=start_timeout, log=settings.log)
        if launch
        else None,
        model_name=model_name,
        endpoint=endpoint,
        api=settings.api,
        api_key=settings.api_key,
        revision=settings.revision,
        extra_body=settings.extra_body or {},
        headers=settings.headers or {},
        stream=settings.stream,
    )


def _command(
    command: str | list[str], port: int | None, model_path: str | None, model_name: str, where: str
) -> Callable[[int], Launch]:
    """The user's own command; `{port}`, `{model_path}` and `{model_name}` in it are filled in."""
    words = shlex.split(command) if isinstance(command, str) else command
    if not words:
        raise UserError("`command` is empty", where=where, fix="write how the server is started")
    if port is None and not any("{port}" in word for word in words):
        raise UserError(
            "the command does not say the port",
            where=where,
            fix="write `{port}` in it, or give `port:`",
        )
    if model_path is None and any("{model_path}" in word for word in words):
        raise UserError("the command needs the model's path", where=where, fix="give `model_path:`")

    def launch(chosen: int) -> Launch:
        filled = {
            "{port}": str(chosen),
            "{model_path}": model_path or "",
            "{model_name}": model_name,
        }
        return Launch([_replaced(word, filled) for word in words])

    return launch


def _replaced(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
