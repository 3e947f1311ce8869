"""Code from a model: it runs, and it is measured by its tests, which are in another process. What it cannot do is in
`tests/faults/test_forged_verdicts.py`."""

import os
from typing import Any

import pytest

from assay.engine.evaluate.bind import bind_scorer
from assay.errors import UserError
from assay.records import Item, Response
from assay.scorers._sandbox import run as sandbox
from assay.scorers._sandbox.run import (
    NotStartedError,
    SandboxLimits,
    Verdict,
    level_here,
    run_tests,
)
from assay.scorers.code_tests import code_of, code_tests, continuation
from tests.support import Lab

LIMITS = SandboxLimits(seconds=10, memory=512 << 20, files=1 << 20, processes=8)
HASTY = LIMITS._replace(seconds=1)


def ran(
    code: str, *tests: str, limits: SandboxLimits = LIMITS, entry_point: str | None = None
) -> Verdict:
    return run_tests(code, list(tests or ["assert True"]), entry_point, limits, level_here(True))


def test_each_test_counts() -> None:
    verdict = ran(
        "def add(a, b): return a + b",
        "assert add(1, 2) == 3",
        "assert add(1, 2) == 4, 'no'",
        "undefined",
    )
    assert verdict.passed == 1
    assert [problem.split(":")[:2] for problem in verdict.problems] == [
        ["test 2", " AssertionError"],
        ["test 3", " NameError"],
    ]


def test_a_check_function_is_called_with_the_entry_point() -> None:
    test = "def check(candidate):\n    assert candidate(2) == 4"
    assert ran("def double(x): return 2 * x", test, entry_point="double").passed == 1
    assert ran("def double(x): return x", test, entry_point="double").passed == 0
    assert ran("def pow(x): return 2 * x", test, entry_point="pow").passed == 1
    assert ran("def other(x): return x", test, entry_point="double").problems == [
        "test 1: KeyError: 'double'"
    ]


def test_the_function_under_test_may_have_the_name_of_a_builtin() -> None:
    assert (
        ran("def sum(a, b): return a * b", "assert sum(2, 3) == 6", "assert sum(1, 3) == 3").passed
        == 2
    )
    assert ran("def copy(a): return a", "assert set(copy([2])) == set([2])").passed == 1


