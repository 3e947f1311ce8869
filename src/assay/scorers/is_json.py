"""Whether an answer is JSON."""

from typing import Any, Literal

from assay.scorers._parameters import verdict
from assay.sdk import Item, Response, Score, scorer
from assay.text.answers import without_reasoning
from assay.text.json_out import NoJson, fenced, find_json, read_json

_KINDS = {"object": dict, "array": list}


@scorer(reads="ground_truth", version=1)
def is_json(
    item: Item,
    response: Response,
    *,
    kind: Literal["any", "object", "array"] = "any",
    around: Literal["nothing", "fence", "prose"] = "fence",
) -> Score:
    """The answer is JSON (RFC 8259; NaN and Infinity are not). Reasoning before the answer is left out.

    Score: 1 or 0. Why it is not JSON is in `detailed_results`.

    Parameters:
    kind: what it must be
    around: what may surround it: nothing, a code fence, or any text
    """
    try:
        value = (
            response.output
            if response.output is not None
            else _value(without_reasoning(response.response), around)
        )
    except NoJson as error:
        return verdict(False, problem=str(error))
    if kind != "any" and not isinstance(value, _KINDS[kind]):
        return verdict(False, problem=f"it is JSON, but not an {kind}")
    return verdict(True)


def _value(text: str, around: str) -> Any:
    if around == "prose":
        return find_json(text)
    blocks = fenced(text.strip()) if around == "fence" else []
    alone = len(blocks) == 1 and text.strip().startswith("```") and text.strip().endswith("```")
    return read_json(blocks[0][1] if alone else text)
