"""Trees as quotients of polynomials with exact coefficients, so that equality can be decided without a computer algebra
system.

A polynomial is a sum of monomials, a monomial a product of powers of atoms: variables, constants, primes (whose
exponents lie between 0 and 1: √6 is 2^½ · 3^½), and everything else as it stands. Monomials of variables, π and such
radicals are linearly independent over the rational numbers, so two such forms are equal only if all coefficients are.
"""

from fractions import Fraction
from hashlib import blake2b
from math import comb, factorial, gcd, lcm
from typing import Any, NamedTuple

from assay.scorers._math.expressions import Tree

Atom = tuple[Any, ...]
Monomial = tuple[tuple[Atom, Fraction], ...]
Polynomial = dict[Monomial, Fraction]

_MOST_TERMS = 40
_LARGEST_EXPONENT = 20  # of a sum
_MOST_BITS = 2_000  # of a coefficient
_LARGEST_FACTORED = 10**10
_LARGEST_FACTORIAL = 200
IMAGINARY: Atom = ("sym", "I")
_ONE: Polynomial = {(): Fraction(1)}


class FormTooLarge(ValueError):
    """An expression is beyond the bounds of exact work."""


class Form(NamedTuple):
    above: Polynomial
    below: Polynomial


def form_of(tree: Tree) -> Form:
    """The form of a tree; TooLarge beyond the bounds, ZeroDivisionError where it divides by zero."""
    kind = tree[0]
    if kind == "num":
        return _constant(tree[1])
    if kind == "sym":
        return _atom(("sym", tree[1]))
    if kind == "add":
        return _sum(form_of(tree[1]), form_of(tree[2]))
    if kind == "mul":
        return _product(form_of(tree[1]), form_of(tree[2]))
    if kind == "div":
        return _product(form_of(tree[1]), _inverse(form_of(tree[2])))
    if kind == "pow":
        return _power(form_of(tree[1]), form_of(tree[2]))
    return _function(tree[1], [form_of(argument) for argument in tree[2:]])


def difference(first: Form, second: Form) -> Polynomial:
    """Empty where the two are equal."""
    return _minus(_times(first.above, second.below), _times(second.above, first.below))


def is_decided(polynomial: Polynomial) -> bool:
    """Return whether a polynomial that is not empty cannot be zero: its atoms are variables,
    constants and radicals."""
    return all(
        atom[0] in ("sym", "prime")
        and atom[1] != "oo"
        and (atom != IMAGINARY or exponent.denominator == 1)
        for monomial in polynomial
        for atom, exponent in monomial
    )


def rational(form: Form) -> Fraction | None:
    """The number, where it is a rational one."""
    if form.below == _ONE and form.above.keys() <= {()}:
        return form.above.get((), Fraction(0))
    return None


def is_multiple(first: Form, second: Form) -> bool | None:
    """Return whether one is a number times the other, as the two sides of equations are; None where
    that is not decided."""
    one, other = _times(first.above, second.below), _times(second.above, first.below)
    if not one or not other:
        return one == other
    key = min(one)
    if not (is_decided(one) and is_decided(other)):
        return None
    factor = other.get(key, Fraction(0)) / one[key]
    return bool(factor) and {monomial: value * factor for monomial, value in one.items()} == other


def _constant(value: Fraction | int) -> Form:
    return Form({(): Fraction(value)} if value else {}, _ONE)


def _atom(atom: Atom, exponent: Fraction = Fraction(1)) -> Form:
    return Form({((atom, exponent),): Fraction(1)}, _ONE)


def _sum(first: Form, second: Form) -> Form:
    if first.below == second.below:
        return Form(_plus(first.above, second.above), first.below)
    above = _plus(_times(first.above, second.below), _times(second.above, first.below))
    return Form(above, _times(first.below, second.below))


def _product(first: Form, second: Form) -> Form:
    return Form(_times(first.above, second.above), _times(first.below, second.below))


def _inverse(form: Form) -> Form:
    if not form.above:
        raise ZeroDivisionError
    if len(form.above) == 1:
        ((monomial, value),) = form.above.items()
        inverse = _monomial({atom: -exponent for atom, exponent in monomial}, 1 / value)
        return Form(_times(form.below, inverse), _ONE)
    return Form(form.below, form.above)


def _power(base: Form, exponent: Form) -> Form:
    power = rational(exponent)
    if power is None:
        return _atom(("power", _key(base), _key(exponent)))
    if power.denominator == 1:
        return _whole_power(base if power >= 0 else _inverse(base), abs(power.numerator))
    value = rational(base)
    if value is not None:
        return _radical(value, power)
    # √(4π) is 2√π: factors are positive
    if len(base.above) == 1 and base.below == _ONE:
        ((monomial, factor),) = base.above.items()
        if factor > 0:
            inner = _monomial({atom: exponent * power for atom, exponent in monomial}, Fraction(1))
            return _product(_radical(factor, power), Form(inner, _ONE))
    return _atom(("root", _key(base)), power)


def _whole_power(base: Form, power: int) -> Form:
    single = len(base.above) <= 1 and len(base.below) == 1
    if power > _LARGEST_EXPONENT and not single:
        raise FormTooLarge("an exponent is too large")
    for value in (*base.above.values(), *base.below.values()):
        if (
            power * max(value.numerator.bit_length(), value.denominator.bit_length())
            > _MOST_BITS + power
        ):
            raise FormTooLarge("a power is too large")
    if single and base.above:
        ((monomial, value),) = base.above.items()
        return Form(
            _monomial({atom: exponent * power for atom, exponent in monomial}, value**power),
            base.below,
        )
    made = _constant(1)
    for _ in range(power):
        made = _product(made, base)
    return made


