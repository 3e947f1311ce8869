"""`assay list benchmarks`, `assay show NAME` of a benchmark, and `assay benchmarks pull`: what the collections have."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import assay.registry as registry
from assay.sdk import JsonObject, UserError, install_command

Progress = Callable[[int, int], None]


class BenchmarkEntry(NamedTuple):
    """A line of the list. `kind`: task, group or tag; `asks`: how a task asks; `unsupported`: why it cannot run."""

    name: str
    kind: str
    asks: str
    shots: int | None
    data: str
    unsupported: str


class BenchmarkShown(NamedTuple):
    """A benchmark as a person wants to know it before running it."""

    name: str
    facts: dict[str, str]
    prompt: str

    def to_dict(self) -> JsonObject:
        return self._asdict()


def list_benchmarks(
    pattern: str = "",
    *,
    unsupported: bool = False,
    include_path: str = "",
    progress: Progress | None = None,
) -> list[BenchmarkEntry]:
    """The benchmarks whose name has the pattern (`*`, `?`) or contains the text; `unsupported`: only those, and files
    that cannot be read, with the reason."""
    entries = [
        BenchmarkEntry(*row)
        for row in collection().listing(pattern, unsupported, include_path, progress)
    ]
    if not entries and not unsupported:
        what = (
            f"no benchmark has {pattern!r} in its name"
            if pattern
            else "there are no benchmarks here"
        )
        raise UserError(
            what, fix=f"{install_command('benchmarks')}, or name a folder with --include-path"
        )
    return entries


def show_benchmark(
    name: str, include_path: str = "", progress: Progress | None = None
) -> BenchmarkShown | None:
    """None where no collection has it."""
    shown = collection().description(name, include_path, progress)
    return None if shown is None else BenchmarkShown(name, *shown)


def pull_benchmarks(
    names: Sequence[str],
    folder: str,
    *,
    include_path: str = "",
    progress: Callable[[Any], None] | None = None,
) -> list[Any]:
    """Bring the data of benchmarks into a folder that `ASSAY_DATA` can name on another machine."""
    return collection().pull(names, folder, include_path, progress)


def collection() -> Any:
    return registry.benchmark.get(registry.benchmark.names()[0])()
