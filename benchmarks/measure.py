"""What the benchmarks share: result lines, and children whose time and peak memory are measured."""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Literal

_CHILD = """
import importlib, json, re, sys, time
module, function, arguments = json.loads(sys.argv[1])
call = getattr(importlib.import_module(module), function)
began = time.perf_counter()
result = call(*arguments)
seconds = time.perf_counter() - began
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024  # ru_maxrss knows the parent's
print(json.dumps({"result": result, "seconds": seconds, "peak": peak}))
"""


@dataclass
class Line:
    """A measured value and the bound that it should keep."""

    what: str
    value: float
    sign: Literal["<=", ">="]
    bound: float
    detail: str = ""

    def holds(self) -> bool:
        return self.value <= self.bound if self.sign == "<=" else self.value >= self.bound


def child(function: Any, *arguments: Any) -> dict[str, Any]:
    """Call a function of the benchmarks in a process of its own: its result, its seconds, its peak memory in MB."""
    call = json.dumps([function.__module__, function.__name__, arguments])
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, call], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])
