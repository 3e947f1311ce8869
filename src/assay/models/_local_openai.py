"""Local servers that speak the OpenAI API: the client, and a server for it that a command or a container starts.

The server is started at the first request or by `open`, and ended by `close`.
"""

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from assay.children import Launch
from assay.models._local_server import LocalServer
from assay.models.openai import OpenAIModel, Spoken
from assay.sdk import (
    Completion,
    JsonMapping,
    Likelihood,
    Likelihoods,
    Request,
    TransientError,
    UserError,
)

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


class Image(NamedTuple):
    """A container's server: where it listens inside, and its arguments, with the places of a command. A model's path
    that is relative counts from `root`."""

    name: str
    port: int
    arguments: list[str]
    options: list[str] = []
    root: str = ""


class Served(Spoken, frozen=True):
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

    model_path: str | None = None
    api: Literal["chat", "completions"] = "chat"
    command: str | list[str] | None = None
    docker: Docker | None = None
    port: int | None = None
    log: str | None = None


class ServedModel(OpenAIModel):
    """`exclusive` is true where we start the server: such models should not be used side by side."""

    def __init__(
        self,
        name: str,
        settings: Served,
        endpoint: str,
        *,
        type: str,
        server: LocalServer | None,
    ) -> None:
        super().__init__(name, settings, endpoint)
        own = {"type": type, "model_path": settings.model_path}
        self.identity: JsonMapping = {**self.identity, **own}
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
    endpoint: str,
    *,
    type: str,
    start_timeout: float,
    image: Image,
) -> ServedModel:
    """The client, with a server of its own if the settings say how to start one."""
    where, docker, port = f"model {name!r}", settings.docker, settings.port
    path, launch = settings.model_path or "", None
    places = {"{model_path}": path, "{model_name}": settings.model_name or name}
    if docker is not None and settings.command is not None:
        what = "`command` and `docker` are two ways to start a server"
        raise UserError(what, where=where, fix="remove one of them")
    if docker is not None:
        inside = {**places, "{model_path}": os.path.join(image.root, path)}
        launch, port = partial(_in_container, docker, image, inside), docker.host_port or port
    elif settings.command is not None:
        launch = partial(_launch, _words(settings, where), places)
    server = None
    if launch is not None:
        server = LocalServer(name, launch, port=port, start_timeout=start_timeout, log=settings.log)
    return ServedModel(name, settings, endpoint, type=type, server=server)


def _in_container(docker: Docker, image: Image, places: Mapping[str, str], port: int) -> Launch:
    """Only loopback reaches the container; its own name makes sure that it can be removed whatever happens."""
    name = f"assay-{secrets.token_hex(6)}"
    command = ["docker", "run", "--rm", "--name", name, "-p", f"127.0.0.1:{port}:{image.port}"]
    if docker.gpus and docker.gpus != "none":
        ours = os.environ.get("CUDA_VISIBLE_DEVICES", "")  # of a worker that has some of a node's
        command += ["--gpus", f'"device={ours}"' if ours and docker.gpus == "all" else docker.gpus]
    if volume := docker.models_volume:
        command += ["-v", volume if ":" in volume else f"{volume}:{MODELS}"]
    for variable in docker.env:
        command += ["-e", variable]
    arguments = _launch(image.arguments, places, image.port).command
    command += [*image.options, *docker.options, docker.image or image.name, *arguments]
    return Launch([*command, *docker.args], cleanup=["docker", "rm", "--force", name])


def _launch(words: Sequence[str], places: Mapping[str, str], port: int) -> Launch:
    """Return what starts these words, with what belongs in their places."""
    filled = [word.replace("{port}", str(port)) for word in words]
    for place, value in places.items():
        filled = [word.replace(place, value) for word in filled]
    return Launch(filled)


def _words(settings: Served, where: str) -> Sequence[str]:
    """Return the words of the user's own command, checked."""
    command = settings.command or ""
    words = shlex.split(command) if isinstance(command, str) else command
    if not words:
        raise UserError("`command` is empty", where=where, fix="write how the server is started")
    if settings.port is None and not any("{port}" in word for word in words):
        raise UserError(
            "the command does not say the port",
            where=where,
            fix="write `{port}` in it, or give `port:`",
        )
    if settings.model_path is None and any("{model_path}" in word for word in words):
        raise UserError("the command needs the model's path", where=where, fix="give `model_path:`")
    return words
