"""What the plan of the house promises: each check is a function from the package's folder to what breaks it."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

Check = Callable[[Path], list[str]]


def python_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")))


def rooms(package: Path) -> list[Path]:
    """The package and all packages below it."""
    return sorted(path.parent for path in package.rglob("__init__.py"))


def core_files(package: Path) -> list[Path]:
    """The root's files, store/ and engine/."""
    return sorted(
        [*package.glob("*.py"), *python_files(package / "store"), *python_files(package / "engine")]
    )


def formats(package: Path) -> list[str]:
    folders = (path.parent for path in (package / "formats").glob("*/__init__.py"))
    return sorted(path.name for path in folders)


# its rows and its form of functions are the core's own: they have a reader, a writer and a name there
OF_THE_CORE = {"een"}


def names_of_formats_outside(package: Path) -> list[str]:
    """Lines, and names of files, that have a format's name and stand outside formats/."""
    others = [name for name in formats(package) if name not in OF_THE_CORE]
    names = "|".join(name.replace("_", "[ _-]?") for name in others)
    if not names:
        return []
    named = re.compile(names, re.IGNORECASE)
    problems: list[str] = []
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if place.parts[0] == "formats" or not path.is_file() or path.suffix == ".pyc":
            continue
        if named.search(place.as_posix()):
            problems.append(f"{place}: its name")
        if path.suffix == ".md" or path.name == "llms.txt":  # prose may name what it is about
            continue
        lines = path.read_text().splitlines()
        problems += [
            f"{place}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if named.search(line)
        ]
    return problems


def formats_that_know_one_another(package: Path) -> list[str]:
    """Imports from one format of another; import-linter has a list of formats, this has all folders."""
    problems: list[str] = []
    for name in formats(package):
        for path in python_files(package / "formats" / name):
            for module in imported(path, package):
                other = module.removeprefix("assay.formats.").partition(".")[0]
                if (
                    module.startswith("assay.formats.")
                    and other != name
                    and other in formats(package)
                ):
                    problems.append(f"{path.relative_to(package)}: imports {module}")
    return problems


def commands_that_pass_the_door(package: Path) -> list[str]:
    """Imports of cli/ of something else than api, errors and cli/ itself."""
    allowed = ("assay.api", "assay.errors", "assay.cli")
    return [
        f"{path.relative_to(package)}: imports {module}"
        for path in python_files(package / "cli")
        for module in imported(path, package)
        if module.startswith("assay.")
        and not f"{module}.".startswith(tuple(f"{name}." for name in allowed))
    ]


def imported(path: Path, package: Path) -> list[str]:
    """The modules that a file imports, anywhere in it; `from assay import run` is a name of the api."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "assay":
            modules += [
                f"assay.{alias.name}" for alias in node.names if _is_module(package, alias.name)
            ]
        elif isinstance(node, ast.ImportFrom):
            modules.append(node.module or "")
    return modules


def _is_module(package: Path, name: str) -> bool:
    return (package / name).is_dir() or (package / f"{name}.py").is_file()


def class_names_used_twice(package: Path) -> list[str]:
    """Public names that stand for two classes of the core."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in core_files(package):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(package)))
    return [
        f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1
    ]


def names_that_say_nothing(package: Path) -> list[str]:
    """`utils`, `Base…`, `…Manager`, `…Helper`; formats have the names of what they stand for."""
    problems: list[str] = []
    for path in python_files(package):
        place = path.relative_to(package)
        if place.parts[0] == "formats":
            continue
        if re.fullmatch(r"_?(utils?|helpers?|common|misc)", path.stem):
            problems.append(str(place))
        names = [
            node.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef)
        ]
        problems += [
            f"{place}: {name}"
            for name in names
            if re.match(r"_?(Base|Abstract)[A-Z]|\w+(Manager|Helper)$", name)
        ]
    return problems


def rooms_without_a_sign(package: Path) -> list[str]:
    """Packages whose docstring has not two sentences, one of them about what is not there."""
    problems: list[str] = []
    for room in rooms(package):
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        sentences = [
            part
            for part in re.split(r"(?<=[.!?])\s+", text.strip())
            if part.endswith((".", "!", "?"))
        ]
        limits = re.search(
            r"\b(no|not|never|nothing|none|neither|nobody|only|alone|without)\b",
            text,
            re.IGNORECASE,
        )
        if len(sentences) < 2 or limits is None:
            problems.append(
                f"{(room / '__init__.py').relative_to(package)}: {text.partition(chr(10))[0]!r}"
            )
    return problems


CHECKS: list[Check] = [
    names_of_formats_outside,
    formats_that_know_one_another,
    commands_that_pass_the_door,
    class_names_used_twice,
    names_that_say_nothing,
    rooms_without_a_sign,
]
