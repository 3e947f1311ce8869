"""How far one demo sample walks: the files and functions of `assay` that are entered while it is run, scored,
aggregated and shown on the leaderboard.

    python -m benchmarks.walk [--list]

Counted by `sys.setprofile` in all threads, from `assay.run` of a config to its result, and from there to the page.
What runs when a module is imported does not count: module-level code, class bodies, and functions that these call.
PYTHONPATH=OTHER/src measures another tree. The bounds are those of `house.toml`, and only fall.
"""

import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tools.house import BOUNDS, File

CONFIG: dict[str, Any] = {
    "name": "walk",
    "dataset": "items.jsonl",
    "models": [{"name": "small", "type": "demo", "skill": 0.9}],
    "prompt_template": "{{question}}\nAnswer with only the result.",
    "evaluation_methods": ["exact_match"],
    "metrics": [{"name": "pass@1", "facets": ["metadata.model_id"]}],
}
PAGES: list[tuple[str, dict[str, list[str]]]] = [  # what the leaderboard's view asks for
    ("leaderboard", {}),
    ("experiments", {}),
    ("standing", {}),
    ("chart", {"name": ["intervals"]}),
    ("chart", {"name": ["scatter"]}),
]
ITEM = '{"id": "one", "data": {"question": "What is 9 + 11?"}, "ground_truth": "20"}\n'


class Walk:
    """Files and functions that were entered."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.functions: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if (
            event != "call"
            or not code.co_filename.startswith(self.package)
            or self._is_imported(frame)
        ):
            return
        # a comprehension or a lambda is part of its function
        name = code.co_qualname.partition(".<")[0]
        if not name.startswith("<"):
            self.functions.add((code.co_filename.removeprefix(self.package), name))

    def _is_imported(self, frame: FrameType | None) -> bool:
        """Whether the frame is a module's own, or was entered by one."""
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(
                self.package
            ):
                return True
            frame = frame.f_back
        return False

    @property
    def files(self) -> list[str]:
        return sorted({file for file, _ in self.functions})


def walks() -> tuple[Walk, Walk]:
    """One sample in a folder of its own: until its metrics, and from there to the leaderboard."""
    import assay
    from assay.viewer.experiments import experiments_below
    from assay.viewer.pages import page

    package = str(Path(assay.__file__).parent) + "/"
    run, shown = Walk(package), Walk(package)
    with TemporaryDirectory() as folder:
        (Path(folder) / "items.jsonl").write_text(ITEM)
        config = {**CONFIG, "dataset": f"{folder}/items.jsonl", "output_dir": f"{folder}/out"}
        with walking(run):
            result = assay.run(config)
        assert [row["total_sample_count"] for row in result.metrics] == [1]
        with walking(shown):
            experiments = experiments_below([f"{folder}/out"])
            pages = [page(experiments, name, query) for name, query in PAGES]
        assert [row["samples"] for row in pages[0]["rows"]] == [1]
    return run, shown


@contextmanager
def walking(walk: Walk) -> Iterator[None]:
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main(words: list[str]) -> int:
    run, shown = walks()
    functions = run.functions | shown.functions
    files = {file for file, _ in functions}
    if "--list" in words:
        for file in sorted(files):
            print(
                f"{file}: {', '.join(sorted(name for place, name in functions if place == file))}"
            )
    rooms = [File(Path(file), (Path(run.package) / file).read_text()) for file in files]
    measured = {"files": len(files), "tokens": sum(len(room.tokens) for room in rooms)}
    bounds = tomllib.loads(BOUNDS.read_text())["walk"]
    for what, n in measured.items():
        print(f"{n:,} {what}, at most {bounds[what]:,}")
    print(f"{len(functions)} functions; {len(run.files)} files without the leaderboard")
    return 0 if all(n <= bounds[what] for what, n in measured.items()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
