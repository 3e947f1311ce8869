"""Every registered scorer on a megabyte that is made to cost time, as the answer, as what is expected, as both, as a
field of JSON or as a judge's words: done within SECONDS of CPU, with a score or an error that says why not."""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any, Literal, NoReturn, get_args, get_origin

from assay import registry
from assay.engine.evaluate.bind import BoundScorer, Case, bind_scorer, is_pairwise
from assay.errors import UserError
from assay.interfaces import Completion
from assay.records import Item, Response
from fuzz import Attack

LENGTH = 1_000_000
SECONDS = 3.0  # of CPU: linear work takes less than a third of it
ROLES = ("answer", "expected", "both", "field")
FRAGMENTS = (
    *(
        "`",
        "```",
        "```json\n",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "<",
        ">",
        "\\",
        '"',
        "'",
        "*",
        "_",
        "#",
        "$",
        "%",
        "-",
    ),
    *(
        " ",
        "\n",
        "\t",
        "\r\n",
        "\u2028",
        "\u00a0",
        "\0",
        "\u0301",
        "\ud800",
        "é",
        "漢",
        "ß",
        "½",
        "⁹",
        "x",
        "1",
        "0",
    ),
    *(
        "1,",
        "1.",
        "1/",
        "1 ",
        "e9",
        "10^",
        "×10^",
        "1,000",
        "a",
        "A",
        "A ",
        "(A)",
        "A\n",
        "B. ",
        "A or ",
        "word ",
        "s",
    ),
    *(
        "Paris",
        "Pari ",
        "paris ",
        "the ",
        "ies ",
        "alli",
        "y",
        "eed ",
        "and ",
        "not ",
        ". ",
        ", ",
        "; ",
        ": ",
        "=",
        "is ",
    ),
    *(
        "answer",
        "The answer is ",
        "answer: ",
        "option ",
        "so ",
        "i pick ",
        "####",
        "\\boxed{",
        "\\text{",
        "\\frac{1}",
    ),
    *(
        '{"a":',
        "[1,",
        '"\\"',
        "<think>",
        "</think>",
        "<answer-",
        "[[",
        "]]",
        "verdict",
        "verdict: ",
        "yes",
        "no ",
        "4/5",
    ),
    *(
        "rate ",
        "million ",
        "January ",
        "1 January ",
        "$1",
        "percent ",
        "three ",
        "A) ",
        "\n- ",
        "| ",
        "I cannot ",
    ),
)
NEEDED: dict[str, dict[str, Any]] = {
    "code_tests": {"allow_code": True, "seconds": 1.0},
    "judge_rubric": {"criteria": {"clear": "It is clear."}},
    "length_check": {"min_length": 1},
    "mixeval.answer": {"parser": "rule-compat"},
    "mixeval.freeform": {"parser": "rule-compat"},
    "ragicamp.faithfulness": {"method": "token_overlap"},
    "ragicamp.hallucination": {"method": "simple"},
    "regex_match": {"pattern": r"(\w+)\s*=\s*(\w+)", "seconds": 0.2},
    "hf_eval.pattern": {"pattern": r"(\w+)\s*=\s*(\w+)"},
    "sygra.unit_result": {"column": "text"},
}
MORE: dict[str, list[dict[str, Any]]] = {
    "rouge": [{"variants": ["Lsum"]}, {"variants": [3], "stemming": True}],
    "regex_match": [{"pattern": "(a+)+$", "flags": "i"}, {"pattern": "(a|a)*b", "flags": 2},
                    {"pattern": "(?x) (a *)*b"}],
    "numeric_match": [{"extract_pattern": r"(\d+)*\s*x"}],
    "json_match": [{"schema": {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}},
                   {"expected_keys": ["a.0.b"]}],
    "code_tests": [{"prompt": "prompt"}],
    "tool_call": [{"written": True, "allowed_values": True, "loose_text": True}],
    "is_json": [{"around": "prose", "kind": "object"}],
}  # fmt: skip


class Overdue(BaseException):
    """The scorer has had its time."""


def texts_of(random: Random) -> tuple[str, str]:
    """A name and a text of LENGTH letters: one to four fragments, over and over, now and then with words that differ,
    with another beginning or another end."""
    unit = "".join(random.choices(FRAGMENTS, k=random.choice((1, 1, 2, 3, 4))))
    text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
    return f"{unit!r} × {LENGTH // len(unit)}", text


@contextmanager
def opened() -> Generator[Attack]:
    bound = list(scorers())

    def attack(case: int) -> str | None:
        random = Random(case)
        scorer = bound[case % len(bound)]
        name, text = texts_of(random)
        role = random.choice(ROLES)
        fault = fault_of(scorer, text, role)
        return f"{shown(scorer)}, {role} {name}: {fault}" if fault else None

    yield attack


