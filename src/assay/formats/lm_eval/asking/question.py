"""What a document asks, by itself: the same for a document that is run here and for one in the harness's log."""

from collections.abc import Mapping
from typing import Any

from assay.store.keys import canonical

COLUMNS = ("question", "problem", "query", "input", "prompt", "text", "sentence", "ctx", "goal")


def question_of(doc: Mapping[str, Any]) -> str:
    """The text of the first such column; a document without any is all that it has."""
    for name in COLUMNS:
        value = doc.get(name)
        if isinstance(value, str) and value:
            return value
    return canonical(doc).decode()
