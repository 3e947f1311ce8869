"""`make run-gemma2b-full`: the three files, from the embedded model or from a server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from assay.server import Options, running
from tests.formats.ragicamp.evaluating import written

ROOT = Path(__file__).parents[3]


def run(folder: Path, **environ: str) -> None:
    """The target's own commands, in another folder."""
    bin = str(Path(sys.executable).parent)
    shutil.copytree(ROOT / "examples/ragicamp", folder / "examples/ragicamp", dirs_exist_ok=True)
    around = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GEMMA_")},
        **environ,
    }
    asked = subprocess.run(
        ["make", "--no-print-directory", "-n", "-C", str(ROOT), f"BIN={bin}", "run-gemma2b-full"],
        env=around, capture_output=True, text=True, check=True,
    )  # fmt: skip
    commands = [line for line in asked.stdout.splitlines() if line.startswith(f"{bin}/assay ")]
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command.split(), cwd=folder, env=around, check=True, capture_output=True)


def test_three_files_from_the_embedded_model_then_from_a_server(tmp_path: Path) -> None:
    run(tmp_path)
    outputs = tmp_path / "outputs"
    assert sorted(path.name for path in outputs.glob("*.json")) == [
        "gemma_2b_baseline_predictions.json",
        "gemma_2b_baseline_summary.json",
        "natural_questions_questions.json",
    ]
    summary = written(outputs, "gemma_2b_baseline_summary.json")
    assert (summary["agent_name"], summary["dataset_name"]) == (
        "gemma_2b_baseline",
        "natural_questions",
    )
    assert (
        summary["num_examples"]
        == written(outputs, "natural_questions_questions.json")["num_questions"]
        == 20
    )
    assert 0 < summary["overall_metrics"]["exact_match"] < 1
    with running(Options(skill=1.0)) as url:
        run(tmp_path, GEMMA_ENDPOINT=url, GEMMA_API_KEY="any")
    better = written(outputs, "gemma_2b_baseline_summary.json")
    assert better["num_failed"] == 0
    assert better["overall_metrics"]["exact_match"] == 0.7, (
        "the mock server knows 14 of the 20 answers"
    )
