"""How far one demo sample walks: the files and functions of `assay` that are entered while it is run, scored and
aggregated.

    python -m benchmarks.walk [--list]

Counted by `sys.setprofile` in all threads, from `assay.run` of a config to its result. What runs when a module is
imported does not count: module-level code, class bodies, and functions that these call. PYTHONPATH=OTHER/src measures
another tree.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

BOUND = 60  # files
CONFIG: dict[str, Any] = {
    "name": "walk",
    "dataset": "items.jsonl",
    "models": [{"name": "small", "type": "demo", "skill": 0.9}],
    "prompt_template": "{{question}}\nAnswer with only the result.",
    "evaluation_methods": ["exact_match"],
    "metrics": [{"name": "pass@1", "facets": ["metadata.model_id"]}],
}
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
        name = code.co_qualname.partition(".<")[
            0
        ]  # a comprehension or a lambda is part of its function
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
    """One sample in a folder of its own: all of it, and what is left without reading the config."""
    import assay

    package = str(Path(assay.__file__).parent) + "/"
    whole, data = Walk(package), Walk(package)
    with TemporaryDirectory() as folder:
        (Path(folder) / "items.jsonl").write_text(ITEM)
        config = {**CONFIG, "dataset": f"{folder}/items.jsonl", "output_dir": f"{folder}/out"}
        with walking(whole):
            result = assay.run(config)
        assert [row["total_sample_count"] for row in result.metrics] == [1]
        experiment = assay.experiment({**config, "output_dir": f"{folder}/again"})
        with walking(data):
            result = asyncio.run(experiment.run())
        assert [row["total_sample_count"] for row in result.metrics] == [1]
    return whole, data


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
    walk, data = walks()
    if "--list" in words:
        for file in walk.files:
            print(
                f"{file}: {', '.join(sorted(name for place, name in walk.functions if place == file))}"
            )
    print(
        f"{len(walk.files)} files, {len(walk.functions)} functions entered; at most {BOUND} files"
    )
    print(f"without reading the config: {len(data.files)} files, {len(data.functions)} functions")
    return 0 if len(walk.files) <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
