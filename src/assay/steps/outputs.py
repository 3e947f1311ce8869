"""What a config writes after a run, bound: names and parameters are checked before anything is spent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from assay import registry
from assay.config import Config
from assay.steps.bind import Problems


class BoundOutput(msgspec.Struct):
    """A format of `assay export` with its parameters, and where it writes to."""

    write: Callable[..., Any]
    params: dict[str, Any]
    table: str
    path: Path


def bind_outputs(config: Config) -> list[BoundOutput]:
    """Every output of a config; a format that makes a folder gets one of its name, any other a file of its table's."""
    problems = Problems(config)
    bound: list[BoundOutput] = []
    for number, output in enumerate(config.outputs):
        with problems.at("outputs", number):
            write = registry.writer.get(output.type, base=Path(config.base), where="outputs")
            params = registry.check_params(write, output.params, where="outputs.params")
            marks: dict[str, Any] = getattr(write, "__assay__", {})
            name = output.type.rpartition(":")[2].rpartition(".")[2]
            own = name if marks.get("folder") else f"{output.table}.{name}"
            bound.append(BoundOutput(write, params, output.table, Path(output.path or Path(config.output_dir, own))))
    problems.raise_any()
    return bound