CODE = """
import collections, dataclasses, datetime, decimal, fractions, json, math, sys
counter = 0
pairs = [1, [2, 3]]
def count():
    global counter
    counter += 1
def sort(values): values.sort()
def swap(rows): rows[0], rows[1] = rows[1], rows[0]
def add(group): group["itself"] = [group]
def both(a, b): a.append(1); return b
def numbers(n):
    for i in range(n): yield i
def adder(n): return lambda x: x + n
@dataclasses.dataclass
class Point:
    x: int
    y: "int" = 0
    def __add__(self, other): return Point(self.x + other.x, self.y + other.y)
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x); return self
    def __len__(self): return len(self.items)
    def __getitem__(self, i): return self.items[i]
    def __enter__(self): return self
    def __exit__(self, *error): return False
class Bad(ValueError):
    def __init__(self, code): super().__init__(f"code {code}"); self.code = code
def fail(code): raise Bad(code)
def parse(text): return json.loads(text)
def apply(function, *arguments): return function(*arguments)
def caught(function):
    try: function()
    except KeyError as error: return str(error)
def total(node):
    result = 0
    while node: result, node = result + node.value, node.next
    return result
def mark(node): node.value = 9
def read(file): return [line for line in file.read().split()]
def say(): print("h", end=""); sys.stdout.buffer.write(b"i\\n")
async def later(x): return x * 2
def same(x): return x
def large(): return math.factorial(3000)
def named(*a, k=1, **more): return (a, k, more)
def kind(x): return type(x)
def tuple_with_names(): return collections.namedtuple("P", "a b")(1, 2)
def lists():
    made = collections.defaultdict(list); made["a"].append(1); return made
"""
VALUES = """
import collections, datetime, decimal, fractions, uuid
values = [
    1, -0.5, 1j, "\\ud800", b"\\xff", bytearray(b"x"), None, True, (1, [2]), {3}, frozenset([4]), {(1, 2): {"a": []}},
    range(3),
    slice(1), decimal.Decimal("1.5"), fractions.Fraction(1, 3), datetime.date(2020, 1, 2), datetime.timedelta(1),
    datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.timezone.utc), datetime.time(1), uuid.UUID(int=3), float("inf"),
    collections.deque([1], 3), collections.Counter("aab"), collections.OrderedDict(a=1), int, 10**5000,
]
back = same(values)
assert back == values
assert [type(value) for value in back] == [type(value) for value in values]
"""
CROSSING = [
    "count(); count(); assert counter == 2",
    "assert pairs == [1, [2, 3]]",
    "values = [3, 1, 2]; sort(values); assert values == [1, 2, 3]",
    "rows = [[1], [2]]; first = rows[0]; swap(rows); assert rows == [[2], [1]] and rows[1] is first",
    "group = {}; add(group); assert group['itself'][0] is group",
    "a = []; assert both(a, a) is a and a == [1]",
    "assert list(numbers(3)) == [0, 1, 2] and next(numbers(1)) == 0 and next(numbers(0), 7) == 7",
    "assert adder(3)(4) == 7 and apply(adder(3), 4) == 7",
    "assert Point(1) + Point(2, 3) == Point(3, 3) != Point(3) and isinstance(Point(1), Point)",
    "p = Point(1); p.x = 5; assert p.x == 5 and str(p) == 'Point(x=5, y=0)' and not hasattr(p, 'z')",
    "s = Stack().push(1).push(2)\nassert len(s) == 2 and s[0] == 1 and list(s) == [1, 2] and 2 in s and 3 not in s",
    "with Stack() as s: assert isinstance(s, Stack)",
    "try: fail(3)\nexcept Bad as e: assert e.code == 3 and str(e) == 'code 3' and isinstance(e, ValueError)",
    "import json\ntry: parse('{')\nexcept json.JSONDecodeError: pass\nelse: assert 0",
    "import operator\nassert apply(lambda x, y: x - y, 3, 2) == 1 == apply(int, '1') == apply(operator.sub, 2, 1)",
    "def lookup(): raise KeyError('k')\nassert caught(lookup) == repr('k')",
    "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next",
    "assert total(Node(1, Node(2))) == 3\nn = Node(1); mark(n); assert n.value == 9 and same(n) is n",
    "import io, contextlib\nassert read(io.StringIO('a b')) == ['a', 'b'] and apply(list, iter([1])) == [1]",
    "b = io.StringIO()\nwith contextlib.redirect_stdout(b): say()\nassert b.getvalue() == 'hi\\n'",
    "import asyncio\nassert asyncio.run(later(4)) == 8",
    "assert math.sqrt(same(4)) == 2 and large() == math.factorial(3000)",
    "assert named(1, 2, k=3, z=[4]) == ((1, 2), 3, {'z': [4]}) and named.__name__ == 'named'",
    "assert kind(3) is int and tuple_with_names() == (1, 2) and lists() == {'a': [1]}",
    "exit\nassert round(same(2.567), 1) == 2.6 and not same([])",
    VALUES,
]


def test_what_crosses_between_the_two_processes() -> None:
    assert ran(CODE, *CROSSING) == Verdict(len(CROSSING), [])


def test_arrays_cross() -> None:
    if not any(os.path.isdir(f"{folder}/numpy") for folder in sandbox.packages()):
        pytest.skip("numpy is not installed where the sandbox sees it")
    code = "import numpy as np\ndef f(): return np.arange(6).reshape(2, 3)\ndef g(): return np.int64(3)"
    tests = [
        "assert np.array_equal(f(), [[0, 1, 2], [3, 4, 5]])",
        "assert f().shape == (2, 3)",
        "assert g() == 3",
    ]
    assert ran(code, *tests) == Verdict(3, [])