def _radical(value: Fraction, power: Fraction) -> Form:
    """A rational number to the power of a fraction; the real root of a negative one where it has one."""
    if not value:
        if power < 0:
            raise ZeroDivisionError
        return _constant(0)
    if (
        max(abs(value.numerator), value.denominator) > _LARGEST_FACTORED
        or abs(power) > _LARGEST_EXPONENT
    ):
        raise FormTooLarge("a root is too large")
    if value < 0 and power.denominator % 2 == 0:
        if power.denominator != 2:
            return _atom(("root", _key(_constant(value))), power)
        exponents: dict[Atom, Fraction] = {IMAGINARY: Fraction(power.numerator)}
    else:
        exponents = {}
    sign = -1 if value < 0 and power.denominator % 2 and power.numerator % 2 else 1
    for number, direction in ((abs(value.numerator), 1), (value.denominator, -1)):
        for prime, count in _factors(number).items():
            exponents["prime", prime] = direction * count * power
    return Form(_monomial(exponents, Fraction(sign)), _ONE)


def _factors(number: int) -> dict[int, int]:
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            number //= divisor
        divisor += 1 + (divisor > 2)
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


def _function(name: str, arguments: list[Form]) -> Form:
    if name == "root":
        degree = rational(arguments[1])
        if degree is not None and degree.denominator == 1 and degree > 0:
            return _power(arguments[0], _constant(1 / degree))
    if name == "degree":
        return _product(arguments[0], _product(_atom(("sym", "pi")), _constant(Fraction(1, 180))))
    if name == "percent":
        return _product(arguments[0], _constant(Fraction(1, 100)))
    if name == "exp":
        return _power(_atom(("sym", "E")), arguments[0])
    values = [rational(argument) for argument in arguments]
    if all(value is not None and abs(value) <= 10**100 for value in values):
        exact = _exact(name, [value for value in values if value is not None])
        if exact is not None:
            return _constant(exact)
    return _atom(("fn", name, *map(_key, arguments)))


def _exact(name: str, values: list[Fraction]) -> Fraction | int | None:
    """Functions of rational numbers whose value is one."""
    whole = [value.numerator for value in values if value.denominator == 1]
    if name == "abs":
        return abs(values[0])
    if name in ("max", "min"):
        return max(values) if name == "max" else min(values)
    if name in ("floor", "ceil"):
        return values[0].__floor__() if name == "floor" else values[0].__ceil__()
    if len(whole) < len(values):
        return None
    if name == "factorial" and 0 <= whole[0] <= _LARGEST_FACTORIAL:
        return factorial(whole[0])
    if name == "binom" and 0 <= whole[1] <= whole[0] <= _LARGEST_FACTORIAL:
        return comb(*whole)
    if name in ("gcd", "lcm"):
        return gcd(*whole) if name == "gcd" else lcm(*whole)
    if (
        name in ("sin", "tan", "ln", "log", "lg")
        and len(whole) == 1
        and whole[0] == (name in ("ln", "log", "lg"))
    ):
        return 0
    return 1 if name == "cos" and whole == [0] else None


def _plus(first: Polynomial, second: Polynomial) -> Polynomial:
    made = dict(first)
    for monomial, value in second.items():
        made[monomial] = made.get(monomial, 0) + value
    return _check_size(made)


def _minus(first: Polynomial, second: Polynomial) -> Polynomial:
    return _plus(first, {monomial: -value for monomial, value in second.items()})


def _times(first: Polynomial, second: Polynomial) -> Polynomial:
    made: Polynomial = {}
    for one, value in first.items():
        for other, factor in second.items():
            exponents = dict(one)
            for atom, exponent in other:
                exponents[atom] = exponents.get(atom, 0) + exponent
            for monomial, unit in _monomial(exponents, value * factor).items():
                made[monomial] = made.get(monomial, 0) + unit
    return _check_size(made)


def _monomial(exponents: dict[Atom, Fraction], value: Fraction) -> Polynomial:
    """One monomial in its only form: whole powers of primes and even ones of i become part of the number."""
    kept: list[tuple[Atom, Fraction]] = []
    for atom, exponent in exponents.items():
        if atom[0] == "prime":
            whole = exponent.__floor__()
            if abs(whole) * atom[1].bit_length() > _MOST_BITS:
                raise FormTooLarge("a power is too large")
            value *= Fraction(atom[1]) ** whole
            exponent -= whole
        elif atom == IMAGINARY and exponent.denominator == 1:
            value = -value if exponent.numerator // 2 % 2 else value
            exponent = Fraction(exponent.numerator % 2)
        if exponent:
            kept.append((atom, exponent))
    return {tuple(sorted(kept)): value}


def _check_size(polynomial: Polynomial) -> Polynomial:
    made = {monomial: value for monomial, value in polynomial.items() if value}
    if len(made) > _MOST_TERMS:
        raise FormTooLarge("it has too many terms")
    if any(
        value.numerator.bit_length() + value.denominator.bit_length() > 2 * _MOST_BITS
        for value in made.values()
    ):
        raise FormTooLarge("a number is too large")
    return made


def _key(form: Form) -> Atom:
    """A form as a part of an atom: a digest, so that nesting costs nothing. Equal forms may have different ones."""
    text = repr([sorted(part.items()) for part in form])
    return (blake2b(text.encode(), digest_size=16).hexdigest(),)
