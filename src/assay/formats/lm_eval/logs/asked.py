"""What a sample's arguments and answers are in our rows: an item's requests, as `assay run TASK` makes them, and an
answer with all its texts or log-probabilities."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from assay.formats.lm_eval.asking.rows import question_of
from assay.formats.lm_eval.dataset import add_continuation, params_of
from assay.formats.lm_eval.tasks.definition import TaskRequest
from assay.sdk import JsonObject, first_text, list_of, number_of, rows_of

EMPTY = Raw(b"null")


class Arguments(msgspec.Struct, gc=False):
    """What was asked once: a prompt, and either settings of a generation or a continuation."""

    arg_0: Any
    arg_1: Raw = EMPTY
    arg_2: Raw = EMPTY


class LoggedSample(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line; its subclasses have the task's metrics as fields."""

    doc_id: int
    doc: Any
    arguments: dict[str, Arguments]
    resps: list[list[Any]]
    filtered_resps: list[Any]
    target: Any = ""
    filter: str = "none"
    metrics: list[str] = []
    doc_hash: str = ""
    prompt_hash: str = ""
    target_hash: str = ""


FIXED = {*LoggedSample.__struct_fields__}


class Shape:
    """How lines with these metrics are read. `columns` has (field, metric) of each metric."""

    def __init__(self, metrics: Sequence[str]) -> None:
        own = [name for name in dict.fromkeys(metrics) if name not in FIXED]
        fields: list[tuple[str, Any, Any]] = [(f"value_{at}", Any, UNSET) for at in range(len(own))]
        names = {f"value_{at}": name for at, name in enumerate(own)}
        strict: Any = {"rename": names, "forbid_unknown_fields": True, "gc": False}
        self.kind = msgspec.defstruct("Line", fields, bases=(LoggedSample,), **strict)
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(self.kind).decode
        self.columns = list(names.items())
        self.known = {*FIXED, *own}
        self.metrics = list(metrics)


def arguments_of(value: Any) -> Any:
    """Return arguments whose later parts are JSON text, as a line's are."""
    if not isinstance(value, dict):
        return value
    return {
        name: part if name == "arg_0" else Raw(msgspec.json.encode(part))
        for name, part in value.items()
    }


_NONE = b"null"


class AskedDocument(msgspec.Struct, kw_only=True):
    """One document: what was asked, and what came back. `target` is the column of the document that doc_to_target
    names; `more` has arguments that have no place."""

    requests: list[JsonObject]
    prompt: str
    question: str
    messages: list[JsonObject] | None = None
    choices: list[str] | None = None
    text: str = ""
    output: JsonObject | None = None
    is_likelihood: bool = False
    target: Any = None
    more: JsonObject = {}