def test_what_does_not_cross_says_so() -> None:
    code = "class Vector:\n    def __mul__(self, n): return n\ndef f(x): return x.__code__"
    verdict = ran(
        code, "assert Vector() * 3 == 3", "assert Vector().__mul__(3) == 3", "f(lambda: 1)"
    )
    assert verdict.passed == 1
    assert "unsupported operand" in verdict.problems[0]
    assert "cannot do this to a function of a test" in verdict.problems[1]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit(0)", "the code: SystemExit: 0"),
        ("import os; os._exit(3)", "ended its process early (exit code 3)"),
        ("raise ValueError('x')", "the code: ValueError: x"),
        ("x = 'a' * 10**9", "MemoryError"),
        # a process that is the first of its namespace outlives its own signal, and then ends itself
        (
            "import os; os.kill(os.getpid(), 9); os._exit(9)",
            "ended its process early|CPU time or its memory",
        ),
        ("open('big', 'w').write('a' * 3_000_000)", "too large|No space"),
    ],
)
def test_how_code_fails(code: str, why: str) -> None:
    verdict = ran(code)
    assert verdict.passed == 0
    assert any(part in verdict.problems[0] for part in why.split("|")), verdict.problems


def test_a_test_that_ends_its_process_fails() -> None:
    assert ran("x = 1", "assert x", "import os\nos._exit(0)", "assert x") == Verdict(
        1, ["a test ended its process"]
    )


@pytest.mark.skipif(
    os.getuid() != 0 and level_here(True) == "weak", reason="weak counts all threads of the user"
)
def test_threads_take_turns() -> None:
    test = "from concurrent.futures import ThreadPoolExecutor as Pool\n"
    test += "assert list(Pool(4).map(lambda n: f(g, n), range(99))) == [n + 1 for n in range(99)]"
    assert ran("def f(g, n): return g(n)\ndef g(n): return n + 1", test) == Verdict(1, [])


def test_time_is_limited() -> None:
    assert ran("while True: pass", limits=HASTY).problems == ["the code took longer than 1 s"]
    assert ran("x = 1", "assert x", "while True: pass", limits=HASTY) == Verdict(
        1, ["the code took longer than 1 s"]
    )


def test_where_it_cannot_be_closed_off_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(level: str) -> None:
        if level != "weak":
            raise NotStartedError(f"no {level} here")

    monkeypatch.setattr(sandbox, "try_out", broken)
    level_here.cache_clear()
    with pytest.raises(
        UserError, match=r"cannot be closed off here .*no bubblewrap here.*no namespaces here"
    ) as refused:
        level_here(False)
    assert "sandbox: weak" in str(refused.value)
    assert level_here(True) == "weak"
    level_here.cache_clear()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Try\n```\nx = 1\n```\nor\n```py\ny = 2\n```\n```sh\nls\n```", "y = 2\n"),
        ("x = 1", "x = 1"),
        ("<think>```python\nno\n```</think>```python\nx = 1", "x = 1"),
        ("```python\nif\n```", None),
        ("This is no code.", None),
        ("", None),
    ],
)
def test_code_is_found(answer: str, code: str | None) -> None:
    assert code_of(answer) == code


def test_the_block_with_the_entry_point_is_taken() -> None:
    assert (
        code_of("```python\ndef f(): ...\n```\nUsage:\n```python\nprint(1)\n```", "f")
        == "def f(): ...\n"
    )


PROMPT = 'from math import floor\n\ndef half(x):\n    """Half of x, rounded down."""\n'
BODY = "    y = x / 2\n    return floor(y)"


@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        f"\n{BODY}\n\n",
        BODY.lstrip(),
        "y = x / 2\nreturn floor(y)",
        "for y in [x]:\n    return floor(y / 2)",
        f"{BODY}\n\nif __name__ == '__main__':\n    half(",
        f"{BODY}\n\nThis works because of floor.",
        f"```python\n{BODY}\n```",
        "Here it is:\n```python\ndef half(x):\n    return floor(x / 2)\n```\nDone.",
        "```python\nfrom math import floor\ndef half(x):\n    return floor(x / 2)\n```\n```python\nprint(half(2))\n```",
        f"<think>def half</think>{PROMPT}{BODY}",
    ],
)
def test_an_answer_continues_or_repeats_the_prompts_code(answer: str) -> None:
    for prompt in (PROMPT, PROMPT.rstrip("\n")):
        code = continuation(prompt, answer, "half")
        assert code is not None
        assert code.startswith(prompt)
        names: dict[str, Any] = {}
        exec(code, names)
        assert [names["half"](x) for x in (4, 5, -1)] == [2, 2, -1]


def test_what_continues_nothing_is_no_code() -> None:
    assert continuation(PROMPT, "I cannot help with that.", "half") is None
    assert continuation(PROMPT, "", "half") is None
    assert (
        continuation("Write a function.", "def half(x):\n    return x // 2", "half")
        == "def half(x):\n    return x // 2"
    )


