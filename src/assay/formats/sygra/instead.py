"""What task folders are not offered in YAML, flags, records and imports; what to use instead."""

from assay.sdk import UserError

_RUN = "assay.formats.sygra.run(task, …)"
_ASK = "an llm node, or a function task with `context.complete`"
_URLS = "data URLs in the records: `data:image/png;base64,…`"
_FILE = "the output file, or a post-processor of your own"
INSTEAD = {
    "Workflow": _RUN,
    "sygra.workflow": _RUN,
    "ModelFactory": _ASK,
    "sygra.core.models.model_factory": _ASK,
    "SemanticDedupPostProcessor": (
        "`assay dataset`, which finds duplicates in the output file, and leave it out here"
    ),
    "CreateImageUrlTransform": _URLS,
    "CreateAudioUrlTransform": _URLS,
    "an image or a sound": _URLS,
    "a list of sources": "one source, a mapping: join several into one file beforehand",
    "sink": _FILE,
    "node_type 'agent'": "an llm node with `tools`, and a condition that leads back to it",
    "--draw": "a Mermaid editor for `nodes` and `edges` of graph_config.yaml",
    "--oasst": _FILE,
    "--quality": _FILE,
}


def not_offered(name: str, where: str = "") -> UserError:
    """Return the error that refuses a name of the table."""
    return UserError(f"{name} is not offered", where=where, fix=f"use {INSTEAD[name]}")
