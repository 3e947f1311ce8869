"""The experiments below the paths."""

import msgspec

from assay.sdk import VERSION, JsonObject
from assay.viewer.experiments import Experiments


class Query(msgspec.Struct, kw_only=True):
    pass


def page(experiments: Experiments, query: Query) -> JsonObject:
    listed = [{"id": id, **msgspec.to_builtins(entry)} for id, entry in experiments.list().items()]
    return {"version": VERSION, "roots": experiments.names, "experiments": listed}
