"""The experiments below the paths."""

from importlib.metadata import version
from typing import Any

import msgspec

from assay.viewer.experiments import Experiments


class Query(msgspec.Struct, kw_only=True):
    pass


def page(experiments: Experiments, query: Query) -> dict[str, Any]:
    listed = [{"id": id, **msgspec.to_builtins(entry)} for id, entry in experiments.list().items()]
    return {"version": version("assay"), "roots": experiments.names, "experiments": listed}
