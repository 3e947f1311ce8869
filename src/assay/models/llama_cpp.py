"""llama.cpp: the OpenAI client, and a server that is started for the run if the model says how."""

from typing import Any

from assay.errors import UserError
from assay.interfaces import Model
from assay.models._local_server import Launch
from assay.models._served import MODELS, Docker, Served, container, served_model
from assay.registry import model

IMAGE = "ghcr.io/ggml-org/llama.cpp:server-cuda"
INNER_PORT = 8080


@model(name="llama.cpp", params=Served, local=True, reach="runs")
def llama_cpp(
    name: str,
    *,
    endpoint: str = "http://localhost:8080/v1",
    start_timeout: float = 300.0,
    **server: Any,
) -> Model:
    """A model of a llama.cpp server: one that runs at `endpoint`, or one started by `command` or in a container.

    Parameters:
    endpoint: the address of a server that runs already
    start_timeout: how many seconds a server may take to become healthy
    """
    settings = Served(**server)
    if settings.docker is not None and (
        settings.model_path is None or settings.docker.models_volume is None
    ):
        raise UserError(
            "the container needs `model_path` and `docker.models_volume`",
            where=f"model {name!r}",
            fix="the GGUF file, and the folder that it is in",
        )

    def in_container(docker: Docker, port: int) -> Launch:
        path = str(settings.model_path)
        inside = path if path.startswith("/") else f"{MODELS}/{path}"
        served_name = settings.model_name or name
        args = [
            "--model",
            inside,
            "--alias",
            served_name,
            "--host",
            "0.0.0.0",
            "--port",
            str(INNER_PORT),
        ]
        return container(docker, [], image=IMAGE, port=port, inner_port=INNER_PORT, args=args)

    return served_model(
        name,
        settings,
        type="llama.cpp",
        endpoint=endpoint,
        start_timeout=start_timeout,
        in_container=in_container,
    )
