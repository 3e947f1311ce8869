"""What a model is asked, as messages that carry the delimiter after them: the same list is a plain text and a chat."""

from typing import Any

from assay.errors import UserError

Message = dict[str, str]


def message(role: str, content: str, delimiter: str = "") -> Message:
    return {"role": role, "content": content, "delimiter": delimiter}


def join(first: str | None, second: str | None, delimiter: str) -> str:
    """Both texts; with the delimiter unless whitespace is there already."""
    if not first or not second:
        return first or second or ""
    return first + (delimiter if _touching(first, second) else "") + second


def _touching(first: str, second: str) -> bool:
    return bool(first) and not (first[-1].isspace() or second[0].isspace())


def turn(
    question: Any,
    answer: Any,
    choices: list[str] | None,
    prefix: str | None,
    target_delimiter: str,
    end: str,
) -> list[Message]:
    """A question with its answer, or, without one, with the beginning of the answer (`prefix`) that the model goes
    on with. `end` follows the answer."""
    if not isinstance(question, str):
        raise UserError(f"doc_to_text gives {_shown(question)}, which is not a text")
    answered = answer is not None and answer != ""
    delimited = _touching(question, prefix) if prefix else answered
    asked = message("user", question, target_delimiter if delimited else "")
    if answered:
        return [asked, message("assistant", join(prefix, _answer(answer, choices), " "), end)]
    return [asked, message("assistant", prefix)] if prefix else [asked]


def _answer(answer: Any, choices: list[str] | None) -> str:
    chosen = answer
    if choices and isinstance(answer, int):
        if not -len(choices) <= answer < len(choices):
            raise UserError(
                f"doc_to_target of a few-shot example is {answer}, but there are {len(choices)} choices"
            )
        chosen = choices[answer]
    elif isinstance(answer, list):
        chosen = answer[0] if answer else answer
    if not isinstance(chosen, str):
        raise UserError(
            f"doc_to_target of a few-shot example gives {_shown(chosen)}, which is not a text",
            fix="write it as a template, `{{column}}`, or give doc_to_choice",
        )
    return chosen


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def plain(messages: list[Message]) -> str:
    """The text for a completion."""
    return "".join([part["content"] + part["delimiter"] for part in messages])


def chat(messages: list[Message], multiturn: bool = True) -> list[Message]:
    """The messages of a chat. `multiturn=False`: examples and question are one user message; the system message and
    the beginning of the answer stay apart."""
    if multiturn:
        return [{"role": part["role"], "content": part["content"]} for part in messages]
    system = [part for part in messages[:1] if part["role"] == "system"]
    rest = messages[len(system) :]
    prefix = [rest.pop()] if rest[-1]["role"] == "assistant" else []
    text = plain(rest[:-1]) + rest[-1]["content"]
    return chat([*system, message("user", text), *prefix])