def test_a_config_must_say_that_code_may_run() -> None:
    with pytest.raises(UserError, match="allow_code"):
        bind_scorer(code_tests)


async def no_code_without_leave() -> Any:
    item, response = (
        Item(id="i", ground_truth="assert True"),
        Response(item_id="i", response="x = 1"),
    )
    return await code_tests(item, response, context=None, allow_code=False)  # type: ignore[arg-type]


def test_false_means_no() -> None:
    import asyncio

    with pytest.raises(UserError, match="runs code that a model wrote"):
        asyncio.run(no_code_without_leave())


CHECK = "METADATA = {'author': 'us'}\n\ndef check(candidate):\n    assert candidate(5) == 2\n"
TOTAL = "```python\ndef total(n):\n    return n.value + (total(n.next) if n.next else 0)\n```"
LIST = "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\n"


def test_items_of_the_forms_of_humaneval_and_mbpp(lab: Lab) -> None:
    """Two problems of each form; of the four samples of each, as many are right as its number says."""
    answers = f"""
import itertools
counts = {{}}
RIGHT = {{"half": {BODY!r}, "total": {TOTAL!r}}}
def calculator(prompt):
    number, name = prompt.split()
    right = next(counts.setdefault(prompt, itertools.count())) < int(number)
    return RIGHT[name] if right else "    return 7" if name == "half" else "def total(n): return 7"
"""
    lab.write("model.py", answers)
    humaneval = {"prompt": PROMPT, "test": CHECK, "entry_point": "half"}
    mbpp = {
        "test_setup_code": LIST,
        "test_list": ["assert total(Node(1)) == 1", "assert total(Node(1, Node(2))) == 3"],
    }
    for number, row in enumerate(lab.rows):
        form = humaneval if number < 2 else mbpp
        row.update(
            data={"question": f"{number + 1} {'half' if number < 2 else 'total'}", **form},
            ground_truth=form,
        )
    lab.config["prompt_templates"] = {"plain": "{{question}}"}
    lab.config["sample_params"] = {"num_samples": 4}
    lab.config["metrics"] = [{"name": "pass_at_k", "params": {"k": 2}, "facets": ["item_id"]}]
    params = {"allow_code": True, "sandbox": "weak"}
    for form, field, items, expected in (
        ("humaneval", {"prompt": "prompt"}, lab.rows[:2], [1 / 2, 5 / 6]),
        ("mbpp", {"setup": "test_setup_code"}, lab.rows[2:], [1.0, 1.0]),
    ):
        lab.rows, kept = items, lab.rows
        lab.config["evaluation_methods"] = [
            {"name": form, "type": "code_tests", "params": {**params, **field}}
        ]
        lab.run()
        rows = lab.read("metrics.jsonl")
        assert [
            row["value"] for row in sorted(rows, key=lambda row: row["item_id"])
        ] == pytest.approx(expected)
        lab.rows = kept


def test_a_whole_run(lab: Lab) -> None:
    lab.write(
        "model.py", "def calculator(prompt): return '```python\\ndef f(x): return x + 1\\n```'\n"
    )
    for row, test in zip(
        lab.rows,
        ["assert f(1) == 2", "assert f(1) == 3", ["assert f(0) == 1", "f(9)"], None],
        strict=True,
    ):
        row["ground_truth"] = {"tests": test}
    lab.config["sample_params"] = {"num_samples": 1}
    lab.config["evaluation_methods"] = [
        {"name": "code_tests", "params": {"allow_code": True, "sandbox": "weak"}}
    ]
    lab.run()
    rows = {
        row["item_id"]: (row["outcome"], row["score"])
        for row in lab.read("evaluation_results.jsonl")
    }
    details = [
        row["detailed_results"]
        for row in lab.read("evaluation_results.jsonl")
        if row["outcome"] == "scored"
    ]
    assert {each["sandbox"] for each in details} == {level_here(True)}
    assert rows == {
        "q0": ("scored", 1.0),
        "q1": ("scored", 0.0),
        "q2": ("scored", 1.0),
        "q3": ("errored", None),
    }
    assert os.listdir(lab.folder / "out")
