"""Eight times the results cost a few bytes each, never their text: measured in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

from tests.formats.promptfoo.folder import log

CODE = """
import resource, sys
from pathlib import Path
from assay.formats.promptfoo.reader import promptfoo
(foreign,) = promptfoo(Path(sys.argv[1]))
print(sum(1 for _ in foreign.cases()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def written(path: Path, count: int) -> Path:
    """A log with its tests in the config, too, as promptfoo writes it."""
    content = log("twelve.json")
    row, results = content["results"]["results"][0], content["results"]
    with path.open("w") as file:
        prompts = json.dumps(results["prompts"])
        file.write(f'{{"evalId": "x", "results": {{"version": 3, "prompts": {prompts}, "results": [')
        for number in range(count):
            row["testCase"]["vars"]["number"] = number
            file.write(("," if number else "") + json.dumps(row))
        file.write(f'], "stats": {json.dumps(results["stats"])}}}, "config": {{"tests": [')
        file.write(",".join(json.dumps(row["testCase"]) for _ in range(count)))
        file.write(']}, "runtimeOptions": {"repeat": 1}}')
    return path


def test_memory_does_not_grow_with_results(tmp_path: Path) -> None:
    few, many = 1_000, 8_000
    peaks: list[int] = []
    for count in (few, many):
        command = [sys.executable, "-c", CODE, str(written(tmp_path / f"{count}.json", count))]
        read, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(read) == count
        peaks.append(int(peak) * 1024)
    grown = (peaks[1] - peaks[0]) / (many - few)
    size = (tmp_path / "8000.json").stat().st_size / many
    assert grown < 250, f"{grown:.0f} bytes a result, which has {size:.0f}"
