"""Workers on a Ray cluster. Ray places them and starts lost ones again; it carries no rows, only counts come back.

Every worker is an actor with restarts without end. Actors belong to their driver: what nobody watches must not spend
money, so they end with it, and a driver that is started again finds all that they committed. For a run that should
outlive a terminal the driver itself is a Ray job. Two drivers on one plan share it by its claims.

Assay must be installed on the nodes, in the driver's version: its compiled dependencies cannot be sent as a folder, and
a `runtime_env` with `pip` or an image is Ray's own way to get them there. Values of secret variables are arguments of a
call between processes, which Ray keeps in memory; a `runtime_env` it would write to its logs.
"""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import msgspec

from assay.config import RayConfig, resolved
from assay.engine.calls.stop import Stop
from assay.engine.cluster.worker import work
from assay.engine.experiment.existing import aggregate
from assay.engine.experiment.experiment import Experiment, Result
from assay.errors import (
    DISTRIBUTION,
    VERSION,
    AssayError,
    BudgetError,
    Interrupted,
    RunFailed,
    UserError,
    install_command,
)
from assay.records import JsonObject
from assay.store.shared.objects import is_remote

LOOK = 0.5  # seconds between two looks at whether the run was asked to stop
GRACE = 60.0  # seconds that workers then have to commit what they have
LAST = 3.0  # seconds that the others have when one has finished the whole
_ours: list[Any] = []  # the connection, if it was made here
_ERRORS = {UserError.exit_code: UserError, BudgetError.exit_code: BudgetError}


def run_on_ray(
    place: str,
    workers: int | None = None,
    engine: RayConfig | None = None,
    *,
    names: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    stop: Stop | None = None,
) -> None:
    """Work on the plan at `place` until no worker finds a shard to take. `names` are the variables that the workers
    need, with the values of `environ`, by default of this process."""
    engine = engine or RayConfig()
    values = os.environ if environ is None else environ
    ray = connect(engine)
    actor = ray.remote(
        max_restarts=-1,
        max_task_retries=-1,
        max_concurrency=2,  # one call works, another may ask it to stop
        num_cpus=engine.cpus,
        num_gpus=engine.gpus,
        resources=engine.resources or None,
        runtime_env=engine.runtime_env or None,
    )(_code()[1])
    sent = {name: values[name] for name in names if name in values}
    actors = [actor.remote() for _ in range(workers or room(engine))]
    calls = {worker.work.remote(_seen_by_all(place), VERSION, sent): worker for worker in actors}
    with redirect_stdout(sys.stderr):  # where Ray reports lost workers is for results
        try:
            _watch(ray, calls, stop or Stop())
            _drain(calls)
            ray.wait(list(calls), num_returns=len(calls), timeout=LAST)
        finally:
            for worker in actors:
                ray.kill(worker)
            _disconnect(ray)


