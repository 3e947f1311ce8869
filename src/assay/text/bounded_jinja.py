"""Jinja whose templates end: bounds of steps, of time and of the size of what is made, kept by the environment.

A step is an iteration, a call or a filter; what works on a long text counts as many steps. An operation that Python
does in one go, and nobody could stop (`'a' * 10**9`), is refused for its operands before it begins.
"""

import time
from collections.abc import Callable, Generator, Iterable
from functools import wraps
from itertools import islice
from threading import local
from types import GeneratorType
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import escape

from assay.records import JsonMapping
from assay.text.growth import GROWTH, Exceeded, fits, size_of
from assay.text.template import LETTERS

STEPS = 1_000_000
MADE = 10 * LETTERS  # in all, on the way to a prompt
SECONDS = 5.0
_LETTERS_A_STEP = 64
# of a template's output, or entries of a list: few enough to be counted afterwards
_FIRST_PIECES = 16
_STEPS_A_LOOK = 16  # at the clock
_LONGEST = {"striptags": 100_000, "urlize": 5_000, "wordwrap": 100_000}  # letters: slow filters
# filters that make no more than they get
_CHEAP_NAMES = """
abs attr capitalize count d default e escape first float forceescape int last length
lower safe title trim upper
"""
_CHEAP = frozenset(_CHEAP_NAMES.split())


class _Spent(local):
    """What the render of this thread has used up."""

    steps = 0
    letters = 0  # that were put out
    made = 0  # by operations that can make more than they get
    began = 0.0  # when it first looked at the clock


_spent = _Spent()


def begin() -> None:
    """A render begins."""
    _spent.steps = _spent.letters = _spent.made = 0
    _spent.began = 0.0


def step(count: int = 1) -> None:
    before = _spent.steps
    _spent.steps = steps = before + count
    if steps > STEPS:
        raise Exceeded(f"it takes more than {STEPS:,} steps (iterations, calls, filters)")
    if steps // _STEPS_A_LOOK > before // _STEPS_A_LOOK:
        now = time.thread_time()
        _spent.began = _spent.began or now
        if now - _spent.began > SECONDS:
            raise Exceeded(f"it takes longer than {SECONDS:g} s")


def shown(value: Any) -> str:
    """The text of a value that is put out, counted where it is kept in memory."""
    if type(value) is not str:
        fits(size_of(value))
        value = str(value)
    _spent.letters = letters = _spent.letters + len(value)
    if letters > LETTERS:
        fits(letters)
    return value


def escaped(wanted: bool, value: Any) -> str:
    return shown(str(escape(value)) if wanted else value)


def each(iterable: Iterable[Any]) -> Generator[Any]:
    count = 0
    for entry in iterable:
        count += 1
        if count == _STEPS_A_LOOK:
            step(count)
            count = 0
        yield entry
    step(count)


def joined(pieces: Iterable[str]) -> str:
    """Return what a template or a part of it has put out, counted while it comes."""
    coming = iter(pieces)
    kept = [*islice(coming, _FIRST_PIECES)]
    size = sum(map(len, kept))
    if len(kept) == _FIRST_PIECES:
        for piece in coming:
            size += len(piece)
            if size > LETTERS:
                break
            kept.append(piece)
    if size > LETTERS:
        fits(size)
    return "".join(kept)


class _Code(CodeGenerator):
    """Loops go through `each`. What is put out goes through `shown` where `joined` comes too late: inside macros and
    other blocks, and if the template makes lists, which could hold one another many times."""

    nests = False

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        self.nests = any(node.find(kind) for kind in (nodes.List, nodes.Dict, nodes.Tuple))
        super().visit_Template(node, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        node.iter = nodes.Call(nodes.EnvironmentAttribute("each"), [node.iter], [], None, None)
        super().visit_For(node, frame)

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        if not isinstance(node.node, nodes.EnvironmentAttribute):
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.write("environment.each(")
        self.visit(node.args[0], frame)
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat([")
        for part in node.nodes:
            self.write("environment.shown(")
            self.visit(part, frame)
            self.write("), ")
        self.write("])")

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.volatile or frame.eval_ctx.autoescape:
            self.write("environment.escaped(context.eval_ctx.autoescape, ")
        else:
            self.write("environment.shown(" if self.nests or frame.buffer is not None else "str(")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox with bounds. `lipsum`, which only makes text, is left out."""

    code_generator_class = _Code
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    each = staticmethod(each)
    shown = staticmethod(shown)
    escaped = staticmethod(escaped)
    concat = staticmethod(joined)

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined)
        del self.globals["lipsum"]
        self.filters = {
            name: function if name in _CHEAP else _bound_filter(name, function)
            for name, function in self.filters.items()
        }

    def call(__self, __context: Context, __obj: Any, *args: Any, **keywords: Any) -> Any:
        method = getattr(__obj, "__wrapped__", __obj)
        owner = getattr(method, "__self__", None)
        if isinstance(__obj, LoopContext):
            args = (each(args[0]), *args[1:]) if args else args
        if isinstance(owner, (str, bytes, int)):
            if method.__name__ == "join" and args:
                args = (list(args[0]),)
            _check(method.__name__, owner, args, keywords)
        step(
            1
            + (len(owner) // _LETTERS_A_STEP if isinstance(owner, (str, bytes, list, dict)) else 0)
        )
        return super().call(__context, __obj, *args, **keywords)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        _check(operator, left, (right,), {})
        return super().call_binop(context, operator, left, right)


def _bound_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, refused or counted before it works. Its value comes after what Jinja passes by itself."""
    place = 1 if hasattr(function, "jinja_pass_arg") else 0
    longest = _LONGEST.get(name, LETTERS)
    estimated, listed = name in GROWTH, name in ("join", "sum")

    @wraps(function)
    def bounded(*args: Any, **keywords: Any) -> Any:
        value = args[place]
        if hasattr(value, "__len__"):
            size = len(value)
        else:
            size = 0
            if listed:
                value = list(each(value))
                args = (*args[:place], value, *args[place + 1 :])
        if size > longest:
            raise Exceeded(f"the filter {name} takes up to {longest:,} letters, it gets {size:,}")
        if estimated and not (listed and 0 < size <= _FIRST_PIECES):
            _check(name, value, args[place + 1 :], keywords)
        step(1 + size // _LETTERS_A_STEP)
        result = function(*args, **keywords)
        return each(result) if type(result) is GeneratorType else result

    return bounded


def _check(name: str, value: Any, args: tuple[Any, ...], keywords: JsonMapping) -> None:
    estimate = GROWTH.get(name)
    if estimate is not None:
        size = estimate(value, [*args, *keywords.values()])
        fits(size)
        _spent.made += size
        if _spent.made > MADE:
            raise Exceeded(f"on the way it makes more than {MADE:,} letters or entries")
