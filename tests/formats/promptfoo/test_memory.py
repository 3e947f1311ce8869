"""Eight times the results cost a few bytes each, never their text: measured in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.formats.promptfoo.folder import log

CODE = """
import re, sys
from pathlib import Path
from assay.formats.promptfoo.reader import promptfoo
(foreign,) = promptfoo(Path(sys.argv[1]))
count = sum(1 for _ in foreign.cases())
print(count, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def written(path: Path, count: int) -> Path:
    """A log with its tests in the config, too, as promptfoo writes it."""
    content = log("twelve.json")
    row, results = content["results"]["results"][0], content["results"]
    with path.open("w") as file:
        prompts = json.dumps(results["prompts"])
        file.write(
            f'{{"evalId": "x", "results": {{"version": 3, "prompts": {prompts}, "results": ['
        )
        for number in range(count):
            row["testCase"]["vars"]["number"] = number
            file.write(("," if number else "") + json.dumps(row))
        file.write(f'], "stats": {json.dumps(results["stats"])}}}, "config": {{"tests": [')
        for number in range(count):
            file.write(("," if number else "") + json.dumps(row["testCase"]))
        file.write(']}, "runtimeOptions": {"repeat": 1}}')
    return path


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="what a parent used counts for its children elsewhere",
)
def test_memory_does_not_grow_with_results(tmp_path: Path) -> None:
    few, many = 1_000, 12_000
    peaks: list[int] = []
    for count in (few, many):
        command = [sys.executable, "-c", CODE, str(written(tmp_path / f"{count}.json", count))]
        read, peak = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(read) == count
        peaks.append(int(peak) * 1024)
    grown = (peaks[1] - peaks[0]) / (many - few)
    size = (tmp_path / "12000.json").stat().st_size / many
    assert grown < 250, f"{grown:.0f} bytes a result, which has {size:.0f}"
