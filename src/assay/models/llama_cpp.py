"""llama.cpp: the OpenAI client, and a server that is started for the run if the model says how."""

from typing import Any, Literal

from assay.errors import UserError
from assay.interfaces import Model
from assay.models._docker import MODELS, Docker, container
from assay.models._local_server import Launch
from assay.models._served import served_model
from assay.registry import model

IMAGE = "ghcr.io/ggml-org/llama.cpp:server-cuda"
INNER_PORT = 8080


@model(name="llama.cpp")
def llama_cpp(
    name: str,
    *,
    model_name: str | None = None,
    model_path: str | None = None,
    endpoint: str = "http://localhost:8080/v1",
    api: Literal["chat", "completions"] = "chat",
    api_key: str | None = None,
    revision: str | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    command: str | list[str] | None = None,
    docker: Docker | None = None,
    port: int | None = None,
    start_timeout: float = 300.0,
    log: str | None = None,
) -> Model:
    """A model of a llama.cpp server: one that runs at `endpoint`, or one started by `command` or in a container."""
    served_name = model_name or name
    if docker is not None and (model_path is None or docker.models_volume is None):
        raise UserError(
            "the container needs `model_path` and `docker.models_volume`",
            where=f"model {name!r}",
            fix="the GGUF file, and the folder that it is in",
        )

    def in_container(docker: Docker, port: int) -> Launch:
        path = str(model_path)
        inside = path if path.startswith("/") else f"{MODELS}/{path}"
        args = ["--model", inside, "--alias", served_name, "--host", "0.0.0.0", "--port", str(INNER_PORT)]
        return container(docker, [], image=IMAGE, port=port, inner_port=INNER_PORT, args=args)

    return served_model(
        name,
        type="llama.cpp",
        in_container=in_container,
        model_name=served_name,
        model_path=model_path,
        command=command,
        docker=docker,
        port=port,
        start_timeout=start_timeout,
        log=log,
        endpoint=endpoint,
        api=api,
        api_key=api_key,
        revision=revision,
        extra_body=extra_body or {},
        headers=headers or {},
    )
