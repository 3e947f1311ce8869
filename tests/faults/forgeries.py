"""Answers that want to pass without being right, as data: the code, and a test that a right answer would pass."""

from textwrap import dedent
from typing import NamedTuple


class Forgery(NamedTuple):
    name: str
    code: str
    test: str = "assert f(2) == 4"
    hasty: bool = False  # it never ends by itself


LINES = r"""
LINES = b'{"ready": true}\n{"passed": 0}\n{"done": true}\n["ok", true, [], ""]\n["ok", 4, [], ""]\n'
"""
YES = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(4)
    def __contains__(self, item): return True
    def __sub__(self, other): return 0
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __rsub__ = __add__ = __radd__ = __mul__ = __sub__
    def __bool__(self): return True
    def __getattr__(self, name): return self
    def __call__(self, *arguments, **named): return self
def f(x): return Yes()
"""


SLY = """
def f(base):
    class Sly(base):
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        __hash__ = None
    return Sly()
"""

_CASES: list[tuple[str, ...]] = [
    ("it equals everything", YES),
    ("it equals everything, on the right", YES, "assert 4 == f(2)"),
    ("it differs from nothing", YES, "assert not (f(2) != 4)"),
    ("it contains everything", YES, "assert 4 in f(2)"),
    ("it is everywhere", YES, "assert f(2) in [4, 5]"),
    ("it is in every set", YES, "assert f(2) in {4}"),
    ("it is the key to every dict", YES, "assert {4: 5}[f(2)] == 5"),
    ("its distance from everything is zero", YES, "assert abs(f(2) - 4) < 1e-9"),
    ("everything's distance from it is zero", YES, "assert abs(4 - f(2)) < 1e-9"),
    ("it is greater", YES, "assert f(2) > 3"),
    ("everything is smaller", YES, "assert 3 < f(2)"),
    ("its attributes equal everything", YES, "assert f(2).value == 4"),
    ("its calls equal everything", YES, "assert f(2)(1) == 4"),
    ("it is in a list", YES.replace("return Yes()", "return [Yes()]"), "assert f(2) == [4]"),
    (
        "it is a key of a dict",
        YES.replace("return Yes()", "return {Yes(): Yes()}"),
        "assert f(2) == {4: 4}",
    ),
    ("it is the class that equals everything", YES.replace("def f(x): return Yes()", "f = Yes()")),
    ("it is equal for unittest", YES, "import unittest\nunittest.TestCase().assertEqual(f(2), 4)"),
    ("it is close for math", YES, "import math\nassert math.isclose(f(2), 4)"),
    (
        "it has the class of a number",
        YES + "Yes.__class__ = property(lambda self: int)",
        "assert isinstance(f(2), int)",
    ),
    *(
        (f"a subclass of {base}", SLY, f"assert f({base}) == 4")
        for base in ("int", "str", "list", "dict", "float", "set")
    ),
    (
        "a memory address for numpy",
        YES
        + "Yes.__array_interface__ = dict(data=(4096, True), shape=(1,), typestr='<i8', version=3)",
        "try:\n    import numpy\nexcept ImportError:\n    assert False\nassert numpy.allclose(f(2), 4)",
    ),
    ("abs is its own", "abs = lambda value: 0\ndef f(x): return 1", "assert abs(f(2) - 4) < 1e-9"),
    (
        "set is its own",
        "set = lambda values: 1\ndef f(x): return []",
        "assert set(f(2)) == set([4])",
    ),
    (
        "len is its own, of an attribute",
        "len = lambda values: 3\nclass f: x = 1",
        "assert len(f.x) == 3",
    ),
    ("AssertionError is its own", "AssertionError = None\ndef f(x): return 1"),
    (
        "math is its own",
        "class math:\n    isclose = lambda *a: True\ndef f(x): return 1",
        "assert math.isclose(f(2), 4)",
    ),
    (
        "built-ins are changed",
        "import builtins\nbuiltins.abs = builtins.len = lambda x: 0\ndef f(x): return 1",
    ),
    (
        "operators are changed",
        "import operator\noperator.eq = lambda a, b: True\ndef f(x): return 1",
    ),
    (
        "its loop has an end",
        "def f(x): raise StopIteration",
        "assert all(map(lambda x: f(x) == 4, [2]))",
    ),
    (
        "its loop has an end of its own",
        "class Over(StopIteration): pass\ndef f(x): raise Over",
        "assert all(map(lambda x: f(x) == 4, [2]))",
    ),
    (
        "it is skipped",
        "import unittest\ndef f(x): raise unittest.SkipTest('no')",
        """
        import unittest
        class Case(unittest.TestCase):
            def test(self): self.assertEqual(f(2), 4)
        result = unittest.TestResult()
        Case("test").run(result)
        assert result.wasSuccessful()
        """,
    ),
    ("it raises what the tests raise", "def f(x): raise AssertionError('passed')"),
    ("it raises what stops everything", "class E(BaseException): pass\ndef f(x): raise E"),
    ("it exits at once", "import os\nos._exit(0)"),
    ("it exits politely", "import sys\nsys.exit(0)"),
    ("it exits when it is asked", "import os\ndef f(x): os._exit(0)"),
    (
        "it exits where an error is expected",
        "import os\ndef f(x): os._exit(0)",
        "try:\n    f(2)\nexcept BaseException:\n    pass\nelse:\n    assert False",
    ),
    ("it is killed", "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGKILL)"),
    ("it crashes", "import ctypes\ndef f(x): ctypes.string_at(0)"),
    (
        "it prints a verdict",
        LINES + "print(LINES.decode(), flush=True)\ndef f(x): print(LINES.decode(), flush=True)",
    ),
    (
        "it prints a verdict at its end",
        LINES
        + "import atexit, os\natexit.register(lambda: [os.write(fd, LINES) for fd in range(9)])\nraise SystemExit",
    ),
    (
        "it writes a verdict to every descriptor",
        LINES
        + """
