"""`make mutants MINUTES=30`: break the engine and the statistics in small ways, and see whether a test notices.

    python -m tools.mutants [--minutes 30] [--seed 0] [--only src/assay/engine/aggregate …] [--list]

Mutants are drawn at random: a comparison, a boolean operator, an arithmetic operator, a number, a condition or a return
value is exchanged for its neighbour. Each is written into a copy of `src`, never into the tree, and the tests of its
room run against it until one fails. What no test notices is printed with its place and its diff.

Not mutmut (3.8): it makes all mutants (three minutes for `stats/` alone) and runs all tests before the first result,
has no time limit and no sample, and puts trampolines in place of functions, whose signatures and sources our registry
reads. Not cosmic-ray (8.7): it edits the tree in place, with one test command for all files.
"""

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TARGETS = ("src/assay/engine", "src/assay/stats")
ALIKE = {  # further tests of a room, by folder
    "engine": ("engine/cluster",),
    "engine/aggregate": ("metrics",),
    "engine/cluster/engines": ("engine/cluster",),
    "engine/experiment/imports": ("engine/experiment",),
    "engine/experiment/merging": ("engine/experiment",),
    "engine/cluster/shares": ("engine/cluster",),
    "stats": ("metrics",),
}
EXCHANGED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


class Mutant(NamedTuple):
    path: Path
    line: int
    what: str
    text: str

    def diff(self) -> str:
        lines = difflib.unified_diff(
            self.path.read_text().splitlines(),
            self.text.splitlines(),
            n=1,
            lineterm="",
            fromfile="",
            tofile="",
        )
        return "\n".join(list(lines)[2:])


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a file."""
    source = path.read_text()
    made: list[Mutant] = []
    for node in _expressions(ast.parse(source)):
        for what, changed in _changes(node):
            text = _replaced(source, node, changed)
            if text != source:
                made.append(Mutant(path, node.lineno, what, text))
    return made


def _expressions(node: ast.AST) -> Iterator[ast.expr | ast.Return]:
    """What is worth a mutant: no annotation, no text for people, nothing that only a type checker reads."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(
                child, (ast.JoinedStr, ast.Raise, ast.Assert)
            ):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, (ast.expr, ast.Return)):
                yield child
            yield from _expressions(child)
            if isinstance(child, (ast.If, ast.While, ast.IfExp)) and isinstance(
                child.test, (ast.Name, ast.Attribute, ast.Call)
            ):
                # marks a bare condition
                yield ast.copy_location(ast.UnaryOp(ast.UAdd(), child.test), child.test)


def _changes(node: ast.expr | ast.Return) -> Iterator[tuple[str, ast.AST]]:
    """What a node can be exchanged for, each with a word about it."""
    match node:
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            yield "condition", ast.UnaryOp(ast.Not(), operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "condition", operand
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                changed = copy.deepcopy(node)
                changed.ops[place] = EXCHANGED[type(op)]()  # type: ignore[call-overload]
                yield "comparison", changed
        case ast.BoolOp() | ast.BinOp() if type(node.op) in EXCHANGED:
            changed = copy.deepcopy(node)
            changed.op = EXCHANGED[type(node.op)]()  # type: ignore[assignment]
            yield "operator", changed
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)) | ast.Constant(value=float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Return(value=ast.expr()) if not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            yield "return", ast.Return(ast.Constant(None))
        case _:
            pass


def _replaced(source: str, node: ast.expr | ast.Return, changed: ast.AST) -> str:
    """The source with the node's text exchanged; all other lines keep their numbers unless the node has several."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    text = ast.unparse(ast.fix_missing_locations(changed))
    if not isinstance(node, (ast.Return, ast.Constant)):
        text = f"({text})"
    begin, end = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], begin + text.encode() + end, *lines[last + 1 :]]).decode()


def relevant_tests(path: Path, root: Path = ROOT) -> list[str]:
    """The tests of a file's room, and those with the file's own name, first, wherever they are."""
    room = path.relative_to(root / "src/assay").parent.as_posix()
    folders = [root / "tests" / folder for folder in (room, *ALIKE.get(room, ()))]
    near = {file for folder in folders if folder.is_dir() for file in folder.glob("test_*.py")}
    near |= set((root / "tests").rglob(f"test_{path.stem}.py"))
    files = sorted(near, key=lambda file: (path.stem not in file.stem, file))
    return [str(file.relative_to(root)) for file in files]


class Trial:
    """A copy of `src` in which one file at a time is exchanged, and the tests that run against it."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.root = root
        self.source = scratch / "src"
        shutil.copytree(root / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self.seconds: dict[tuple[str, ...], float] = {}

    def survives(self, mutant: Mutant) -> bool:
        """Whether no test of its room notices; one that takes too long has noticed."""
        tests = relevant_tests(mutant.path, self.root)
        if not tests:
            return True
        limit = 30 + 3 * self._usual_seconds(tests)
        copied = self.source / mutant.path.relative_to(self.root / "src")
        original = copied.read_text()
        copied.write_text(mutant.text)
        try:
            return self._passes(tests, limit)
        finally:
            copied.write_text(original)

    def _usual_seconds(self, tests: list[str]) -> float:
        key = tuple(sorted(tests))
        if key not in self.seconds:
            began = time.monotonic()
            if not self._passes(tests, None):
                raise SystemExit(f"these tests fail without any mutant: {' '.join(tests)}")
            self.seconds[key] = time.monotonic() - began
        return self.seconds[key]

    def _passes(self, tests: list[str], limit: float | None) -> bool:
        """The tests run against the copy, children of theirs too."""
        options = (
            "-x",
            "-q",
            "-m",
            "not heavy and not slow",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        )
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environ = {**os.environ, "PYTHONPATH": str(self.source), "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen(
            command,
            cwd=self.root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return child.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if child.poll() is None:
                os.killpg(child.pid, 9)
                child.wait()


def chosen(targets: Sequence[str], seed: int, root: Path = ROOT) -> list[Mutant]:
    """All mutants below these paths, in a random order."""
    files: list[Path] = []
    for target in targets:
        path = (root / target).resolve()
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    made = [mutant for file in files for mutant in mutants(file)]
    random.Random(seed).shuffle(made)
    return made


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0, help="which mutants come first")
    parser.add_argument("--only", nargs="+", metavar="PATH", default=TARGETS)
    parser.add_argument(
        "--list", action="store_true", help="count the mutants of each file, and try none"
    )
    options = parser.parse_args(words)
    drawn = chosen(options.only, options.seed, root)
    if options.list:
        for path in sorted({mutant.path for mutant in drawn}):
            print(f"{sum(mutant.path == path for mutant in drawn):>5}  {path.relative_to(root)}")
        return 0
    end = time.monotonic() + 60 * options.minutes
    tried, survivors = 0, 0
    with TemporaryDirectory() as scratch:
        trial = Trial(root, Path(scratch))
        for mutant in drawn:
            if time.monotonic() > end:
                break
            tried += 1
            if trial.survives(mutant):
                survivors += 1
                print(
                    f"\n{mutant.path.relative_to(root)}:{mutant.line}: {mutant.what}\n{mutant.diff()}",
                    flush=True,
                )
    print(f"\n{tried} of {len(drawn)} mutants tried, {survivors} survived (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
