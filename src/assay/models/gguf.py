"""A GGUF file, answered by llama.cpp's server (the extra `local`), which is started for the run on loopback."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay.children import Launch
from assay.models._gguf_file import Weights, weights
from assay.models._local_openai import Served, ServedModel
from assay.models._local_server import LocalServer
from assay.sdk import JsonMapping, JsonObject, LaneError, Model, UserError, install_command, model

CONTEXT = 4096
_SERVER = Path(__file__).with_name("_llama_server.py")


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """How llama.cpp is run.

    Parameters:
    api: `chat` uses the chat template of the file, `completions` sends the text as it is
    context: how many tokens prompt and answer may have together; by default 4096, or what the model was trained for
    threads: how many threads compute; by default half of the processors that this process may use
    parallel: how many requests are answered at a time
    extra_body: further keys of each request
    start_timeout: how many seconds the server may take to become healthy
    log: the file that the server's output goes to
    """

    api: Literal["chat", "completions"] = "chat"
    context: int | None = None
    threads: int | None = None
    parallel: int = 1
    extra_body: JsonObject | None = None
    start_timeout: float = 300.0
    log: str | None = None


@model(params=Engine, local=True, free=True, parallel=True, reach="runs")
def gguf(name: str, *, path: str, **engine: Any) -> Model:
    """The weights of a GGUF file, run by llama.cpp on this machine (the extra `local`).

    Parameters:
    path: the GGUF file
    """
    return GgufModel(name, weights(Path(path)), Engine(**engine))


class GgufModel(ServedModel):
    """Its identity has the hash of the file, not its place."""

    def __init__(self, name: str, file: Weights, engine: Engine) -> None:
        context = engine.context or min(CONTEXT, file.context or CONTEXT)
        threads = engine.threads or max(1, _processors() // 2)
        for key, value in (
            ("context", context),
            ("threads", threads),
            ("parallel", engine.parallel),
        ):
            if value < 1:
                raise UserError(
                    f"{key} is {value}", where=f"model {name!r}", fix="give a number from 1 on"
                )
        job = {"path": str(file.path), "name": name, "context": context, "threads": threads}

        def launch(port: int) -> Launch:
            settings = json.dumps({**job, "port": port, "parallel": engine.parallel})
            # -P: no module of the current folder
            return Launch([sys.executable, "-P", str(_SERVER), settings])

        server = LocalServer(
            name, launch, port=None, start_timeout=engine.start_timeout, log=engine.log
        )
        settings = Served(api=engine.api, extra_body=engine.extra_body)
        until_started = "http://127.0.0.1"
        super().__init__(name, settings, until_started, type="gguf", server=server)
        own = {"sha256": file.sha256, "context": context, "extra_body": engine.extra_body or {}}
        self.identity: JsonMapping = {"type": "gguf", "name": name, "api": engine.api, **own}

    def check(self) -> None:
        """UserError where no request could succeed."""
        if not is_installed():
            raise UserError(
                "this model needs llama.cpp, which is not installed",
                fix=install_command("local"),
            )

    async def _start_server(self, server: LocalServer) -> None:
        try:
            self.check()
        except UserError as error:
            raise LaneError(error.what, where=error.where, fix=error.fix) from None
        await super()._start_server(server)


def is_installed() -> bool:
    return find_spec("xllamacpp") is not None


def _processors() -> int:
    """Return how many this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
