"""What exact forms and numbers cannot decide, by sympy (`pip install 'assay-eval[math]'`).

sympy is handed trees, never text, and works in a process of its own that is ended when its time is over: simplifying
may take for ever.
"""

import json
import sys
import threading
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from assay.children import Answerer
from assay.scorers._math.expressions import Tree
from assay.sdk import UserError, install_command

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from assay.scorers._math.symbolic import serve; serve()"
_TO_START = 60.0
_MEMORY = 2 << 30
_MOST_PARTS = 200
_LARGEST_EXPONENT = 1_000
_NAMES = "sin cos tan cot sec csc sinh cosh tanh asin acos atan log exp floor factorial gcd lcm"
_FUNCTIONS = frozenset(_NAMES.split())
_FIRST = '[["num", "0"], ["num", "0"]]'
_guard = threading.Lock()
_child = Answerer("-c", _START, json.dumps([*filter(None, sys.path)]))


def equal(first: Tree, second: Tree, seconds: float) -> bool | None:
    """Return whether sympy finds two trees equal, variables being positive; None where it does not
    know, or takes longer."""
    if find_spec("sympy") is None:
        raise UserError(
            "deciding whether two expressions are equal needs sympy",
            fix=install_command("math"),
        )
    question = json.dumps([_plain(first), _plain(second)])
    with _guard:
        # importing sympy is not the answer's time
        if not _child.running and not _child.ask(_FIRST, _TO_START):
            raise RuntimeError("sympy could not be started")
        return json.loads(_child.ask(question, seconds) or "null")


def _plain(tree: Any) -> Any:
    """The tree as JSON."""
    return (
        str(tree)
        if isinstance(tree, Fraction)
        else [*map(_plain, tree)]
        if isinstance(tree, tuple)
        else tree
    )


# ---- in the child


def serve() -> None:
    """Answer questions, a line each, until there are no more."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sympy = __import__("sympy")
    for line in sys.stdin:
        first, second = json.loads(line)
        try:
            answer = _is_zero(
                sympy, _expression(sympy, first, [0]) - _expression(sympy, second, [0])
            )
        except Exception:  # whatever sympy cannot do is not decided
            answer = None
        print(json.dumps(answer), flush=True)


def _is_zero(sympy: Any, difference: Any) -> bool | None:
    if sympy.simplify(difference) == 0:
        return True
    answer = difference.equals(0)
    return None if answer is None else bool(answer)


def _expression(sympy: Any, tree: list[Any], parts: list[int]) -> Any:
    """The expression of a tree; ValueError beyond the bounds, KeyError for a function that sympy does not have."""
    parts[0] += 1
    if parts[0] > _MOST_PARTS:
        raise ValueError
    kind = tree[0]
    if kind == "num":
        return sympy.Rational(tree[1])
    if kind == "sym":
        constants = {"pi": sympy.pi, "E": sympy.E, "I": sympy.I, "oo": sympy.oo}
        return constants[tree[1]] if tree[1] in constants else sympy.Symbol(tree[1], positive=True)
    first, *rest = [
        _expression(sympy, part, parts) for part in (tree[2:] if kind == "fn" else tree[1:])
    ]
    if kind == "fn":
        return _apply(sympy, tree[1], first, rest)
    if kind == "pow":
        if rest[0].is_number and not abs(rest[0].evalf(5)) <= _LARGEST_EXPONENT:
            raise ValueError
        return first ** rest[0]
    return {
        "add": lambda: first + rest[0],
        "mul": lambda: first * rest[0],
        "div": lambda: first / rest[0],
    }[kind]()


def _apply(sympy: Any, name: str, value: Any, rest: list[Any]) -> Any:
    if name == "root":
        return (
            sympy.real_root(value, rest[0])
            if value.is_negative and rest[0].is_odd
            else value ** (1 / rest[0])
        )
    if name in ("degree", "percent"):
        return value * (sympy.pi / 180 if name == "degree" else sympy.Rational(1, 100))
    spelled = {
        "ln": "log",
        "lg": "log",
        "abs": "Abs",
        "max": "Max",
        "min": "Min",
        "ceil": "ceiling",
        "binom": "binomial",
    }
    if name not in _FUNCTIONS and name not in spelled:
        raise KeyError(name)
    return getattr(sympy, spelled.get(name, name))(value, *([10] if name == "lg" else rest))
