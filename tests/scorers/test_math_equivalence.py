"""Mathematical equivalence: by hand, and against sympy on expressions that are made up."""

import time
from fractions import Fraction
from typing import Any

import pytest
import sympy
from hypothesis import given, settings, strategies as st

from assay.errors import UserError
from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers._math import symbolic
from assay.scorers.math_equivalence import math_equivalence, taken

EQUAL = [
    ("5", "5"),
    ("5", "5.0"),
    ("5", "5.000"),
    ("-3", "−3"),
    ("1000", "1,000"),
    ("1000000", "1{,}000{,}000"),
    ("12345", r"12\,345"),
    ("0.5", r"\frac{1}{2}"),
    ("0.5", "1/2"),
    ("1/2", "50%"),
    ("50", r"50\%"),
    (r"\frac{1}{2}", r"\dfrac{2}{4}"),
    (r"\frac12", r"\tfrac{1}{2}"),
    (r"\frac{3}{4}", "¾"),
    (r"1\frac{3}{4}", "7/4"),
    ("1 3/4", "1.75"),
    (r"-\frac{1}{3}", r"\frac{-1}{3}"),
    (r"-\frac{1}{3}", r"\frac{1}{-3}"),
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\sqrt{8}", "2*sqrt(2)"),
    (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    (r"\frac{1}{1+\sqrt{2}}", r"\sqrt{2}-1"),
    (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"),
    (r"\sqrt[3]{-8}", "-2"),
    (r"\sqrt{-4}", "2i"),
    (r"2^{1/2}", r"\sqrt2"),
    (r"\sqrt{6}", r"\sqrt{2}\sqrt{3}"),
    (r"8^{2/3}", "4"),
    (r"4\pi", "4π"),
    (r"\frac{\pi}{2}", r"\pi/2"),
    (r"\frac{\pi}{2}", r"0.5\pi"),
    ("x^2 + 2x + 1", "(x+1)^2"),
    ("x^2+2x+1", "1 + 2*x + x**2"),
    (r"\frac{x^2-1}{x-1}", "x+1"),
    (r"\frac{1}{x}+\frac{1}{y}", r"\frac{x+y}{xy}"),
    ("2^{10}", "1024"),
    ("x^{-2}", r"\frac{1}{x^2}"),
    ("10^{-3}", "0.001"),
    (r"3 \times 10^{8}", "300000000"),
    ("5!", "120"),
    (r"\binom{5}{2}", "10"),
    ("|{-3}|", "3"),
    (r"45^\circ", "45"),
    (r"45^{\circ}", "45 degrees"),
    (r"\sin 30^\circ", "1/2"),
    (r"\cos(\pi)", "-1"),
    (r"\sin^2 x + \cos^2 x", "1"),
    (r"\ln(e^2)", "2"),
    (r"\log_2 8", "3"),
    (r"\log_{10}(100)", "2"),
    (r"2\cos^2 x - 1", r"\cos 2x"),
    (r"e^{i\pi}", "-1"),
    (r"\tan 45^\circ", "1"),
    (r"5\text{ cm}", "5"),
    ("5", r"5 \mathrm{~cm}"),
    (r"100\text{ cm}", "1 m"),
    ("2 hours", "120 minutes"),
    (r"3\text{ cm}^2", "3 square centimeters"),
    ("12", "12 apples"),
    ("12 apples", "12 fruits"),
    ("50", "50 miles per hour"),
    ("50 km/hour", "50 km / hours"),
    ("18", r"\$18 per day"),
    ("2 sqrt(x)", r"2\sqrt{x}"),
    ("2 alpha", r"2\alpha"),
    (r"20^\circ C", "20"),
    ("$18", "18 dollars"),
    (r"\$18.50", "18.5"),
    ("x = 5", "5"),
    ("5", "x=5"),
    ("y = 2x + 1", "2x+1"),
    ("y = 2x + 1", "2x - y + 1 = 0"),
    ("f(x) = x^2", "x^2"),
    ("x = 2 + 3 = 5", "5"),
    ("(1, 2)", "(1,2)"),
    ("(100,200)", "(100, 200)"),
    (r"\left( \frac{1}{2}, 3 \right)", "(0.5, 3)"),
    (r"\{1, 2, 3\}", r"\{3, 2, 1\}"),
    ("1, 2, 3", "3, 1, 2"),
    ("1,2", r"\{2,1\}"),
    ("1 and 2", "2, 1"),
    ("x = 1 or x = -1", "-1, 1"),
    (r"\pm 2", "2, -2"),
    (r"1 \pm \sqrt{2}", r"1-\sqrt{2}, 1+\sqrt{2}"),
    ("[1, 2)", "1 <= x < 2"),
    (r"(3, \infty)", "x > 3"),
    (r"(-\infty, 3]", r"x \leq 3"),
    (r"x \in [1,2]", "[1,2]"),
    (r"(-\infty, 1) \cup (2, \infty)", r"(2,\infty)\cup(-\infty,1)"),
    (r"\infty", "infinity"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix}1&2\\3&4.0\end{bmatrix}"),
    (r"\text{east}", "East"),
    (r"\text{(A)}", "A"),
    ("Evelyn", r"\text{Evelyn}"),
    ("7", "seven"),
    ("x_1 + x_2", "x_{2} + x_{1}"),
    (r"\emptyset", r"\{\}"),
    ("abc", "cba"),
    (r"\frac{a}{b}c", "ac/b"),
    ("6.02", "6.020"),
    ("12", r"12\%"),
    (r"\frac{1}{i}", "-i"),
    ("i^{-2}", "-1"),
    ("max(2, 3)", "3"),
    ("2**3**2", "512"),
    (r"3\frac{x}{2}", "1.5x"),
    (r"2\frac12", "2.5"),
    (r"11,\! 111,\! 100", "11111100"),
    (r"\$32,\!348", "32348"),
    ("4210_5", "4210_{5}"),
    ("555", "4210_5"),
    ("7:3", "14:6"),
    (r"0.\overline{3}", "1/3"),
    (r"2.1\overline{6}", "13/6"),
    (r"x < -1 \text{ or } x > 1", r"(1, \infty) \cup (-\infty, -1)"),
    (r"\angle ABC = 30^\circ", "30"),
    ("AB = 5", "5"),
    (r"\text{June 20}", "june 20"),
    (r"\overline{AB}", "AB"),
    ("100000", "1e5"),
    ("0.0012", "1.2E-3"),
    ("f(x) = 2x", "y = x + x"),
    ("x = 1, y = 2", "y = 2, x = 1"),
    ("x = 1, y = 2", "(1, 2)"),
    ("(1, 2), (3, 4)", "(3,4), (1,2)"),
    (r"\tan x", r"\frac{\sin x}{\cos x}"),
    ("1 - x^2", "(1-x)(1+x)"),
    (r"\frac{2}{3}x", "2x/3"),
    (r"\sqrt{x}\sqrt{y}", r"\sqrt{xy}"),
    (r"x^{1/2}", r"\sqrt{x}"),
    ("2.5 \\times 10^3", "2500"),
    (r"x^{2}y", "yx²"),
    (r"2\alpha", r"\alpha+\alpha"),
    ("0", "x - x"),
    (r"\sqrt{4x^2}", "2x"),
    (r"\frac{\sqrt{3}+1}{2}", r"\frac{1}{2}+\frac{\sqrt{3}}{2}"),
    (r"\sqrt{4+2\sqrt{3}}", r"1+\sqrt{3}"),
]
DIFFERENT = [
    ("5", "6"),
    ("1/3", "0.33"),
    ("1/3", "0.333333333"),
    (r"\pi", "3.14159"),
    (r"\sqrt{2}", "1.4142"),
    (r"\sqrt{2}", r"\sqrt{3}"),
    ("x+1", "x-1"),
    ("x^2", "2x"),
    ("(1,2)", "(2,1)"),
    ("(1,2)", "[1,2]"),
    ("[1,2)", "[1,2]"),
    (r"\{1,2\}", r"\{1,2,3\}"),
    (r"\{1,2\}", r"\{1,3\}"),
    ("1,1,2", "1,2,2"),
    ("(100,200)", "100200"),
    (r"(-\infty,1)", r"(1,\infty)"),
    (r"\infty", r"-\infty"),
    ("5 cm", "5 m"),
    ("5 m", "5 seconds"),
    ("3 cm^2", "3 cm"),
    (r"\text{east}", "west"),
    ("Evelyn", "3"),
    (r"\sin x", r"\cos x"),
    (r"\ln 2", r"\ln 3"),
    ("y = 2x", "y = 3x"),
    ("x + y = 1", "x + y = 2"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"),
    ("A", "B"),
    ("2^{100}", "2^{101}"),
    (r"\frac{1}{x}", "x"),
    ("50", "0.05%"),
    ("50%", "5000%"),
    ("x = 5", "y = 5"),
    ("4210_5", "4210"),
    (r"\text{June 20}", "June 21"),
    ("7:3", "3:7"),
]
UNDECIDED = [
    ("5", "no idea"),
    ("50 km/hour", "50 miles per hour"),
    ("5", "+"),
    ("5", "((5)"),
    ("9^{9^{9}}", "9^{9^{9}}+1"),
    ("5", "(" * 300 + "5" + ")" * 300),
    ("5", "5" * 600),
    ("x", r"\unknown{x}"),
    ("(1, 3)", "x > 1 and x < 3"),
    ("8", "9_8"),
    (r"\sin 1", r"\sin_2 1"),
    (r"\log_3 2", "log(1, 2, 3)"),
]


def score(truth: Any, text: str, **params: Any) -> Score:
    return math_equivalence(
        Item(id="i", ground_truth=truth), Response(item_id="i", response=text), **params
    )


def verdict(truth: str, text: str, **params: Any) -> bool | None:
    made = score(truth, rf"So it is \boxed{{{text}}}.", **params)
    assert made.outcome in ("scored", "unparsed")
    return made.passed if made.outcome == "scored" else None


@pytest.mark.parametrize(("truth", "text"), EQUAL)
def test_equal(truth: str, text: str) -> None:
    assert verdict(truth, text) is True
    assert verdict(text, truth) is True


@pytest.mark.parametrize(("truth", "text"), DIFFERENT)
def test_different(truth: str, text: str) -> None:
    assert verdict(truth, text) is False


@pytest.mark.parametrize(("truth", "text"), UNDECIDED)
def test_undecided_is_unparsed(truth: str, text: str) -> None:
    assert verdict(truth, text) is None


x, y = sympy.symbols("x y", positive=True)
numbers = st.integers(-9, 9).map(sympy.Integer) | st.builds(
    sympy.Rational, st.integers(-9, 9), st.integers(1, 9)
)
leaves = numbers | st.sampled_from(
    [x, y, sympy.pi, sympy.sqrt(2), sympy.sqrt(3), sympy.sqrt(12), sympy.cbrt(2)]
)


def sums_and_products(inner: Any) -> Any:
    return st.builds(sympy.Add, inner, inner) | st.builds(sympy.Mul, inner, inner)


def powers(inner: Any) -> Any:
    return st.builds(
        lambda base, power: base**power if base != 0 else base, inner, st.integers(-2, 3)
    )


small = sums_and_products(leaves) | powers(leaves) | leaves
algebraic = sums_and_products(small) | powers(small) | sums_and_products(sums_and_products(small))
functions = st.builds(
    lambda name, value: name(value), st.sampled_from([sympy.sin, sympy.cos, sympy.exp]), small
)
transcendental = functions | sums_and_products(functions | leaves)


def written(expression: Any) -> str:
    return sympy.latex(expression, fold_short_frac=None)


@settings(deadline=None, max_examples=150)
@given(algebraic, numbers.filter(bool))
def test_algebra_needs_no_sympy_and_agrees_with_it(expression: Any, number: Any) -> None:
    if not expression.is_finite:
        return
    text = written(expression)
    for other in (sympy.expand(expression), sympy.factor(expression), sympy.together(expression)):
        assert verdict(text, written(other), symbolic=False) is True
    assert verdict(text, written(expression + number), symbolic=False) is False
    if expression != 0:
        assert verdict(text, written(expression * (1 + number**2)), symbolic=False) is False


@settings(deadline=None, max_examples=70)
@given(algebraic, algebraic)
def test_pairs_are_judged_as_sympy_judges_them(first: Any, second: Any) -> None:
    if not (first.is_finite and second.is_finite):
        return
    assert verdict(written(first), written(second), symbolic=False) is (
        sympy.simplify(first - second) == 0
    )


@settings(deadline=None, max_examples=30)
@given(transcendental, numbers.filter(bool))
def test_functions(expression: Any, number: Any) -> None:
    if not expression.is_finite:
        return
    other = sympy.expand(expression, trig=True)
    assert verdict(written(expression), written(other)) in (True, None)
    assert verdict(written(expression), written(expression + number)) in (False, None)


@given(st.fractions(-1000, 1000, max_denominator=999))
def test_a_fraction_in_every_spelling(value: Fraction) -> None:
    above, below = value.numerator, value.denominator
    ways = [
        f"{above}/{below}",
        rf"\frac{{{above}}}{{{below}}}",
        rf"\dfrac{{{-above}}}{{{-below}}}",
        f"({above})/({below})",
    ]
    whole, rest = divmod(abs(above), below)
    if rest and whole:
        sign = "-" if value < 0 else ""
        ways += [rf"{sign}{whole}\frac{{{rest}}}{{{below}}}", f"{sign}{whole} {rest}/{below}"]
    for way in ways:
        assert verdict(ways[0], way, symbolic=False) is True
        assert verdict(way, str(value + Fraction(1, 10**6)), symbolic=False) is False


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (r"First \boxed{3}, no: \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"Therefore the final answer is $\frac{1}{2}$. I hope it is correct.", r"\frac{1}{2}"),
        ("The answer is 3.5.", "3.5"),
        ("**Answer:** 42", "42"),
        ("work\n#### 1,234", "1,234"),
        ("x = 5", "x = 5"),
        ("So $x = 2$ and therefore $y = 4$.", "y = 4"),
        (r"We get \(x^2\) in the end, as you see here", "x^2"),
        ("It was $5, but they paid $6 for it", "6"),
        ("The capital is on the east side", None),
        ("east", "east"),
        ("The answer is:\n$$x = 7$$\nDone.", "x = 7"),
        ("The answer is that there are 5 of them left.", "5"),
        ("$x^2$", "x^2"),
        ("After counting all of them there were 17 left over.", "17"),
        ("I do not know what to say about it", None),
        ("", None),
    ],
)
def test_the_result_of_an_answer(answer: str, result: str | None) -> None:
    assert taken(answer) == result


def test_references_and_details() -> None:
    made = score(
        ["3", r"so it is \boxed{\frac{1}{2}}"], r"<think>\boxed{7}</think>The answer is 0.5"
    )
    assert (made.passed, made.score, made.details) == (True, 1.0, {"answer": "0.5"})
    assert score({"answer": "x", "other": "4"}, "4", expected="other").passed
    assert score("18 #### 18", "It costs 18 dollars").passed
    assert score(7, "7").passed
    assert score("5", "well").outcome == "unparsed"


def test_tolerance() -> None:
    assert [verdict("1/3", text, tolerance=0.01) for text in ("0.33", "0.3", "0.35")] == [
        True,
        False,
        False,
    ]
    assert verdict(r"\pi", "3.14159", tolerance=1e-5) is True
    assert verdict("(1/3, 2)", "(0.3333, 2.0001)", tolerance=1e-3) is True


def test_without_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    question = (r"\sin^2 x", r"1 - \cos^2 x")
    assert verdict(*question) is True
    assert verdict(*question, symbolic=False) is None
    monkeypatch.setattr(symbolic, "find_spec", lambda name: None)
    assert verdict("1/2", "0.5") is True
    with pytest.raises(UserError, match="needs sympy") as refused:
        verdict(*question)
    assert "pip install 'assay-eval[math]'" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        r"\sin(10^{10^{10}})",
        r"\sin(\sin(9^{9^9}))",
        r"(\sin x + \cos x)^{20} (\sin y + \tan y)^{20}",
        "e^{" * 30 + "x" + "}" * 30,
        "(a+b+c+d)^{20}" * 10,
        "(1+x)^{20}(1+x)^{19}" + "+(1+x)^{20}(1+x)^{19}" * 22,
        r"\sqrt{" * 39 + "2" + "}" * 39,
        "1" + "0" * 480,
        r"\frac{1}{1+" * 20 + "x" + "}" * 20,
        "170!!!",
        r"3\frac{" * 25 + "x" + "}{2}" * 25,
        r"\sin 1" + "+1" * 240,
        "2" + "^2" * 240,
        "-" * 499 + "1",
        ", ".join(rf"\\sin^2 {letter} + \\cos^2 {letter}" for letter in "abcdfghjklm"),
        r"\binom{10^{9}}{10^{8}}",
    ],
)
def test_nothing_takes_long(text: str) -> None:
    begin = time.monotonic()
    assert verdict(r"\sin x + 1", text, seconds=1.0) in (False, None)
    assert time.monotonic() - begin < 6.0


def test_an_answer_never_becomes_code() -> None:
    for text in (
        "__import__('os').system('true')",
        "open('/etc/passwd').read()",
        "exec(1)",
        "lambda: 0",
        "x.__class__",
    ):
        assert verdict("x", text) in (None, False)
