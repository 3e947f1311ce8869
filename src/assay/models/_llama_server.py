"""llama.cpp's server for one GGUF file, in a process of its own.

Run as a script with one argument, JSON: {"path", "name", "port", "context", "parallel", "threads"}. It imports nothing
of Assay.
"""

import json
import signal
import sys
import time
from importlib import import_module
from typing import Any


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    engine: Any = import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = job["path"]
    params.model_alias = {job["name"]}  # its rows say this, not where the file is
    params.hostnames = ["127.0.0.1"]
    params.port = job["port"]
    params.cors_origins = "http://127.0.0.1"  # no page in a browser may ask it
    params.ui = params.endpoint_slots = False
    params.n_parallel = job["parallel"]
    params.n_ctx = job["context"] * job["parallel"]
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = job["threads"]
        pool.poll = 0  # threads that wait must not keep others from working
    # What an answer is must not depend on the requests before it.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.warmup = False
    try:
        server = engine.Server(params)
    except RuntimeError as error:
        time.sleep(1)  # llama.cpp says why from a thread of its own, which ends with us
        sys.exit(str(error))
    print(json.dumps({"url": server.listening_address}), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