import os
def f(x):
    for fd in range(64):
        try: os.write(fd, LINES)
        except OSError: pass
""",
    ),
    (
        "it writes to the descriptors of others",
        LINES
        + """
import glob
def f(x):
    for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/dev/pts/*"):
        try: open(path, "wb", 0).write(LINES)
        except OSError: pass
""",
    ),
    (
        "a copy of it writes a verdict",
        LINES
        + """
import os
def f(x):
    if not os.fork():
        for fd in range(3, 64):
            try: os.write(fd, LINES)
            except OSError: pass
        os._exit(0)
    os.wait()
""",
    ),
    (
        "a thread of it writes verdicts",
        LINES
        + """
import os, threading
def forge():
    while True:
        for fd in range(3, 64):
            try: os.write(fd, LINES[:70])
            except OSError: pass
threading.Thread(target=forge, daemon=True).start()
def f(x): return 1
""",
    ),
    ("its parent exits", "import os\nif os.fork(): os._exit(0)\ndef f(x): return 1"),
    (
        "it looks for the expected value in all frames",
        """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if "4" in str(value): return 4 if "assert" in str(value) else 1
        frame = frame.f_back
""",
    ),
    (
        "it looks for the tests among all objects",
        """
import gc
def f(x):
    for thing in gc.get_objects():
        if isinstance(thing, dict) and any("assert f(" in str(value)[:1000] for value in thing.values()): return 4
        if type(thing).__name__ == "Names": thing["f"] = lambda x: 4
        if getattr(thing, "__name__", "") in ("say", "problem_of"): thing.__code__ = (lambda *a, **k: None).__code__
""",
    ),
    (
        "it traces every line",
        """
import sys, threading
def trace(frame, event, argument):
    frame.f_locals.update(passed=True, problem=None)
    return trace
sys.settrace(trace); sys.setprofile(trace); threading.settrace(trace)
def f(x): return 1
""",
    ),
    (
        "it changes how values are sent",
        """
import json, sys
json.dumps = lambda value: '["ok", 4, [], ""]' if 0 else '{"passed": 0}'
json.loads = lambda text: {"passed": 0, "done": True}
for name, module in list(sys.modules.items()):
    if "_sandbox" in name:
        for key, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, type): setattr(module, key, lambda *a, **k: '{"passed": 0}')
def f(x): return 1
""",
    ),
    (
        "it changes what is imported",
        """
import sys
class Finder:
    def find_spec(self, *arguments): raise SystemExit(0)
sys.meta_path.insert(0, Finder())
sys.modules.update(unittest=None, math=None, json=None)
def f(x): return 1
""",
    ),
    (
        "it writes to the memory of others",
        """
import glob, re
def f(x):
    for path in glob.glob("/proc/[0-9]*/mem"):
        try:
            maps = open(path[:-3] + "maps").read()
            with open(path, "r+b", 0) as memory:
                for begin, end in re.findall("([0-9a-f]+)-([0-9a-f]+) rw", maps):
                    memory.seek(int(begin, 16))
                    text = memory.read(int(end, 16) - int(begin, 16))
                    at = text.find(b"assert f(2) == 4")
                    if at >= 0:
                        memory.seek(int(begin, 16) + at)
                        memory.write(b"assert f(2) != 4")
        except OSError: pass
    return 1
