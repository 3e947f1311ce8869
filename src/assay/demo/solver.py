"""The brain of the embedded `demo` model and of the mock server: pure, deterministic, plain about what it is.

It reads only the prompt. `skill` is the chance of a right answer to a question of middling difficulty. Each
draw depends on the question and the seed alone: at equal seeds a more skilled model is right wherever a less
skilled one is, and different seeds are independent samples.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from assay.demo.judge import judge
from assay.demo.questions import DemoQuestion, parse
from assay.records import JsonMapping, JsonObject
from assay.text.messages import messages_text

VERSION = 1
UNABLE = "I am a small demo solver and cannot answer this."
WHAT_I_AM = "I am Assay's built-in demo solver, not a language model."

_WHO = re.compile(
    r"\b(?:who|what) (?:exactly )?are you\b|\bwhat (?:kind of )?(?:model|system|program|ai) are you\b"
    r"|\bare you (?:an? )?(?:ai|llm|language model|human|bot|person|chatgpt|gpt)\b"
    r"|\bwhat(?:'s| is) your name\b|\bintroduce yourself\b|\bwhich model (?:are you|is this)\b",
    re.I,
)
_EXPLAIN = ("explain", "step by step", "step-by-step", "show your", "think aloud", "why ", "reason")
_BARE = re.compile(
    r"\b(?:only|just|nothing but)\b[^.\n]{0,40}\b(?:answer|number|letter|word|result|name|value)"
    r"|no explanation|without (?:any )?expla"
)


class DemoReply(NamedTuple):
    """An assistant turn: text, or tool calls in the shape of the chat completions API."""

    text: str
    tool_calls: list[JsonObject] | None = None


def solve(text: str, *, skill: float, seed: int) -> str:
    """The answer to the last question of the text: right with a chance that grows with skill."""
    question = parse(text)
    if question is None:
        return WHAT_I_AM if _WHO.search(text[-400:]) else UNABLE
    answer, right = _draw(question, skill, seed)
    if not _wants_explanation(text.lower()):
        return answer
    return (
        f"{question.working}. The answer is {answer}."
        if right and question.working
        else f"The answer is {answer}."
    )


def _wants_explanation(low: str) -> bool:
    for word in _EXPLAIN:
        if word in low:
            return _BARE.search(low) is None
    return False


def chance(skill: float, difficulty: float) -> float:
    """The chance of a right answer: 0 at skill 0, 1 at skill 1, falling odds as questions get harder."""
    hardness = 2.0 ** (4.0 * min(difficulty, 1.5) - 1.5)
    return skill / (skill + (1.0 - skill) * hardness)


def _draw(question: DemoQuestion, skill: float, seed: int) -> tuple[str, bool]:
    bits = blake2b(question.text.encode(), digest_size=16, key=(b"%d" % seed)[:64]).digest()
    if int.from_bytes(bits[:8], "big") / 2**64 < chance(skill, question.difficulty):
        return question.answer, True
    return question.wrong[int.from_bytes(bits[8:], "big") % len(question.wrong)], False


def respond(
    messages: Sequence[JsonMapping], params: JsonMapping, *, skill: float, seed: int
) -> DemoReply:
    """One assistant turn for a chat request: a verdict, a tool call, JSON, or text, as it asks."""
    text = messages_text(messages)
    if "</answer-" in text or "</first-" in text:
        verdict = judge(text, skill=skill, seed=seed)
        if verdict is not None:
            return DemoReply(verdict)
    answer = solve(text, skill=skill, seed=seed)
    tools: Any = params.get("tools")
    if tools and params.get("tool_choice") != "none" and messages[-1].get("role") != "tool":
        call = _tool_call(tools, answer)
        if call is not None:
            return DemoReply("", [call])
    wanted: Any = params.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema"):
        return DemoReply(msgspec.json.encode(answer_json(wanted, answer)).decode())
    return DemoReply(answer)


def answer_json(response_format: JsonMapping, answer: str) -> Any:
    """`{"answer": …}`, or the properties of the JSON schema that was given."""
    schema: Any = response_format.get("json_schema")
    if isinstance(schema, dict):
        schema = schema.get("schema", schema)
        if isinstance(schema, dict) and schema:
            return fill(schema, answer)
    return {"answer": _number(answer)}


def fill(schema: Any, answer: str, depth: int = 0) -> Any:
    """A value that the schema allows, with the answer wherever its type fits."""
    if not isinstance(schema, dict) or depth > 8:
        return answer
    known: JsonObject = schema
    if "const" in known:
        return known["const"]
    if isinstance(choices := known.get("enum"), list) and choices:
        return next(
            (choice for choice in choices if str(choice).lower() == answer.lower()), choices[0]
        )
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(several := known.get(key), list) and several:
            return fill(several[0], answer, depth + 1)
    kind: Any = known.get("type", "object" if "properties" in known else "string")
    if isinstance(kind, list):
        kind = kind[0] if kind else "null"
    return _of_type(str(kind), known, answer, depth)


def _of_type(kind: str, schema: JsonObject, answer: str, depth: int) -> Any:
    value = _number(answer)
    if kind == "object":
        properties: Any = schema.get("properties")
        entries: JsonObject = properties if isinstance(properties, dict) else {}
        return {name: fill(entry, answer, depth + 1) for name, entry in entries.items()}
    if kind == "array":
        return [
            fill(schema.get("items"), answer, depth + 1)
            for _ in range(_least(schema.get("minItems")))
        ]
    if kind == "integer":
        return int(value) if isinstance(value, (int, float)) else 0
    if kind == "number":
        return value if isinstance(value, (int, float)) else 0
    if kind == "boolean":
        return answer.lower() in ("yes", "true")
    return None if kind == "null" else answer


def _least(count: Any) -> int:
    return min(count, 64) if isinstance(count, int) and count > 0 else 1


def _tool_call(tools: Any, answer: str) -> JsonObject | None:
    """A call of the first tool, its arguments made from its schema."""
    first: Any = tools[0] if isinstance(tools, list) else None
    function: Any = first.get("function") if isinstance(first, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        return None
    arguments = msgspec.json.encode(
        fill(function.get("parameters") or {"type": "object"}, answer)
    ).decode()
    identifier = blake2b(f"{name}\0{arguments}".encode(), digest_size=8).hexdigest()
    return {
        "id": f"call_{identifier}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _number(text: str) -> int | float | str:
    """The number that the text is, or the text."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def count_tokens(text: str) -> int:
    """A rough count (four characters a token) for servers and models that have no tokenizer."""
    return (len(text) + 3) // 4
