"""A task as a person wants to know it before running it: what it asks, how it scores, where its data is from."""

import json
from itertools import islice

from assay.errors import AssayError
from assay.formats.lm_eval.asking.contexts import plain
from assay.formats.lm_eval.asking.data import load, shown_name
from assay.formats.lm_eval.asking.documents import documents
from assay.formats.lm_eval.scoring.measures import entries
from assay.formats.lm_eval.tasks.definition import Definition, Document

_ASKS = {
    "generate_until": "text that the model writes",
    "multiple_choice": "which choice is the most probable",
    "loglikelihood": "how probable a continuation is",
    "loglikelihood_rolling": "how probable whole texts are",
}


def described(definition: Definition) -> dict[str, str]:
    """Facts, by name."""
    split = definition.test_split or definition.validation_split or ""
    facts = {
        "asks": _ASKS[definition.output_type],
        "examples": str(definition.num_fewshot or 0),
        "data": f"{shown_name(definition)}, split {split}",
        **_source(definition, split),
        "scores": ", ".join(entries(definition)),
        "filters": ", ".join(
            str(pipeline.get("name")) for pipeline in definition.filter_list or ()
        ),
        "version": str(definition.metadata.get("version", "")),
    }
    if definition.output_type == "generate_until":
        facts["generation"] = json.dumps(definition.generation_kwargs, ensure_ascii=False)
    if definition.unsafe_code:
        facts["unsafe"] = "runs code that the model writes"
    return facts


def _source(definition: Definition, split: str) -> dict[str, str]:
    """How many documents there are, of which revision; or how to bring them."""
    try:
        data = load(definition)
        counted = {
            "documents": f"{len(data.split(split)):,}",
            "revision": data.source.get("revision") or "",
        }
        return {**counted, "read from": data.source.get("origin") or ""}
    except AssayError as error:
        return {"documents": f"not on this machine: {error.what}", "to bring them": error.fix}


def example(definition: Definition) -> str:
    """What is asked about the first document."""
    try:
        (document,) = islice(documents(definition, limit=1), 1)
    except (AssayError, ValueError):
        return ""
    return _asked(document)


def _asked(document: Document) -> str:
    first = document.requests[0] if document.requests else None
    if first is None:
        return document.error
    if first.rolling:
        return first.continuation or ""
    choices = [
        request.continuation for request in document.requests if request.messages == first.messages
    ]
    shown = [f"  {choice!r}" for choice in choices if choice is not None]
    return "\n".join([plain(first.messages), *shown])