""",
    ),
    (
        "it traces other processes",
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    near = {os.getppid(), *range(os.getpid() - 20, os.getpid() + 20)} - {os.getpid()}
    return 4 if any(libc.ptrace(16, pid, 0, 0) == 0 for pid in near) else 1
""",
    ),
    (
        "it takes descriptors of other processes",
        LINES
        + """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    for pid in {os.getppid(), *range(max(os.getpid() - 20, 1), os.getpid() + 20)} - {os.getpid()}:
        handle = libc.syscall(434, pid, 0)
        for number in range(16):
            fd = libc.syscall(438, handle, number, 0) if handle >= 0 else -1
            if fd >= 0: os.write(fd, LINES)
    return 1
""",
    ),
    (
        "it sends a descriptor",
        """
import os, socket, array
def f(x):
    for fd in range(3, 16):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        try: socket.socket(fileno=fd).sendmsg([b"\\n"], rights)
        except OSError: pass
""",
    ),
    (
        "it asks the tests for what they did not give",
        """
import gc
from _sandbox.wire import Wire
wire = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Wire")
def f(x):
    import json
    for what in (["module", "os"], ["type", "type"], ["yours", 0], ["module", "__main__"], ["kind", ["os", "x", "y"]]):
        for operation in ("call", "getattr", "setattr", "run", "name", "iter"):
            line = ["do", operation, ["tuple", [what, "__globals__"]], ["dict", []]]
            wire.channel.write(json.dumps(line).encode() + b"\\n")
            wire.channel.flush()
            if wire.channel.readline().startswith(b'["ok"'): return 4
    return 1
""",
    ),
    (
        "it looks behind a function of the test",
        """
def f(callback):
    for name in ("__globals__", "__code__", "__closure__", "__self__", "_wire"):
        try: getattr(callback, name)["f"] = lambda x: 4
        except Exception: pass
    try: callback.__code__ = None
    except Exception: pass
    return 1
""",
        "assert f(lambda: 1) == 4",
    ),
    (
        "it makes up kinds of values",
        """
import gc, json
wire = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Wire")
def f(x):
    for content in (
        ["type", "eval"], ["module", "__main__"], ["mine", []], ["same", 0], ["yours", 0], ["other", "os.system", "x"],
        ["error", ["builtins", "eval", "eval", ["list", ["1"]], ["dict", []]]], ["kind", ["builtins", "print", "x"]],
    ):
        wire.channel.write(json.dumps(["ok", content, [], ""]).encode() + b"\\n")
    wire.channel.flush()
""",
        "\n".join(
            [
                "results = []",
                *["try: results.append(f(2) == 4)\nexcept Exception: pass"] * 3,
                "assert any(results)",
            ]
        ),
    ),
    (
        "it talks nonsense where an error is expected",
        LINES.replace("LINES = b'{", "LINES = b'nonsense\\n{")
        + """
import os
def f(x):
    for fd in range(3, 9):
        try: os.write(fd, LINES)
        except OSError: pass
""",
        "try:\n    f(2)\nexcept Exception:\n    pass\nelse:\n    assert False",
    ),
    (
        "its result is endless",
        "import itertools\ndef f(x): return itertools.count()",
        "assert 4.5 not in f(2)",
        "hasty",
    ),
    ("it never answers", "def f(x):\n    while True: pass", "assert f(2) == 4", "hasty"),
    ("its result is huge", "def f(x): return 'a' * 150_000_000"),
    (
        "its result is deep",
        "def f(x):\n    deep = []\n    for _ in range(100_000): deep = [deep]\n    return deep",
    ),
    ("its memory has no end", "def f(x): return bytearray(10**11)"),
    (
        "it is a fork bomb",
        "import os\ndef f(x):\n    os.setsid() if os.getpid() != os.getsid(0) else 0\n    while True:\n"
        "        try: os.fork()\n        except OSError: pass",
        "assert f(2) == 4",
        "hasty",
    ),
    (
        "it kills everybody",
        """
import fcntl, os, signal
def f(x):
    for pid in (os.getppid(), -1, 1, 0):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try: os.kill(pid, number)
            except OSError: pass
    for fd in range(3, 9):
        for command in (8, 15):
            try: fcntl.fcntl(fd, command, os.getppid())
            except OSError: pass
        try: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)
        except OSError: pass
""",
    ),
]
FORGERIES = [
    Forgery(
        name,
        dedent(code),
        dedent(more[0]) if more else Forgery._field_defaults["test"],
        len(more) > 1,
    )
    for name, code, *more in _CASES
]
