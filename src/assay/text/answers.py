"""Which part of a response a scorer looks at."""

from typing import Any

from assay.records import Response
from assay.text.json_out import NoJson, at_path, find_json
from assay.text.reasoning import without_reasoning


class Unparsed(ValueError):
    """The answer does not hold what is looked for."""


def answer_of(response: Response, field: str | None = None, strip_reasoning: bool = False) -> str:
    """The answer's text, or one field (a dotted path) of the JSON that it holds; Unparsed if it has no such field."""
    text = without_reasoning(response.response) if strip_reasoning else response.response
    if field is None:
        return text
    found = json_of(response, field)
    if isinstance(found, bool):
        return "true" if found else "false"
    return found if isinstance(found, str) else str(found)


def json_of(response: Response, field: str | None = None) -> Any:
    """The JSON that the answer holds, or one field (a dotted path) of it; Unparsed if there is none."""
    try:
        value = response.output if response.output is not None else find_json(without_reasoning(response.response))
        return value if field is None else at_path(value, field)
    except NoJson as error:
        raise Unparsed(str(error)) from None
    except KeyError:
        raise Unparsed(f"the answer has no field {field!r}") from None