def shown(scorer: BoundScorer) -> str:
    return f"{scorer.name} {scorer.params if not scorer.judges else ''}".strip()


def scorers(left_out: list[str] | None = None) -> Iterator[BoundScorer]:
    """Every registered scorer with its defaults, and again with each other choice that its signature names. What cannot
    be bound here (a package or a model is missing) is named in `left_out`."""
    for format in registry.formats():
        registry.scorer.of_format(f"{format}.any")
    names = {*registry.scorer.names(), *(name for name in registry.scorer._found if "." in name)}
    models: Any = {"judge": registry.model.get("demo")("judge")}
    for name in sorted(names):
        function = registry.scorer.get(name)
        if is_pairwise(function):
            continue
        needed = NEEDED.get(name, {})
        for more in [{}, *_choices(function), *MORE.get(name, [])]:
            try:
                yield bind_scorer(function, name=name, params={**needed, **more}, models=models)
            except UserError as error:
                if left_out is not None:
                    left_out.append(f"{name} {more}: {error.what}")


def _choices(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    for name, parameter in registry.parameters(function).items():
        if get_origin(parameter.annotation) is Literal:
            yield from (
                {name: value}
                for value in get_args(parameter.annotation)
                if value != parameter.default
            )
        elif isinstance(parameter.default, bool):
            yield {name: not parameter.default}
        elif name in ("response_field", "predicted_key"):
            yield {name: "text"}


def fault_of(scorer: BoundScorer, text: str, role: str) -> str | None:
    """Score one case; how long it took if that was too long, or what is wrong with the result."""
    case = case_of(text, role)
    started = time.process_time()
    problem = None
    try:
        with _limited(SECONDS):
            call(scorer, case, text)
    except Overdue:
        problem = "given up"
    except Exception as error:  # a row's error, if it says what the matter is
        if not str(error) or isinstance(error, (AssertionError, MemoryError)):
            problem = repr(error)
    seconds = time.process_time() - started
    return f"{problem or ''} {seconds:.1f} s".strip() if problem or seconds > SECONDS else None


def case_of(text: str, role: str) -> Case:
    short = "Paris" if role != "both" else text[:-1] + "z"
    answer, wanted = (short, text) if role == "expected" else (text, short)
    fields = dict.fromkeys(("text", "direction", "amount", "x", "y"), answer[: LENGTH // 20])
    response = json.dumps(fields) if role == "field" else answer
    truth = {
        "answer": wanted,
        "text": wanted,
        "direction": "up",
        "amount": 4,
        "bbox": {},
        "relevant_docs": [wanted],
    }
    truth |= {
        "tests": "assert True",
        "entry_point": "f",
        "tool_calls": [{"name": "f", "arguments": {"a": [wanted]}}],
    }
    data = {
        "question": wanted,
        "prompt": wanted,
        "options": [wanted, "London", "A"],
        "contexts": [answer, wanted],
    }
    item = Item(id="q", data=data, ground_truth=truth, metadata={})
    return Case(item, [Response(item_id="q", response=response, model_name="m")] * 2, [b"{}"])


def call(scorer: BoundScorer, case: Case, text: str) -> Any:
    context: Any = _Says(text) if scorer.takes_context else None
    if scorer.name.startswith("mixeval."):  # its rows have a shape of their own
        kind = "multiple-choice" if "choice" in scorer.name else "free-form"
        case.item.metadata["problem_type"] = kind
        case.item.ground_truth = (
            [0] if "choice" in scorer.name else [case.item.ground_truth["answer"]]
        )
    if scorer.batch:
        return scorer.function([case], **scorer.params)
    case.responses = case.responses[: 2 if scorer.form == "match" else 1]
    positional, keywords = scorer.arguments(case, context)
    result = scorer.function(*positional, **keywords)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


class _Says:
    """A context whose models say one text, whatever they are asked."""

    item_id, sample_index, seed = "q", 0, 0

    def __init__(self, text: str) -> None:
        self.text = text

    def model(self, named: Any = None) -> Any:
        return registry.model.get("demo")("judge")

    async def complete(self, messages: Any, **params: Any) -> Completion:
        return Completion(text=self.text)

    def recall(self, messages: Any, **params: Any) -> None:
        return None

    async def thread(self, call: Callable[[], Any]) -> Any:
        return call()


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """Overdue after so much CPU, wherever Python looks at signals: regular expressions do."""

    def stop(signal: int, frame: FrameType | None) -> NoReturn:
        raise Overdue

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
