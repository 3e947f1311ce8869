"""The `docker:` keys of a model, as a command line: the server in a container that is removed when it ends."""

import secrets

import msgspec

from assay.models._local_server import Launch

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


def container(docker: Docker, options: list[str], *, image: str, port: int, inner_port: int, args: list[str]) -> Launch:
    """Only loopback reaches the container; its own name makes sure that it can be removed whatever happens."""
    name = f"assay-{secrets.token_hex(6)}"
    command = ["docker", "run", "--rm", "--name", name, "-p", f"127.0.0.1:{port}:{inner_port}"]
    if docker.gpus and docker.gpus != "none":
        command += ["--gpus", docker.gpus]
    if volume := docker.models_volume:
        command += ["-v", volume if ":" in volume else f"{volume}:{MODELS}"]
    for variable in docker.env:
        command += ["-e", variable]
    command += [*options, *docker.options, docker.image or image, *args, *docker.args]
    return Launch(command, cleanup=["docker", "rm", "--force", name])
