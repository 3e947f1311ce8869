"""Trees as floating-point numbers, to tell apart what is different."""

import cmath
import math
from collections.abc import Callable, Mapping

from assay.scorers._math.expressions import Tree

_LARGEST = 1e9  # beyond it, too few digits are left
_POINTS = (1.618, 0.577, 2.236, 0.915, 1.202)
_CONSTANTS = {"pi": math.pi, "E": math.e, "I": 1j}
_SAME = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "exp", "log")
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    **{name: getattr(cmath, name) for name in _SAME},
    "cot": lambda x: 1 / cmath.tan(x),
    "sec": lambda x: 1 / cmath.cos(x),
    "csc": lambda x: 1 / cmath.sin(x),
    "ln": cmath.log,
    "lg": cmath.log10,
    "abs": lambda x: complex(abs(x)),
    "degree": lambda x: x * math.pi / 180,
    "percent": lambda x: x / 100,
}


def variables(tree: Tree) -> set[str]:
    if tree[0] == "sym":
        return set() if tree[1] in _CONSTANTS else {tree[1]}
    return set[str]().union(*(variables(part) for part in tree[1:] if isinstance(part, tuple)))


def differ(first: Tree, second: Tree) -> bool | None:
    """Return whether two trees have different values, variables being positive; None where that
    cannot be told, and where they agree, which may be chance."""
    names = sorted(variables(first) | variables(second))
    for shift in range(len(_POINTS) if names else 1):
        points = {
            name: complex(_POINTS[(place + shift) % len(_POINTS)])
            for place, name in enumerate(names)
        }
        try:
            one, other = value_of(first, points), value_of(second, points)
        except (ArithmeticError, ValueError, KeyError):
            continue
        if abs(one - other) > 1e-6 * max(1.0, abs(one)):
            return True
    return None


def value_of(tree: Tree, points: Mapping[str, complex]) -> complex:
    """ArithmeticError, ValueError or KeyError where there is none that can be trusted."""
    value = _value(tree, points)
    if not abs(value) < _LARGEST:
        raise OverflowError
    return value


def _value(tree: Tree, points: Mapping[str, complex]) -> complex:
    kind = tree[0]
    if kind == "num":
        return complex(float(tree[1]))
    if kind == "sym":
        return complex(_CONSTANTS[tree[1]]) if tree[1] in _CONSTANTS else points[tree[1]]
    if kind == "fn":
        arguments = [value_of(argument, points) for argument in tree[2:]]
        if tree[1] == "root":
            return _root(*arguments)
        if tree[1] == "log" and len(arguments) == 2:
            return cmath.log(arguments[0]) / cmath.log(arguments[1])
        return _FUNCTIONS[tree[1]](*arguments)
    left, right = value_of(tree[1], points), value_of(tree[2], points)
    if kind == "add":
        return left + right
    if kind == "mul":
        return left * right
    return left / right if kind == "div" else _power(left, right)


def _root(value: complex, degree: complex) -> complex:
    odd = degree.imag == 0 and degree.real % 2 == 1
    if value.imag == 0 and value.real < 0 and odd:  # the real one
        return -((-value) ** (1 / degree))
    return _power(value, 1 / degree)


def _power(base: complex, exponent: complex) -> complex:
    if base == 0 and exponent.real > 0:
        return 0j
    return base**exponent