def aggregate_on_ray(
    paths: Sequence[str], experiment: Experiment, output_dir: str | None
) -> Result:
    """Compute metrics on the node with the most processors, with all of them; only numbers come back."""
    engine = (experiment.config.on and experiment.config.on.ray) or RayConfig()
    ray = connect(engine)
    with redirect_stdout(sys.stderr):
        try:
            cpus = max(node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"])
            task = ray.remote(
                num_cpus=cpus, max_retries=-1, runtime_env=engine.runtime_env or None
            )(_code()[0])
            arguments = (
                [_seen_by_all(path) for path in paths],
                resolved(experiment.config),
                output_dir,
                int(cpus),
            )
            outcome = _outcome(ray, task.remote("aggregate", VERSION, {}, *arguments))
        finally:
            _disconnect(ray)
    if "error" in outcome:
        raise _ERRORS.get(outcome["exit_code"], RunFailed)(outcome["error"])
    return msgspec.json.decode(outcome["result"], type=Result)


def _seen_by_all(place: str) -> str:
    return place if is_remote(place) else os.path.abspath(place.removeprefix("file://"))


def room(engine: RayConfig | None) -> int:
    """Return how many workers are asked for, or fit on the cluster now."""
    engine = engine or RayConfig()
    return engine.workers or fitting(engine, connect(engine).cluster_resources())


def connect(engine: RayConfig) -> Any:
    """Ray, connected to its cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours sends nothing home
    where = f"on.ray.address: {engine.address}"
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise UserError("`--on ray` needs Ray", fix=install_command("ray")) from None
    if ray.is_initialized():
        return ray
    try:
        _try(engine.address)
        ray.init(address=engine.address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError) as error:
        fix = "`ray start --head` on one machine, then `on: {ray: {address: …}}`; `address: local` starts one here"
        raise UserError(f"there is no Ray cluster: {_first(error)}", where=where, fix=fix) from None
    except RuntimeError as error:
        if "ersion mismatch" not in str(error):
            raise RunFailed(f"Ray cannot be used: {_first(error)}", where=where) from None
        what = (
            f"the cluster has another version of Ray or of Python: {' '.join(str(error).split())}"
        )
        raise UserError(what, where=where, fix="install the same versions on all sides") from None
    _ours.append(ray)
    return ray


def _try(address: str) -> None:
    """Ray asks for minutes where nobody answers."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _disconnect(ray: Any) -> None:
    """End the connection, unless the caller of Assay had it before."""
    while _ours:
        _ours.pop()
        ray.shutdown()


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def fitting(engine: RayConfig, cluster: Mapping[str, float]) -> int:
    """Return how many workers a cluster has room for; at least one, for clusters that grow on
    demand."""
    needs = {"CPU": engine.cpus, "GPU": engine.gpus, **engine.resources}
    return max(
        1,
        min((int(cluster.get(name, 0) // need) for name, need in needs.items() if need), default=1),
    )


def _watch(ray: Any, pending: dict[Any, Any], stop: Stop) -> None:
    """Wait for the workers; the first that finds the plan finished ends all. A user's mistake ends all, too; other
    failures of a worker are the run's only if nobody finishes it."""
    end, failure = float("inf"), None
    while pending and time.monotonic() < end:
        done, _ = ray.wait(list(pending), num_returns=1, timeout=LOOK)
        for call in done:
            worker = pending.pop(call)
            outcome = _outcome(ray, call)
            ray.kill(worker)  # its processors are for workers that wait for a place
            if outcome.get("finished"):
                return
            if "error" in outcome:
                failure = _ERRORS.get(outcome["exit_code"], RunFailed)(outcome["error"])
                if isinstance(failure, UserError):
                    raise failure
        if stop.requested and end == float("inf"):
            end = time.monotonic() + GRACE
            _drain(pending)
    if stop.requested:
        raise Interrupted
    if failure is not None:
        raise failure


def _drain(calls: Mapping[Any, Any]) -> None:
    for worker in calls.values():
        worker.drain.remote()


def _outcome(ray: Any, call: Any) -> JsonObject:
    try:
        return ray.get(call)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        return {
            "error": f"a worker on Ray failed: {type(cause).__name__}: {_first(cause)}",
            "exit_code": 1,
        }


def _code() -> tuple[Callable[..., JsonObject], type]:
    """A function and the class of a worker that Ray sends to the nodes as they are, because they were made here: they
    can tell what is installed there."""

    def on_node(
        function: str, expected: str, environ: dict[str, str], *arguments: Any
    ) -> JsonObject:
        import os
        import socket
        from importlib import import_module

        node = f"the node {socket.gethostname()}"
        wanted = f"'{DISTRIBUTION}[ray]=={expected}'"
        fix = f"  fix:   pip install {wanted} there, or `runtime_env: {{pip: […]}}`"
        try:
            installed = import_module("assay").__version__
        except (ImportError, AttributeError):
            return {"error": f"Assay is not installed on {node}\n{fix}", "exit_code": 2}
        if installed != expected:
            return {
                "error": f"Assay is {installed} on {node}, and {expected} here\n{fix}",
                "exit_code": 2,
            }
        from assay.engine.cluster.engines import ray

        os.environ.update(environ)
        return ray.done_here(function, node, arguments)

    class RayWorker:
        def work(self, place: str, expected: str, environ: dict[str, str]) -> JsonObject:
            return on_node("work", expected, environ, place)

        def drain(self) -> None:
            from assay.engine.cluster.engines import ray

            ray.drain()

    return on_node, RayWorker


# ---- on a node

_asked: list[Callable[[], object]] = []


def done_here(function: str, node: str, arguments: Sequence[Any]) -> JsonObject:
    """Return what a function of a node gives; its errors as plain values, because with keywords
    they cannot be pickled."""
    os.environ["ASSAY_TRUST"] = "1"  # the driver has made the plan, or trusts it
    try:
        return asyncio.run({"work": _work, "aggregate": _aggregate}[function](*arguments))
    except Interrupted:
        return {}
    except AssayError as error:
        return {"error": f"{error}\n  on {node}", "exit_code": error.exit_code}


async def _work(place: str) -> JsonObject:
    stop, loop = Stop(), asyncio.get_running_loop()
    _asked.append(lambda: loop.call_soon_threadsafe(stop.request))
    worked = await work(place, stop=stop)
    return {"finished": worked.result is not None, "shards": worked.shards, "rows": worked.rows}


async def _aggregate(
    paths: list[str], config: JsonObject, output_dir: str | None, workers: int
) -> JsonObject:
    result = await aggregate(paths, config, output_dir=output_dir, workers=workers).run()
    return {"result": msgspec.json.encode(result)}


def drain() -> None:
    """Ask the worker of this process to commit what it has, and to end."""
    for ask in _asked:
        ask()