class LoggedAsking:
    """How one task asks; `config` is its definition as the log has it."""

    def __init__(self, config: JsonObject) -> None:
        self.generates = config.get("output_type", "generate_until") == "generate_until"
        self.has_choices = config.get("doc_to_choice") is not None
        names = [entry.get("metric") for entry in rows_of(config.get("metric_list"))]
        self._halves = 2 if "acc_mutual_info" in names else 1
        delimiter = config.get("target_delimiter")
        self._delimiter = delimiter if isinstance(delimiter, str) else " "
        repeats = config.get("repeats")
        self._repeats = repeats if isinstance(repeats, int) else 1
        target = first_text(config, ["doc_to_target"])
        self._target = target if target and "{" not in target else "target"
        self._settings: dict[bytes, JsonObject] = {}

    def of(self, sample: Any) -> AskedDocument:
        doc = sample.doc
        is_object = type(doc) is dict
        asked = AskedDocument(
            requests=[],
            prompt="",
            question=question_of(doc) if is_object else "",
            target=doc.get(self._target) if is_object else None,
        )
        texts: list[str] = []
        choices: list[JsonObject] = []
        for at, argument in enumerate(sample.arguments.values()):
            chat, given = _chat(argument.arg_0), bytes(argument.arg_1)
            if at == 0:
                _add_prompt(asked, argument.arg_0, chat)
            if argument.arg_2 is not EMPTY and bytes(argument.arg_2) != _NONE:
                asked.more.setdefault("arguments", []).append(argument.arg_2)
            replies = sample.resps[at] if at < len(sample.resps) else []
            if given[:1] in (b"{", b"["):
                asked.requests.append(self._generation(argument.arg_0, chat, given))
                texts += ["" if reply is None else str(reply) for reply in replies]
            else:
                text = _add_continuation(asked, argument.arg_0, given)
                choices += [_choice(text, reply) for reply in replies[:1]]
        self._answer(asked, texts, choices)
        return asked

    def _generation(self, context: Any, chat: list[JsonObject] | None, given: bytes) -> JsonObject:
        messages = chat or [{"role": "user", "content": _text_of(context)}]
        request: JsonObject = {
            "messages": [{**message, "delimiter": ""} for message in messages],
            "params": self._params(given),
        }
        if self._repeats > 1:
            request["repeats"] = self._repeats
        return request

    def _answer(self, asked: AskedDocument, texts: list[str], choices: list[JsonObject]) -> None:
        output: JsonObject = {}
        if choices:
            likely = [choice["logprob"] for choice in choices]
            best = max(
                range(len(choices)), key=lambda at: -math.inf if likely[at] is None else likely[at]
            )
            asked.text, asked.is_likelihood = choices[best]["text"], True
            output = {"choices": choices, "way": "lm_eval"}
            if self.has_choices:
                own = choices[: len(choices) // self._halves]
                asked.choices = [each["text"].removeprefix(self._delimiter) for each in own]
        if texts:
            asked.text, asked.is_likelihood = texts[0], False
        if len(texts) > 1:
            output["answers"] = texts
        asked.output = output or None

    def _params(self, given: bytes) -> JsonObject:
        """Return settings of a generation as a server is sent them; most documents have the same."""
        params = self._settings.get(given)
        if params is None:
            settings = msgspec.json.decode(given)
            is_known = isinstance(settings, dict)
            params = params_of(TaskRequest(messages=[], params=settings)) if is_known else {}
            if len(self._settings) < 1000:
                self._settings[given] = params
        return params


def _add_prompt(asked: AskedDocument, context: Any, chat: list[JsonObject] | None) -> None:
    said = [str(message.get("content", "")) for message in chat or ()]
    asked.prompt = "\n\n".join(said) if chat else _text_of(context)
    asked.messages = chat if chat and len(chat) > 1 else None


def _add_continuation(asked: AskedDocument, context: Any, given: bytes) -> str:
    """Add a request for a likelihood; return the continuation, nothing for one of a whole text."""
    text = _text_of(context)
    if given == _NONE:
        add_continuation(asked.requests, [], text, rolling=True)
        return ""
    continuation = str(msgspec.json.decode(given))
    messages = [{"role": "user", "content": text, "delimiter": ""}]
    add_continuation(asked.requests, messages, continuation)
    return continuation


def _choice(text: str, reply: Any) -> JsonObject:
    """Return a log-probability and whether the continuation is the greedy one; the harness writes both as texts."""
    pair = list_of(reply) if isinstance(reply, list) else [reply]
    value, greedy = pair if len(pair) == 2 else ([*pair, "nan"][0], False)
    try:
        logprob = number_of(float(value))
    except (TypeError, ValueError):
        logprob = None
    return {"text": text, "logprob": logprob, "tokens": None, "greedy": greedy in (True, "True")}


def _chat(argument: Any) -> list[JsonObject] | None:
    """Return the messages of a chat, which are a list with one JSON text."""
    only = list_of(argument)
    try:
        given = msgspec.json.decode(only[0]) if len(only) == 1 and type(only[0]) is str else None
    except (ValueError, RecursionError):
        return None
    messages = rows_of(given)
    if given is None or messages != given:
        return None
    return [
        {"role": str(each.get("role", "user")), "content": each.get("content")} for each in messages
    ]


def _text_of(argument: Any) -> str:
    if isinstance(argument, str):
        return argument
    return "".join(map(str, argument)) if isinstance(argument, list) else str(argument)
