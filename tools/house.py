"""How large the house is, counted so that folding lines cannot change it, and whether it keeps to `house.toml`.

    python -m tools.house [SRC] [--rooms] [--json] [--check] [--lower]

A token is a Python token without comments, docstrings and layout. `--check` compares the tree with the bounds of
`house.toml` and the functions of `tools/house_functions.txt`; `--lower` writes the smaller numbers of this tree into
both, and never a larger one.
"""

import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BOUNDS, FUNCTIONS = ROOT / "house.toml", ROOT / "tools/house_functions.txt"
COLUMNS = 100
LARGEST_ROOM = 13  # files: about a dozen
PLUGINS = ("datasets", "metrics", "models", "prompts", "readers", "scorers", "tasks", "writers")
MOST = {"tokens": 250, "complexity": 12, "comprehensions": 1, "conditionals": 1, "parameters": 4}
LONG = 8  # a function of fewer lines has no size: what is short cannot be long
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
# folders of rooms; any other folder is one room
DEEP = {"engine", "formats", "analysis", "plugins"}
CORE = ("assay/engine", "assay/experiment", "assay/store")  # and the files at the top
OF_CORE = "tokens of the core"
HOMES = {  # a mechanism, and what gives it away
    "columns and joins of rows": r"np\.searchsorted|array\(\"[QLIBd]\"",
    "tolerant decoding of rows": r"decode_json",
    "child processes": r"subprocess\.|os\.fork\(|multiprocessing",
    "import hooks": r"meta_path|__import__\(",
    "replacing files": r"os\.replace\(|\.replace\(target|os\.rename\(",
    "content hashes": r"blake2b\(|sha256\(|xxh3_|xxh64|xxh128",
    "tables in the terminal": r"rich\.table|from rich import.*table",
}
PARTICIPLE = re.compile(
    r"_*(?:[a-z]+ed|kept|told|said|sent|read|made|given|known|shown|found|left|drawn|written|chosen|held|bound|built"
    r"|put|set)"
)
NOUN_CLAUSE = re.compile(r"(?:What|Whether|Where|Which|How|Those|Whose)\b")
BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.With,
    ast.AsyncWith,
    ast.IfExp,
    ast.comprehension,
    ast.Assert,
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Functions = dict[str, dict[str, int]]  # by place and name, how far each rule is broken


def docstrings(nodes: list[ast.AST]) -> list[ast.Constant]:
    """Return the strings that are statements."""
    values = (node.value for node in nodes if isinstance(node, ast.Expr))
    constants = (value for value in values if isinstance(value, ast.Constant))
    return [constant for constant in constants if isinstance(constant.value, str)]


def code_tokens(text: str, nodes: list[ast.AST]) -> list[tokenize.TokenInfo]:
    """Return the tokens of code. An f-string is one, also where Python 3.12 makes several of it."""
    documentation = {(node.lineno, node.col_offset) for node in docstrings(nodes)}
    begin, end = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)
    found: list[tokenize.TokenInfo] = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if begin is not None and token.type == begin:
            depth += 1
            if depth == 1:
                found.append(token)
        elif end is not None and token.type == end:
            depth -= 1
        elif depth or token.type in LAYOUT:
            continue
        elif token.type != tokenize.STRING or token.start not in documentation:
            found.append(token)
    return found


def complexity(function: Function) -> int:
    branches = 1
    for node in ast.walk(function):
        branches += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            branches += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            branches += len(node.ifs)
    return branches


