"""The two processes inside the sandbox. Each is started by `run.py` with its role and its limits."""

import builtins
import io
import json
import os
import sys
import types
from contextlib import suppress
from typing import Any

from . import closed
from .remote import ALONE, OPERATIONS, Remote
from .wire import Wire

SHORT = {"np": "numpy", "pd": "pandas"}
MODULES = sys.stdlib_module_names | {"np", "numpy", "pd", "pandas", "pytest"}


def main() -> None:
    """Close ourselves off, then be the answer (the wire is descriptor 0) or the tests (descriptor 1 leads to Assay)."""
    limits = json.loads(sys.argv[1])
    sys.path[:] = [*sys.path[1:], *limits["packages"]]
    builtins.exit = builtins.quit = sys.exit  # the module `site`, which is not imported, has them
    channel, verdicts = os.dup(0), os.dup(1)
    closed.close(limits)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if limits["role"] == "answer":
        os.close(verdicts)
        answer(both_ways(channel))
    else:
        tests(both_ways(channel), both_ways(verdicts))


def both_ways(fd: int) -> Any:
    raw = os.fdopen(fd, "r+b", buffering=0)
    return io.BufferedRWPair(raw, raw, 1 << 16)


def answer(channel: Any) -> None:
    """Run the code, then do what the tests ask for."""
    module = types.ModuleType("answer")
    sys.modules["answer"] = module
    names = vars(module)

    def operation(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "run":
            exec(compile(arguments[0], "answer.py", "exec"), names)
            return None
        return names[arguments[0]] if name == "name" else OPERATIONS[name](*arguments, **named)

    output = io.BytesIO()
    sys.stdout = io.TextIOWrapper(output, "utf-8", errors="backslashreplace", write_through=True)

    def printed() -> str:
        text = output.getvalue()[:1_000_000].decode(errors="replace")
        output.seek(0)
        output.truncate()
        return text

    wire = Wire(channel, operation)
    wire.printed = printed
    wire.send(["ok", None, [], ""])
    wire.serve()


class TestNames(dict[str, Any]):
    """The names of the tests: their own, then those of the answer. Built-ins and modules keep their meaning, unless
    the tests show that they mean the answer's (`shadowed`)."""

    def __init__(self, wire: Wire, shadowed: set[str]) -> None:
        super().__init__(__name__="tests")
        self.wire, self.shadowed = wire, shadowed
        self.objects: dict[
            str, Remote
        ] = {}  # functions and classes of the answer are asked for only once

    def __missing__(self, name: str) -> Any:
        if name in self.objects:
            return self.objects[name]
        if name in self.shadowed or not (name.startswith("__") or hasattr(builtins, name)):
            with suppress(Exception):
                value = self.wire.ask("name", name)
                if isinstance(value, Remote) and (name not in MODULES or name in self.shadowed):
                    self.objects[name] = value
                module = (
                    getattr(value, "__name__", None)
                    if isinstance(value, types.ModuleType)
                    else None
                )
                if name not in MODULES or name in self.shadowed or module == SHORT.get(name, name):
                    return value
        raise KeyError(name)


def shadowed(tests: list[str], entry_point: str | None) -> set[str]:
    """The entry point. Without one: the name that every test uses, if they use no other that Python does not have.
    A module's name is the answer's where it is not used as a module."""
    import ast

    used: list[set[str]] = []
    bound: set[str] = set()
    bases: set[str] = set()
    for test in tests:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            nodes = list(ast.walk(ast.parse(test)))
            words = [node for node in nodes if isinstance(node, ast.Name)]
            used.append({word.id for word in words if isinstance(word.ctx, ast.Load)})
            bound |= {word.id for word in words if not isinstance(word.ctx, ast.Load)}
            bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            bound |= {
                node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            }
            bound |= {
                node.asname or node.name.split(".")[0]
                for node in nodes
                if isinstance(node, ast.alias)
            }
            bases |= {
                node.value.id
                for node in nodes
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            }
    names = set[str]().union(*used)
    python = {name for name in names if hasattr(builtins, name)}
    called = names & MODULES - bases
    if entry_point:
        return called | {entry_point}
    shared = python.intersection(*used) - bound
    others = names - bound - python - (bases & MODULES)
    return called | (shared if len(shared) == 1 and not others else set())


def tests(channel: Any, verdicts: Any) -> None:
    """Run every test against the answer's process, and report each."""
    job = json.loads(verdicts.readline())

    def say(**line: Any) -> None:
        verdicts.write(json.dumps(line).encode() + b"\n")
        verdicts.flush()

    def operation(name: str, target: Any, *arguments: Any, **named: Any) -> Any:
        if id(target) in wire.values.objects.numbers and may(name, target, *arguments[:1]):
            return OPERATIONS[name](target, *arguments, **named)
        raise TypeError(f"the code cannot do this to a {type(target).__name__} of a test: {name}")

    wire = Wire(channel, operation)
    wire.receive()
    say(ready=True)
    try:
        wire.ask("run", job["code"])
    except BaseException as error:
        say(problem="the code: " + short(error), lost=wire.lost, done=not wire.lost)
        return
    names = TestNames(wire, shadowed(job["tests"], job["entry_point"]))
    for number, test in enumerate(job["tests"]):
        problem = problem_of(test, f"test_{number + 1}.py", names, job["entry_point"])
        if wire.lost:
            say(lost=True)
            return
        say(**({"problem": f"test {number + 1}: {problem}"} if problem else {"passed": number}))
    say(done=True)


def may(operation: str, target: Any, name: Any = "_") -> bool:
    """Return whether the answer's code may do this to what a test has handed to it: call a
    function, continue an iterator, use an object of a class of the tests by its public names.
    Nothing leads from there to the tests."""
    if operation in ("getattr", "setattr"):
        return type(target).__module__ in ("tests", "_io", "unittest.mock") and not str(
            name
        ).startswith("_")
    if operation in ("iter", "next"):
        return hasattr(target, "__iter__")
    return operation == "call" or (operation in ALONE and type(target).__module__ == "tests")


def problem_of(test: str, file: str, names: TestNames, entry_point: str | None) -> str | None:
    try:
        names.pop("check", None)
        exec(compile(test, file, "exec"), names)
        if entry_point and "check" in names:
            names["check"](names.wire.ask("name", entry_point))
    except BaseException as error:
        return short(error)
    return None


def short(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:
        return type(error).__name__
