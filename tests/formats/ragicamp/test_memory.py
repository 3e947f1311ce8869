"""Ten times the predictions cost a few bytes each, never their text: measured in processes of their own."""

import json
import subprocess
import sys
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

EXPORT = "from tests.formats.ragicamp.test_export import export; export(Path(sys.argv[1]), Path(sys.argv[2]))"
IMPORT = "from assay.engine.experiment.imports.results import import_results; import_results(sys.argv[1], sys.argv[2])"
PEAK = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
TEXT = "an answer of some length " * 8


def experiment(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    names = ("items.jsonl", "responses.jsonl", "evaluation_results.jsonl")
    with ExitStack() as stack:
        items, responses, evaluations = (
            stack.enter_context((folder / name).open("w")) for name in names
        )
        for n in range(count):
            items.write(
                json.dumps({"id": f"q{n}", "data": {"question": TEXT}, "ground_truth": ["x"]})
                + "\n"
            )
            row = {"item_id": f"q{n}", "model_name": "m", "key": sha256(b"%d" % n).hexdigest()[:32]}
            responses.write(json.dumps({**row, "response": TEXT}) + "\n")
            label = {
                "label": "f1",
                "score": n % 7 / 7,
                "outcome": "scored",
                "responses": [row["key"]],
            }
            evaluations.write(json.dumps({**row, **label}) + "\n")
    return folder


def peak(script: str, source: Path, target: Path) -> int:
    """Bytes."""
    code = f"import resource, sys\nfrom pathlib import Path\n{script}\n{PEAK}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(source), str(target)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * 1024


def test_memory_does_not_grow_with_predictions(tmp_path: Path) -> None:
    few, many = 2_000, 16_000
    peaks: dict[str, list[int]] = {"export": [], "import": []}
    for count in (few, many):
        source, files = experiment(tmp_path / f"{count}", count), tmp_path / f"files{count}"
        peaks["export"].append(peak(EXPORT, source, files))
        peaks["import"].append(peak(IMPORT, files, tmp_path / f"back{count}"))
    for step, (small, large) in peaks.items():
        grown = (large - small) / (many - few)
        assert grown < 250, (
            f"{step}: {grown:.0f} bytes a prediction, which has {2 * len(TEXT)} of text"
        )