def nesting(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    """Return how many nodes of these kinds are inside one another."""
    inside = max((nesting(child, kinds) for child in ast.iter_child_nodes(node)), default=0)
    return inside + isinstance(node, kinds)


def is_core(room: str) -> bool:
    return room == "assay" or room.startswith(CORE)


def room_of(place: Path) -> str:
    """Return the room of a file: a folder of the package, or a folder of one that has rooms of its own."""
    folders = place.parts[:-1]
    deep = folders[0] != "assay" or (len(folders) > 1 and folders[1] in DEEP)
    return "/".join(folders[: 3 if deep else 2])


@dataclass
class File:
    """One file of code."""

    place: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return code_tokens(self.text, self.nodes)

    @cached_property
    def strings(self) -> int:
        """Characters in literals; what is between the braces of an f-string is code."""
        documentation = set(map(id, docstrings(self.nodes)))
        constants = (node for node in self.nodes if isinstance(node, ast.Constant))
        return sum(
            len(c.value)
            for c in constants
            if isinstance(c.value, str) and id(c) not in documentation
        )

    @cached_property
    def statements(self) -> int:
        nodes = sum(isinstance(node, ast.stmt) for node in self.nodes)
        return nodes - len(docstrings(self.nodes))

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Each function with its name in the file."""
        return list(self._functions(self.tree, ""))

    def _functions(self, node: ast.AST, outer: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{outer}.{child.name}".lstrip(".")
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield name, child
            yield from self._functions(child, name)

    @cached_property
    def token_lines(self) -> list[int]:
        return [token.start[0] for token in self.tokens]

    def size(self, function: Function) -> int:
        last = function.end_lineno or function.lineno
        if last - function.lineno <= LONG:
            return 0
        return bisect_right(self.token_lines, last) - bisect_left(self.token_lines, function.lineno)

    def faults(self, function: Function, calls: Counter[str]) -> dict[str, int]:
        """Return what of a function is more than a function may have."""
        arguments = function.args
        parameters = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
        parameters -= bool(arguments.args and arguments.args[0].arg in {"self", "cls"})
        private = function.name.startswith("_") and not function.name.endswith("__")
        measured = {
            "tokens": self.size(function),
            "complexity": complexity(function),
            "comprehensions": nesting(function, COMPREHENSIONS),
            "conditionals": nesting(function, (ast.IfExp,)),
            "parameters": parameters if private and calls[function.name] == 1 else 0,
        }
        return {rule: n for rule, n in measured.items() if n > MOST[rule]}

    @cached_property
    def calls(self) -> Counter[str]:
        """How often each name is used."""
        used: Counter[str] = Counter()
        for node in self.nodes:
            if isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
        return used


@dataclass
class House:
    """Everything that is counted below a folder of packages."""

    source: Path
    files: list[File] = field(init=False)

    def __post_init__(self) -> None:
        paths = sorted(self.source.rglob("*.py"))
        self.files = [
            File(path.relative_to(self.source), path.read_text(encoding="utf-8")) for path in paths
        ]

    @cached_property
    def rooms(self) -> dict[str, int]:
        """Tokens by room."""
        rooms: Counter[str] = Counter()
        for file in self.files:
            rooms[room_of(file.place)] += len(file.tokens)
        return dict(sorted(rooms.items()))

    @cached_property
    def tokens(self) -> int:
        return sum(self.rooms.values())

    @cached_property
    def core(self) -> int:
        """Tokens of the engine, the experiment, the store and the files at the top."""
        return sum(n for room, n in self.rooms.items() if is_core(room))

    @cached_property
    def functions(self) -> Functions:
        """The functions that are more than a function may be, by place and name."""
        faulty: Functions = {}
        for file in self.files:
            for name, function in file.functions:
                faults = file.faults(function, file.calls)
                for rule, n in faults.items():
                    place = faulty.setdefault(f"{file.place.as_posix()} {name}", {})
                    # two functions of one name, by a condition
                    place[rule] = max(n, place.get(rule, 0))
        return faulty

    @cached_property
    def homes(self) -> dict[str, list[str]]:
        """The files that have a mechanism, by mechanism."""
        return {
            what: [file.place.as_posix() for file in self.files if re.search(sign, file.text)]
            for what, sign in HOMES.items()
        }

    @cached_property
    def class_names(self) -> dict[str, list[str]]:
        """Where each class name is defined."""
        places: dict[str, list[str]] = defaultdict(list)
        for file in self.files:
            for node in file.nodes:
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(file.place.as_posix())
        return dict(places)

    @cached_property
    def lone_modules(self) -> list[str]:
        """Modules that one neighbour alone imports."""
        modules = {
            ".".join(file.place.with_suffix("").parts).removesuffix(".__init__"): file.place
            for file in self.files
        }
        importers: dict[Path, set[Path]] = defaultdict(set)
        for file in self.files:
            for node in file.nodes:
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    for name in [
                        node.module,
                        *(f"{node.module}.{alias.name}" for alias in node.names),
                    ]:
                        if modules.get(name, file.place) != file.place:
                            importers[modules[name]].add(file.place)
        return [
            module.as_posix()
            for module, by in importers.items()
            if len(by) == 1 and next(iter(by)).parent == module.parent
        ]

    @cached_property
    def crowded_folders(self) -> list[str]:
        """Folders with too many files; one of plug-ins may have any number."""
        plugins = {f"assay/{name}" for name in PLUGINS}
        files = Counter(f.place.parent.as_posix() for f in self.files if f.place.stem != "__init__")
        return [room for room, n in files.items() if n > LARGEST_ROOM and room not in plugins]

    @cached_property
    def counts(self) -> dict[str, int | float]:
        """What may only become less."""
        names = [function.name for file in self.files for _, function in file.functions]
        texts = [
            ast.get_docstring(function) or ""
            for file in self.files
            for _, function in file.functions
        ]
        public = {
            name: places for name, places in self.class_names.items() if not name.startswith("_")
        }
        folders = [
            path for path in (self.source / "assay").iterdir() if (path / "__init__.py").is_file()
        ]
        statements = sum(file.statements for file in self.files)
        lines = [line for file in self.files for line in file.text.splitlines()]
        return {
            "tokens a statement": round(self.tokens / max(1, statements), 2),
            OF_CORE: self.core,
            "files": len(self.files),
            "folders at the top": len(folders),
            "folders with more than 13 files": len(self.crowded_folders),
            "functions over 250 tokens": sum(
                "tokens" in faults for faults in self.functions.values()
            ),
            "functions over complexity 12": sum(
                "complexity" in faults for faults in self.functions.values()
            ),
            "public class names defined more than once": sum(
                len(places) > 1 for places in public.values()
            ),
            "class names defined more than once": sum(
                len(places) > 1 for places in self.class_names.values()
            ),
            "files called rows.py": sum(file.place.name == "rows.py" for file in self.files),
            "functions named by a bare participle": sum(
                bool(PARTICIPLE.fullmatch(name)) for name in names
            ),
            "docstrings that are noun clauses": sum(
                bool(NOUN_CLAUSE.match(text)) for text in texts
            ),
            "modules that one neighbour alone imports": len(self.lone_modules),
            f"lines over {COLUMNS} columns": sum(len(line) > COLUMNS for line in lines),
        }

    @cached_property
    def strings(self) -> int:
        return sum(file.strings for file in self.files)


@dataclass
class Bounds:
    """`house.toml`: what the house may have, and which issue granted it."""

    text: str

    @cached_property
    def values(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @cached_property
    def granted(self) -> Counter[str]:
        """Tokens beyond the base: what issues granted a room, what moved in or out."""
        granted: Counter[str] = Counter()
        for grant in self.values.get("grant", []):
            granted[grant["room"]] += grant["tokens"]
        for move in self.values.get("move", []):
            granted[move["from"]] -= move["tokens"]
            granted[move["to"]] += move["tokens"]
        return granted

    @cached_property
    def rooms(self) -> dict[str, int]:
        """Tokens that each room may have."""
        base: dict[str, int] = self.values["base"]
        return {room: base.get(room, 0) + self.granted[room] for room in {*base, *self.granted}}

    @cached_property
    def counts(self) -> dict[str, int | float]:
        """What may only become less, the core with what issues granted its rooms."""
        counts: dict[str, int | float] = self.values["counts"]
        return counts | {OF_CORE: counts[OF_CORE] + self.granted_core}

    @property
    def granted_core(self) -> int:
        """Tokens that issues granted, and moves brought, to rooms of the core."""
        return sum(n for room, n in self.granted.items() if is_core(room))

    def lowered(self, measured: dict[str, dict[str, int | float]]) -> str:
        """Return the text with each smaller number of its tables, and without rooms that went."""
        lines: list[str] = []
        table: dict[str, int | float] = {}
        for line in self.text.splitlines():
            if line.startswith("["):
                table = measured.get(line.strip("[]"), {})
            name, is_value, bound = line.partition(" = ")
            name = name.strip('"')
            if table and is_value and name not in table:
                continue
            if table and is_value and table[name] < float(bound):
                line = line.replace(bound, str(table[name]))
            lines.append(line)
        return "\n".join(lines) + "\n"


def parse_functions(text: str) -> Functions:
    """Return the functions that broke a rule before there was one, with how far."""
    known: Functions = {}
    for line in text.splitlines():
        place, name, *faults = line.split()
        pairs = (fault.split("=") for fault in faults)
        known[f"{place} {name}"] = {rule: int(n) for rule, n in pairs}
    return known


def write_functions(functions: Functions) -> str:
    lines = (
        " ".join([place, *(f"{rule}={n}" for rule, n in faults.items())])
        for place, faults in sorted(functions.items())
    )
    return "".join(f"{line}\n" for line in lines)


def problems(house: House, bounds: Bounds, known: Functions) -> Iterator[str]:
    """Yield what breaks a bound, and what no longer needs one."""
    yield from _large_rooms(house, bounds)
    for what, n in house.counts.items():
        if n > bounds.counts[what]:
            yield f"{what}: {n:,}, at most {bounds.counts[what]:,}"
    yield from _further_homes(house, bounds)
    yield from _bad_functions(house.functions, known)


def _large_rooms(house: House, bounds: Bounds) -> Iterator[str]:
    most = sum(bounds.rooms.values())
    if house.tokens > most:
        yield f"{house.tokens:,} tokens, at most {most:,}"
    for room, n in house.rooms.items():
        most = bounds.rooms.get(room, 0)
        if n > most:
            yield f"{room}: {n:,} tokens, at most {most:,}"
    most = int(bounds.values["strings"]["characters"] * 1.05)
    if house.strings > most:
        yield f"{house.strings:,} characters in strings, at most {most:,}"


def _further_homes(house: House, bounds: Bounds) -> Iterator[str]:
    for what, places in house.homes.items():
        most, exempt = bounds.values["homes"][what], bounds.values["exempt"].get(what, {})
        others = [place for place in places if place not in exempt]
        if len(others) > most:
            yield f"{what}: {len(others)} files, at most {most}: {', '.join(others)}"
        for place in sorted(exempt.keys() - set(places)):
            yield f"{what}: {place} needs no exemption"


def _bad_functions(functions: Functions, known: Functions) -> Iterator[str]:
    for place, faults in functions.items():
        for rule, n in faults.items():
            most = known.get(place, {}).get(rule, MOST[rule])
            if n > most:
                yield f"{place}: {rule} {n}, at most {most}"
    for place in sorted(known.keys() - functions.keys()):
        yield f"{place}: breaks no rule any more: `make house-lower` takes it off the list"


def lower(house: House) -> None:
    """Write the numbers that are smaller in this tree into `house.toml` and the list of functions."""
    bounds, known = Bounds(BOUNDS.read_text()), parse_functions(FUNCTIONS.read_text())
    homes = {
        what: len(set(places) - bounds.values["exempt"].get(what, {}).keys())
        for what, places in house.homes.items()
    }
    measured = {
        "base": {room: n - bounds.granted[room] for room, n in house.rooms.items()},
        "counts": house.counts | {OF_CORE: house.core - bounds.granted_core},
        "homes": homes,
        "strings": {"characters": house.strings},
    }
    BOUNDS.write_text(bounds.lowered(measured))
    smaller: Functions = {}
    for place, faults in house.functions.items():
        if place in known:
            listed = known[place]
            smaller[place] = {r: min(n, listed[r]) for r, n in faults.items() if r in listed}
    FUNCTIONS.write_text(write_functions(smaller))


def other_files() -> dict[str, int]:
    """Return the lines of what is not Python: it is reported, and has no bound."""
    app, data = ROOT / "web/src", ROOT / "src/assay"
    kinds = {
        "TypeScript and CSS": [
            path for path in app.rglob("*") if path.suffix in {".ts", ".tsx", ".css"}
        ],
        "data files": [
            path for path in data.rglob("*") if path.suffix in {".json", ".txt", ".md", ".jsonl"}
        ],
    }
    return {
        kind: sum(len(path.read_bytes().splitlines()) for path in paths)
        for kind, paths in kinds.items()
    }


def show(house: House, rooms: bool) -> None:
    print(f"{house.tokens:,} tokens, {house.strings:,} characters in strings")
    for what, n in (house.counts | other_files()).items():
        print(f"  {n:>10,}  {what}")
    for what, places in house.homes.items():
        print(f"  {len(places):>10,}  homes of {what}")
    if rooms:
        for room, n in house.rooms.items():
            print(f"{n:>10,}  {room}")


def main(words: list[str]) -> int:
    paths = [word for word in words if not word.startswith("-")]
    house = House(Path(paths[0]) if paths else ROOT / "src")
    if "--check" in words:
        bounds, known = Bounds(BOUNDS.read_text()), parse_functions(FUNCTIONS.read_text())
        found = list(problems(house, bounds, known))
        print("\n".join(found) or f"the house keeps to its plan: {house.tokens:,} tokens")
        return min(len(found), 1)
    if "--lower" in words:
        lower(house)
    elif "--json" in words:
        print(json.dumps({"tokens": house.tokens, "rooms": house.rooms, **house.counts}))
    else:
        show(house, rooms="--rooms" in words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
