r"""Expressions as trees: `\frac{1}{2}`, `1/2`, `1\frac12`, `2\sqrt{3}`, `x^2 + 1`, `\sin^2 x`, `5!`, `45^\circ`.

A tree is a tuple: ("num", Fraction), ("sym", name), ("add" | "mul" | "div" | "pow", left, right) or ("fn", name,
*arguments). Texts are bounded in length, trees in depth.
"""

import re
from fractions import Fraction
from typing import Any

Tree = tuple[Any, ...]

LONGEST = 500  # letters of one answer
_DEEPEST = 40
_TRIGONOMETRY = "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan asin acos atan"
_FUNCTIONS = {*f"{_TRIGONOMETRY} ln log lg exp sqrt abs max min gcd lcm floor ceil".split()}
_OF_SEVERAL = frozenset(("max", "min", "gcd", "lcm"))
_MOST_ARGUMENTS = 20
_LONG_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_CONSTANTS = {
    "pi": "pi",
    "infty": "oo",
    "infinity": "oo",
    "inf": "oo",
    "oo": "oo",
    "e": "E",
    "i": "I",
}
_LETTERS = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
sigma tau upsilon phi varphi chi psi omega ell
"""
_GREEK = frozenset(_LETTERS.split())
NAMES = frozenset((*_FUNCTIONS, *_CONSTANTS, *_GREEK))
_TOKEN = re.compile(
    r"\s*((?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}(?![\w.]))?|\\[A-Za-z]+|[A-Za-z]+|\*\*|[-+*/^_(){}\[\]|,!%°±∓])"
)
_MIXED = re.compile(r"(?<=\s)(\d{1,9})\s?/\s?(\d{1,9})(?![\d.])")
_MIXED_FRACTION = re.compile(
    r"\\frac\s*(?:\{\s*(\d{1,9})\s*\}\s*\{\s*(\d{1,9})\s*\}|(\d)\s*(\d)(?!\d))"
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}
_NEW_FACTOR = frozenset((*_FUNCTIONS, "("))  # ends the argument of `\\sin x`
_STARTS_NO_FACTOR = frozenset((*"+-*/^_)}],!%°±∓|", "**", ""))


class NotMath(ValueError):
    """A text is no expression that can be read."""


def read(text: str) -> Tree:
    """The tree of a whole text; NotMath if it is none."""
    if len(text) > LONGEST:
        raise NotMath(f"it has more than {LONGEST:,} letters")
    reader = _Reader(text)
    tree = reader.sum()
    if reader.token:
        raise NotMath(f"{reader.token!r} is not expected there")
    return tree


def number(value: int | Fraction) -> Tree:
    return ("num", Fraction(value))


class _Reader:
    """A recursive descent over the tokens; `token` is the next one, empty at the end."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.token = ""
        self.pending: list[str] = []  # the letters of a word that is a product
        self.advance()

    def advance(self) -> str:
        token = self.token
        if self.pending:
            self.token = self.pending.pop(0)
            return token
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            if self.text[self.at :].strip():
                raise NotMath(f"{self.text[self.at :].strip()[:10]!r} cannot be read")
            self.token = ""
            return token
        self.at, self.token = match.end(), match[1]
        if self.token.isalpha() and len(self.token) > 1 and self.token not in NAMES:
            if len(self.token) > 3:
                raise NotMath(f"{self.token!r} is a word")
            self.token, *self.pending = self.token
        return token

    def expect(self, token: str) -> None:
        if self.token != token:
            raise NotMath(f"{token!r} is missing")
        self.advance()

    def sum(self) -> Tree:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise NotMath("it is nested too deeply")
        tree = self.product()
        while self.token in ("+", "-", "±", "∓"):
            sign = self.advance()
            right = self.product()
            tree = ("add", tree, _signed(sign, right))
        self.depth -= 1
        return tree

    def product(self) -> Tree:
        tree = self.signed()
        while True:
            if self.token in ("*", "/"):
                kind = "mul" if self.advance() == "*" else "div"
                tree = (kind, tree, self.signed())
            elif self.token not in _STARTS_NO_FACTOR:
                tree = ("mul", tree, self.power())
            else:
                return tree

    def signed(self) -> Tree:
        if self.token in ("+", "-", "±", "∓"):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise NotMath("it is nested too deeply")
            tree = _signed(self.advance(), self.signed())
            self.depth -= 1
            return tree
        return self.power()

    def power(self) -> Tree:
        return self.raised(self.primary())

    def raised(self, base: Tree) -> Tree:
        while self.token in ("!", "%", "°"):
            base = ("fn", {"!": "factorial", "%": "percent", "°": "degree"}[self.advance()], base)
        if self.token in ("^", "**"):
            self.advance()
            power = self.exponent()
            if self.token in ("^", "**"):
                power = self.raised(power)
            return self.raised(("pow", base, power))
        return base

    def exponent(self) -> Tree:
        if self.token in ("+", "-"):
            return _signed(self.advance(), self.exponent())
        if self.token[:1].isdigit():  # x^23 is x² · 3 in LaTeX, which nobody means
            return number(Fraction(self.advance()))
        return self.primary()

    def primary(self) -> Tree:
        token = self.token
        if token[:1].isdigit() or token[:1] == ".":
            return self.number()
        if token in _CLOSING:
            self.advance()
            tree = self.sum()
            self.expect(_CLOSING[token])
            return tree
        if token == "|":
            self.advance()
            tree = self.sum()
            self.expect("|")
            return ("fn", "abs", tree)
        name = token.removeprefix("\\")
        if name in ("frac", "binom"):
            self.advance()
            above, below = self.argument(), self.argument()
            return ("div", above, below) if name == "frac" else ("fn", "binom", above, below)
        if name == "sqrt":
            return self.root()
        if name in _FUNCTIONS:
            return self.function(_LONG_NAMES.get(name, name))
        if token and (name in _CONSTANTS or name in _GREEK or (len(name) == 1 and token == name)):
            self.advance()
            return self.subscripted(name) if name not in _CONSTANTS else ("sym", _CONSTANTS[name])
        raise NotMath(
            f"{token!r} is not expected there" if token else "something is missing at its end"
        )

    def number(self) -> Tree:
        digits = self.advance()
        whole = Fraction(digits)
        if self.token == "_":  # the base that it is written in
            self.advance()
            return number(_in_base(digits, self.exponent()))
        mixed = (_MIXED_FRACTION if self.token == "\\frac" else _MIXED).match(
            self.text, self.at - len(self.token)
        )
        if mixed and whole.denominator == 1:
            above, below = map(int, filter(None, mixed.groups()))
            if below:
                self.at = mixed.end()
                self.advance()
                return number(whole + Fraction(above, below))
        return number(whole)

    def argument(self) -> Tree:
        """A group in braces, or in LaTeX's short form one digit, letter or command."""
        if self.token.isdigit():
            self.at -= len(self.token) - 1
            return number(int(self.advance()[0]))
        return self.primary()

    def root(self) -> Tree:
        self.advance()
        degree = number(2)
        if self.token == "[":
            self.advance()
            degree = self.sum()
            self.expect("]")
        return ("fn", "root", self.argument(), degree)

    def function(self, name: str) -> Tree:
        self.advance()
        base: list[Tree] = []
        power: Tree | None = None
        while self.token in ("_", "^"):
            if self.advance() == "_":
                base = [self.exponent()]
            else:
                power = self.exponent()
        if self.token in ("(", "{"):
            arguments = self.arguments(_CLOSING[self.advance()])
        else:
            arguments = [self.signed()]
            while (
                self.token not in _STARTS_NO_FACTOR
                and self.token.removeprefix("\\") not in _NEW_FACTOR
            ):
                arguments[0] = ("mul", arguments[0], self.power())
        if len(arguments) + len(base) > (
            2 if name == "log" else _MOST_ARGUMENTS if name in _OF_SEVERAL else 1
        ):
            raise NotMath(f"{name} has too many arguments")
        tree: Tree = ("fn", name, *arguments, *base)
        return ("pow", tree, power) if power is not None else tree

    def arguments(self, closing: str) -> list[Tree]:
        made = [self.sum()]
        while self.token == ",":
            self.advance()
            made.append(self.sum())
        self.expect(closing)
        return made

    def subscripted(self, name: str) -> Tree:
        if self.token == "_":
            self.advance()
            start = self.at - len(self.token)
            self.exponent()
            name += "_" + re.sub(r"[{}\s]", "", self.text[start : self.at - len(self.token)])
        return ("sym", name)


def _in_base(digits: str, base: Tree) -> int:
    try:
        return int(digits, int(base[1]))
    except (ValueError, TypeError):
        raise NotMath(f"{digits!r} is not a number in that base") from None


def _signed(sign: str, tree: Tree) -> Tree:
    if sign == "+":
        return tree
    return (
        ("mul", number(-1), tree)
        if sign == "-"
        else ("fn", {"±": "plus_minus", "∓": "minus_plus"}[sign], tree)
    )
