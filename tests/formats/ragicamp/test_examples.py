"""The examples are what the code makes. `python -m tests.formats.ragicamp.test_examples` makes them again."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.formats.ragicamp import generations
from tests.formats.ragicamp.test_export import load

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/new_output_structure"


def converted(old: Path, new: Path) -> dict[str, str]:
    script = ROOT / "examples/convert_old_format.py"
    done = subprocess.run(
        [sys.executable, str(script), str(old), str(new)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text() for path in sorted(new.glob("*.json"))}


def made() -> dict[str, str]:
    with TemporaryDirectory() as temporary:
        generations.five_files(Path(temporary, "old"))
        return converted(Path(temporary, "old"), Path(temporary, "new"))


def test_the_example_is_what_the_converter_makes() -> None:
    found = made()
    assert list(found) == [
        "gemma_2b_baseline_predictions.json", "gemma_2b_baseline_summary.json", "natural_questions_questions.json",
    ]  # fmt: skip
    assert found == {path.name: path.read_text() for path in sorted(EXAMPLE.glob("*.json"))}


def test_its_numbers_are_the_specs() -> None:
    found = load(EXAMPLE / "gemma_2b_baseline_summary.json")
    assert found["overall_metrics"] == {
        "exact_match": pytest.approx(1 / 3),
        "f1": pytest.approx(0.6),
    }
    assert found["metric_statistics"]["exact_match"]["std"] == pytest.approx(0.4714045208)
    assert found["metric_statistics"]["f1"]["std"] == pytest.approx(0.4320493799)
    row = json.loads((EXAMPLE / "gemma_2b_baseline_predictions.json").read_text())["predictions"][0]
    assert list(row) == ["question_id", "question", "prediction", "metrics", "metadata"]


def test_nothing_to_convert_is_said(tmp_path: Path) -> None:
    script = ROOT / "examples/convert_old_format.py"
    command = [sys.executable, str(script), str(tmp_path), str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "holds nothing that can be imported" in done.stderr


if __name__ == "__main__":
    EXAMPLE.mkdir(exist_ok=True)
    for name, text in made().items():
        (EXAMPLE / name).write_text(text)
