"""`assay worker`: work on what was begun in a folder or bucket, beside others."""

from typing import Any

import click

from assay import api
from assay.cli import verb
from assay.cli._options import POSITIVE, flag, option, shard_option, trust_option
from assay.cli._output import json_option, tell
from assay.errors import Interrupted

STOPPED = 75  # asked to stop, and work is left: the same command goes on


@verb("worker")
@click.argument("root")
@shard_option
@option("--name", "What others call this worker; default: the host's name.", default="")
@option(
    "--script",
    "Print the file that starts workers, do nothing.",
    type=click.Choice(["slurm", "k8s"]),
)
@option("--count", "Of workers, for --script.", type=POSITIVE, default=16, show_default=True)
@trust_option
@flag("--quiet", "Print nothing but errors.")
@json_option
def command(
    root: str, script: str | None, count: int, quiet: bool, as_json: bool, **options: Any
) -> int:
    """Take shards of the plan that `assay run` or `assay evaluate` began at ROOT until none is left.

    Any number of workers, on any machine that sees ROOT, started and killed at any time. SIGTERM and Ctrl-C make one
    commit what it has and give its shard back; it exits with 75, and with 0 when there is nothing left to take.
    """
    if script is not None:
        click.echo(api.worker_script(root, script, count), nl=False)
        return 0
    progress = api.new_progress()
    try:
        worked = api.watch(
            progress,
            lambda stop: _until_stopped(root, stop, progress=progress, **options),
            "none" if quiet else "events" if as_json else "lines",
        )
    except Interrupted as stopped:
        click.echo(f"{stopped}", err=True)
        return STOPPED
    if as_json or not quiet:
        whole = "" if worked.result is None else "; the whole is finished"
        told = {"event": "result", "ok": True, "worker": worked.worker, "shards": worked.shards}
        tell(told, f"{worked.worker}: {worked.shards} shards{whole}", as_json=as_json)
    return 0


async def _until_stopped(root: str, stop: Any, **options: Any) -> Any:
    worked = await api.work(root, stop=stop, **options)
    if stop.requested and worked.result is None:
        raise Interrupted
    return worked
